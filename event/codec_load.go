package event

// The documents of the Extensible load manager's two load topics, and what they share with load reports.

func (r *reader) usage(u *ResourceUsage) {
	*u = ResourceUsage{}
	for key := range r.fields {
		switch string(key) {
		case "usage":
			r.float(&u.Usage)
		case "limit":
			r.float(&u.Limit)
		default:
			r.skip()
		}
	}
}

// resource reads a usage that may be null, and notes whether it is.
func (r *reader) resource(u *ResourceUsage, which Resource, null *ResourceSet) {
	if r.null() {
		*u = ResourceUsage{}
		*null = null.With(which)
		return
	}
	*null = null.Without(which)
	r.usage(u)
}

func (w *writer) usage(u ResourceUsage) {
	w.open('{')
	w.float("usage", u.Usage)
	w.float("limit", u.Limit)
	w.close('}')
}

func (w *writer) resource(u ResourceUsage, which Resource, null ResourceSet) {
	if null.Has(which) {
		return
	}
	w.plain(which.String())
	w.usage(u)
}

func (r *reader) stats(s *NamespaceBundleStats) {
	*s = NamespaceBundleStats{}
	for key := range r.fields {
		switch string(key) {
		case "msgRateIn":
			r.float(&s.MsgRateIn)
		case "msgThroughputIn":
			r.float(&s.MsgThroughputIn)
		case "msgRateOut":
			r.float(&s.MsgRateOut)
		case "msgThroughputOut":
			r.float(&s.MsgThroughputOut)
		case "consumerCount":
			r.int32(&s.ConsumerCount)
		case "producerCount":
			r.int32(&s.ProducerCount)
		case "topics":
			r.int64(&s.Topics)
		case "cacheSize":
			r.int64(&s.CacheSize)
		default:
			r.skip()
		}
	}
}

func (w *writer) stats(s *NamespaceBundleStats) {
	w.open('{')
	w.float("msgRateIn", s.MsgRateIn)
	w.float("msgThroughputIn", s.MsgThroughputIn)
	w.float("msgRateOut", s.MsgRateOut)
	w.float("msgThroughputOut", s.MsgThroughputOut)
	w.int("consumerCount", int64(s.ConsumerCount))
	w.int("producerCount", int64(s.ProducerCount))
	w.int("topics", s.Topics)
	w.int("cacheSize", s.CacheSize)
	w.close('}')
}

func (r *reader) brokerLoadData(d *BrokerLoadData) {
	*d = NewBrokerLoadData()
	for key := range r.fields {
		switch string(key) {
		case "cpu":
			r.resource(&d.CPU, CPU, &d.NullResources)
		case "memory":
			r.resource(&d.Memory, Memory, &d.NullResources)
		case "directMemory":
			r.resource(&d.DirectMemory, DirectMemory, &d.NullResources)
		case "bandwidthIn":
			r.resource(&d.BandwidthIn, BandwidthIn, &d.NullResources)
		case "bandwidthOut":
			r.resource(&d.BandwidthOut, BandwidthOut, &d.NullResources)
		case "msgThroughputIn":
			r.float(&d.MsgThroughputIn)
		case "msgThroughputOut":
			r.float(&d.MsgThroughputOut)
		case "msgRateIn":
			r.float(&d.MsgRateIn)
		case "msgRateOut":
			r.float(&d.MsgRateOut)
		case "bundleCount":
			r.int64(&d.BundleCount)
		case "topics":
			r.int64(&d.Topics)
		case "maxResourceUsage":
			r.float(&d.MaxResourceUsage)
		case "weightedMaxEMA":
			r.float(&d.WeightedMaxEMA)
		case "msgThroughputEMA":
			r.float(&d.MsgThroughputEMA)
		case "updatedAt":
			r.int64(&d.UpdatedAt)
		case "reportedAt":
			r.int64(&d.ReportedAt)
		default:
			r.skip()
		}
	}
}

func (w *writer) brokerLoadData(d *BrokerLoadData) {
	w.open('{')
	w.resource(d.CPU, CPU, d.NullResources)
	w.resource(d.Memory, Memory, d.NullResources)
	w.resource(d.DirectMemory, DirectMemory, d.NullResources)
	w.resource(d.BandwidthIn, BandwidthIn, d.NullResources)
	w.resource(d.BandwidthOut, BandwidthOut, d.NullResources)
	w.float("msgThroughputIn", d.MsgThroughputIn)
	w.float("msgThroughputOut", d.MsgThroughputOut)
	w.float("msgRateIn", d.MsgRateIn)
	w.float("msgRateOut", d.MsgRateOut)
	w.int("bundleCount", d.BundleCount)
	w.int("topics", d.Topics)
	w.float("maxResourceUsage", d.MaxResourceUsage)
	w.float("weightedMaxEMA", d.WeightedMaxEMA)
	w.float("msgThroughputEMA", d.MsgThroughputEMA)
	w.int("updatedAt", d.UpdatedAt)
	w.int("reportedAt", d.ReportedAt)
	w.close('}')
}

func (r *reader) bundleLoad(b *BundleLoad) {
	b.NullStats = true // until there are any
	for key := range r.fields {
		switch string(key) {
		case "bundleName":
			r.string(&b.BundleName)
		case "stats":
			if b.NullStats = r.null(); b.NullStats {
				b.Stats = NamespaceBundleStats{}
				break
			}
			r.stats(&b.Stats)
		default:
			r.skip()
		}
	}
}

func (w *writer) bundleLoad(b *BundleLoad) {
	w.open('{')
	w.text("bundleName", b.BundleName)
	if !b.NullStats {
		w.plain("stats")
		w.stats(&b.Stats)
	}
	w.close('}')
}

func (r *reader) topBundlesLoadData(d *TopBundlesLoadData) {
	*d = NewTopBundlesLoadData()
	for key := range r.fields {
		if string(key) != "topBundlesLoadData" {
			r.skip()
			continue
		}
		if r.null() {
			d.TopBundlesLoadData = nil
			continue
		}
		d.TopBundlesLoadData = make([]BundleLoad, 0, 10) // what brokers send by default
		for range r.elements {
			var b BundleLoad
			r.bundleLoad(&b)
			d.TopBundlesLoadData = append(d.TopBundlesLoadData, b)
		}
	}
}

func (w *writer) topBundlesLoadData(d *TopBundlesLoadData) {
	w.open('{')
	if d.TopBundlesLoadData != nil {
		w.plain("topBundlesLoadData")
		w.open('[')
		for i := range d.TopBundlesLoadData {
			w.element()
			w.bundleLoad(&d.TopBundlesLoadData[i])
		}
		w.close(']')
	}
	w.close('}')
}
