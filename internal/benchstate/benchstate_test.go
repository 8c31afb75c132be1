package benchstate

import (
	"slices"
	"testing"
)

// The first outputs of SplitMix64 for seed 1234567, as published with the algorithm.
func TestSplitMix64(t *testing.T) {
	r := NewRand(1234567)
	want := []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821}
	var got []uint64
	for range want {
		got = append(got, r.Next())
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestExtensible(t *testing.T) {
	s := New(42, 10, 1000, 10)
	snap := s.Extensible(10)
	if len(snap.Brokers) != 10 || len(snap.Load) != 10 || len(snap.Bundles) != 1000 {
		t.Fatalf("brokers %d, load %d, bundles %d", len(snap.Brokers), len(snap.Load), len(snap.Bundles))
	}
	for i := range snap.Load {
		l := &snap.Load[i]
		if hot := l.Data.WeightedMaxEMA >= 0.8; hot != (i == 0) {
			t.Errorf("%s: load %v, hot %v", l.Broker, l.Data.WeightedMaxEMA, hot)
		}
		if len(l.TopBundles) != 10 {
			t.Errorf("%s: %d top bundles", l.Broker, len(l.TopBundles))
		}
		sum := 0.0
		for _, j := range snap.Brokers[i].Bundles {
			if snap.Bundles[j].Owner != l.Broker {
				t.Errorf("%s is listed as served by %s", snap.Bundles[j].Name, l.Broker)
			}
			sum += snap.Bundles[j].Stats.MsgThroughputIn
		}
		if sum != l.Data.MsgThroughputIn {
			t.Errorf("%s: bundles sum to %v, broker has %v", l.Broker, sum, l.Data.MsgThroughputIn)
		}
		if snap.Brokers[i].Load != &l.Data {
			t.Errorf("%s: the broker's load is not its entry of the load data", l.Broker)
		}
	}
}
