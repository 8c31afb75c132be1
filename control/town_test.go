package control_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// town is several processes of Ballast beside one small cluster, on a log in memory and a clock of its own. Each process is a
// coroutine that gives way at every call to the outside; the town decides who goes on, and whether somebody is killed, frozen
// or cut off there. Everything follows from the seed.
type town struct {
	now     time.Time
	log     *topics.Memory
	rnd     *rand.Rand
	set     *settings.Settings
	manager plan.Manager
	options func(*control.Options)

	brokers  []string
	weights  map[string]float64 // bundle -> bytes/s
	owners   map[string]string
	requests []*request
	procs    []*proc
	events   []timed
	holder   *proc // of the lock, as the broker sees it
	born     int
	fault    func(p *proc) // called where a process gives way
	cycles   []*control.Cycle
	stored   int // records on the decision log

	stuck map[string]time.Time // bundles that are Releasing and nobody mends -> since when
	mends bool                 // an unload mends them
}

type timed struct {
	at time.Time
	do func()
}

// request is one unload on its way to the cluster.
type request struct {
	by            string
	bundle, to    string
	sent, arrives time.Time
	from          string // owner when it arrived
	arrived       bool
	effect        bool
	entries       int // records of the decision log when it was sent
}

const townManager = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"

const town0 = 1_700_000_000_000 // Unix ms

func newTown(seed uint64, bundles int) *town {
	t := &town{now: time.UnixMilli(town0), rnd: rand.New(rand.NewPCG(seed, 1)), set: settings.Defaults(), manager: toy{},
		brokers: []string{a, b, c}, weights: map[string]float64{}, owners: map[string]string{}, stuck: map[string]time.Time{}}
	t.set.LoadManagerClassName = townManager
	t.log = topics.NewMemory(topics.MemoryOptions{Now: func() time.Time { return t.now }})
	for i := range bundles {
		name := fmt.Sprintf("%s/0x%08x_0x%08x", ns, i<<20, (i+1)<<20)
		t.weights[name] = 1e6 * float64(1+i%5)
		t.owners[name] = a
	}
	return t
}

func (t *town) after(d time.Duration, do func()) {
	t.events = append(t.events, timed{t.now.Add(d), do})
}

// run lets a time pass.
func (t *town) run(d time.Duration) {
	end := t.now.Add(d)
	for {
		var next *proc
		at, event := end, -1
		for _, p := range t.procs {
			if !p.gone && !p.frozen && p.wake.Before(at) {
				next, at = p, p.wake
			}
		}
		for i, e := range t.events {
			if e.at.Before(at) || e.at.Equal(at) && event < 0 && e.at.Before(end) {
				next, at, event = nil, e.at, i
			}
		}
		if next == nil && event < 0 {
			t.now = end
			return
		}
		if at.After(t.now) {
			t.now = at
		}
		if event >= 0 {
			do := t.events[event].do
			t.events = slices.Delete(t.events, event, event+1)
			do()
			continue
		}
		next.resume()
	}
}

// proc is one process. It is a control.Clock, a control.Cluster and a control.Viewer, and its log is the town's.
type proc struct {
	control.Cluster // what is not asked for panics
	*town
	name      string
	ahead     time.Duration // of its clock
	wake      time.Time
	frozen    bool
	cutLog    bool
	cutAdmin  bool
	gone      bool
	next      func() (time.Time, bool)
	end       func()
	yield     func(time.Time) bool
	cancel    context.CancelFunc
	exclusive topics.Publisher
	err       error
}

var errGone = errors.New("this process is dead")

// start begins a process.
func (t *town) start() *proc {
	t.born++
	p := &proc{town: t, name: fmt.Sprintf("p%d", t.born), wake: t.now}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	log := procLog{p}
	lock := control.NewLock(log, p.name, time.Minute, p.Now)
	lock.Deadline = func(ctx context.Context, at time.Time) (context.Context, context.CancelFunc) {
		return context.WithValue(ctx, deadlineKey{}, at), func() {}
	}
	o := control.Options{Instance: p.name, Mode: control.Govern, Manager: t.manager, Viewer: p, Lock: lock, Clock: p, Seed: uint64(t.born),
		Journal: control.NewTopicJournal(log), PlanLife: time.Minute, Logger: quiet, Explain: true,
		Limits:   guard.Limits{BundleCoolDown: 60_000, FailureCoolDown: 30_000},
		Executor: control.NewExecutor(control.Locked(p, lock), p, p, control.ExecLimits{Request: time.Minute, Verify: 5 * time.Second, Poll: 100 * time.Millisecond})}
	if t.options != nil {
		t.options(&o)
	}
	s := &control.Service{Cluster: p, Controller: control.New(o), Lock: lock, Elector: control.NewElector(log, lock, p, quiet),
		TakeOvers: control.NewTakeOvers(log, p, p.name, p.Now), Interval: 10 * time.Second, Standby: 500 * time.Millisecond, Leave: time.Second, Clock: p, Logger: quiet,
		Each: func(cy *control.Cycle) {
			if !p.gone {
				t.cycles = append(t.cycles, cy)
			}
		}}
	p.next, p.end = iter.Pull(func(yield func(time.Time) bool) {
		p.yield = yield
		p.err = s.Run(ctx)
	})
	t.procs = append(t.procs, p)
	return p
}

// resume lets a process go on until it gives way.
func (p *proc) resume() {
	wake, ok := p.next()
	if !ok {
		p.gone = true
		return
	}
	p.wake = wake
}

// kill ends a process at once: nothing that it would still do has an effect. The broker notices at once, too.
func (p *proc) kill() {
	if p.gone {
		return
	}
	p.gone = true
	p.cancel()
	p.end()
	p.drop()
}

// drop takes the lock away from a process, as a broker does when its connection is gone. The process is not told.
func (p *proc) drop() {
	if p.holder == p {
		p.log.Fence(topics.Leader)
		p.holder = nil
	}
}

// keepAlive is after how long a broker gives up a connection that is dead.
func (p *proc) keepAlive(dead func() bool) {
	p.after(30*time.Second+p.some(30*time.Second), func() {
		if dead() {
			p.drop()
		}
	})
}

func (t *town) some(most time.Duration) time.Duration {
	return time.Duration(t.rnd.Int64N(int64(most) + 1))
}

// wait gives way for a time. false: the process is dead.
func (p *proc) wait(d time.Duration) bool {
	if p.gone {
		return false
	}
	return p.yield(p.now.Add(d))
}

// point is a call to the outside: it takes a moment, and something may happen to the process meanwhile.
func (p *proc) point() error {
	if p.gone {
		return errGone
	}
	if p.fault != nil {
		p.fault(p)
	}
	if !p.wait(p.some(5 * time.Millisecond)) {
		return errGone
	}
	return nil
}

func (p *proc) Now() time.Time { return p.now.Add(p.ahead) }

func (p *proc) Sleep(ctx context.Context, d time.Duration) error {
	if !p.wait(d) {
		return errGone
	}
	return ctx.Err()
}

// admin is a request to admin REST that is answered at once.
func (p *proc) admin() error {
	if err := p.point(); err != nil {
		return err
	}
	if p.cutAdmin {
		if !p.wait(time.Second) {
			return errGone
		}
		return errors.New("no route to host")
	}
	return nil
}

func (p *proc) Name(context.Context) (string, error)            { return "town", p.admin() }
func (p *proc) CreateTopic(context.Context, string) error       { return p.admin() }
func (p *proc) Publishers(context.Context, string) (int, error) { return 1, p.admin() }
func (p *proc) Owner(_ context.Context, bundle string) (control.Ownership, error) {
	o := p.owned(bundle)
	return o, p.point()
}

func (t *town) owned(bundle string) control.Ownership {
	o := control.Ownership{Bundle: bundle, Owner: t.owners[bundle], State: event.Owned}
	if _, stuck := t.stuck[bundle]; stuck {
		o.State = event.Releasing
	}
	return o
}

func (p *proc) DynamicConfig(context.Context) (map[string]string, error) {
	return map[string]string{"loadBalancerSheddingEnabled": "false"}, p.admin()
}

func (p *proc) RuntimeConfig(context.Context) (map[string]string, error) {
	return map[string]string{"loadBalancerSheddingEnabled": "false"}, p.admin()
}

func (p *proc) Brokers(context.Context) ([]cluster.Broker, error) {
	var out []cluster.Broker
	for _, id := range p.brokers {
		out = append(out, cluster.Broker{ID: id, Version: "4.2.4", LoadManager: townManager, PersistentTopics: true, NonPersistentTopics: true})
	}
	return out, p.admin()
}

type deadlineKey struct{}

// Unload sends a request, unless its time is over, and waits until the bundle has moved or the time is over.
func (p *proc) Unload(ctx context.Context, bundle, to string) error {
	if err := p.admin(); err != nil {
		return err
	}
	limit, ok := ctx.Value(deadlineKey{}).(time.Time)
	if !ok {
		return errors.New("a request without a deadline")
	}
	if !p.now.Before(limit) {
		return context.DeadlineExceeded
	}
	r := &request{by: p.name, bundle: bundle, to: to, sent: p.now, arrives: p.now.Add(p.some(time.Second)), entries: p.stored}
	p.requests = append(p.requests, r)
	p.after(r.arrives.Sub(p.now), func() {
		r.arrived, r.from = true, p.owners[bundle]
		if _, stuck := p.stuck[bundle]; stuck {
			if r.effect = p.mends; r.effect {
				delete(p.stuck, bundle)
			}
			return
		}
		if r.effect = r.from != to; r.effect {
			p.owners[bundle] = to
		}
	})
	for !r.arrived {
		if !p.now.Before(limit) {
			return context.DeadlineExceeded
		}
		if !p.wait(50 * time.Millisecond) {
			return errGone
		}
	}
	return nil
}

// Look is the cluster as it is; its load follows from who owns what.
func (p *proc) Look(ctx context.Context, now time.Time) (*control.Look, error) {
	brokers, err := p.Brokers(ctx)
	if err != nil {
		return nil, err
	}
	in := control.Inputs{Now: now.UnixMilli(), Cluster: "town", Version: "4.2.4", Leader: a, Brokers: brokers, Settings: p.set}
	for _, id := range p.brokers {
		d, top := event.NewBrokerLoadData(), event.NewTopBundlesLoadData()
		for _, bundle := range p.bundles() {
			in.Owners = slices.DeleteFunc(in.Owners, func(o control.Ownership) bool { return o.Bundle == bundle })
			in.Owners = append(in.Owners, p.owned(bundle))
			if w := p.weights[bundle]; p.owners[bundle] == id {
				d.MsgThroughputIn, d.MsgThroughputOut, d.BundleCount = d.MsgThroughputIn+w, d.MsgThroughputOut+w, d.BundleCount+1
				top.TopBundlesLoadData = append(top.TopBundlesLoadData, event.BundleLoad{BundleName: bundle,
					Stats: event.NamespaceBundleStats{MsgThroughputIn: w, MsgThroughputOut: w, Topics: 3}})
			}
		}
		d.MsgThroughputEMA = d.MsgThroughputIn + d.MsgThroughputOut
		d.WeightedMaxEMA = d.MsgThroughputIn / 1e8
		in.Load = append(in.Load, control.Heard[event.BrokerLoadData]{Key: id, Value: d, At: now.UnixMilli()})
		in.Top = append(in.Top, control.Heard[event.TopBundlesLoadData]{Key: id, Value: top, At: now.UnixMilli()})
	}
	return &control.Look{Snapshot: control.Assemble(in)}, nil
}

func (t *town) bundles() []string {
	var names []string
	for name := range t.weights {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// entry is one record as it stands on the decision log.
type entry struct {
	control.Record
	key string
}

// records are those of the decision log.
func (t *town) records() []entry {
	sub, err := t.log.Subscribe(context.Background(), topics.Decisions, topics.SubscribeOptions{From: topics.Earliest})
	if err != nil {
		panic(err)
	}
	defer sub.Close()
	var out []entry
	for {
		m, ok, err := sub.(*topics.MemorySubscription).TryReceive()
		if err != nil {
			panic(err)
		}
		if !ok {
			return out
		}
		if r, err := control.DecodeRecord(m.Payload); err == nil {
			out = append(out, entry{r, m.Key})
		}
	}
}

// toy is a load manager that moves two bundles in each cycle, by the number of cycles that its state has seen.
type toy struct{ script }

func (toy) Shed(snap *cluster.Snapshot, state plan.State, _ plan.Rand, tr *plan.Trace) (plan.Plan, plan.State) {
	st := *state.(*scriptState)
	st.Cycle++
	p := plan.Plan{Strategy: fmt.Sprintf("toy %d", st.Cycle), At: snap.Now}
	for i := range 3 {
		bundle := &snap.Bundles[(st.Cycle*3+i)%len(snap.Bundles)]
		at := slices.IndexFunc(snap.Brokers, func(br cluster.Broker) bool { return br.ID == bundle.Owner })
		p.Decisions = append(p.Decisions, transfer(bundle.Name, bundle.Owner, snap.Brokers[(at+1+st.Cycle%2)%len(snap.Brokers)].ID))
	}
	return p, &st
}

// procLog is the town's log as one process reaches it.
type procLog struct{ p *proc }

func (l procLog) Close() error { return nil }

func (l procLog) Subscribe(ctx context.Context, topic string, o topics.SubscribeOptions) (topics.Subscription, error) {
	if err := l.reach(); err != nil {
		return nil, err
	}
	sub, err := l.p.log.Subscribe(context.WithoutCancel(ctx), topic, o)
	if err != nil {
		return nil, err
	}
	return procSub{sub.(*topics.MemorySubscription), l.p}, nil
}

// reach is a call to the brokers.
func (l procLog) reach() error {
	if err := l.p.point(); err != nil {
		return err
	}
	if l.p.cutLog {
		if !l.p.wait(1500 * time.Millisecond) {
			return errGone
		}
		return errors.New("connection lost")
	}
	return nil
}

func (l procLog) Publisher(ctx context.Context, topic string, o topics.PublishOptions) (topics.Publisher, error) {
	if err := l.reach(); err != nil {
		return nil, err
	}
	pub, err := l.p.log.Publisher(context.WithoutCancel(ctx), topic, o)
	if err != nil {
		return nil, err
	}
	if o.Exclusive {
		l.p.holder, l.p.exclusive = l.p, pub
	}
	return procPub{l, pub, topic, o.Exclusive}, nil
}

type procPub struct {
	procLog
	pub       topics.Publisher
	topic     string
	exclusive bool
}

// Publish stores the event and loses the answer where the process is cut off meanwhile.
func (p procPub) Publish(_ context.Context, key string, payload []byte) (topics.MessageID, error) {
	if err := p.reach(); err != nil {
		return topics.MessageID{}, err
	}
	id, err := p.pub.Publish(context.Background(), key, payload)
	if err != nil {
		return id, err
	}
	if p.topic == topics.Decisions && len(payload) > 0 {
		p.p.stored++
	}
	return id, p.reach()
}

// Close gives the topic up; a broker that cannot be reached finds out later.
func (p procPub) Close() error {
	shut := func() error {
		if p.exclusive && p.p.exclusive == p.pub && p.p.holder == p.p {
			p.p.holder = nil
		}
		return p.pub.Close()
	}
	if p.p.gone {
		return nil
	}
	if p.p.cutLog {
		p.p.after(30*time.Second+p.p.some(30*time.Second), func() { _ = shut() })
		return nil
	}
	return shut()
}

type procSub struct {
	*topics.MemorySubscription
	p *proc
}

// TryReceive hears nothing while the process is cut off.
func (s procSub) TryReceive() (topics.Message, bool, error) {
	if s.p.gone {
		return topics.Message{}, false, errGone
	}
	if s.p.cutLog {
		return topics.Message{}, false, nil
	}
	m, ok, err := s.MemorySubscription.TryReceive()
	m.Received = m.PublishTime.Add(s.p.ahead) // it came to the process at once, whenever that looks
	return m, ok, err
}

// short is a bundle's name in messages.
func short(bundle string) string { return strings.TrimPrefix(bundle, ns+"/") }
