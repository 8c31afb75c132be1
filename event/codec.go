package event

import (
	"encoding/json"
	"fmt"
)

// Decode decodes one document, such as the payload of a message on a load topic. Unlike UnmarshalJSON it also refuses a
// payload that is empty (a tombstone has no value) or null. Errors are of type *Error.
//
//	load, err := event.Decode[event.BrokerLoadData](message.Payload)
func Decode[T any, P interface {
	*T
	json.Unmarshaler
}](payload []byte) (T, error) {
	var v T
	r := reader{data: payload}
	if r.space(); r.pos == len(payload) || r.null() {
		r.pos = 0
		r.fail("an object")
		return v, r.finish(documentName(v))
	}
	err := P(&v).UnmarshalJSON(payload)
	return v, err
}

// documentName is the name of a type without its package.
func documentName(v any) string {
	name := fmt.Sprintf("%T", v)
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '.' {
			return name[i+1:]
		}
	}
	return name
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (u *ResourceUsage) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.usage(u)
	}
	return r.finish("ResourceUsage")
}

// MarshalJSON encodes as Pulsar does.
func (u ResourceUsage) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.usage(u)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (u *SystemResourceUsage) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.systemResourceUsage(u)
	}
	return r.finish("SystemResourceUsage")
}

// MarshalJSON encodes as Pulsar does.
func (u SystemResourceUsage) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.systemResourceUsage(&u)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (s *NamespaceBundleStats) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.stats(s)
	}
	return r.finish("NamespaceBundleStats")
}

// MarshalJSON encodes as Pulsar does.
func (s NamespaceBundleStats) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.stats(&s)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (d *BrokerLoadData) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.brokerLoadData(d)
	}
	return r.finish("BrokerLoadData")
}

// MarshalJSON encodes as Pulsar does.
func (d BrokerLoadData) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.brokerLoadData(&d)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (b *BundleLoad) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.bundleLoad(b)
	}
	return r.finish("BundleLoad")
}

// MarshalJSON encodes as Pulsar does.
func (b BundleLoad) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.bundleLoad(&b)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (d *TopBundlesLoadData) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.topBundlesLoadData(d)
	}
	return r.finish("TopBundlesLoadData")
}

// MarshalJSON encodes as Pulsar does.
func (d TopBundlesLoadData) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.topBundlesLoadData(&d)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (d *ServiceUnitStateData) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.serviceUnitStateData(d)
	}
	return r.finish("ServiceUnitStateData")
}

// MarshalJSON encodes as Pulsar does; it refuses what Pulsar refuses, see Validate.
func (d ServiceUnitStateData) MarshalJSON() ([]byte, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	w := newWriter()
	w.serviceUnitStateData(&d)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (l *AdvertisedListener) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.advertisedListener(l)
	}
	return r.finish("AdvertisedListener")
}

// MarshalJSON encodes as Pulsar does.
func (l AdvertisedListener) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.advertisedListener(l)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (d *BrokerLookupData) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.brokerLookupData(d)
	}
	return r.finish("BrokerLookupData")
}

// MarshalJSON encodes as Pulsar does.
func (d BrokerLookupData) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.brokerLookupData(&d)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (d *LocalBrokerData) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.localBrokerData(d)
	}
	return r.finish("LocalBrokerData")
}

// MarshalJSON encodes as Pulsar does; like Pulsar it refuses a report in which a resource other than memory is null.
func (d LocalBrokerData) MarshalJSON() ([]byte, error) {
	if null := d.NullResources.Without(Memory); null != 0 {
		return nil, fmt.Errorf("LocalBrokerData: %s is null, there is no maxResourceUsage without it", null)
	}
	w := newWriter()
	w.localBrokerData(&d)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (t *TimeAverageMessageData) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.timeAverage(t)
	}
	return r.finish("TimeAverageMessageData")
}

// MarshalJSON encodes as Pulsar does.
func (t TimeAverageMessageData) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.timeAverage(&t)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (d *BundleData) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.bundleData(d)
	}
	return r.finish("BundleData")
}

// MarshalJSON encodes as Pulsar does.
func (d BundleData) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.bundleData(&d)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (d *TimeAverageBrokerData) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.timeAverageBrokerData(d)
	}
	return r.finish("TimeAverageBrokerData")
}

// MarshalJSON encodes as Pulsar does.
func (d TimeAverageBrokerData) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.timeAverageBrokerData(&d)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (q *ResourceQuota) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.resourceQuota(q)
	}
	return r.finish("ResourceQuota")
}

// MarshalJSON encodes as Pulsar does.
func (q ResourceQuota) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.resourceQuota(&q)
	return w.out, nil
}

// UnmarshalJSON decodes what Pulsar writes, see the package's comment. Errors are of type *Error.
func (d *LoadReport) UnmarshalJSON(document []byte) error {
	r := reader{data: document}
	if r.begin() {
		r.loadReport(d)
	}
	return r.finish("LoadReport")
}

// MarshalJSON encodes as Pulsar does.
func (d LoadReport) MarshalJSON() ([]byte, error) {
	w := newWriter()
	w.loadReport(&d)
	return w.out, nil
}
