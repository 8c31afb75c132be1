package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/settings"
)

// layered are the defaults with some keys set.
func layered(t *testing.T, set ...string) *settings.Layered {
	t.Helper()
	l := &settings.Layered{Settings: settings.Defaults(), Ballast: settings.DefaultBallast()}
	for i := 0; i < len(set); i += 2 {
		put := func() error { return settings.Set(l.Settings, set[i], set[i+1]) }
		if k, ok := settings.Lookup(set[i]); ok && k.Own() {
			put = func() error { return settings.SetBallast(l.Ballast, set[i], set[i+1]) }
		}
		if err := put(); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestGuardLimits(t *testing.T) {
	const minute = 60_000
	got, err := guardLimits(layered(t))
	if err != nil {
		t.Fatal(err)
	}
	want := guard.Limits{BundlesPerCycle: 10, TopicsPerSecond: 500, TopicsPerCycle: 60_000, BundleCoolDown: 10 * minute, FailureCoolDown: 10 * minute,
		LoadDataTTL: 30 * minute, SilentFraction: 0.25, GainBy: guard.Usage, NewBrokerTime: 10 * minute, NewBrokerShare: 0.1, DrainPoints: 0.05,
		OscillationWindow: 60 * minute, OscillationTurns: 4, MovesAtOnce: 4, SlowMove: 20_000, MaxLatency: 500, MaxReconnects: 50}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(guard.Limits{}, "Windows")); diff != "" {
		t.Errorf("limits of the defaults (-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		set   []string
		check func(guard.Limits) bool
	}{
		{[]string{"ballastGainBy", "off"}, func(l guard.Limits) bool { return l.GainBy == guard.NoFigure }},
		{[]string{"ballastGainBy", "throughput"}, func(l guard.Limits) bool { return l.GainBy == guard.Throughput }},
		{[]string{"loadBalancerLoadSheddingStrategy", "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"},
			func(l guard.Limits) bool { return l.GainBy == guard.Traffic }},
		{[]string{"ballastMaxTopicsPerSecond", "0.001"}, func(l guard.Limits) bool { return l.TopicsPerCycle == 1 }},
		{[]string{"ballastMaxTopicsPerSecond", "0"}, func(l guard.Limits) bool { return l.TopicsPerCycle == 0 }},
		{[]string{"ballastMaxTopicsPerSecond", "1e300"}, func(l guard.Limits) bool { return l.TopicsPerCycle > 1e9 }},
		{[]string{"ballastMaintenanceWindows", "not Mon 09:00-17:00 UTC"}, func(l guard.Limits) bool { return len(l.Windows) == 1 }},
	} {
		if l, err := guardLimits(layered(t, tc.set...)); err != nil || !tc.check(l) {
			t.Errorf("%v: limits are %+v, %v", tc.set, l, err)
		}
	}
	_, err = guardLimits(layered(t, "ballastMaintenanceWindows", "Mon 09:00-17:00 Europe/Berlinn"))
	if err == nil || !strings.Contains(err.Error(), "ballastMaintenanceWindows") || !strings.Contains(err.Error(), "Europe/Berlinn") {
		t.Errorf("a zone that is not known: %v", err)
	}
}
