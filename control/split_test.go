package control_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/simple"
	"github.com/ballast-lb/ballast/simulate"
)

var hands = control.ExecLimits{Request: time.Minute, Verify: 10 * time.Second, Poll: 100 * time.Millisecond}

// splitter is a process that governs a Modular cluster by the Modular rules and may split.
func (r *reported) splitter(change func(*control.Options)) (*control.Controller, *memoryJournal) {
	r.t.Helper()
	m, err := modular.New(modular.ThresholdShedder{}, modular.LeastLongTermMessageRate{}, modular.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	v := r.views(nil, nil)
	x, journal := control.NewCoaxer(r, v, r, hands, control.Hinted, 3), &memoryJournal{}
	o := control.Options{Instance: "one", Mode: control.Govern, Viewer: v, Executor: x, Clock: r, Journal: journal, Explain: true, Logger: quiet,
		Manager: control.OnReports(m, control.EngineOptions{Destinations: control.Hinted, Attempts: 3, Landings: x.Landings}),
		Limits:  guard.Limits{BundlesPerCycle: 3, BundleCoolDown: 600_000, FailureCoolDown: 60_000},
		Splits:  &control.Splits{When: control.SplitAuto, Cluster: r}}
	if change != nil {
		change(&o)
	}
	return control.New(o), journal
}

func codes(list []plan.LeftOut) (out []string) {
	for _, l := range list {
		out = append(out, l.Why.Code)
	}
	return out
}

// wholeRange fails unless the bundles of ns cover all hashes, each once.
func (r *reported) wholeRange() []string {
	r.t.Helper()
	list, err := r.Bundles(r.t.Context(), ns)
	if err != nil {
		r.t.Fatal(err)
	}
	at := "0x00000000"
	for _, name := range list {
		from, to, _ := strings.Cut(strings.TrimPrefix(name, ns+"/"), "_")
		if from != at {
			r.t.Fatalf("after %s comes %s: %v", at, from, list)
		}
		at = to
	}
	if at != "0xffffffff" {
		r.t.Fatalf("the bundles end at %s: %v", at, list)
	}
	return list
}

// Where the cluster does not split by itself the loop does: as many as the budget allows, each verified; what was split is not
// planned again though brokers still report it, and in the end no bundle is above the limit.
func TestLoopSplits(t *testing.T) {
	r := modularCluster(t, func(cfg *simulate.Config) {
		cfg.Settings.LoadBalancerNamespaceBundleMaxTopics = 2 // each of the four bundles has three
		cfg.Settings.DefaultNamespaceBundleSplitAlgorithm = "topic_count_equally_divide"
		cfg.Settings.LoadBalancerBrokerThresholdShedderPercentage = 100 // nothing else is to do
	})
	c1, journal := r.splitter(nil)
	step := func() *control.Cycle {
		t.Helper()
		r.report(a, b, c)
		cy, err := c1.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return cy
	}
	parents := r.wholeRange()
	first := step()
	if first.Plan.Outcome.Code != "SPLITS" || len(first.Plan.Decisions) != 4 || len(first.Verdict.Run) != 3 ||
		first.Verdict.Refused[0].Why.Code != guard.CycleBudget.ID {
		t.Fatalf("the first cycle planned %+v, refused %+v", first.Plan, first.Verdict.Refused)
	}
	for _, out := range first.Outcomes {
		d := out.Decision
		if out.Result != control.Done || len(out.Parts) != 2 || d.Why.Code != "SPLIT_TOPICS" || d.Action != plan.Split {
			t.Errorf("split of %s: %s (%s), parts %v, because of %s", d.Bundle, out.Result, out.Why, out.Parts, d.Why.Code)
		}
	}
	after, left := r.wholeRange(), first.Verdict.Refused[0].Decision.Bundle
	for _, name := range parents {
		if gone := !slices.Contains(after, name); gone != (name != left) {
			t.Errorf("%s is gone: %t, want all split but %s", name, gone, left)
		}
	}
	// The brokers' statistics still name the parents.
	second := step()
	if d := second.Plan.Decisions; len(d) != 1 || d[0].Bundle != left || len(second.Outcomes) != 1 || second.Outcomes[0].Result != control.Done {
		t.Errorf("the second cycle planned %+v, with %+v", d, second.Outcomes)
	}
	var seen []string
	for _, x := range second.Snapshot.Bundles {
		if x.Namespace == ns {
			seen = append(seen, x.Name)
		}
	}
	if diff := cmp.Diff(after, seen); diff != "" {
		t.Errorf("bundles in the picture (-want +got):\n%s", diff)
	}
	r.pass(2 * time.Minute)
	last := step()
	topics := int64(0)
	for _, x := range last.Snapshot.Bundles {
		if x.Namespace != ns {
			continue
		}
		if topics += x.Stats.Topics; x.Stats.Topics > 2 || x.Owner == "" {
			t.Errorf("%s has %d topics and is %q's", x.Name, x.Stats.Topics, x.Owner)
		}
	}
	if len(last.Plan.Decisions) > 0 || topics != 12 || len(r.wholeRange()) != 8 {
		t.Errorf("in the end: %+v; %d topics in %d bundles", last.Plan.Decisions, topics, len(r.wholeRange()))
	}
	intents := 0
	for _, rec := range journal.records {
		if rec.Kind == control.KindIntent {
			intents++
		}
	}
	if intents != 4 {
		t.Errorf("%d intents are on record, want 4", intents)
	}
}

// Simple's own rules split, too, and the cluster unloads the parts.
func TestLoopSplitsOnSimple(t *testing.T) {
	r := modularCluster(t, func(cfg *simulate.Config) {
		cfg.Kind = simulate.Simple
		cfg.Settings.LoadBalancerNamespaceBundleMaxTopics = 2
	})
	v := r.views(nil, nil)
	x := control.NewCoaxer(r, v, r, hands, control.Ignored, 3)
	manager := control.OnReports(&simple.Manager{}, control.EngineOptions{Destinations: control.Ignored, Attempts: 3, Landings: x.Landings})
	loop := control.New(control.Options{Mode: control.Govern, Manager: manager, Viewer: v, Executor: x, Clock: r, Explain: true, Logger: quiet,
		Splits: &control.Splits{When: control.SplitAuto, Cluster: r}})
	r.report(a, b, c)
	cy, err := loop.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(cy.Outcomes) != 4 || len(r.wholeRange()) != 8 {
		t.Fatalf("planned %+v, frozen %v: %+v", cy.Plan, cy.Frozen, cy.Outcomes)
	}
	for _, out := range cy.Outcomes {
		if out.Result != control.Done || len(out.Parts) != 2 || out.Decision.Why.Code != simple.TooManyTopics.ID || !out.Decision.UnloadAfter {
			t.Errorf("%+v", out)
		}
	}
}

// asking answers for the runtime configuration as a test says.
type asking map[string]string

func (c asking) RuntimeConfig(context.Context) (map[string]string, error) {
	if c == nil {
		return nil, errors.New("nobody answers")
	}
	return c, nil
}

// Who splits when. The default never splits beside the cluster.
func TestWhoSplits(t *testing.T) {
	on, off := asking{"loadBalancerAutoBundleSplitEnabled": "true"}, asking{"loadBalancerAutoBundleSplitEnabled": "False"}
	for _, tc := range []struct {
		name       string
		when       control.Splitting
		extensible bool
		cluster    asking
		splits     bool
		why        string
	}{
		{"auto, the cluster splits", control.SplitAuto, false, on, false, "SPLITTING_LEFT_TO_CLUSTER"},
		{"auto, it does not", control.SplitAuto, false, off, true, ""},
		{"auto, it does not say", control.SplitAuto, false, asking{}, false, "SPLITTING_LEFT_TO_CLUSTER"},
		{"auto, it has no load manager", control.SplitAuto, false, asking{"loadBalancerEnabled": "false"}, true, ""},
		{"auto, it does not answer", control.SplitAuto, false, nil, false, "SPLITTING_UNCLEAR"},
		{"auto on Extensible", control.SplitAuto, true, off, false, ""},
		{"on, the cluster splits", control.SplitOn, false, on, false, "SPLITTING_LEFT_TO_CLUSTER"},
		{"on, Extensible splits", control.SplitOn, true, on, false, "SPLITTING_LEFT_TO_CLUSTER"},
		{"on, Extensible does not", control.SplitOn, true, off, true, ""},
		{"off", control.SplitOff, false, off, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := modularCluster(t, func(cfg *simulate.Config) {
				cfg.Settings.LoadBalancerNamespaceBundleMaxTopics = 2
				cfg.Settings.LoadBalancerBrokerThresholdShedderPercentage = 100
			})
			c1, _ := r.splitter(func(o *control.Options) {
				o.Mode, o.Splits = control.Advise, &control.Splits{When: tc.when, Extensible: tc.extensible, Cluster: tc.cluster}
			})
			r.report(a, b, c)
			cy, err := c1.Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := len(cy.Plan.Decisions) == 4; got != tc.splits || !got && len(cy.Plan.Decisions) > 0 {
				t.Errorf("it planned %+v, want splits: %t", cy.Plan.Decisions, tc.splits)
			}
			said := slices.DeleteFunc(codes(cy.LeftOut), func(code string) bool { return !strings.HasPrefix(code, "SPLITTING_") })
			if got := strings.Join(said, " "); got != tc.why {
				t.Errorf("it said %q, want %q", got, tc.why)
			}
			if len(r.wholeRange()) != 4 {
				t.Error("advise has split something")
			}
		})
	}
}

// both is a load manager that moves and splits what is written down.
type both struct {
	script
	splits []plan.Decision
}

func (s both) Shed(snap *cluster.Snapshot, state plan.State, rnd plan.Rand, trace *plan.Trace) (plan.Plan, plan.State) {
	p, next := s.script.Shed(snap, state, rnd, trace)
	p.Outcome = plan.Reason{Code: "Y", Text: "moved"}
	return p, next
}

func (s both) Split(_ *cluster.Snapshot, state plan.State, _ *plan.Trace) (plan.Plan, plan.State) {
	return plan.Plan{Decisions: s.splits, Outcome: plan.Reason{Code: "X", Text: "hot"}}, state
}

// A bundle that is to be split and moved is split, and its move held back; the other splits follow the moves.
func TestSplitBeforeItsMove(t *testing.T) {
	r := modularCluster(t, nil)
	names := r.wholeRange()
	cut := func(bundle string) plan.Decision {
		return plan.Decision{Action: plan.Split, Bundle: bundle, Source: a, Topics: 3}
	}
	planned := both{script{[][]plan.Decision{{transfer(names[0], a, b), transfer(names[1], a, c)}}}, []plan.Decision{cut(names[2]), cut(names[1])}}
	c1, _ := r.splitter(func(o *control.Options) {
		o.Mode = control.Advise
		o.Manager = control.OnReports(planned, control.EngineOptions{Destinations: control.Hinted, Attempts: 3})
	})
	r.report(a, b, c)
	cy, err := c1.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var run []string
	for _, d := range cy.Verdict.Run {
		run = append(run, string(d.Action)+" "+d.Bundle)
	}
	if diff := cmp.Diff([]string{"transfer " + names[0], "split " + names[1], "split " + names[2]}, run); diff != "" {
		t.Errorf("what runs (-want +got):\n%s", diff)
	}
	if ref := cy.Verdict.Refused; len(ref) != 1 || ref[0].Decision.Bundle != names[1] || ref[0].Decision.Action != plan.Transfer || ref[0].Why.Code != guard.Twice.ID {
		t.Errorf("refused: %+v", ref)
	}
	if text := cy.Plan.Outcome.Text; text != "2 splits: hot; 2 moves: moved" {
		t.Errorf("the outcome is %q", text)
	}
}

// listing is a cluster of which a test says what bundles it lists, and what a split answers.
type listing struct {
	wayward
	lists  [][]string // one after the other; the last one stays
	asks   int
	answer error
	splits int
}

func (l *listing) Bundles(context.Context, string) ([]string, error) {
	l.asks++
	return l.lists[min(l.asks, len(l.lists))-1], nil
}

func (l *listing) Split(context.Context, string, string, []string, bool) error {
	l.splits++
	return l.answer
}

// What counts for a split is what the namespace consists of afterwards, not what the request said.
func TestSplitIsVerified(t *testing.T) {
	name := func(rng string) string { return ns + "/" + rng }
	parent, other := name("0x00000000_0x40000000"), name("0x40000000_0xffffffff")
	before := []string{parent, other}
	half := []string{name("0x00000000_0x20000000"), name("0x20000000_0x40000000"), other}
	broken := errors.New("500")
	for _, tc := range []struct {
		name   string
		lists  [][]string
		answer error
		result control.Result
		why    string
		parts  int
	}{
		{"split", [][]string{half}, nil, control.Done, "", 2},
		{"in three", [][]string{{name("0x30000000_0x40000000"), name("0x00000000_0x10000000"), name("0x10000000_0x30000000"), other}}, nil, control.Done, "", 3},
		{"shown later", [][]string{before, before, half}, nil, control.Done, "", 2},
		{"said yes, did nothing", [][]string{before}, nil, control.TimedOut, "still has the bundle", 0},
		{"said no, did it", [][]string{before, half}, broken, control.Done, "", 2},
		{"said no, did nothing", [][]string{before}, broken, control.Failed, "500; the namespace still has the bundle", 0},
		{"a part is missing", [][]string{{half[0], other}}, nil, control.TimedOut, "the parts end at 0x20000000", 0},
		{"a part is missing in front", [][]string{{half[1], other}}, nil, control.TimedOut, "begins at 0x20000000", 0},
		{"all is gone", [][]string{{other}}, nil, control.TimedOut, "the parts end at 0x00000000", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &listing{wayward: wayward{owner: a, script: []string{a}}, lists: tc.lists, answer: tc.answer}
			x := control.NewExecutor(w, w, &testClock{now: time.Unix(0, 0)}, hands)
			out := x.Run(t.Context(), plan.Decision{Action: plan.Split, Bundle: parent, Source: a})
			if out.Result != tc.result || len(out.Parts) != tc.parts || !strings.Contains(out.Why, tc.why) || w.splits != 1 {
				t.Errorf("%d requests: %s (%s), parts %v; want %s (%s), %d parts", w.splits, out.Result, out.Why, out.Parts, tc.result, tc.why, tc.parts)
			}
			if !slices.IsSortedFunc(out.Parts, func(x, y control.Part) int { return strings.Compare(x.Bundle, y.Bundle) }) {
				t.Errorf("parts are not in range order: %v", out.Parts)
			}
		})
	}
}

// On a Modular cluster the parts of a split may be placed anew: the outcome says where each is. Those that stay are told of.
func TestPartsArePlacedAnew(t *testing.T) {
	r := modularCluster(t, nil)
	v := r.views(nil, nil)
	x := control.NewCoaxer(r, v, r, hands, control.Hinted, 3)
	for i, unload := range []bool{false, true} {
		bundle := r.wholeRange()[2*i] // the first becomes two
		begun := r.Now()
		out := x.Run(t.Context(), plan.Decision{Action: plan.Split, Bundle: bundle, Source: a, UnloadAfter: unload})
		if out.Result != control.Done || len(out.Parts) != 2 {
			t.Fatalf("split of %s: %+v", bundle, out)
		}
		here := 0
		for _, p := range out.Parts {
			o, err := v.Owner(t.Context(), p.Bundle)
			if err != nil || o.Owner != p.Owner {
				t.Errorf("%s is %q's by now, %v; the outcome says %q", p.Bundle, o.Owner, err, p.Owner)
			}
			if p.Owner == a {
				here++
			}
		}
		if unload && here > 0 || !unload && here != 2 {
			t.Errorf("unload %t: %d parts are where the bundle was (%s)", unload, here, out.Why)
		}
		if took := r.Now().Sub(begun); took > 5*time.Second {
			t.Errorf("unload %t: it took %v", unload, took)
		}
	}
	w := &listing{wayward: wayward{owner: a, script: []string{a}}, lists: [][]string{{ns + "/0x00000000_0x80000000", ns + "/0x80000000_0xffffffff"}}}
	out := control.NewExecutor(w, w, &testClock{now: time.Unix(0, 0)}, hands).Run(t.Context(),
		plan.Decision{Action: plan.Split, Bundle: ns + "/0x00000000_0xffffffff", Source: a, UnloadAfter: true})
	if out.Result != control.Done || !strings.Contains(out.Why, "2 of 2 parts are at "+a) {
		t.Errorf("parts that stay: %+v", out)
	}
}
