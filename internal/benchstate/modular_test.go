package benchstate

import "testing"

func TestModular(t *testing.T) {
	snap := New(42, 10, 1000, 10).Modular()
	if len(snap.Brokers) != 10 || len(snap.Bundles) != 1000 {
		t.Fatalf("brokers %d, bundles %d", len(snap.Brokers), len(snap.Bundles))
	}
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		if hot := b.Local.CPU.PercentUsage() >= 80; hot != (i == 0) {
			t.Errorf("%s: CPU at %v %%, hot %v", b.ID, b.Local.CPU.PercentUsage(), hot)
		}
		in, rate := 0.0, 0.0
		for _, j := range b.Bundles {
			in += snap.Bundles[j].Data.ShortTermData.MsgThroughputIn
			rate += snap.Bundles[j].Stats.MsgRateIn
		}
		if in != b.Local.MsgThroughputIn || rate/b.TimeAverage.LongTermMsgRateIn < 0.999999 || rate/b.TimeAverage.LongTermMsgRateIn > 1.000001 {
			t.Errorf("%s: bundles sum to %v and %v, broker has %v and %v", b.ID, in, rate, b.Local.MsgThroughputIn, b.TimeAverage.LongTermMsgRateIn)
		}
		if len(b.Local.LastStats) != len(b.Bundles) || b.Local.NumTopics != int64(10*len(b.Bundles)) {
			t.Errorf("%s: %d reported, %d topics", b.ID, len(b.Local.LastStats), b.Local.NumTopics)
		}
	}
}
