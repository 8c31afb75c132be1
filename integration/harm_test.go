//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/topics"
)

// hurtBy is how a record names what clients suffered, with the broker, the reading and the limit.
var hurtBy = regexp.MustCompile(`^publish latency of (\S+) rose to (\d+) ms, more than (\d+)$`)

// harmed is a reading for which a leader slowed down.
type harmed struct {
	record int // of the plan
	broker string
	before float64 // moves at once
	after  float64
}

// pace is the guard's pace in the memory of a record.
func pace(t *testing.T, r control.Record) (guard.Pace, bool) {
	t.Helper()
	if r.Memory == nil || len(r.Memory.Guard) == 0 {
		return guard.Pace{}, false
	}
	var st guard.State
	if err := json.Unmarshal(r.Memory.Guard, &st); err != nil {
		t.Fatalf("the guard's memory in the %s record %d: %v", r.Kind, r.Seq, err)
	}
	return st.Pace, true
}

// slowedFor finds where leaders slowed down for what clients suffered, and checks each by the documentation: the reading is on the
// same record, with its figure; the number of moves at once is halved; and something has moved since the one before.
func slowedFor(t *testing.T, records []control.Record) (all []harmed, wrong []string) {
	t.Helper()
	var before guard.Pace
	moved := 0 // since the one before
	for i, r := range records {
		if r.Kind == control.KindOutcome && r.Outcome.Result == control.Done {
			moved++
		}
		now, ok := pace(t, r)
		if !ok {
			continue
		}
		found := hurtBy.FindStringSubmatch(now.Why)
		if r.Kind == control.KindPlan && found != nil && now.At != before.At {
			h := harmed{record: i, broker: found[1], before: max(before.Width, 1), after: now.Width}
			said, _ := strconv.ParseFloat(found[2], 64) // digits
			read := -1.0
			if r.Harm != nil {
				for _, c := range r.Harm.Brokers {
					if c.Broker == h.broker {
						read = c.Latency
					}
				}
			}
			if read <= 1 || read > said+0.5 || read < said-0.5 || r.Harm.At != now.At {
				wrong = append(wrong, fmt.Sprintf("cycle %d: %s, while the reading on record is %+v", r.Cycle, now.Why, r.Harm))
			}
			if want := max(1, h.before/2); h.after != want {
				wrong = append(wrong, fmt.Sprintf("cycle %d: %v moves at once after %v, want %v", r.Cycle, h.after, h.before, want))
			}
			if moved == 0 {
				wrong = append(wrong, fmt.Sprintf("cycle %d: counted again, and nothing has moved since", r.Cycle))
			}
			moved = 0
			all = append(all, h)
		}
		before = now
	}
	return all, wrong
}

// ofStrategy are the plans of the strategy, not of drains, that were decided about.
func ofStrategy(records []control.Record) (out []control.Record) {
	for _, r := range records {
		if r.Kind == control.KindPlan && r.Plan.Strategy != control.DrainStrategy && len(r.Frozen) == 0 {
			out = append(out, r)
		}
	}
	return out
}

// drained drains a broker beside the leader, checks that it is empty in time, and lets it take bundles again.
func drained(t *testing.T, c *harness.Cluster, b *harness.Broker, least int) time.Duration {
	t.Helper()
	begun := time.Now()
	d := command(t, c, 0, "drain", b.ID, "--execute", "--wait", "2m", "--follow", "3m", "--reason", "harm")
	took := time.Since(begun)
	moved := 0
	for _, o := range d.Outcomes {
		if o.Result == string(control.Done) {
			moved++
		}
	}
	if moved < least {
		t.Errorf("%d of at least %d bundles left %s: %+v", moved, least, b.Name, d.Outcomes)
	}
	if stdout, stderr, code := run(t, c, "undrain", b.ID, "--wait", "2m"); code != 0 {
		t.Fatalf("undrain ended with %d: %s %s", code, stdout, tail(stderr))
	}
	return took
}

// With a limit that every reading of this cluster is above, moves count as harm, once each: moves at
// once are halved, and the record names the metric and its figures. A drain goes on all the same. Without the limit nothing of this
// happens.
func TestHarmSlowsDown(t *testing.T) {
	full(t)
	const rate, size, hot, perBroker = 200, 6000, 0.8, 6
	c := shared(t)
	c.SetDynamic(t, reportThreshold, "0")
	deleteTopic(t, c, topics.Decisions) // what was usual for clients in earlier tests is in its memory
	brokers := c.Brokers()
	ns := c.CreateNamespace(t, 3*perBroker)
	c.Place(t, ns, brokers...)
	load := traffic.Start(t, c.ServiceURL(), traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: rate, Exponent: 0.6, MaxShare: 0.12, Seed: 1}),
		traffic.Options{Size: size, Drain: 3 * time.Minute})
	load.AwaitFlow(t)

	limit := rate * size * 8 / 1000.0 * 2 / hot // kbit/s: in, and once more to the bookie; twice out
	capacities := filepath.Join(t.TempDir(), "capacities.json")
	if err := os.WriteFile(capacities, fmt.Appendf(nil, `{"*": {"bandwidthIn": %.0f, "bandwidthOut": %.0f}}`, limit, limit), 0o600); err != nil {
		t.Fatal(err)
	}
	govern := func(most, target string) *program {
		args := append([]string{"run", "--mode", "govern", "--take-over"}, settings("ballastHttpListenAddress=", "ballastCycleInterval=2s",
			"ballastLoadSource=derived", "ballastLoadHalfLife=0s", "ballastCPUWeight=0", "ballastMemoryWeight=0", "ballastDirectMemoryWeight=0",
			"ballastCapacityOverridesFile="+capacities, "ballastBundleStatsInterval=10s", "ballastNewBrokerTime=0s", "ballastBundleCoolDown=1s",
			"ballastOscillationTurns=0", "ballastMaxBundlesPerCycle=2", "ballastSlowMove=0s", "ballastMaxReconnectRate=0", "ballastMaxPublishLatency="+most,
			"loadBalancerBrokerLoadTargetStd="+target, "loadBalancerSheddingConditionHitCountThreshold=0", "loadBalanceSheddingDelayInSeconds=5")...)
		p := start(t, c, args...)
		p.says(t, "took over", 3*time.Minute)
		return p
	}
	stop := func(p *program) {
		t.Helper()
		if code := p.stop(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}

	// Not watched: moves are not held against anybody.
	const never, always = "1", "0.02" // spread of usage from which the strategy moves bundles
	first := time.Now()
	p := govern("0s", never)
	took := drained(t, c, brokers[2], perBroker)
	after := time.Now()
	harness.Eventually(t, 3*time.Minute, "cycles after a drain", func(context.Context) error {
		if n := len(ofStrategy(decisions(t, c, after))); n < 3 {
			return fmt.Errorf("%d of 3", n)
		}
		return nil
	})
	stop(p)
	unwatched := decisions(t, c, first)
	for _, r := range unwatched {
		if now, ok := pace(t, r); r.Harm != nil || ok && hurtBy.MatchString(now.Why) {
			t.Errorf("with a limit of 0s the %s record of cycle %d has the reading %+v and the pace %+v", r.Kind, r.Cycle, r.Harm, now)
		}
	}
	harness.Figure(t, "seconds of a drain, clients not watched", int(took.Seconds()))

	// Watched, by a limit that nobody keeps: the drain hurts, and ends.
	p = govern("1ms", never)
	took = drained(t, c, brokers[1], perBroker)
	harness.Figure(t, "seconds of a drain that hurts", int(took.Seconds()))
	if took > 3*time.Minute {
		t.Errorf("the drain took %v", took)
	}
	harness.Eventually(t, 3*time.Minute, "a reading after moves of the drain", func(context.Context) error {
		records := decisions(t, c, first)
		all, _ := slowedFor(t, records)
		for _, h := range all {
			for _, r := range records[:h.record] {
				if r.Kind == control.KindOutcome && r.Outcome.Decision.Source == brokers[1].ID && r.Outcome.Decision.Why.Code == drain.Leaves.ID {
					return nil
				}
			}
		}
		return errors.New("none")
	})

	stop(p)

	// The next leader goes on with that pace: the strategy fills the broker again, and its plans are told to go slower, and why.
	begun := time.Now()
	p = govern("1ms", always)
	harness.Eventually(t, 5*time.Minute, "the strategy moves bundles, and is slowed down for it", func(context.Context) error {
		records := decisions(t, c, begun)
		acted := map[int64]bool{}
		moves := 0
		for _, r := range ofStrategy(records) {
			acted[r.Cycle] = true
		}
		for _, r := range records {
			if r.Kind == control.KindOutcome && acted[r.Cycle] && r.Outcome.Result == control.Done {
				moves++
			}
		}
		if moves == 0 {
			return errors.New("it has not moved anything")
		}
		for _, r := range ofStrategy(records) {
			if now, _ := pace(t, r); r.Verdict != nil && slower(r.Verdict, now) {
				return nil
			}
		}
		return fmt.Errorf("%d moves, and no plan was slowed down", moves)
	})
	stop(p)
	all, wrong := slowedFor(t, decisions(t, c, first))
	for _, w := range wrong {
		t.Error(w)
	}
	halved := 0
	for _, h := range all {
		if h.after < h.before {
			halved++
		}
	}
	if halved == 0 {
		t.Errorf("of %d readings that hurt none halved anything: %+v", len(all), all)
	}
	harness.Figure(t, "readings that slowed down", len(all))
	harness.Figure(t, "of them such that halved the moves at once", halved)
	report := load.Stop(t)
	t.Log(report)
	if err := report.Err(); err != nil {
		t.Error(err)
	}
}

// slower says whether a verdict tells that there are fewer moves at once than the limit allows, for what clients suffered.
func slower(v *guard.Verdict, now guard.Pace) bool {
	for _, l := range v.Slowed {
		if l.Why.Code == guard.Slower.ID && number(l.Why, "why") == now.Why && hurtBy.MatchString(now.Why) {
			return v.AtOnce == int(max(now.Width, 1)) && v.AtOnce < 4
		}
	}
	return false
}

// number is the text of a named value of a reason.
func number(r plan.Reason, name string) string {
	for _, n := range r.Numbers {
		if n.Name == name {
			return n.Text
		}
	}
	return ""
}

// deleteTopic removes a topic with everything in it, if it is there. Who writes to it makes a new one.
func deleteTopic(t *testing.T, c *harness.Cluster, topic string) {
	t.Helper()
	path := "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "?force=true"
	harness.Eventually(t, time.Minute, topic+" is deleted", func(ctx context.Context) error {
		err := c.Do(ctx, http.MethodDelete, path, nil)
		if e := (*harness.StatusError)(nil); errors.As(err, &e) && e.Code == http.StatusNotFound {
			return nil
		}
		return err
	})
}
