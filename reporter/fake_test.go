package reporter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

const (
	simpleClass     = "org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl"
	extensibleClass = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
)

// fake is a cluster whose every answer can be set. Its clock stands until it is moved.
type fake struct {
	mu      sync.Mutex
	now     time.Time
	ids     []string
	class   map[string]string // "" = Simple
	fails   map[string]error  // of load reports
	hangs   map[string]bool
	frozen  map[string]int64 // lastUpdate instead of now
	asked   []string         // whose reports and topics were read, in order
	created []string
	broken  error // of the registry, classes and policies
}

func newFake(ids ...string) *fake {
	return &fake{now: time.UnixMilli(1_700_000_000_000), ids: ids, class: map[string]string{}, fails: map[string]error{}, hangs: map[string]bool{}, frozen: map[string]int64{}}
}

func (f *fake) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Sleep lets the clock jump.
func (f *fake) Sleep(ctx context.Context, d time.Duration) error {
	f.do(func() { f.now = f.now.Add(d) })
	return ctx.Err()
}

func (f *fake) BrokerIDs(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ids), f.broken
}

func (f *fake) LoadManagerOf(_ context.Context, id string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return "", f.broken
	}
	if class := f.class[id]; class != "" {
		return class, nil
	}
	return simpleClass, nil
}

func (f *fake) LoadReport(_ context.Context, id string) (event.BrokerReport, error) {
	f.mu.Lock()
	hang := f.hangs[id]
	f.mu.Unlock()
	if hang { // until the time is over
		return event.BrokerReport{}, fmt.Errorf("load report of %s: %w", id, context.DeadlineExceeded)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, id)
	switch {
	case f.fails[id] != nil:
		return event.BrokerReport{}, f.fails[id]
	case f.class[id] == extensibleClass:
		return event.BrokerReport{}, admin.Unsupported
	}
	r := event.NewLoadReport()
	u := event.NewSystemResourceUsage()
	u.CPU = event.ResourceUsage{Usage: 50, Limit: 200}
	r.Name, r.WebServiceURL, r.Timestamp, r.SystemResourceUsage, r.LoadManagerClassName = id, "http://"+id, f.now.UnixMilli(), &u, simpleClass
	r.BundleStats = f.stats(id)
	if at, ok := f.frozen[id]; ok {
		r.Timestamp = at
	}
	return event.BrokerReport{Simple: &r}, nil
}

func (f *fake) stats(id string) []event.NamedBundleStats {
	i := float64(slices.Index(f.ids, id) + 1)
	return []event.NamedBundleStats{{Bundle: ns + "/0x00000000_0xffffffff", Stats: event.NamespaceBundleStats{MsgRateIn: 10 * i, MsgThroughputIn: 1000 * i, Topics: 2}}}
}

func (f *fake) BundleStats(_ context.Context, id string) ([]event.NamedBundleStats, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, id)
	return f.stats(id), f.fails[id]
}

func (f *fake) RuntimeConfig(context.Context) (map[string]string, error) {
	return map[string]string{}, nil
}

func (f *fake) Policies(context.Context) (*policy.Set, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return policy.New(nil, nil, nil, nil), f.broken
}

func (f *fake) CreateTopic(_ context.Context, topic string) error {
	f.do(func() { f.created = append(f.created, topic) })
	return nil
}

// world is a reporter on a fake cluster, with a view of each topic.
type world struct {
	*fake
	*reporter.Reporter
	log                        *topics.Memory
	loads, tops, locals, stats *view
}

func newWorld(t *testing.T, f *fake, change func(*reporter.Options)) *world {
	t.Helper()
	w := &world{fake: f, log: memory(t, f.Now)}
	w.loads, w.tops = viewOf(t, w.log, topics.BrokerLoadData), viewOf(t, w.log, topics.TopBundles)
	w.locals, w.stats = viewOf(t, w.log, topics.LocalBrokerData), viewOf(t, w.log, topics.BundleStats)
	o := reporter.Options{Cluster: f, Log: w.log, Settings: settings.Defaults(), Version: "4.2.4", Clock: f, Logger: quiet,
		Concurrent: 1, BundleStatsInterval: time.Minute}
	if change != nil {
		change(&o)
	}
	w.Reporter = reporter.New(o)
	return w
}

// poll is one round; the clock goes on by five seconds before it.
func (w *world) poll(t *testing.T) reporter.Round {
	t.Helper()
	w.do(func() { w.now = w.now.Add(5 * time.Second) })
	round, err := w.Poll(t.Context(), w.Now())
	if err != nil {
		t.Fatal(err)
	}
	return round
}

func (w *world) keys(t *testing.T) (loads, tops, locals, stats []string) {
	t.Helper()
	list := func(v *view) []string {
		var out []string
		for k := range v.read(t) {
			out = append(out, k[:1])
		}
		slices.Sort(out)
		return out
	}
	return list(w.loads), list(w.tops), list(w.locals), list(w.stats)
}

// onTopics checks whose load data, lists, reports and bundles are on the topics, by the first letters of the ids.
func (w *world) onTopics(t *testing.T, loads, tops, locals, stats string) {
	t.Helper()
	join := func(s []string) (out string) {
		for _, x := range s {
			out += x
		}
		return out
	}
	l, p, r, s := w.keys(t)
	if join(l) != loads || join(p) != tops || join(r) != locals || join(s) != stats {
		t.Errorf("load data of %q, lists of %q, reports of %q, bundles of %q; want %q, %q, %q, %q", join(l), join(p), join(r), join(s), loads, tops, locals, stats)
	}
}

var errDown = errors.New("down")
