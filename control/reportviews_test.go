package control_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

// What a look at a Modular cluster holds: everything that any strategy asks for.
func TestLookAtReports(t *testing.T) {
	r := modularCluster(t, nil)
	v := r.views(nil, nil)
	r.report(a, b, c)
	l := r.look(v)
	if len(l.Frozen)+len(l.Missing) > 0 {
		t.Fatalf("frozen %v, missing %v", l.Frozen, l.Missing)
	}
	snap := l.Snapshot
	for i := range snap.Brokers {
		x := &snap.Brokers[i]
		if x.Local == nil || x.Report == nil || x.TimeAverage == nil || x.Load == nil || !x.Stale.IsZero() || x.LoadHeard != snap.Now {
			t.Errorf("%s is not whole: %+v", x.ID, x)
		}
	}
	first := &snap.Brokers[snap.BrokerIndex(a)]
	names := func(list []int) (out []string) {
		for _, i := range list {
			if x := &snap.Bundles[i]; x.Namespace == ns {
				if x.Owner != a || x.State != event.Owned || !x.Known || x.Data == nil || x.Data.ShortTermData.NumSamples != 1 {
					t.Errorf("bundle %+v", x)
				}
				out = append(out, x.Name)
			}
		}
		slices.Sort(out)
		return out
	}
	want, err := r.Bundles(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, names(first.Bundles)); diff != "" {
		t.Errorf("bundles of %s (-want +got):\n%s", a, diff)
	}
	at := snap.LoadIndex(a)
	if at < 0 || len(snap.Load[at].TopBundles) != 4 || snap.Load[at].TopBundles[3].BundleName != want[3] {
		t.Errorf("top bundles: %+v", snap.Load[at].TopBundles)
	}
	if got, sum := first.Load.MsgThroughputIn, first.Local.MsgThroughputIn; got != sum || got < 900_000 {
		t.Errorf("throughput of the load data %v, of the report %v", got, sum)
	}
	if first.TimeAverage.ShortTermMsgRateIn < 900 {
		t.Errorf("time average %+v", first.TimeAverage)
	}
	if r.look(v).Snapshot.Bundles[snap.BundleIndex(want[0])].Data.ShortTermData.NumSamples != 1 {
		t.Error("a look that heard nothing new added a sample")
	}
}

// Bundles that nobody serves are known, and are nobody's.
func TestUnownedBundlesAreKnown(t *testing.T) {
	r := modularCluster(t, func(cfg *simulate.Config) {
		cfg.Namespaces = append(cfg.Namespaces, simulate.Namespace{Name: "public/idle", Bundles: make([]simulate.Bundle, 2)})
	})
	v := r.views(nil, nil)
	r.report(a, b, c)
	idle, err := r.Bundles(t.Context(), "public/idle")
	if err != nil {
		t.Fatal(err)
	}
	snap := r.look(v).Snapshot
	for _, name := range idle {
		i := snap.BundleIndex(name)
		if i < 0 {
			t.Fatalf("%s is not known", name)
		}
		o, err := v.Owner(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if snap.Bundles[i].Owner != o.Owner {
			t.Errorf("%s is %q's, the cluster says %q's", name, snap.Bundles[i].Owner, o.Owner)
		}
	}
}

// A broker of which nothing fresh is known is no destination and keeps what it serves, and the others go on.
func TestStaleBroker(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(*reported)
		want string
	}{
		{"its reports end", func(r *reported) {}, "STALE_REPORT"},
		{"garbage", func(r *reported) { r.send(topics.LocalBrokerData, b, []byte(`{"cpu":`)) }, "STALE_REPORT"},
		{"figures that are none", func(r *reported) {
			r.send(topics.LocalBrokerData, b, []byte(`{"loadReportType":"LocalBrokerData","cpu":{"usage":"NaN","limit":200.0}}`))
		}, "STALE_UNUSABLE_REPORT"},
		{"nothing at all in it", func(r *reported) { r.send(topics.LocalBrokerData, b, []byte(`{}`)) }, "STALE_UNUSABLE_REPORT"},
		{"a Simple report without usage", func(r *reported) {
			r.send(topics.LocalBrokerData, b, []byte(`{"loadReportType":"LoadReport","name":"b:8080"}`))
		}, "STALE_UNUSABLE_REPORT"},
		{"it does not answer", func(r *reported) {
			if err := r.With(r.t.Context(), func(cl *simulate.Cluster) {
				if err := cl.Freeze(b); err != nil {
					r.t.Error(err)
				}
			}); err != nil {
				r.t.Fatal(err)
			}
		}, "STALE_NO_ANSWER"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := modularCluster(t, func(cfg *simulate.Config) { cfg.Namespaces[0].Bundles[0].Owner = b })
			v := r.views(nil, nil)
			r.report(a, b, c)
			owned, err := r.Bundles(t.Context(), ns)
			if err != nil {
				t.Fatal(err)
			}
			if l := r.look(v); len(l.Frozen) > 0 {
				t.Fatal(l.Frozen)
			}
			if tc.want == "STALE_REPORT" {
				r.pass(stale)
			}
			tc.do(r)
			r.pass(time.Second)
			r.report(a, c)
			l := r.look(v)
			if len(l.Frozen)+len(l.Missing) > 0 {
				t.Fatalf("the others do not go on: %v, missing %v", l.Frozen, l.Missing)
			}
			x := &l.Snapshot.Brokers[l.Snapshot.BrokerIndex(b)]
			if x.Stale.Code != tc.want || x.Load != nil || x.Local != nil || x.Report != nil || l.Snapshot.LoadIndex(b) >= 0 {
				t.Errorf("it is %+v, want %s", x.Stale, tc.want)
			}
			if tc.want == "STALE_REPORT" || tc.want == "STALE_NO_ANSWER" {
				if got := l.Snapshot.Bundles[l.Snapshot.BundleIndex(owned[0])].Owner; got != b {
					t.Errorf("its bundle is %q's", got)
				}
			}
			set := *l.Snapshot.Settings
			set.LoadBalancerSheddingConditionHitCountThreshold = 0
			l.Snapshot.Settings = &set
			m := control.OnReports(extensible.New(nil, nil, extensible.Options{}), control.EngineOptions{Destinations: control.Hinted, Attempts: 3})
			trace := new(plan.Trace)
			p, _ := m.Shed(l.Snapshot, m.NewState(), nil, trace)
			if len(p.Decisions) == 0 {
				t.Errorf("nothing is planned: %s", p.Outcome)
			}
			for _, d := range p.Decisions {
				if d.Destination != c {
					t.Errorf("%s goes to %s", d.Bundle, d.Destination)
				}
			}
			if !slices.ContainsFunc(trace.Entries, func(e plan.LeftOut) bool { return e.Broker == b && e.Why.Code == tc.want }) {
				t.Errorf("the plan does not say why %s is left out", b)
			}
			if tc.want == "STALE_NO_ANSWER" {
				return
			}
			r.report(a, b, c)
			l = r.look(v)
			if x := &l.Snapshot.Brokers[l.Snapshot.BrokerIndex(b)]; !x.Stale.IsZero() || x.Load == nil {
				t.Errorf("after a good report it is still stale: %+v", x.Stale)
			}
		})
	}
}

// A broker that was never heard freezes until it had the time to report; then it is stale.
func TestNeverHeard(t *testing.T) {
	r := modularCluster(t, nil)
	v := r.views(nil, nil)
	r.report(a, b)
	l := r.look(v)
	if diff := cmp.Diff([]string{control.NotHeard.ID}, frozen(l)); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{c}, l.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	r.pass(stale + time.Second)
	r.report(a, b)
	l = r.look(v)
	if x := l.Snapshot.Brokers[l.Snapshot.BrokerIndex(c)]; len(l.Frozen)+len(l.Missing) > 0 || x.Stale.Code != "STALE_NOT_HEARD" {
		t.Errorf("later: frozen %v, missing %v, %+v", l.Frozen, l.Missing, x.Stale)
	}
}

// Why the reporter cannot read a broker counts at once when it was never heard, and for one that was heard after a while.
func TestReporterSaysWhy(t *testing.T) {
	r := modularCluster(t, nil)
	faults := map[string]plan.Reason{}
	v := r.views(nil, func(o *control.ReportOptions) { o.Faults = func() map[string]plan.Reason { return faults } })
	why := plan.Code{ID: "REPORT_GARBAGE", Template: "{broker} answers half a JSON"}.Because(plan.S("broker", b))
	staleOf := func(id string) string {
		l := r.look(v)
		return l.Snapshot.Brokers[l.Snapshot.BrokerIndex(id)].Stale.Text
	}
	r.report(a, c)
	faults[b] = why
	if got := staleOf(b); got != why.Text {
		t.Errorf("never heard it is stale for %q", got)
	}
	r.report(b)
	if got := staleOf(b); got != "" {
		t.Errorf("heard a moment ago it is stale for %q", got)
	}
	r.pass(stale/2 + time.Second)
	if got := staleOf(b); got != why.Text {
		t.Errorf("heard a while ago it is stale for %q", got)
	}
}

// When nothing is heard at all the whole picture is frozen.
func TestSilenceOfAll(t *testing.T) {
	r := modularCluster(t, nil)
	v := r.views(nil, nil)
	r.report(a, b, c)
	r.look(v)
	r.pass(stale + time.Second)
	if diff := cmp.Diff([]string{control.Silent.ID, control.NoneFresh.ID}, frozen(r.look(v))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The owner is asked for at the brokers, and what they told counts until the owner's own report comes.
func TestOwnersFromTheBrokers(t *testing.T) {
	r := modularCluster(t, nil)
	v := r.views(nil, nil)
	r.report(a, b, c)
	r.look(v)
	bundle := r.look(v).Snapshot.Bundles[0].Name
	for _, x := range r.look(v).Snapshot.Bundles {
		if x.Namespace == ns {
			bundle = x.Name
			break
		}
	}
	if err := r.Unload(t.Context(), bundle, c); err != nil {
		t.Fatal(err)
	}
	r.pass(2 * time.Second)
	o, err := v.OwnerNear(t.Context(), bundle, c)
	if err != nil || o.Owner != c || o.State != event.Owned {
		t.Fatalf("owner %+v, %v", o, err)
	}
	ownerOf := func() string {
		s := r.look(v).Snapshot
		x := &s.Bundles[s.BundleIndex(bundle)]
		if !slices.Contains(s.Brokers[s.BrokerIndex(x.Owner)].Bundles, s.BundleIndex(bundle)) {
			t.Errorf("%s does not list %s", x.Owner, bundle)
		}
		return x.Owner
	}
	if got := ownerOf(); got != c {
		t.Errorf("by the old reports it is %q's", got)
	}
	r.pass(time.Minute)
	r.report(a, b, c)
	if got := ownerOf(); got != c {
		t.Errorf("by the new reports it is %q's", got)
	}
}
