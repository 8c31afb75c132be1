package event

// The documents of the Modular load manager in the metadata store.

func (r *reader) timeAverage(t *TimeAverageMessageData) {
	*t = TimeAverageMessageData{}
	for key := range r.fields {
		switch string(key) {
		case "maxSamples":
			r.int32(&t.MaxSamples)
		case "numSamples":
			r.int32(&t.NumSamples)
		case "msgThroughputIn":
			r.float(&t.MsgThroughputIn)
		case "msgThroughputOut":
			r.float(&t.MsgThroughputOut)
		case "msgRateIn":
			r.float(&t.MsgRateIn)
		case "msgRateOut":
			r.float(&t.MsgRateOut)
		default:
			r.skip()
		}
	}
}

func (w *writer) timeAverage(t *TimeAverageMessageData) {
	w.open('{')
	w.int("maxSamples", int64(t.MaxSamples))
	w.int("numSamples", int64(t.NumSamples))
	w.float("msgThroughputIn", t.MsgThroughputIn)
	w.float("msgThroughputOut", t.MsgThroughputOut)
	w.float("msgRateIn", t.MsgRateIn)
	w.float("msgRateOut", t.MsgRateOut)
	w.close('}')
}

// term reads one of the two averages of a bundle and notes whether it is null.
func (r *reader) term(t *TimeAverageMessageData, null *bool) {
	if *null = r.null(); *null {
		*t = TimeAverageMessageData{}
		return
	}
	r.timeAverage(t)
}

func (r *reader) bundleData(d *BundleData) {
	*d = BundleData{NullShortTerm: true, NullLongTerm: true} // until there are any
	for key := range r.fields {
		switch string(key) {
		case "shortTermData":
			r.term(&d.ShortTermData, &d.NullShortTerm)
		case "longTermData":
			r.term(&d.LongTermData, &d.NullLongTerm)
		case "topics":
			r.int32(&d.Topics)
		default:
			r.skip()
		}
	}
}

func (w *writer) bundleData(d *BundleData) {
	w.open('{')
	if !d.NullShortTerm {
		w.plain("shortTermData")
		w.timeAverage(&d.ShortTermData)
	}
	if !d.NullLongTerm {
		w.plain("longTermData")
		w.timeAverage(&d.LongTermData)
	}
	w.int("topics", int64(d.Topics))
	w.close('}')
}

func (r *reader) timeAverageBrokerData(d *TimeAverageBrokerData) {
	*d = TimeAverageBrokerData{}
	for key := range r.fields {
		switch string(key) {
		case "shortTermMsgThroughputIn":
			r.float(&d.ShortTermMsgThroughputIn)
		case "shortTermMsgThroughputOut":
			r.float(&d.ShortTermMsgThroughputOut)
		case "shortTermMsgRateIn":
			r.float(&d.ShortTermMsgRateIn)
		case "shortTermMsgRateOut":
			r.float(&d.ShortTermMsgRateOut)
		case "longTermMsgThroughputIn":
			r.float(&d.LongTermMsgThroughputIn)
		case "longTermMsgThroughputOut":
			r.float(&d.LongTermMsgThroughputOut)
		case "longTermMsgRateIn":
			r.float(&d.LongTermMsgRateIn)
		case "longTermMsgRateOut":
			r.float(&d.LongTermMsgRateOut)
		default:
			r.skip()
		}
	}
}

func (w *writer) timeAverageBrokerData(d *TimeAverageBrokerData) {
	w.open('{')
	w.float("shortTermMsgThroughputIn", d.ShortTermMsgThroughputIn)
	w.float("shortTermMsgThroughputOut", d.ShortTermMsgThroughputOut)
	w.float("shortTermMsgRateIn", d.ShortTermMsgRateIn)
	w.float("shortTermMsgRateOut", d.ShortTermMsgRateOut)
	w.float("longTermMsgThroughputIn", d.LongTermMsgThroughputIn)
	w.float("longTermMsgThroughputOut", d.LongTermMsgThroughputOut)
	w.float("longTermMsgRateIn", d.LongTermMsgRateIn)
	w.float("longTermMsgRateOut", d.LongTermMsgRateOut)
	w.close('}')
}

func (r *reader) resourceQuota(q *ResourceQuota) {
	*q = NewResourceQuota()
	for key := range r.fields {
		switch string(key) {
		case "msgRateIn":
			r.float(&q.MsgRateIn)
		case "msgRateOut":
			r.float(&q.MsgRateOut)
		case "bandwidthIn":
			r.float(&q.BandwidthIn)
		case "bandwidthOut":
			r.float(&q.BandwidthOut)
		case "memory":
			r.float(&q.Memory)
		case "dynamic":
			r.bool(&q.Dynamic)
		default:
			r.skip()
		}
	}
}

func (w *writer) resourceQuota(q *ResourceQuota) {
	w.open('{')
	w.float("msgRateIn", q.MsgRateIn)
	w.float("msgRateOut", q.MsgRateOut)
	w.float("bandwidthIn", q.BandwidthIn)
	w.float("bandwidthOut", q.BandwidthOut)
	w.float("memory", q.Memory)
	w.bool("dynamic", q.Dynamic)
	w.close('}')
}
