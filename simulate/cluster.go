package simulate

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/settings"
)

// Event is one message that the cluster published. An empty Payload is a tombstone.
type Event struct {
	At       int64 // Unix ms
	Topic    string
	Key      string
	Payload  []byte
	Producer string // broker id
}

// Cluster is a simulated cluster. It is not safe for concurrent use; Embedded is.
type Cluster struct {
	cfg        Config
	settings   *settings.Settings
	dynamic    map[string]string
	now        int64
	tasks      taskQueue
	order      int64
	rnd        *rand.Rand // latencies and who looks up
	luck       *rand.Rand // failures
	brokers    []*broker  // in the order in which they came
	brokerByID map[string]*broker
	bundles    map[string]*bundle
	namespaces []string
	records    map[string]*event.ServiceUnitStateData // the ownership log, folded
	recorded   []string                               // its keys, in order
	given      map[string]int                         // broker id -> bundles that it owns or is asked to
	leader     *broker
	term       int // counts elections
	views      views
	modular    modularView
	waiting    map[string][]*operation
	balancer   balancer
	faults     faults
	gaps       gaps
	events     []Event
	moves      []Move
	log        []CycleLog
}

// New makes a cluster whose brokers have just registered and whose bundles are as Config says. Nothing has been published
// yet: that happens as time moves.
func New(cfg Config) (*Cluster, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Cluster{
		cfg: cfg, settings: clone(cfg.Settings), dynamic: map[string]string{}, now: cfg.Start,
		rnd: NewRand(cfg.Seed, 1), luck: NewRand(cfg.Seed, 2),
		brokerByID: map[string]*broker{}, bundles: map[string]*bundle{},
		records: map[string]*event.ServiceUnitStateData{}, given: map[string]int{}, waiting: map[string][]*operation{},
	}
	c.views.reset()
	c.modular.reports, c.modular.hints = map[string]*event.LocalBrokerData{}, map[string]string{}
	c.modular.simple = map[string]*event.LoadReport{}
	c.settings.LoadManagerClassName = cfg.Kind.class()
	c.faults.garbage, c.faults.silent = map[garbageKey][]byte{}, map[string]int64{}
	c.balancer.init(c)
	for _, spec := range cfg.Brokers {
		c.addBroker(spec)
	}
	for _, b := range c.brokers {
		b.boot(0)
	}
	c.elect()
	c.addNamespaces()
	return c, nil
}

// Now is the cluster's time in Unix ms.
func (c *Cluster) Now() int64 { return c.now }

// Settings are the settings of the brokers at present.
func (c *Cluster) Settings() *settings.Settings { return clone(c.settings) }

// Version is the Pulsar version of the cluster.
func (c *Cluster) Version() string { return c.cfg.Version }

// Elapsed is the time since the cluster's first moment.
func (c *Cluster) Elapsed() time.Duration { return time.Duration(c.now-c.cfg.Start) * time.Millisecond }

// Advance lets time pass until to (Unix ms) and everything happen that falls due. A time that has passed changes nothing.
func (c *Cluster) Advance(to int64) {
	for len(c.tasks) > 0 && c.tasks[0].at <= to {
		t := heap.Pop(&c.tasks).(task)
		c.now = max(c.now, t.at)
		t.do()
	}
	c.now = max(c.now, to)
}

// Run lets a time pass.
func (c *Cluster) Run(d time.Duration) { c.Advance(c.now + d.Milliseconds()) }

// Take hands over what was published since the last call, oldest first.
func (c *Cluster) Take() []Event {
	out := c.events
	c.events = nil
	return out
}

// after does something once a time has passed; things due at the same moment happen in the order in which they were asked for.
func (c *Cluster) after(d time.Duration, do func()) {
	c.order++
	heap.Push(&c.tasks, task{at: c.now + max(d.Milliseconds(), 0), order: c.order, do: do})
}

// every does something at once after first, and then again and again while it answers true.
func (c *Cluster) every(first, period time.Duration, do func() bool) {
	c.after(first, func() {
		if do() {
			c.every(max(period, time.Millisecond), period, do)
		}
	})
}

// jittered varies a latency.
func (c *Cluster) jittered(d time.Duration) time.Duration {
	f := 1 + c.cfg.Timing.Jitter*(2*c.rnd.Float64()-1)
	return time.Duration(float64(d) * f)
}

// elapsedMillis is the time since the start at a moment.
func (c *Cluster) elapsedAt(at int64) time.Duration {
	return time.Duration(at-c.cfg.Start) * time.Millisecond
}

// registered are the brokers of the registry, ordered by id.
func (c *Cluster) registered() []*broker {
	var out []*broker
	for _, b := range c.brokers {
		if b.registered {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b *broker) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// sortedBundles are all bundles, ordered by name.
func (c *Cluster) sortedBundles() []*bundle {
	out := make([]*bundle, 0, len(c.bundles))
	for _, b := range c.bundles {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b *bundle) int { return cmp.Compare(a.name, b.name) })
	return out
}

func clone(s *settings.Settings) *settings.Settings {
	out := *s
	return &out
}

type task struct {
	at    int64
	order int64
	do    func()
}

type taskQueue []task

func (q taskQueue) Len() int { return len(q) }
func (q taskQueue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].order < q[j].order
}
func (q taskQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *taskQueue) Push(x any)   { *q = append(*q, x.(task)) }
func (q *taskQueue) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = task{}
	*q = old[:len(old)-1]
	return t
}
