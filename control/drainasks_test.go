package control_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// sight is a Viewer that changes what another one sees.
type sight struct {
	control.Viewer
	change func(*cluster.Snapshot) *cluster.Snapshot
}

func (s sight) Look(ctx context.Context, now time.Time) (*control.Look, error) {
	l, err := s.Viewer.Look(ctx, now)
	if err == nil {
		l.Snapshot = s.change(l.Snapshot)
	}
	return l, err
}

// asked is a drainTown whose rounds ask, and count that.
type asked struct {
	*town
	reported bool
	fails    error // of the question what a broker owns
	figures  int
	owned    int
	ran      int // moves
}

func newAsked(seed uint64, change func(w *asked, snap *cluster.Snapshot) *cluster.Snapshot) *asked {
	w := &asked{town: drainTown(seed)}
	options := w.town.options
	w.town.options = func(o *control.Options) {
		options(o)
		if change != nil {
			o.Viewer = sight{o.Viewer, func(s *cluster.Snapshot) *cluster.Snapshot { return change(w, s) }}
		}
		next := o.Executor
		o.Executor = acting(func(ctx context.Context, d plan.Decision) control.Outcome {
			w.ran++
			return next.Run(ctx, d)
		})
		o.Drains = control.DrainAsks{Reported: w.reported,
			Figures: func(_ context.Context, s *cluster.Snapshot) (*cluster.Snapshot, error) { w.figures++; return s, nil },
			Owned: func(_ context.Context, id string) (names []string, err error) {
				w.owned++
				for _, bundle := range slices.Sorted(maps.Keys(w.owners)) {
					if w.owners[bundle] == id {
						names = append(names, bundle)
					}
				}
				return names, w.fails
			}}
	}
	return w
}

// waits are the codes for which a broker is not empty, in the order in which they came.
func (t *asked) waits(from time.Time) (codes []string) {
	for _, r := range t.since(from, control.KindPlan) {
		if id, _, ok := control.DrainOf(r); !ok || id != a {
			continue
		}
		for _, l := range r.LeftOut {
			if !slices.Contains(codes, l.Why.Code) {
				codes = append(codes, l.Why.Code)
			}
		}
	}
	return codes
}

const system = "pulsar/system/0x00000000_0xffffffff"

// A drain that stands asks for no figures while nothing leaves, also when something must stay, and asks the broker seldom; what
// arrives leaves soon all the same.
func TestAStandingDrainAsksLittle(t *testing.T) {
	w := newAsked(21, nil)
	w.weights[system], w.owners[system] = 1e6, a
	defer w.stop()
	w.start()
	w.run(5 * time.Second)
	begun := w.now
	if answer := w.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	w.run(20 * time.Second)
	if w.on(a) != 1 || w.drained(a, begun).IsZero() || w.figures == 0 || w.figures > 12 {
		t.Fatalf("%d bundles are left, empty since %v, figures were asked for %d times", w.on(a), w.drained(a, begun), w.figures)
	}
	w.figures, w.owned = 0, 0
	w.run(2 * time.Minute)
	if w.figures > 0 || w.owned < 4 || w.owned > 12 {
		t.Errorf("in 2 minutes figures were asked for %d times, and the broker %d times", w.figures, w.owned)
	}
	w.owners[w.bundles()[5]] = a
	w.run(5 * time.Second)
	if w.on(a) != 1 || w.figures == 0 || w.figures > 2 {
		t.Errorf("%d bundles are left, figures were asked for %d times", w.on(a), w.figures)
	}
}

// A broker of which nothing is heard is asked what it owns, and that leaves. It is not empty before.
func TestADrainedBrokerThatDoesNotReport(t *testing.T) {
	w := newAsked(22, func(_ *asked, s *cluster.Snapshot) *cluster.Snapshot {
		owners := map[string]string{}
		for i := range s.Bundles {
			if s.Bundles[i].Owner == a {
				owners[s.Bundles[i].Name] = ""
			}
		}
		s = s.WithOwners(owners)
		at := s.BrokerIndex(a)
		s.Brokers[at].Load, s.Brokers[at].Stale = nil, control.StaleNotHeard.Because()
		return s
	})
	w.reported, w.fails = true, errors.New("connection refused")
	defer w.stop()
	w.start()
	w.run(5 * time.Second)
	begun := w.now
	if answer := w.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	w.run(30 * time.Second)
	if !w.drained(a, begun).IsZero() || w.on(a) != 12 || !slices.Equal(w.waits(begun), []string{drain.NotTold.ID}) {
		t.Fatalf("while it does not answer: empty since %v, %d bundles are left, it waits for %v", w.drained(a, begun), w.on(a), w.waits(begun))
	}
	w.fails = nil
	w.run(40 * time.Second)
	if w.on(a) > 0 || w.drained(a, begun).IsZero() {
		t.Errorf("%d bundles are left, empty since %v", w.on(a), w.drained(a, begun))
	}
}

// What a broker says it owns although the ownership log does not is a doubt: it is not empty until both agree.
func TestADrainedBrokerThatSaysMore(t *testing.T) {
	hidden := true
	w := newAsked(23, func(w *asked, s *cluster.Snapshot) *cluster.Snapshot {
		if !hidden {
			return s
		}
		return s.WithOwners(map[string]string{w.bundles()[3]: ""})
	})
	defer w.stop()
	w.start()
	w.run(5 * time.Second)
	begun := w.now
	if answer := w.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	w.run(30 * time.Second)
	if !w.drained(a, begun).IsZero() || w.on(a) != 1 || !slices.Contains(w.waits(begun), drain.StillOwned.ID) {
		t.Fatalf("empty since %v, %d bundles are left, it waits for %v", w.drained(a, begun), w.on(a), w.waits(begun))
	}
	hidden = false
	w.run(20 * time.Second)
	if w.on(a) > 0 || w.drained(a, begun).IsZero() {
		t.Errorf("%d bundles are left, empty since %v", w.on(a), w.drained(a, begun))
	}
}

// While policies cannot be read a broker is not empty; when they can be, its bundles leave.
func TestADrainWaitsForPolicies(t *testing.T) {
	unread := map[string]string{"": "503 Service Unavailable"}
	w := newAsked(24, func(_ *asked, s *cluster.Snapshot) *cluster.Snapshot {
		s.Policies = policy.New(nil, nil, nil, unread)
		return s
	})
	defer w.stop()
	w.start()
	w.run(5 * time.Second)
	begun := w.now
	if answer := w.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	w.run(30 * time.Second)
	if !w.drained(a, begun).IsZero() || w.on(a) != 12 || w.figures > 0 || !slices.Equal(w.waits(begun), []string{policy.Frozen.ID}) {
		t.Fatalf("empty since %v, %d bundles are left, it waits for %v, figures were asked for %d times", w.drained(a, begun), w.on(a), w.waits(begun), w.figures)
	}
	unread = nil
	w.run(30 * time.Second)
	if w.on(a) > 0 || w.drained(a, begun).IsZero() {
		t.Errorf("%d bundles are left, empty since %v", w.on(a), w.drained(a, begun))
	}
}
