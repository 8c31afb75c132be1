//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/plan"
	defaults "github.com/ballast-lb/ballast/settings"
)

var leaderArgs = append([]string{"run", "--mode", "govern", "--take-over", "--set", "ballastHttpListenAddress="}, settings("ballastCycleInterval=1s")...)

// leads is the newest leader by the decision log.
func leads(records []control.Record) (r control.Record) {
	for _, x := range records {
		if x.Kind == control.KindLeader && x.Leader.What == control.Leads && x.Epoch > r.Epoch {
			r = x
		}
	}
	return r
}

// leader waits for a leader of a higher epoch than one before, and for its first plan.
func leader(t *testing.T, c *harness.Cluster, after int64, limit time.Duration) (lead, planned control.Record) {
	t.Helper()
	harness.Eventually(t, limit, fmt.Sprintf("a leader after epoch %d plans", after), func(context.Context) error {
		records := decisions(t, c, time.Time{})
		if lead = leads(records); lead.Epoch <= after {
			return fmt.Errorf("the newest epoch is %d", lead.Epoch)
		}
		for _, r := range records {
			if r.Epoch == lead.Epoch && r.Kind == control.KindPlan {
				planned = r
				return nil
			}
		}
		return fmt.Errorf("epoch %d has planned nothing yet", lead.Epoch)
	})
	return lead, planned
}

func (p *program) leads(r control.Record) bool {
	return strings.HasSuffix(r.Instance, fmt.Sprintf("-%d", p.cmd.Process.Pid))
}

// What may happen to a leader.
type harm int

const (
	killed harm = iota
	frozen
	cutFromPulsar
	cutFromAdmin
)

func (h harm) String() string {
	return [...]string{"killed", "frozen", "cut off from Pulsar", "cut off from admin REST"}[h]
}

// silence is how long a leader may be silent: a broker asks after it when keepAliveIntervalSeconds (30) have passed, and gives it up
// when as many have passed again. One that is cut off from admin REST alone steps down when what it has under way has ended and a look
// had no answer for 30 s. Then the next process needs its turn.
const silence = 90 * time.Second

// Of three programs the one that leads is killed, frozen or cut off again and again: another one goes on, and what comes back
// steps down without a word about the cluster. At full length this happens at random points of an action.
func TestLeadersAreKilledAndFrozen(t *testing.T) {
	rounds, limit := []harm{killed, killed, killed, killed, killed, killed, frozen}, 10*time.Second
	args, rng := leaderArgs, rand.New(rand.NewPCG(7, 7))
	var c *harness.Cluster
	again, acting := func(control.Record) {}, 0
	if harness.Full() {
		limit = 2 * time.Second // on a machine with other work 2 s cannot be asked for
		rounds = slices.Concat(slices.Repeat([]harm{killed}, 8), slices.Repeat([]harm{frozen, cutFromPulsar, cutFromAdmin}, 4))
		rng.Shuffle(len(rounds), func(i, j int) { rounds[i], rounds[j] = rounds[j], rounds[i] })
		hot := hotStart(t, 11)
		c = hot.c
		args = slices.Concat(leaderArgs, settings("ballastLoadSource=derived", "ballastLoadHalfLife=0s", "ballastCPUWeight=0", "ballastNewBrokerTime=0s", "ballastMaxBundlesPerCycle=1", "ballastBundleCoolDown=0s", "ballastBrokerCoolDown=0s", "ballastOscillationTurns=0"))
		bundles := c.Bundles(t, hot.meter.Namespace)
		again = func(lead control.Record) { // what was moved away comes back, so that there is always something to move
			for range 3 {
				c.Move(t, bundles[rng.IntN(len(bundles))], c.Brokers()[0])
			}
			since := time.Now()
			for time.Since(since) < 2*time.Minute { // a new process must have heard of all brokers first
				if slices.ContainsFunc(decisions(t, c, since), func(r control.Record) bool { return r.Kind == control.KindIntent && r.Epoch == lead.Epoch }) {
					acting++
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
		}
		defer hot.report(t, "under changing leaders")
	} else {
		c = shared(t)
	}
	begun, earlier := time.Now(), leads(decisions(t, c, time.Time{})).Epoch // other tests had leaders here
	var programs []*program
	next := func() {
		programs = append(programs, launchAs(t, firstGroup+len(programs), append(slices.Clone(args), "--admin-service-url", c.AdminURL(), "--service-url", c.ServiceURL())...))
	}
	for range 3 {
		next()
	}
	lead, _ := leader(t, c, earlier, 2*time.Minute)
	worst := map[harm]time.Duration{}
	for _, what := range rounds {
		again(lead)
		i := slices.IndexFunc(programs, func(p *program) bool { return p.leads(lead) })
		if i < 0 {
			t.Fatalf("%s leads, which is none of the programs", lead.Instance)
		}
		p, at := programs[i], time.Now()
		back := func() {}
		switch what {
		case killed:
			if err := p.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-p.done
		case frozen:
			p.signal(t, syscall.SIGSTOP)
			back = func() { p.signal(t, syscall.SIGCONT) }
		case cutFromPulsar:
			back = cut(t, firstGroup+i, 6650)
		case cutFromAdmin:
			back = cut(t, firstGroup+i, 8080)
		}
		mark := p.mark()
		following, planned := leader(t, c, lead.Epoch, 3*time.Minute)
		took := time.UnixMilli(following.At).Sub(at)
		t.Logf("epoch %d was %v: epoch %d leads after %v and plans after %v", lead.Epoch, what, following.Epoch, took, time.UnixMilli(planned.At).Sub(at))
		worst[what] = max(worst[what], took)
		back()
		woken := time.Now()
		if what == killed {
			next()
		} else {
			p.saysAfter(t, mark, "standing by")
		}
		// The plan that it was making when it was frozen may still come: it counts for nobody, as a later epoch stands before it.
		plans := 0
		for _, r := range decisions(t, c, woken) {
			if r.Epoch != lead.Epoch {
				continue
			}
			if r.Kind == control.KindPlan {
				plans++
			}
			if r.Kind == control.KindIntent || plans > 1 {
				t.Errorf("the leader that was %v wrote a record of kind %s afterwards, %d plans", what, r.Kind, plans)
			}
		}
		lead = following
	}
	for what, took := range worst {
		harness.Figure(t, "longest time until the next leader, ms, "+what.String(), took.Milliseconds())
	}
	if worst[killed] > limit {
		t.Errorf("after a kill the next leader took %v, want at most %v", worst[killed], limit)
	}
	for what, took := range worst {
		if took > silence {
			t.Errorf("after a leader was %v the next one took %v, want at most %v", what, took, silence)
		}
	}
	if harness.Full() && acting < len(rounds)/2 {
		t.Errorf("%d of %d leaders were acting when they were lost: too few to show anything", acting, len(rounds))
	}
	for _, p := range programs {
		p.stop(t)
	}
	records := decisions(t, c, begun)
	everyIntentHasAnOutcome(t, records)
	epochs, highest, late := map[int64]string{}, int64(0), map[int64]int{}
	for _, r := range records {
		if r.Epoch == 0 {
			continue
		}
		if before, known := epochs[r.Epoch]; known && before != r.Instance {
			t.Errorf("epoch %d is that of %s and of %s", r.Epoch, before, r.Instance)
		}
		epochs[r.Epoch] = r.Instance
		if highest = max(highest, r.Epoch); r.Epoch < highest && r.Kind == control.KindIntent {
			late[r.Epoch]++
		}
	}
	for epoch, n := range late {
		if n > 1 {
			t.Errorf("%d intents of epoch %d stand after those of a later one", n, epoch)
		}
	}
	harness.Figure(t, "leaders lost", len(rounds))
	harness.Figure(t, "of them while an action was under way or just done", acting)
	harness.Figure(t, "late intents of deposed leaders", len(late))
}

// fixed is a load manager whose plan is always the same.
type fixed []plan.Decision

type fixedState struct{ Cycles int }

func (f fixed) NewState() plan.State { return &fixedState{} }
func (f fixed) Shed(snap *cluster.Snapshot, st plan.State, _ plan.Rand, _ *plan.Trace) (plan.Plan, plan.State) {
	return plan.Plan{Strategy: "fixed", At: snap.Now, Decisions: f}, &fixedState{st.(*fixedState).Cycles + 1}
}
func (f fixed) Split(_ *cluster.Snapshot, st plan.State, _ *plan.Trace) (plan.Plan, plan.State) {
	return plan.Plan{}, st
}
func (f fixed) Place(*cluster.Snapshot, string, plan.State, plan.Rand, *plan.Trace) (plan.Decision, plan.State) {
	return plan.Decision{}, nil
}
func (f fixed) Record(st plan.State, _ plan.Decision, _ int64) plan.State { return st }

// govern runs Ballast with a fixed plan in this process until stop is called.
func govern(t *testing.T, c *harness.Cluster, name string, review bool, plan fixed) (stop func()) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	rest, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	log, clock := connect(t, c), control.SystemClock{}
	views := control.NewViews(control.ViewOptions{Cluster: rest, Log: log, Settings: defaults.Defaults(), Estimate: true, Logger: quiet})
	if err := views.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	lock := control.NewLock(log, name, 1500*time.Millisecond, time.Now)
	locked := control.Locked(rest, lock)
	journal := control.NewTopicJournal(log)
	controller := control.New(control.Options{Instance: name, Mode: control.Govern, Manager: plan, Viewer: views, Lock: lock, Clock: clock, Review: review,
		Executor: control.NewExecutor(locked, views, clock, control.ExecLimits{Request: 20 * time.Second, Verify: 20 * time.Second, Poll: 50 * time.Millisecond}),
		Journal:  journal, Limits: guard.Limits{BundleCoolDown: 600_000, FailureCoolDown: 600_000}, PlanLife: time.Minute, Logger: quiet})
	service := &control.Service{Cluster: rest, Controller: controller, Lock: lock, Elector: control.NewElector(log, lock, clock, quiet), TakeOver: true,
		TakeOvers: control.NewTakeOvers(log, locked, name, time.Now), Interval: time.Second, Standby: 500 * time.Millisecond, Leave: 20 * time.Second, Clock: clock, Logger: quiet}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- views.Run(ctx) }()
	go func() { done <- service.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		for range 2 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("%s ended: %v", name, err)
			}
		}
		if err := errors.Join(journal.Close(), views.Close(), rest.Close()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// await waits for a record of a writer.
func await(t *testing.T, c *harness.Cluster, since time.Time, what string, want func(control.Record) bool) (found control.Record) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, what, func(context.Context) error {
		for _, r := range decisions(t, c, since) {
			if want(r) {
				found = r
				return nil
			}
		}
		return errors.New("no such record")
	})
	return found
}

// What the guard remembers survives the leader; pausing, resuming and approving reach the leader over the command topic.
func TestOperatorsReachTheLeader(t *testing.T) {
	c := shared(t)
	if _, stderr, code := run(t, c, "pause", "--reason", "nobody is there"); code != 1 || !strings.Contains(stderr, "no Ballast process governs") {
		t.Errorf("without a leader pause ended with %d: %s", code, stderr)
	}
	ns := c.CreateNamespace(t, 4)
	from, to := c.Brokers()[0], c.Brokers()[1]
	c.Place(t, ns, from)
	bundle := c.Bundles(t, ns)[0]
	move := func(a, b *harness.Broker) fixed {
		return fixed{{Action: plan.Transfer, Bundle: bundle, Source: a.ID, Destination: b.ID, Topics: 1}}
	}
	say := func(want string, args ...string) {
		t.Helper()
		stdout, stderr, code := run(t, c, args...)
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("ballast %s ended with %d: %s%s, want %q", strings.Join(args, " "), code, stdout, stderr, want)
		}
	}

	began := time.Now()
	stop := govern(t, c, "first", false, move(from, to))
	out := await(t, c, began, "the move", func(r control.Record) bool { return r.Kind == control.KindOutcome })
	if out.Outcome.Result != control.Done || c.Owners(t, ns)[bundle] != to.ID {
		t.Fatalf("the move: %+v", out.Outcome)
	}
	stop()

	began = time.Now()
	stop = govern(t, c, "second", false, move(to, from))
	r := await(t, c, began, "a plan of the next leader", func(r control.Record) bool {
		return r.Instance == "second" && r.Kind == control.KindPlan && r.Verdict != nil
	})
	if len(r.Verdict.Refused) != 1 || r.Verdict.Refused[0].Why.Code != guard.CoolDown.ID || r.Epoch != out.Epoch+1 || r.Cycle <= out.Cycle {
		t.Errorf("after a restart: epoch %d after %d, cycle %d after %d, verdict %+v: want the cool-down", r.Epoch, out.Epoch, r.Cycle, out.Cycle, r.Verdict)
	}
	say("paused until", "pause", "--reason", "release", "--for", "1h")
	await(t, c, began, "a paused cycle", func(r control.Record) bool {
		return r.Kind == control.KindPlan && r.Pause != nil && r.Pause.Reason == "release"
	})
	stop()

	began = time.Now()
	other := c.Bundles(t, ns)[1]
	stop = govern(t, c, "third", true, fixed{{Action: plan.Transfer, Bundle: other, Source: from.ID, Destination: to.ID, Topics: 1}})
	await(t, c, began, "the pause of the leader before", func(r control.Record) bool {
		return r.Instance == "third" && r.Kind == control.KindPlan && r.Pause != nil
	})
	say("resumed", "resume")
	r = await(t, c, began, "a plan that waits", func(r control.Record) bool { return r.Kind == control.KindPlan && r.Review != nil })
	if _, stderr, code := run(t, c, "approve", "0-0"); code != 1 || !strings.Contains(stderr, "the plan that waits is "+r.Review.ID) {
		t.Errorf("another plan was approved: %d %s", code, stderr)
	}
	if owner := c.Owners(t, ns)[other]; owner != from.ID {
		t.Errorf("the plan ran before it was approved: %s owns the bundle", owner)
	}
	say("approved", "approve", r.Review.ID, "--reason", "looks right")
	done := await(t, c, began, "the move that was approved", func(r control.Record) bool { return r.Instance == "third" && r.Kind == control.KindOutcome })
	if done.Outcome.Result != control.Done || c.Owners(t, ns)[other] != to.ID {
		t.Errorf("what was approved: %+v", done.Outcome)
	}
	stdout, stderr, code := run(t, c, "explain", bundle)
	if code != 0 || !strings.Contains(stdout, "moved from "+from.ID+" to "+to.ID) || !strings.Contains(stdout, "held back: the bundle moved") {
		t.Errorf("explain ended with %d: %s%s", code, stdout, stderr)
	}
	stdout, stderr, code = run(t, c, "log", "--kind", "command", "-o", "json")
	if lines := strings.Count(stdout, "\n"); code != 0 || lines < 4 {
		t.Errorf("log ended with %d and %d lines: %s%s", code, lines, stdout, stderr)
	}
	stop()
}
