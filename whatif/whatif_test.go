package whatif_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/whatif"
)

// live is a snapshot of a simulated cluster with the figures of all bundles.
func live(t *testing.T, seed uint64) *cluster.Snapshot {
	t.Helper()
	c, err := simulate.New(simulate.DemoCluster(seed))
	if err != nil {
		t.Fatal(err)
	}
	c.Run(5 * time.Minute)
	return c.Snapshot()
}

func rnd() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

func manager() *extensible.Manager { return extensible.New(nil, nil, extensible.Options{}) }

func sum(list []whatif.Broker) (bundles int, throughput float64) {
	for _, b := range list {
		bundles += b.Bundles
		throughput += b.Throughput
	}
	return bundles, throughput
}

func TestOf(t *testing.T) {
	for seed := range uint64(3) {
		snap := live(t, seed)
		before, err := json.Marshal(snap.Load)
		if err != nil {
			t.Fatal(err)
		}
		lost := snap.Brokers[0].ID
		s := whatif.Scenario{Lose: []string{lost}, Add: 2, Traffic: 1.5}
		if err := whatif.Check(snap, s); err != nil {
			t.Fatal(err)
		}
		p := whatif.Of(snap, s, manager(), 0.85, 3, rnd())
		if after, _ := json.Marshal(snap.Load); string(after) != string(before) {
			t.Error("the snapshot was changed")
		}
		nb, nt := sum(p.Before)
		ab, at := sum(p.After)
		if ab+len(p.Nowhere) != nb || len(p.Nowhere) > 0 {
			t.Errorf("%d bundles before, %d after, %d nowhere", nb, ab, len(p.Nowhere))
		}
		if math.Abs(at-nt*1.5) > nt*1e-9 {
			t.Errorf("throughput %v became %v, want x1.5", nt, at)
		}
		if len(p.After) != len(p.Before)+1 || !p.After[len(p.After)-1].New || !p.Before[0].Lost {
			t.Errorf("brokers after: %+v", p.After)
		}
		for _, b := range p.After {
			if b.ID == lost {
				t.Errorf("%s is still there", lost)
			}
		}
		if p.Moved != p.Before[0].Bundles {
			t.Errorf("%d bundles moved, the lost broker had %d", p.Moved, p.Before[0].Bundles)
		}
		if len(p.Losses) != len(p.After) {
			t.Errorf("%d losses of %d brokers", len(p.Losses), len(p.After))
		}
		for _, l := range p.Losses {
			if l.Highest < p.Then.Average-1e-9 || l.OK != (l.Highest <= 0.85) || l.On == l.Broker {
				t.Errorf("loss of %s: %+v", l.Broker, l)
			}
		}
		if math.Abs(p.Then.AsItIs*p.Then.Highest-0.85) > 1e-9 {
			t.Errorf("headroom is %+v", p.Then)
		}
		again := whatif.Of(snap, s, manager(), 0.85, 3, rnd())
		a, _ := json.Marshal(p)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Error("the same input gives another projection")
		}
	}
}

// Nothing assumed: the cluster as it is, and what would be planned.
func TestOfNothing(t *testing.T) {
	snap := live(t, 1)
	p := whatif.Of(snap, whatif.Scenario{}, manager(), 0.85, 3, rnd())
	a, _ := json.Marshal(p.Before)
	b, _ := json.Marshal(p.After)
	if string(a) != string(b) || p.Now != p.Then || p.Moved != 0 {
		t.Errorf("it changed:\n%s\n%s", a, b)
	}
	if len(p.Plan.Decisions) == 0 {
		t.Errorf("a cluster that begins uneven: nothing is planned: %s", p.Plan.Outcome)
	}
}

// Bundles that only the lost broker may take are named.
func TestNowhere(t *testing.T) {
	snap := live(t, 1)
	ns := snap.Bundles[len(snap.Bundles)-1].Namespace
	snap.Policies = policy.New([]policy.Isolation{{Name: "p", Namespaces: []string{ns}, Primary: []string{"pulsar-broker-0"}, AutoFailover: policy.AutoFailover{MinLimit: 1, UsageThreshold: 100}}}, nil, nil, nil)
	own := 0
	for _, b := range snap.Bundles {
		if b.Namespace == ns && b.Owner == snap.Brokers[0].ID {
			own++
		}
	}
	p := whatif.Of(snap, whatif.Scenario{Lose: []string{snap.Brokers[0].ID}}, manager(), 0.85, 3, rnd())
	if own == 0 || len(p.Nowhere) != own || p.Nowhere[0].Why.Code != whatif.Nowhere.ID {
		t.Errorf("%d bundles are nowhere, want %d", len(p.Nowhere), own)
	}
}

func TestCheck(t *testing.T) {
	snap := live(t, 1)
	var all []string
	for _, b := range snap.Brokers {
		all = append(all, b.ID)
	}
	for want, s := range map[string]whatif.Scenario{
		"not a registered broker": {Lose: []string{"x:1"}},
		"lost twice":              {Lose: []string{all[0], all[0]}},
		"no broker is left":       {Lose: all},
		"-1 brokers are added: it must be from 0 to 1000":        {Add: -1},
		"100000000 brokers are added: it must be from 0 to 1000": {Add: 100_000_000},
		"traffic is multiplied":                                  {Traffic: -1},
		"multiplied by NaN":                                      {Traffic: math.NaN()},
	} {
		if err := whatif.Check(snap, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error is %v, want %q in it", s, err, want)
		}
	}
	if err := whatif.Check(snap, whatif.Scenario{Lose: all, Add: 1}); err != nil {
		t.Error(err)
	}
}
