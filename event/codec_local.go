package event

// The load report of the Modular load manager, and the lists that it shares with the Simple one's.

// bundleStats reads a map from bundle to stats in the order of the document. Entries that are null are refused or, as Pulsar
// leaves them out when it writes, skipped.
func (r *reader) bundleStats(to *[]NamedBundleStats, refuseNull bool) {
	*to = nil
	if r.null() {
		return
	}
	list := make([]NamedBundleStats, 0, 16)
	var seen index
	for key := range r.fields {
		if !refuseNull && r.null() {
			continue
		}
		s := NamedBundleStats{Bundle: string(key)}
		r.stats(&s.Stats)
		if i, again := seen.place(s.Bundle, len(list)); again {
			list[i] = s
		} else {
			list = append(list, s)
		}
	}
	*to = list
}

func (w *writer) bundleStats(name string, list []NamedBundleStats) {
	if list == nil {
		return
	}
	w.plain(name)
	w.open('{')
	for i := range list {
		w.key(list[i].Bundle)
		w.stats(&list[i].Stats)
	}
	w.close('}')
}

// set reads an array of names, each of which counts once.
func (r *reader) set(to *[]string) {
	*to = nil
	if r.null() {
		return
	}
	list := []string{}
	var seen index
	for range r.elements {
		name := string(r.text("a string"))
		if _, again := seen.place(name, len(list)); !again {
			list = append(list, name)
		}
	}
	*to = list
}

func (w *writer) set(name string, list []string) {
	if list == nil {
		return
	}
	w.plain(name)
	w.open('[')
	for _, s := range list {
		w.element()
		w.out = appendText(w.out, s)
	}
	w.close(']')
}

func (r *reader) localBrokerData(d *LocalBrokerData) {
	*d = NewLocalBrokerData(0)
	for key := range r.fields {
		if !r.localBrokerMember(d, string(key)) && !r.localBrokerLoad(d, string(key)) {
			r.skip()
		}
	}
}

// localBrokerMember reads what says who the broker is and what it serves.
func (r *reader) localBrokerMember(d *LocalBrokerData, key string) bool {
	switch key {
	case "brokerId":
		r.string(&d.BrokerID)
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
	case "bundles":
		r.set(&d.Bundles)
	case "lastBundleGains":
		r.set(&d.LastBundleGains)
	case "lastBundleLosses":
		r.set(&d.LastBundleLosses)
	case "brokerVersionString":
		r.string(&d.BrokerVersionString)
	case "protocols":
		r.textMap(&d.Protocols)
	case "advertisedListeners":
		r.listeners(&d.AdvertisedListeners)
	case "loadManagerClassName":
		r.string(&d.LoadManagerClassName)
	case "startTimestamp":
		r.int64(&d.StartTimestamp)
	default:
		return false
	}
	return true
}

// localBrokerLoad reads what says how loaded the broker is.
func (r *reader) localBrokerLoad(d *LocalBrokerData, key string) bool {
	switch key {
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
	case "lastUpdate":
		r.int64(&d.LastUpdate)
	case "lastStats":
		r.bundleStats(&d.LastStats, false)
	case "numTopics":
		r.int64(&d.NumTopics)
	case "numBundles":
		r.int32(&d.NumBundles)
	case "numConsumers":
		r.int32(&d.NumConsumers)
	case "numProducers":
		r.int32(&d.NumProducers)
	default:
		return false
	}
	return true
}

func (w *writer) localBrokerData(d *LocalBrokerData) {
	w.open('{')
	w.text("brokerId", d.BrokerID)
	w.text("webServiceUrl", d.WebServiceURL)
	w.text("webServiceUrlTls", d.WebServiceURLTLS)
	w.text("pulsarServiceUrl", d.PulsarServiceURL)
	w.text("pulsarServiceUrlTls", d.PulsarServiceURLTLS)
	w.bool("persistentTopicsEnabled", d.PersistentTopicsEnabled)
	w.bool("nonPersistentTopicsEnabled", d.NonPersistentTopicsEnabled)
	w.resource(d.CPU, CPU, d.NullResources)
	w.resource(d.Memory, Memory, d.NullResources)
	w.resource(d.DirectMemory, DirectMemory, d.NullResources)
	w.resource(d.BandwidthIn, BandwidthIn, d.NullResources)
	w.resource(d.BandwidthOut, BandwidthOut, d.NullResources)
	w.float("msgThroughputIn", d.MsgThroughputIn)
	w.float("msgThroughputOut", d.MsgThroughputOut)
	w.float("msgRateIn", d.MsgRateIn)
	w.float("msgRateOut", d.MsgRateOut)
	w.int("lastUpdate", d.LastUpdate)
	w.bundleStats("lastStats", d.LastStats)
	w.int("numTopics", d.NumTopics)
	w.int("numBundles", int64(d.NumBundles))
	w.int("numConsumers", int64(d.NumConsumers))
	w.int("numProducers", int64(d.NumProducers))
	w.set("bundles", d.Bundles)
	w.set("lastBundleGains", d.LastBundleGains)
	w.set("lastBundleLosses", d.LastBundleLosses)
	w.text("brokerVersionString", d.BrokerVersionString)
	w.textMap("protocols", d.Protocols)
	w.listeners(d.AdvertisedListeners)
	w.text("loadManagerClassName", d.LoadManagerClassName)
	w.int("startTimestamp", d.StartTimestamp)
	w.float("maxResourceUsage", d.MaxResourceUsage())
	w.string("loadReportType", reportTypeModular)
	w.close('}')
}

// MaxResourceUsage is the usage of the fullest of CPU, direct memory and bandwidth as a fraction (1 = 100 %); heap memory is
// left out. It is computed in float32 and so is 0.10000000149011612 at 10 % (Pulsar: LocalBrokerData.getMaxResourceUsage).
func (d LocalBrokerData) MaxResourceUsage() float64 {
	most := negativeInfinity
	for _, r := range [...]ResourceUsage{d.CPU, d.DirectMemory, d.BandwidthIn, d.BandwidthOut} {
		if p := r.PercentUsage(); p > most { // a NaN is never greater
			most = p
		}
	}
	return float64(most / 100)
}
