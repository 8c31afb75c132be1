package control_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simulate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	a, b, c = "a:8080", "b:8080", "c:8080"
	ns      = "public/ns"
)

var quiet = slog.New(slog.DiscardHandler)

// small is a cluster of three brokers that answers at once; a owns all four bundles.
func small(t *testing.T, dynamic map[string]string) *simulate.Embedded {
	t.Helper()
	set := settings.Defaults()
	set.LoadManagerClassName = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
	set.LoadBalancerReportUpdateMaxIntervalMinutes = 1
	space := simulate.Namespace{Name: ns}
	for range 4 {
		space.Bundles = append(space.Bundles, simulate.Bundle{Traffic: simulate.Messages(100, 1000), NumTopics: 3, Owner: a})
	}
	cl, err := simulate.New(simulate.Config{Settings: set, Namespaces: []simulate.Namespace{space},
		Brokers: []simulate.Broker{{ID: a, Cores: 2}, {ID: b, Cores: 2}, {ID: c, Cores: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := simulate.NewEmbedded(t.Context(), cl, simulate.EmbeddedOptions{SelfDriven: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	for key, value := range dynamic {
		if err := e.SetDynamicConfig(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// script is a load manager whose plans are written down beforehand, one list a cycle; the last one repeats.
type script struct{ plans [][]plan.Decision }

type scriptState struct{ Cycle, Done int }

func (s script) NewState() plan.State { return &scriptState{} }

func (s script) Shed(snap *cluster.Snapshot, state plan.State, _ plan.Rand, _ *plan.Trace) (plan.Plan, plan.State) {
	st := *state.(*scriptState)
	p := plan.Plan{Strategy: "script", At: snap.Now}
	if n := len(s.plans); n > 0 {
		p.Decisions = s.plans[min(st.Cycle, n-1)]
	}
	st.Cycle++
	return p, &st
}

func (s script) Split(_ *cluster.Snapshot, state plan.State, _ *plan.Trace) (plan.Plan, plan.State) {
	return plan.Plan{}, state
}

func (s script) Place(_ *cluster.Snapshot, bundle string, _ plan.State, _ plan.Rand, _ *plan.Trace) (plan.Decision, plan.State) {
	return plan.Decision{Action: plan.Place, Bundle: bundle}, nil
}

func (s script) Record(state plan.State, _ plan.Decision, _ int64) plan.State {
	st := *state.(*scriptState)
	st.Done++
	return &st
}

// world is one process of Ballast beside a cluster.
type world struct {
	*simulate.Embedded
	views     *control.Views
	service   *control.Service
	takeovers *control.TakeOvers
	journal   *memoryJournal
}

// memoryJournal keeps what it writes to the decision log.
type memoryJournal struct {
	*control.TopicJournal
	records []control.Record
}

func (j *memoryJournal) Append(ctx context.Context, r control.Record) error {
	j.records = append(j.records, r)
	if j.TopicJournal == nil {
		return nil
	}
	return j.TopicJournal.Append(ctx, r)
}

func (j *memoryJournal) AppendAll(ctx context.Context, rs []control.Record) error {
	j.records = append(j.records, rs...)
	if j.TopicJournal == nil {
		return nil
	}
	return j.TopicJournal.AppendAll(ctx, rs)
}

func (j *memoryJournal) kinds() []control.Kind {
	var out []control.Kind
	for _, r := range j.records {
		out = append(out, r.Kind)
	}
	return out
}

// process starts one on a cluster that has reported for two minutes.
func process(t *testing.T, e *simulate.Embedded, instance string, mode control.Mode, manager plan.Manager, takeOver bool) *world {
	t.Helper()
	return newProcess(t, e, instance, mode, manager, takeOver, false)
}

// processVia is a process that governs through the ownership topic.
func processVia(t *testing.T, e *simulate.Embedded, manager plan.Manager) *world {
	t.Helper()
	return newProcess(t, e, "one", control.Govern, manager, false, true)
}

func newProcess(t *testing.T, e *simulate.Embedded, instance string, mode control.Mode, manager plan.Manager, takeOver, channel bool) *world {
	t.Helper()
	ctx := t.Context()
	set := settings.Defaults()
	views := control.NewViews(control.ViewOptions{Cluster: e, Log: e.Log(), Settings: set, Version: "4.2.4", Stepwise: true, Logger: quiet})
	if err := views.Open(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { views.Close() })
	if err := e.Sleep(ctx, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	lock := control.NewLock(e.Log(), instance, time.Second, e.Now)
	journal := &memoryJournal{TopicJournal: control.NewTopicJournal(e.Log())}
	var executor control.Actor = control.NewExecutor(control.Locked(e, lock), views, e, control.ExecLimits{Request: time.Minute, Verify: 10 * time.Second, Poll: 100 * time.Millisecond})
	if channel {
		x := control.NewChannel(control.ChannelOptions{Cluster: e, Topic: views, Log: e.Log(), Lock: lock, Clock: e, Admin: executor, Logger: quiet,
			Limits: control.ChannelLimits{Concurrent: 16, Seen: 3 * time.Second, Verify: 20 * time.Second, Poll: 20 * time.Millisecond}})
		t.Cleanup(func() { x.Close() })
		executor = x
	}
	w := &world{Embedded: e, views: views, journal: journal, takeovers: control.NewTakeOvers(e.Log(), e, instance, e.Now)}
	w.service = &control.Service{Cluster: e, Lock: lock, Elector: control.NewElector(e.Log(), lock, e, quiet), TakeOvers: w.takeovers, TakeOver: takeOver, Interval: time.Minute,
		Standby: 5 * time.Second, Leave: time.Minute, Clock: e, Logger: quiet,
		Controller: control.New(control.Options{Instance: instance, Mode: mode, Manager: manager, Viewer: views, Executor: executor, Lock: lock,
			Journal: journal, Clock: e, PlanLife: 30 * time.Second, Limits: guard.Limits{BundleCoolDown: 600_000, FailureCoolDown: 60_000}, Logger: quiet})}
	return w
}

// run lets the service run for a number of cycles, then stops it.
func (w *world) run(t *testing.T, cycles int) ([]*control.Cycle, error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var seen []*control.Cycle
	w.service.Each = func(cy *control.Cycle) {
		if seen = append(seen, cy); len(seen) == cycles {
			stop()
		}
	}
	err := w.service.Run(ctx)
	return seen, err
}

func (w *world) bundles(t *testing.T) []string {
	t.Helper()
	names, err := w.Bundles(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func (w *world) owner(t *testing.T, bundle string) string {
	t.Helper()
	o, err := w.views.Owner(t.Context(), bundle)
	if err != nil {
		t.Fatal(err)
	}
	return o.Owner
}

func dynamic(t *testing.T, e *simulate.Embedded) map[string]string {
	t.Helper()
	m, err := e.DynamicConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func transfer(bundle, from, to string) plan.Decision {
	return plan.Decision{Action: plan.Transfer, Bundle: bundle, Source: from, Destination: to, Topics: 3, Label: "Success", PulsarReason: "Overloaded"}
}
