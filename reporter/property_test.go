package reporter_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// TestAnyReports: whatever a broker reports, its load data and list are on the topics exactly while it can be believed, what
// is published are numbers, and its report is taken back by Withdraw alone.
func TestAnyReports(t *testing.T) {
	figure := rapid.OneOf(rapid.Float64Range(0, 1e9), rapid.SampledFrom([]float64{0, -1, -1000, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64}))
	rapid.Check(t, func(t *rapid.T) {
		rules := reporter.RulesOf(settings.Defaults(), 5e9)
		br, on := reporter.NewBroker(a), map[string]any{}
		now := int64(1_700_000_000_000)
		update := now
		for range rapid.IntRange(1, 40).Draw(t, "readings") {
			now += rapid.SampledFrom([]int64{0, 1000, 5000, 5000, 5000, 60_000, 2_000_000}).Draw(t, "later")
			var events []reporter.Event
			failed := rapid.IntRange(0, 4).Draw(t, "fails") == 0
			if failed {
				events = br.Fail(now, &rules, func(s int64) plan.Reason {
					if s < 0 {
						t.Fatalf("failing since %d s", s)
					}
					return reporter.NotRead.Because(plan.N("seconds", s), plan.S("error", "x"))
				})
			} else {
				if rapid.IntRange(0, 3).Draw(t, "advances") > 0 {
					update = now + rapid.SampledFrom([]int64{0, 0, 0, -90_000_000, 90_000_000}).Draw(t, "clock")
				}
				d := event.NewLocalBrokerData(update)
				for _, u := range []*event.ResourceUsage{&d.CPU, &d.DirectMemory, &d.BandwidthIn, &d.BandwidthOut} {
					u.Usage, u.Limit = figure.Draw(t, "usage"), figure.Draw(t, "limit")
				}
				if rapid.Bool().Draw(t, "traffic") {
					d.MsgThroughputIn, d.MsgRateIn = figure.Draw(t, "throughput"), figure.Draw(t, "rate")
				}
				var err error
				if events, err = br.Hear(reporter.Reading{Report: event.BrokerReport{Local: &d}, Now: now}, &rules); err != nil {
					t.Fatal(err)
				}
			}
			for _, e := range events {
				br.Published(e, now)
				if e.Value == nil {
					if e.Topic == topics.LocalBrokerData {
						t.Fatal("the report was taken back")
					}
					delete(on, e.Topic)
					continue
				}
				if _, err := e.Value.MarshalJSON(); err != nil {
					t.Fatal(err)
				}
				on[e.Topic] = e.Value
				if d, ok := e.Value.(event.BrokerLoadData); ok {
					for _, v := range []float64{d.WeightedMaxEMA, d.MaxResourceUsage, d.MsgThroughputEMA, d.MsgThroughputIn, d.MsgRateIn} {
						if math.IsNaN(v) || math.IsInf(v, 0) {
							t.Fatalf("published %+v", d)
						}
					}
				}
			}
			_, stale := br.Stale()
			_, load := on[topics.BrokerLoadData]
			_, top := on[topics.TopBundles]
			if heard := br.Heard() > 0; load != (heard && !stale) || top != load {
				t.Fatalf("load data %v, list %v; heard %v, stale %v", load, top, heard, stale)
			}
			if !failed && !stale && br.Heard() != now {
				t.Fatal("a good report was not heard")
			}
		}
		for _, e := range br.Withdraw() {
			br.Published(e, now)
			delete(on, e.Topic)
		}
		if len(on) > 0 || len(br.Withdraw()) > 0 {
			t.Fatalf("left over: %v", on)
		}
	})
}
