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
