package story_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/control/story"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/plan"
)

// recorded reads a log that was recorded as JSON lines.
func recorded(t *testing.T, path string) (records []control.Record) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		r, err := control.DecodeRecord(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return records
}

// TestStories tells a recorded log. Commands:
//
//	log [bundle=B] [broker=B] [cycle=N] [kind=K,K] [since=MS]   the chosen records in sentences; since counts from the first record
//	explain BUNDLE|BROKER|CYCLE                                 the story
func TestStories(t *testing.T) {
	records := recorded(t, "testdata/night.jsonl")
	datadriven.RunTest(t, "testdata/night", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		switch d.Cmd {
		case "log":
			var f story.Filter
			var kinds []string
			var since int64
			d.MaybeScanArgs(t, "bundle", &f.Bundle)
			d.MaybeScanArgs(t, "broker", &f.Broker)
			d.MaybeScanArgs(t, "cycle", &f.Cycle)
			d.MaybeScanArgs(t, "since", &since)
			for _, a := range d.CmdArgs {
				if a.Key == "kind" {
					kinds = strings.Split(strings.Join(a.Vals, ","), ",")
				}
			}
			for _, k := range kinds {
				f.Kinds = append(f.Kinds, control.Kind(strings.TrimSpace(k)))
			}
			f.Since = records[0].At + since
			for _, r := range records {
				if f.Match(r) {
					fmt.Fprintf(&out, "%s %d %d %s: %s\n", story.At(r.At), r.Epoch, r.Cycle, r.Kind, story.Line(r))
				}
			}
		case "explain":
			f, err := story.ParseSubject(d.CmdArgs[0].Key)
			if err != nil {
				return err.Error() + "\n"
			}
			for _, line := range story.Explain(records, f) {
				fmt.Fprintln(&out, line)
			}
		default:
			d.Fatalf(t, "unknown command %q", d.Cmd)
		}
		return out.String()
	})
}

// Every kind of record has its sentence, also one that lacks what it should have.
func TestEveryKindHasASentence(t *testing.T) {
	for _, k := range control.Kinds {
		if line := story.Line(control.Record{Kind: k}); line == "" {
			t.Errorf("%s has no sentence", k)
		}
	}
	if got := story.Explain(nil, story.Filter{Cycle: 1}); len(got) != 1 || !strings.Contains(got[0], "empty") {
		t.Errorf("the story of an empty log is %q", got)
	}
}

// TestACommandIsTold: one that is begun, done and not done are told apart.
func TestACommandIsTold(t *testing.T) {
	c := control.Command{What: control.CommandSwitchManager, By: "me@here", Reason: "a try"}
	for want, a := range map[string]control.Answer{
		"command switch-manager by me@here (a try): begun: from modular to simple":         {Begun: true, Text: "from modular to simple"},
		"command switch-manager by me@here (a try): done: every broker runs simple":        {Done: true, Text: "every broker runs simple"},
		"command switch-manager by me@here (a try): not done: a broker runs modular still": {Text: "a broker runs modular still"},
	} {
		if got := story.Line(control.Record{Kind: control.KindCommand, Command: &c, Answer: &a}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What a command did is told as the command's, with its reason, and an intent is not open once its outcome is there, also where that
// does not name it.
func TestWhatACommandDidIsTold(t *testing.T) {
	const bundle = "t/n/0x00000000_0x80000000"
	decision := func(a plan.Action, why plan.Reason) *plan.Decision {
		return &plan.Decision{Action: a, Bundle: bundle, Source: "a:8080", Destination: "b:8080", Why: why}
	}
	asked := plan.Reason{Code: "OPERATOR_ASKED", Numbers: []plan.Number{plan.S("reason", "new disks")}}
	intent := func(at int64, d *plan.Decision) control.Record {
		return control.Record{Kind: control.KindIntent, At: at, Instance: "desk-1", Decision: d}
	}
	outcome := func(at int64, d *plan.Decision, of string) control.Record {
		return control.Record{Kind: control.KindOutcome, At: at, Instance: "desk-1", Of: of, Outcome: &control.Outcome{Decision: *d, Result: control.Done, Owner: "b:8080", Millis: 7}}
	}
	move, drained, split := decision(plan.Transfer, asked), decision(plan.Transfer, drain.Leaves.Because()), decision(plan.Split, asked)
	told := story.Explain([]control.Record{intent(1, move), outcome(2, move, ""), intent(3, drained), outcome(4, drained, intent(3, drained).Key()), intent(5, split)},
		story.Filter{Bundle: bundle})
	want := []string{
		"By the command move (new disks): " + bundle + " moved from a:8080 to b:8080 in 7 ms.",
		"By the command drain: " + bundle + " moved from a:8080 to b:8080 in 7 ms.",
		"By the command split (new disks): desk-1 was about to split " + bundle + " on a:8080; what came of it is not on record yet.",
	}
	if len(told) != 1+len(want) {
		t.Fatalf("the story is %q", told)
	}
	for i, w := range want {
		if !strings.HasSuffix(told[i+1], "  "+w) {
			t.Errorf("%q, want %q", told[i+1], w)
		}
	}
}
