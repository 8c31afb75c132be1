package event

import "encoding/json"

// BrokerReport is what a broker answers when it is asked for its load: one of the two, depending on its load manager. It is
// what topics.LocalBrokerData carries.
type BrokerReport struct {
	Local  *LocalBrokerData // Modular
	Simple *LoadReport      // Simple
}

// DecodeReport reads a load report of either kind. It is read as Pulsar reads it (KindOfReport), except that a document
// with a systemResourceUsage is a LoadReport also where loadReportType and underLoaded are missing, as in documents about
// Pulsar 3.0; and where a LoadReport has no systemResourceUsage the usage at its top level counts. Errors are of type *Error.
func DecodeReport(document []byte) (BrokerReport, error) {
	kind, usage, err := reportKind(document)
	if err != nil {
		return BrokerReport{}, err
	}
	if kind == ModularReport && !usage {
		d, err := Decode[LocalBrokerData](document)
		return BrokerReport{Local: &d}, err
	}
	d, err := Decode[LoadReport](document)
	if err == nil && d.SystemResourceUsage == nil {
		err = topLevelUsage(document, &d)
	}
	return BrokerReport{Simple: &d}, err
}

// reportKind is KindOfReport, and whether there is a systemResourceUsage.
func reportKind(document []byte) (kind ReportKind, usage bool, err error) {
	if kind, err = KindOfReport(document); err != nil {
		return kind, false, err
	}
	r := reader{data: document}
	if r.begin() {
		for key := range r.fields {
			usage = usage || string(key) == "systemResourceUsage" && r.peek() == '{'
			r.skip()
		}
	}
	return kind, usage, r.finish("load report")
}

// topLevelUsage takes the usage from the top level of a LoadReport, if any of it is there.
func topLevelUsage(document []byte, d *LoadReport) error {
	u, any := NewSystemResourceUsage(), false
	r := reader{data: document}
	if r.begin() {
		for key := range r.fields {
			to, which, ok := u.member(string(key))
			if !ok {
				r.skip()
				continue
			}
			r.resource(to, which, &u.Null)
			any = true
		}
	}
	if any {
		d.SystemResourceUsage = &u
	}
	return r.finish("LoadReport")
}

func (u *SystemResourceUsage) member(name string) (*ResourceUsage, Resource, bool) {
	switch name {
	case "cpu":
		return &u.CPU, CPU, true
	case "memory":
		return &u.Memory, Memory, true
	case "directMemory":
		return &u.DirectMemory, DirectMemory, true
	case "bandwidthIn":
		return &u.BandwidthIn, BandwidthIn, true
	case "bandwidthOut":
		return &u.BandwidthOut, BandwidthOut, true
	}
	return nil, 0, false
}

// Empty says whether there is no report.
func (r BrokerReport) Empty() bool { return r.Local == nil && r.Simple == nil }

// Kind is the class of the report.
func (r BrokerReport) Kind() ReportKind {
	if r.Simple != nil {
		return SimpleReport
	}
	return ModularReport
}

// Usage is the usage of the broker's host; what is null or absent is (-1, -1), unknown.
func (r BrokerReport) Usage() SystemResourceUsage {
	u := NewSystemResourceUsage()
	switch {
	case r.Local != nil:
		d := r.Local
		u = SystemResourceUsage{CPU: d.CPU, Memory: d.Memory, DirectMemory: d.DirectMemory,
			BandwidthIn: d.BandwidthIn, BandwidthOut: d.BandwidthOut, Null: d.NullResources}
	case r.Simple != nil && r.Simple.SystemResourceUsage != nil:
		u = *r.Simple.SystemResourceUsage
	}
	for _, name := range resourceNames {
		if to, which, _ := u.member(name); u.Null.Has(which) {
			*to = ResourceUsage{Usage: -1, Limit: -1}
		}
	}
	u.Null = 0
	return u
}

// Stats are the bundles that the broker serves, in the order of the report. The slice is the report's own.
func (r BrokerReport) Stats() []NamedBundleStats {
	switch {
	case r.Local != nil:
		return r.Local.LastStats
	case r.Simple != nil:
		return r.Simple.BundleStats
	}
	return nil
}

// UpdatedAt is when the broker last renewed the report, Unix ms by its own clock; 0 when it does not say. A Modular broker
// renews it when it stores its report, a Simple one also when it is asked.
func (r BrokerReport) UpdatedAt() int64 {
	switch {
	case r.Local != nil:
		return r.Local.LastUpdate
	case r.Simple != nil:
		return r.Simple.Timestamp
	}
	return 0
}

// LoadManager is the class of the broker's load manager, "" if it does not say.
func (r BrokerReport) LoadManager() string {
	switch {
	case r.Local != nil:
		return r.Local.LoadManagerClassName
	case r.Simple != nil:
		return r.Simple.LoadManagerClassName
	}
	return ""
}

// Addresses are the web service addresses that the broker gives for itself, http://host:port.
func (r BrokerReport) Addresses() (plain, tls string) {
	switch {
	case r.Local != nil:
		return r.Local.WebServiceURL, r.Local.WebServiceURLTLS
	case r.Simple != nil:
		return r.Simple.WebServiceURL, r.Simple.WebServiceURLTLS
	}
	return "", ""
}

// MarshalJSON encodes the report as Pulsar does; an empty one is null.
func (r BrokerReport) MarshalJSON() ([]byte, error) {
	switch {
	case r.Local != nil:
		return json.Marshal(r.Local)
	case r.Simple != nil:
		return json.Marshal(r.Simple)
	}
	return []byte("null"), nil
}

// UnmarshalJSON is DecodeReport.
func (r *BrokerReport) UnmarshalJSON(document []byte) (err error) {
	*r, err = DecodeReport(document)
	return err
}

// BundleStats is every bundle that a broker serves, in the order in which it was read: what topics.BundleStats carries, as
// {"bundleStats": {"tenant/ns/0x........_0x........": NamespaceBundleStats}}.
type BundleStats struct {
	BundleStats []NamedBundleStats
}

// UnmarshalJSON decodes what MarshalJSON encodes. Errors are of type *Error.
func (d *BundleStats) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		d.BundleStats = nil
		for key := range r.fields {
			if string(key) == "bundleStats" {
				r.bundleStats(&d.BundleStats, true)
			} else {
				r.skip()
			}
		}
	}
	return r.finish("BundleStats")
}

// MarshalJSON encodes the list, an empty one too.
func (d BundleStats) MarshalJSON() ([]byte, error) {
	list := d.BundleStats
	if list == nil {
		list = []NamedBundleStats{}
	}
	w := newWriter()
	w.open('{')
	w.bundleStats("bundleStats", list)
	w.close('}')
	return w.out, nil
}
