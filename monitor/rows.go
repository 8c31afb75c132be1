package monitor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/internal/jsonfloat"
)

// Rates are the traffic of a broker or a bundle: messages/second and bytes/second.
type Rates struct {
	MsgRateIn        jsonfloat.Float `json:"msgRateIn"`
	MsgRateOut       jsonfloat.Float `json:"msgRateOut"`
	MsgThroughputIn  jsonfloat.Float `json:"msgThroughputIn"`
	MsgThroughputOut jsonfloat.Float `json:"msgThroughputOut"`
}

func rates(rateIn, rateOut, in, out float64) *Rates {
	return &Rates{jsonfloat.Float(rateIn), jsonfloat.Float(rateOut), jsonfloat.Float(in), jsonfloat.Float(out)}
}

// Of are the rates of a bundle's statistics.
func Of(s *event.NamespaceBundleStats) *Rates {
	return rates(s.MsgRateIn, s.MsgRateOut, s.MsgThroughputIn, s.MsgThroughputOut)
}

// Sum are the rates of all bundles of a list.
func Sum(list []event.NamedBundleStats) *Rates {
	var s event.NamespaceBundleStats
	for i := range list {
		x := &list[i].Stats
		s.MsgRateIn += x.MsgRateIn
		s.MsgRateOut += x.MsgRateOut
		s.MsgThroughputIn += x.MsgThroughputIn
		s.MsgThroughputOut += x.MsgThroughputOut
	}
	return Of(&s)
}

// Average are rates over a number of samples.
type Average struct {
	Rates
	Samples int32 `json:"samples,omitempty"` // how many it was made from; 0 = that is not known
}

// AverageOf is an average as a bundle's history has it; nil before its first sample, when it holds Pulsar's defaults.
func AverageOf(t *event.TimeAverageMessageData) *Average {
	if t.NumSamples == 0 {
		return nil
	}
	return &Average{*rates(t.MsgRateIn, t.MsgRateOut, t.MsgThroughputIn, t.MsgThroughputOut), t.NumSamples}
}

// AveragesOf are the two averages of a broker; nil without any.
func AveragesOf(d *event.TimeAverageBrokerData) (short, long *Average) {
	if d == nil {
		return nil, nil
	}
	return &Average{Rates: *rates(d.ShortTermMsgRateIn, d.ShortTermMsgRateOut, d.ShortTermMsgThroughputIn, d.ShortTermMsgThroughputOut)},
		&Average{Rates: *rates(d.LongTermMsgRateIn, d.LongTermMsgRateOut, d.LongTermMsgThroughputIn, d.LongTermMsgThroughputOut)}
}

// Usage is how much of its resources a broker uses, in percent; nil = unknown.
type Usage struct {
	CPU          *jsonfloat.Float `json:"cpu"`
	Memory       *jsonfloat.Float `json:"memory"`
	DirectMemory *jsonfloat.Float `json:"directMemory"`
	BandwidthIn  *jsonfloat.Float `json:"bandwidthIn"`
	BandwidthOut *jsonfloat.Float `json:"bandwidthOut"`
	Max          *jsonfloat.Float `json:"max"` // of all but heap memory, as Pulsar's maxResourceUsage
}

// UsageOf is the usage of five resources. A limit of 0 or less or a negative usage is unknown.
func UsageOf(cpu, memory, direct, in, out event.ResourceUsage) *Usage {
	u := &Usage{CPU: percent(cpu), Memory: percent(memory), DirectMemory: percent(direct), BandwidthIn: percent(in), BandwidthOut: percent(out)}
	for _, x := range []*jsonfloat.Float{u.CPU, u.DirectMemory, u.BandwidthIn, u.BandwidthOut} {
		if x != nil && (u.Max == nil || *x > *u.Max) {
			u.Max = x
		}
	}
	return u
}

func percent(r event.ResourceUsage) *jsonfloat.Float {
	if !(r.Limit > 0) || !(r.Usage >= 0) {
		return nil
	}
	p := jsonfloat.Float(r.PercentUsage())
	return &p
}

// Broker is what is known of a broker now. What is not known is nil.
type Broker struct {
	ID            string           `json:"broker"`
	Leads         bool             `json:"leads"`
	Version       string           `json:"version,omitempty"`
	Manager       string           `json:"manager,omitempty"` // simple, modular or extensible
	Usage         *Usage           `json:"usage"`
	Bundles       *int64           `json:"bundles"`
	Topics        *int64           `json:"topics"`
	Producers     *int64           `json:"producers"`
	Consumers     *int64           `json:"consumers"`
	Now           *Rates           `json:"rates"`
	Short         *Average         `json:"shortTerm"`
	Long          *Average         `json:"longTerm"`
	LoadEMA       *jsonfloat.Float `json:"weightedMaxEMA,omitempty"`   // Extensible: fraction, as the broker publishes it
	ThroughputEMA *jsonfloat.Float `json:"msgThroughputEMA,omitempty"` // Extensible: bytes/s, as the broker publishes it
	Age           *int64           `json:"ageMillis"`                  // of its load data
	Estimated     bool             `json:"estimated,omitempty"`        // usage was made from its metrics
	Error         string           `json:"error,omitempty"`            // why something is missing
}

// Bundle is what is known of a bundle now. What is not known is nil.
type Bundle struct {
	Name      string   `json:"bundle"`
	Namespace string   `json:"namespace"`
	Owner     string   `json:"owner,omitempty"` // broker id, "" = none
	State     string   `json:"state,omitempty"` // on an Extensible cluster
	Topics    *int64   `json:"topics"`
	Producers *int32   `json:"producers"`
	Consumers *int32   `json:"consumers"`
	Now       *Rates   `json:"rates"`
	Short     *Average `json:"shortTerm"`
	Long      *Average `json:"longTerm"`
}

// SortKeys are the names by which bundles can be sorted.
var SortKeys = []string{"throughput", "rate", "topics", "short", "long", "name", "owner"}

// SortBundles orders bundles: by name or by owner and then throughput upwards in the alphabet, by everything else the
// greatest first. Bundles that the figure is not known of come last; equals are in the order of their names.
func SortBundles(list []Bundle, key string) error {
	figure := map[string]func(*Bundle) *float64{
		"throughput": func(b *Bundle) *float64 { return total(b.Now, false) },
		"rate":       func(b *Bundle) *float64 { return total(b.Now, true) },
		"topics":     func(b *Bundle) *float64 { return number(b.Topics) },
		"short":      func(b *Bundle) *float64 { return average(b.Short) },
		"long":       func(b *Bundle) *float64 { return average(b.Long) },
		"name":       func(*Bundle) *float64 { return nil },
		"owner":      func(b *Bundle) *float64 { return total(b.Now, false) },
	}[key]
	if figure == nil {
		return fmt.Errorf("%q is nothing to sort by: it must be %s", key, strings.Join(SortKeys, ", "))
	}
	slices.SortFunc(list, func(a, b Bundle) int {
		owners := 0
		if key == "owner" {
			owners = strings.Compare(a.Owner, b.Owner)
		}
		return cmp.Or(owners, greaterFirst(figure(&a), figure(&b)), strings.Compare(a.Name, b.Name))
	})
	return nil
}

func greaterFirst(a, b *float64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*b, *a)
}

func total(r *Rates, messages bool) *float64 {
	if r == nil {
		return nil
	}
	v := float64(r.MsgThroughputIn + r.MsgThroughputOut)
	if messages {
		v = float64(r.MsgRateIn + r.MsgRateOut)
	}
	return &v
}

func average(a *Average) *float64 {
	if a == nil {
		return nil
	}
	return total(&a.Rates, true)
}

func number[T ~int32 | ~int64](n *T) *float64 {
	if n == nil {
		return nil
	}
	v := float64(*n)
	return &v
}
