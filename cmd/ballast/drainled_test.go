package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/topics"
)

// Who follows a drain is told that the leader cannot decide, is done when the broker is empty or gone, and not before: records of
// other brokers, and those from before the order, do not count.
func TestFollowDrain(t *testing.T) {
	const id, other = "a:8080", "b:8080"
	round := func(broker string, code plan.Code) control.Record {
		return control.Record{Kind: control.KindPlan, Plan: &plan.Plan{Strategy: control.DrainStrategy, Outcome: code.Because(plan.S("broker", broker))}}
	}
	order := control.Record{Kind: control.KindCommand, Command: &control.Command{ID: "1", What: control.CommandDrain}, Answer: &control.Answer{Done: true}}
	frozen := control.Record{Kind: control.KindPlan, Plan: &plan.Plan{}, Frozen: []plan.Reason{{Code: "X", Text: "no load data"}}}
	moved := control.Record{Kind: control.KindOutcome, Outcome: &control.Outcome{Result: control.Done,
		Decision: plan.Decision{Source: id, Why: plan.Reason{Code: drain.Leaves.ID}}}}
	for name, tc := range map[string]struct {
		log  []control.Record
		done bool
	}{
		"empty":              {[]control.Record{order, frozen, frozen, moved, round(id, control.DrainedEmpty)}, true},
		"gone":               {[]control.Record{order, frozen, moved, round(id, drain.Unknown)}, true},
		"goes on":            {[]control.Record{order, frozen, moved, round(id, control.DrainGoesOn)}, false},
		"another broker":     {[]control.Record{order, frozen, moved, round(other, control.DrainedEmpty)}, false},
		"before the order":   {[]control.Record{round(id, control.DrainedEmpty), order, frozen, moved}, false},
		"an earlier outcome": {[]control.Record{moved, order, frozen, moved, round(id, control.DrainedEmpty)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			log := topics.NewMemory(topics.MemoryOptions{})
			sub, err := log.Subscribe(ctx, topics.Decisions, topics.SubscribeOptions{From: topics.Latest})
			if err != nil {
				t.Fatal(err)
			}
			pub, err := log.Publisher(ctx, topics.Decisions, topics.PublishOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range tc.log {
				r.Version, r.Epoch, r.Seq = control.RecordVersion, 1, int64(i+1)
				payload, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := pub.Publish(ctx, r.Key(), payload); err != nil {
					t.Fatal(err)
				}
			}
			var said bytes.Buffer
			s, out := &session{logger: slog.New(slog.NewTextHandler(&said, nil))}, &operated{}
			err = s.followDrain(ctx, sub, id, "1", out)
			if tc.done && err != nil || !tc.done && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if n := strings.Count(said.String(), "no load data"); n != 1 || len(out.Outcomes) != 1 {
				t.Errorf("it was told %d times that the leader cannot decide, and of %d moves:\n%s", n, len(out.Outcomes), said.String())
			}
		})
	}
}
