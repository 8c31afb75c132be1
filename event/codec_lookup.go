package event

import (
	"maps"
	"slices"
)

// The registration of an Extensible broker, and what it shares with load reports.

// textMap reads a map of strings. Values that are null are left out, as Pulsar leaves them out when it writes.
func (r *reader) textMap(to *map[string]string) {
	if r.null() {
		*to = nil
		return
	}
	m := make(map[string]string)
	for key := range r.fields {
		if r.null() {
			delete(m, string(key))
			continue
		}
		m[string(key)] = string(r.text("a string"))
	}
	*to = m
}

func (w *writer) textMap(name string, m map[string]string) {
	if m == nil {
		return
	}
	w.plain(name)
	w.open('{')
	for _, key := range slices.Sorted(maps.Keys(m)) {
		w.key(key)
		w.out = appendText(w.out, m[key])
	}
	w.close('}')
}

func (r *reader) advertisedListener(l *AdvertisedListener) {
	*l = AdvertisedListener{}
	for key := range r.fields {
		switch string(key) {
		case "brokerServiceUrl":
			r.string(&l.BrokerServiceURL)
		case "brokerServiceUrlTls":
			r.string(&l.BrokerServiceURLTLS)
		case "brokerHttpUrl":
			r.string(&l.BrokerHTTPURL)
		case "brokerHttpsUrl":
			r.string(&l.BrokerHTTPSURL)
		default:
			r.skip()
		}
	}
}

func (w *writer) advertisedListener(l AdvertisedListener) {
	w.open('{')
	w.text("brokerServiceUrl", l.BrokerServiceURL)
	w.text("brokerServiceUrlTls", l.BrokerServiceURLTLS)
	w.text("brokerHttpUrl", l.BrokerHTTPURL)
	w.text("brokerHttpsUrl", l.BrokerHTTPSURL)
	w.close('}')
}

// listeners reads the advertised listeners. Those that are null are left out, as Pulsar leaves them out when it writes.
func (r *reader) listeners(to *map[string]AdvertisedListener) {
	if r.null() {
		*to = nil
		return
	}
	m := make(map[string]AdvertisedListener)
	for key := range r.fields {
		if r.null() {
			delete(m, string(key))
			continue
		}
		var l AdvertisedListener
		r.advertisedListener(&l)
		m[string(key)] = l
	}
	*to = m
}

func (w *writer) listeners(m map[string]AdvertisedListener) {
	if m == nil {
		return
	}
	w.plain("advertisedListeners")
	w.open('{')
	for _, key := range slices.Sorted(maps.Keys(m)) {
		w.key(key)
		w.advertisedListener(m[key])
	}
	w.close('}')
}

func (r *reader) brokerLookupData(d *BrokerLookupData) {
	*d = BrokerLookupData{}
	for key := range r.fields {
		switch string(key) {
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
		case "advertisedListeners":
			r.listeners(&d.AdvertisedListeners)
		case "protocols":
			r.textMap(&d.Protocols)
		case "persistentTopicsEnabled":
			r.bool(&d.PersistentTopicsEnabled)
		case "nonPersistentTopicsEnabled":
			r.bool(&d.NonPersistentTopicsEnabled)
		case "loadManagerClassName":
			r.string(&d.LoadManagerClassName)
		case "startTimestamp":
			r.int64(&d.StartTimestamp)
		case "brokerVersion":
			r.string(&d.BrokerVersion)
		case "properties":
			r.textMap(&d.Properties)
		default:
			r.skip()
		}
	}
}

func (w *writer) brokerLookupData(d *BrokerLookupData) {
	w.open('{')
	w.text("brokerId", d.BrokerID)
	w.text("webServiceUrl", d.WebServiceURL)
	w.text("webServiceUrlTls", d.WebServiceURLTLS)
	w.text("pulsarServiceUrl", d.PulsarServiceURL)
	w.text("pulsarServiceUrlTls", d.PulsarServiceURLTLS)
	w.listeners(d.AdvertisedListeners)
	w.textMap("protocols", d.Protocols)
	w.bool("persistentTopicsEnabled", d.PersistentTopicsEnabled)
	w.bool("nonPersistentTopicsEnabled", d.NonPersistentTopicsEnabled)
	w.text("loadManagerClassName", d.LoadManagerClassName)
	w.int("startTimestamp", d.StartTimestamp)
	w.text("brokerVersion", d.BrokerVersion)
	w.textMap("properties", d.Properties)
	w.close('}')
}
