package watch_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/watch"
)

// TestDialogues shows what a watcher says. Times are in seconds; brokers are a, b, c at addresses 10.0.0.a and so on, with
// producers pa, pb, pc.
func TestDialogues(t *testing.T) {
	datadriven.Walk(t, "testdata/dialogues", func(t *testing.T, path string) {
		d := &dialogue{fold: ownership.NewFold(), watcher: watch.New(watch.Limits{Shown: 3})}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string { return d.command(t, td) })
	})
}

type dialogue struct {
	fold    *ownership.Fold
	watcher *watch.Watcher
	n       int64
	backlog int64
	last    []watch.Anomaly
	cures   watch.CureState
}

func (d *dialogue) command(t *testing.T, td *datadriven.TestData) string {
	var out strings.Builder
	switch td.Cmd {
	case "backlog", "hear":
		for line := range strings.Lines(td.Input) {
			d.hear(t, strings.Fields(line), td.Cmd == "hear")
		}
	case "look":
		d.last = d.watcher.Look(d.picture(t, td))
		for _, a := range d.last {
			fmt.Fprintf(&out, "%s %s: %s since %d\n  %s\n", a.Severity, a.Why.Code, strings.Join(subjects(a), " "), a.Since/1000, a.Why)
			for _, e := range a.Evidence {
				fmt.Fprintf(&out, "    at %d %s v%d %s->%s by %s (%s)\n", e.At/1000, e.State, e.Version, e.Source, e.Destination, e.Producer, e.Rule)
			}
		}
		if len(d.last) == 0 {
			return "nothing\n"
		}
	case "cure":
		var now int64
		td.ScanArgs(t, "now", &now)
		cures, left, next := watch.Cures(d.last, d.cures, now*1000, watch.DefaultCureLimits, nil)
		d.cures = next
		for _, c := range cures {
			fmt.Fprintf(&out, "%s %s: %s\n", c.Action, c.Bundle, c.Why)
		}
		for _, l := range left {
			fmt.Fprintf(&out, "left %s%s: %s %s\n", l.Bundle, l.Broker, l.Why.Code, l.Why)
		}
	default:
		t.Fatalf("unknown command %q", td.Cmd)
	}
	return out.String()
}

func subjects(a watch.Anomaly) []string {
	return slices.DeleteFunc([]string{a.Bundle, a.Broker, a.Producer}, func(s string) bool { return s == "" })
}

// hear reads "at bundle state|tombstone v1 dst= src= by= force ts=".
func (d *dialogue) hear(t *testing.T, words []string, live bool) {
	d.n++
	at := number(t, words[0]) * 1000
	if !live {
		d.backlog = max(d.backlog, at)
	}
	m := ownership.Message{Bundle: words[1], At: at, ID: ownership.ID{Ledger: 1, Entry: d.n, Batch: -1}}
	e := watch.Event{ID: m.ID, At: at, Continuous: live}
	data := &event.ServiceUnitStateData{State: event.ServiceUnitState(words[2]), Timestamp: at}
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case key == "dst":
			data.DstBroker = value
		case key == "src":
			data.SourceBroker = value
		case key == "by":
			e.Producer = value
		case key == "force":
			data.Force = true
		case key == "ts":
			data.Timestamp = number(t, value) * 1000
		default:
			data.VersionID = number(t, strings.TrimPrefix(key, "v"))
		}
	}
	if words[2] != "tombstone" {
		m.Data, e.Data = data, data
	}
	e.Outcome = d.fold.Apply(m)
	d.watcher.Hear(e)
}

func number(t *testing.T, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// picture reads now= brokers=a,b producers=pa,pb,name@address last=ledger:entry read=ledger:entry load=broker:bundle blind= lost=.
func (d *dialogue) picture(t *testing.T, td *datadriven.TestData) watch.Picture {
	p := watch.Picture{Owners: d.fold.Snapshot(), Backlog: d.backlog}
	c := watch.Channel{Connected: true, CaughtUp: true, Last: ownership.ID{Ledger: 1, Entry: d.n}}
	topic := watch.Topic{Hosts: map[string][]string{}, Last: c.Last}
	for _, arg := range td.CmdArgs {
		for _, v := range arg.Vals {
			switch arg.Key {
			case "now":
				p.Now = number(t, v) * 1000
			case "brokers":
				p.Brokers = append(p.Brokers, v)
				topic.Hosts[v] = []string{"10.0.0." + v}
			case "producers":
				name, address, foreign := strings.Cut(v, "@")
				if !foreign {
					address = "10.0.0." + strings.TrimPrefix(name, "p")
				}
				topic.Producers = append(topic.Producers, watch.Producer{Name: name, Address: address, Own: name == "ours"})
			case "last":
				topic.Last.Entry = number(t, v)
			case "read":
				c.Last.Entry = number(t, v)
			case "load":
				broker, bundle, _ := strings.Cut(v, ":")
				p.Loaded = []watch.Loaded{{Broker: broker, Heard: p.Now, Bundles: []string{bundle}}}
			case "blind":
				c.Connected, c.BlindSince, c.Error = false, number(t, v)*1000, "no connection"
			case "lost":
				c.Lost = number(t, v)
			}
		}
	}
	p.Channel = &c
	if len(topic.Producers) > 0 {
		p.Topic = &topic
	}
	return p
}

func TestCodesAndWorst(t *testing.T) {
	list := []watch.Anomaly{{Severity: watch.Warning, Why: plan.Reason{Code: "B"}}, {Severity: watch.Warning, Why: plan.Reason{Code: "A"}}, {Severity: watch.Warning, Why: plan.Reason{Code: "B"}}}
	if got := watch.Codes(list); !slices.Equal(got, []string{"A", "B"}) {
		t.Errorf("codes are %v", got)
	}
	if got := watch.Worst(list); got != watch.Warning {
		t.Errorf("the worst is %q", got)
	}
	if got := watch.Worst(append(list, watch.Anomaly{Severity: watch.Error})); got != watch.Error {
		t.Errorf("the worst is %q", got)
	}
	if got := watch.Worst(nil); got != "" {
		t.Errorf("the worst of nothing is %q", got)
	}
}
