package event

// The load report of the Simple load manager.

func (r *reader) systemResourceUsage(u *SystemResourceUsage) {
	*u = NewSystemResourceUsage()
	for key := range r.fields {
		switch string(key) {
		case "bandwidthIn":
			r.resource(&u.BandwidthIn, BandwidthIn, &u.Null)
		case "bandwidthOut":
			r.resource(&u.BandwidthOut, BandwidthOut, &u.Null)
		case "cpu":
			r.resource(&u.CPU, CPU, &u.Null)
		case "memory":
			r.resource(&u.Memory, Memory, &u.Null)
		case "directMemory":
			r.resource(&u.DirectMemory, DirectMemory, &u.Null)
		default:
			r.skip()
		}
	}
}

func (w *writer) systemResourceUsage(u *SystemResourceUsage) {
	w.open('{')
	w.resource(u.BandwidthIn, BandwidthIn, u.Null)
	w.resource(u.BandwidthOut, BandwidthOut, u.Null)
	w.resource(u.CPU, CPU, u.Null)
	w.resource(u.Memory, Memory, u.Null)
	w.resource(u.DirectMemory, DirectMemory, u.Null)
	w.close('}')
}

func (r *reader) loadReport(d *LoadReport) {
	*d = NewLoadReport()
	for key := range r.fields {
		if !r.loadReportMember(d, string(key)) && !r.loadReportAllocation(d, string(key)) {
			r.skip()
		}
	}
}

// loadReportMember reads what says who the broker is, what it serves and how loaded it is.
func (r *reader) loadReportMember(d *LoadReport, key string) bool {
	switch key {
	case "name":
		r.string(&d.Name)
	case "brokerVersionString":
		r.string(&d.BrokerVersionString)
	case "webServiceUrl":
		r.string(&d.WebServiceURL)
	case "webServiceUrlTls":
		r.string(&d.WebServiceURLTLS)
	case "pulsarServiceUrl":
		r.string(&d.PulsarServiceURL)
	case "pulsarServiceUrlTls":
		r.string(&d.PulsarServiceURLTLS)
	case "persistentTopicsEnabled":
		r.bool(&d.PersistentTopicsEnabled)
	case "nonPersistentTopicsEnabled":
		r.bool(&d.NonPersistentTopicsEnabled)
	case "underLoaded":
		r.bool(&d.UnderLoaded)
	case "overLoaded":
		r.bool(&d.OverLoaded)
	case "timestamp":
		r.int64(&d.Timestamp)
	case "protocols":
		r.textMap(&d.Protocols)
	case "loadManagerClassName":
		r.string(&d.LoadManagerClassName)
	case "startTimestamp":
		r.int64(&d.StartTimestamp)
	case "systemResourceUsage":
		r.optionalUsage(&d.SystemResourceUsage)
	case "bundleStats":
		r.bundleStats(&d.BundleStats, true)
	case "bundleGains":
		r.set(&d.BundleGains)
	case "bundleLosses":
		r.set(&d.BundleLosses)
	default:
		return false
	}
	return true
}

func (r *reader) optionalUsage(to **SystemResourceUsage) {
	*to = nil
	if !r.null() {
		*to = new(SystemResourceUsage)
		r.systemResourceUsage(*to)
	}
}

// loadReportAllocation reads what was allocated to the broker.
func (r *reader) loadReportAllocation(d *LoadReport, key string) bool {
	switch key {
	case "allocatedCPU":
		r.float(&d.AllocatedCPU)
	case "allocatedMemory":
		r.float(&d.AllocatedMemory)
	case "allocatedBandwidthIn":
		r.float(&d.AllocatedBandwidthIn)
	case "allocatedBandwidthOut":
		r.float(&d.AllocatedBandwidthOut)
	case "allocatedMsgRateIn":
		r.float(&d.AllocatedMsgRateIn)
	case "allocatedMsgRateOut":
		r.float(&d.AllocatedMsgRateOut)
	case "preAllocatedCPU":
		r.float(&d.PreAllocatedCPU)
	case "preAllocatedMemory":
		r.float(&d.PreAllocatedMemory)
	case "preAllocatedBandwidthIn":
		r.float(&d.PreAllocatedBandwidthIn)
	case "preAllocatedBandwidthOut":
		r.float(&d.PreAllocatedBandwidthOut)
	case "preAllocatedMsgRateIn":
		r.float(&d.PreAllocatedMsgRateIn)
	case "preAllocatedMsgRateOut":
		r.float(&d.PreAllocatedMsgRateOut)
	default:
		return false
	}
	return true
}

func (w *writer) loadReport(d *LoadReport) {
	w.open('{')
	w.text("name", d.Name)
	w.text("brokerVersionString", d.BrokerVersionString)
	w.text("webServiceUrl", d.WebServiceURL)
	w.text("webServiceUrlTls", d.WebServiceURLTLS)
	w.text("pulsarServiceUrl", d.PulsarServiceURL)
	w.text("pulsarServiceUrlTls", d.PulsarServiceURLTLS)
	w.bool("persistentTopicsEnabled", d.PersistentTopicsEnabled)
	w.bool("nonPersistentTopicsEnabled", d.NonPersistentTopicsEnabled)
	w.int("timestamp", d.Timestamp)
	w.float("msgRateIn", d.MsgRateIn())
	w.float("msgRateOut", d.MsgRateOut())
	w.int("numTopics", d.NumTopics())
	w.int("numConsumers", int64(d.NumConsumers()))
	w.int("numProducers", int64(d.NumProducers()))
	w.int("numBundles", int64(d.NumBundles()))
	w.textMap("protocols", d.Protocols)
	w.text("loadManagerClassName", d.LoadManagerClassName)
	w.int("startTimestamp", d.StartTimestamp)
	if d.SystemResourceUsage != nil {
		w.plain("systemResourceUsage")
		w.systemResourceUsage(d.SystemResourceUsage)
	}
	w.bundleStats("bundleStats", d.BundleStats)
	w.set("bundleGains", d.BundleGains)
	w.set("bundleLosses", d.BundleLosses)
	w.loadReportAllocation(d)
	w.loadReportDerived(d)
	w.close('}')
}

func (w *writer) loadReportAllocation(d *LoadReport) {
	w.float("allocatedCPU", d.AllocatedCPU)
	w.float("allocatedMemory", d.AllocatedMemory)
	w.float("allocatedBandwidthIn", d.AllocatedBandwidthIn)
	w.float("allocatedBandwidthOut", d.AllocatedBandwidthOut)
	w.float("allocatedMsgRateIn", d.AllocatedMsgRateIn)
	w.float("allocatedMsgRateOut", d.AllocatedMsgRateOut)
	w.float("preAllocatedCPU", d.PreAllocatedCPU)
	w.float("preAllocatedMemory", d.PreAllocatedMemory)
	w.float("preAllocatedBandwidthIn", d.PreAllocatedBandwidthIn)
	w.float("preAllocatedBandwidthOut", d.PreAllocatedBandwidthOut)
	w.float("preAllocatedMsgRateIn", d.PreAllocatedMsgRateIn)
	w.float("preAllocatedMsgRateOut", d.PreAllocatedMsgRateOut)
}

// loadReportDerived writes what Pulsar's class answers as a load report of any manager. Its throughputs are message rates: a
// fault of Pulsar that readers rely on not to change.
func (w *writer) loadReportDerived(d *LoadReport) {
	if u := d.SystemResourceUsage; u != nil {
		w.resource(u.CPU, CPU, u.Null)
		w.resource(u.Memory, Memory, u.Null)
		w.resource(u.DirectMemory, DirectMemory, u.Null)
		w.resource(u.BandwidthIn, BandwidthIn, u.Null)
		w.resource(u.BandwidthOut, BandwidthOut, u.Null)
	}
	w.float("msgThroughputIn", d.MsgRateIn())
	w.float("msgThroughputOut", d.MsgRateOut())
	w.bool("underLoaded", d.UnderLoaded)
	w.bool("overLoaded", d.OverLoaded)
	w.string("loadReportType", reportTypeSimple)
	w.int("lastUpdate", d.Timestamp)
}
