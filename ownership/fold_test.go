package ownership_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/cockroachdb/datadriven"
)

// TestFold is a dialogue with a fold. Commands:
//
//	apply at=MS          each line is a message: bundle STATE vVERSION [dst=] [src=] [force] [split=RANGE:BROKER,...] [id=L:E],
//	                     or bundle tombstone, or bundle garbage; prints what came of it
//	show [at=MS]         every record
//	owned                the bundles of each owner
//	lookup               each line is a bundle
//	children             each line is a bundle
//	hold / held          keeps a snapshot / shows the owners in it
//	rules                how many messages each rule decided
//	recorded FILE        applies what a real cluster had on its topic, prints what was ignored or not in sequence
func TestFold(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		d := dialogue{fold: ownership.NewFold()}
		datadriven.RunTest(t, path, d.run)
	})
}

type dialogue struct {
	fold *ownership.Fold
	held *ownership.Snapshot
	n    int64
}

func (d *dialogue) run(t *testing.T, td *datadriven.TestData) string {
	var out strings.Builder
	var at int64
	if td.HasArg("at") {
		td.ScanArgs(t, "at", &at)
	}
	switch td.Cmd {
	case "apply":
		for line := range strings.Lines(td.Input) {
			d.n++
			out.WriteString(d.apply(t, strings.Fields(line), at))
		}
	case "show":
		for bundle, r := range d.fold.Snapshot().All() {
			fmt.Fprintf(&out, "%s %s age=%d inflight=%d owner=%q since=%d\n",
				bundle, describe(r), r.Age(at), r.InFlightAge(at), r.Owner(), r.OwnerSince)
		}
		for bundle, why := range d.fold.Snapshot().Unreadable() {
			fmt.Fprintf(&out, "%s unreadable: %s\n", bundle, why)
		}
	case "owned":
		writeOwned(&out, d.fold.Snapshot())
	case "hold":
		d.held = d.fold.Snapshot()
	case "held":
		writeOwned(&out, d.held)
	case "lookup":
		for bundle := range strings.FieldsSeq(td.Input) {
			answer, err := d.fold.Snapshot().Lookup(bundle)
			fmt.Fprintf(&out, "%+v", answer)
			if err != nil {
				fmt.Fprintf(&out, " error: %v (deleted: %t)", err, errors.Is(err, ownership.ErrDeleted))
			}
			out.WriteByte('\n')
		}
	case "children":
		for bundle := range strings.FieldsSeq(td.Input) {
			for _, c := range d.fold.Snapshot().Children(bundle) {
				fmt.Fprintf(&out, "%s -> %q %s\n", c.Bundle, c.Broker, describe(c.Record))
			}
		}
	case "rules":
		var rules []string
		for rule, n := range d.fold.Rules() {
			rules = append(rules, fmt.Sprintf("%s %d\n", rule, n))
		}
		slices.Sort(rules)
		out.WriteString(strings.Join(rules, ""))
	case "recorded":
		d.recorded(t, &out, td.CmdArgs[0].Key)
	default:
		t.Fatalf("unknown command %q", td.Cmd)
	}
	return out.String()
}

// recorded applies the messages of a sample.
func (d *dialogue) recorded(t *testing.T, out *strings.Builder, file string) {
	text, err := os.ReadFile("../event/testdata/samples/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		d.n++
		var message struct {
			ID, Key    string
			Payload    json.RawMessage
			PayloadLen int
			Recv       int64
		}
		if err := json.Unmarshal(line, &message); err != nil {
			t.Fatal(err)
		}
		m := ownership.Message{Bundle: message.Key, At: message.Recv, ID: ownership.ID{Ledger: 1, Entry: d.n, Batch: -1}}
		if message.PayloadLen > 0 {
			data, err := event.Decode[event.ServiceUnitStateData](message.Payload)
			if err != nil {
				d.fold.Skip(m, err)
				continue
			}
			m.Data = &data
		}
		o := d.fold.Apply(m)
		if o.Keep || o.Rule == ownership.Gap || o.Rule == ownership.Forced {
			fmt.Fprintf(out, "%s: %s, has %s", o.Bundle, o.Rule, describe(o.Before))
			if m.Data != nil {
				fmt.Fprintf(out, ", read %s", describe(&ownership.Record{Data: *m.Data}))
			}
			out.WriteByte('\n')
		}
	}
}

func writeOwned(out *strings.Builder, s *ownership.Snapshot) {
	for broker, count := range s.Owners() {
		fmt.Fprintf(out, "%s %d: %s\n", broker, count, strings.Join(slices.Collect(s.Owned(broker)), " "))
	}
	fmt.Fprintf(out, "%d bundles, %d in flight\n", s.Len(), s.InFlightCount())
}

func describe(r *ownership.Record) string {
	if r == nil {
		return "Init"
	}
	return fmt.Sprintf("%s v%d dst=%q src=%q", r.State(), r.Data.VersionID, r.Data.DstBroker, r.Data.SourceBroker)
}

func (d *dialogue) apply(t *testing.T, words []string, at int64) string {
	m := ownership.Message{Bundle: words[0], At: at, ID: ownership.ID{Ledger: 1, Entry: d.n, Batch: -1}}
	if words[1] == "garbage" {
		o := d.fold.Skip(m, errors.New("what was read is no record"))
		return fmt.Sprintf("%s: kept %s (%s)\n", o.Bundle, describe(o.After), o.Rule)
	}
	data := parse(t, words[1:], &m.ID)
	if words[1] != "tombstone" {
		m.Data = data
	}
	o := d.fold.Apply(m)
	verb := "accepted"
	if o.Keep {
		verb = "kept"
	}
	text := fmt.Sprintf("%s: %s %s (%s)", o.Bundle, verb, describe(o.After), o.Rule)
	if o.Gap > 0 {
		text += fmt.Sprintf(", %d versions missing", o.Gap)
	}
	if o.OwnerChanged() {
		text += fmt.Sprintf(", owner %q -> %q", o.Before.Owner(), o.After.Owner())
	}
	return text + "\n"
}

func parse(t *testing.T, words []string, id *ownership.ID) *event.ServiceUnitStateData {
	data := &event.ServiceUnitStateData{State: event.ServiceUnitState(words[0])}
	var err error
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case key == "dst":
			data.DstBroker = value
		case key == "src":
			data.SourceBroker = value
		case key == "force":
			data.Force = true
		case key == "id":
			_, err = fmt.Sscanf(value, "%d:%d", &id.Ledger, &id.Entry)
		case key == "split":
			for child := range strings.SplitSeq(value, ",") {
				r, broker, _ := strings.Cut(child, ":")
				data.SplitServiceUnitToDestBroker = append(data.SplitServiceUnitToDestBroker, event.SplitDestination{Range: r, Broker: broker})
			}
		case key[0] == 'v':
			data.VersionID, err = strconv.ParseInt(key[1:], 10, 64)
		default:
			t.Fatalf("cannot read %q", word)
		}
		if err != nil {
			t.Fatalf("%q: %v", word, err)
		}
	}
	return data
}
