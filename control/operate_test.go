package control_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/topics"
)

// post sends a command to the leader, and waits for nothing.
func (t *town) post(tb testing.TB, what string, fill func(*control.Command)) (id string) {
	tb.Helper()
	k := control.NewCommand(what, "anna@desk", t.now, 10*time.Second)
	fill(&k)
	payload, err := json.Marshal(k)
	if err != nil {
		tb.Fatal(err)
	}
	pub, err := t.log.Publisher(tb.Context(), topics.Commands, topics.PublishOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	defer pub.Close()
	if _, err := pub.Publish(tb.Context(), k.ID, payload); err != nil {
		tb.Fatal(err)
	}
	return k.ID
}

// order sends a command to the leader and returns its answer.
func (t *town) order(tb testing.TB, what string, fill func(*control.Command)) control.Answer {
	tb.Helper()
	id := t.post(tb, what, fill)
	for range 40 {
		t.run(500 * time.Millisecond)
		for _, e := range t.records() {
			if e.Kind == control.KindCommand && e.Command.ID == id {
				return *e.Answer
			}
		}
	}
	tb.Fatalf("nobody answers %s", what)
	return control.Answer{}
}

// since are the records of a kind from a time on.
func (t *town) since(at time.Time, kind control.Kind) (out []control.Record) {
	for _, e := range t.records() {
		if e.Kind == kind && e.At >= at.UnixMilli() {
			out = append(out, e.Record)
		}
	}
	return out
}

func reason(text string) func(*control.Command) {
	return func(c *control.Command) { c.Reason = text }
}

func TestPauseAndResume(t *testing.T) {
	w := newTown(1, 12)
	defer w.stop()
	leader := w.start()
	w.run(5 * time.Second)
	if a := w.order(t, control.CommandResume, reason("")); a.Done {
		t.Errorf("resuming what is not paused was done: %s", a.Text)
	}
	if a := w.order(t, control.CommandPause, reason("")); a.Done {
		t.Errorf("a pause without a reason was done: %s", a.Text)
	}
	if a := w.order(t, "dance", reason("")); a.Done || !strings.Contains(a.Text, `"dance"`) {
		t.Errorf("an unknown command: %+v", a)
	}
	if a := w.order(t, control.CommandPause, reason("upgrade")); !a.Done {
		t.Fatalf("pause: %s", a.Text)
	}
	paused := w.now
	w.run(30 * time.Second)
	// The leader dies; the next one keeps the pause.
	leader.kill()
	w.start()
	w.run(30 * time.Second)
	if n := len(w.since(paused, control.KindIntent)); n > 0 {
		t.Errorf("%d intents while it is paused", n)
	}
	plans := w.since(paused, control.KindPlan)
	if len(plans) < 4 {
		t.Fatalf("%d cycles while it is paused", len(plans))
	}
	for _, r := range plans {
		if r.Pause == nil || r.Pause.Reason != "upgrade" {
			t.Errorf("cycle %d does not say that it is paused", r.Cycle)
		}
		if r.Verdict == nil || len(r.Verdict.Run) > 0 || len(r.Verdict.Refused) == 0 {
			t.Errorf("cycle %d: verdict %+v", r.Cycle, r.Verdict)
		}
	}
	if a := w.order(t, control.CommandResume, reason("")); !a.Done {
		t.Fatalf("resume: %s", a.Text)
	}
	resumed := w.now
	w.run(30 * time.Second)
	if len(w.since(resumed, control.KindIntent)) == 0 {
		t.Error("nothing is done after it was resumed")
	}
	if a := w.order(t, control.CommandPause, func(c *control.Command) { c.Reason, c.For = "short", 20_000 }); !a.Done {
		t.Fatalf("pause: %s", a.Text)
	}
	w.run(25 * time.Second)
	if ends := w.since(resumed, control.KindPause); len(ends) != 2 || ends[1].Pause.On {
		t.Errorf("the pause does not end by itself: %+v", ends)
	}
	// Answered commands leave their topic.
	w.log.Compact(topics.Commands)
	sub, err := w.log.Subscribe(t.Context(), topics.Commands, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if m, ok, _ := sub.(*topics.MemorySubscription).TryReceive(); ok {
		t.Errorf("a command is left: %s", m.Payload)
	}
}

// What nobody took in time is not carried out later: a follower has heard it, and leads when its sender is gone.
func TestALateCommandIsRefused(t *testing.T) {
	w := newTown(2, 12)
	defer w.stop()
	first := w.start()
	w.run(5 * time.Second)
	w.start() // stands by, and hears
	w.run(5 * time.Second)
	first.frozen = true
	w.after(40*time.Second, func() { first.drop() })
	var answer control.Answer
	c := control.NewCommand(control.CommandPause, "anna@desk", w.now, 10*time.Second)
	c.Reason = "late"
	payload, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := w.log.Publisher(t.Context(), topics.Commands, topics.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	if _, err := pub.Publish(t.Context(), c.ID, payload); err != nil {
		t.Fatal(err)
	}
	w.run(60 * time.Second)
	for _, r := range w.since(time.UnixMilli(0), control.KindCommand) {
		answer = *r.Answer
	}
	if answer.Done || !strings.Contains(answer.Text, "is gone") {
		t.Errorf("the answer is %+v, want a refusal", answer)
	}
}

func TestPlansAreReviewed(t *testing.T) {
	w := newTown(3, 12)
	defer w.stop()
	w.options = func(o *control.Options) { o.Review = true }
	leader := w.start()
	waiting := func() *control.Review {
		t.Helper()
		for range 60 {
			w.run(time.Second)
			plans := w.since(w.now.Add(-11*time.Second), control.KindPlan)
			if len(plans) > 0 && plans[len(plans)-1].Review != nil {
				return plans[len(plans)-1].Review
			}
		}
		t.Fatal("no plan waits")
		return nil
	}
	named := func(id string) func(*control.Command) { return func(c *control.Command) { c.Plan = id } }

	first := waiting()
	w.run(40 * time.Second)
	if n := len(w.requests); n > 0 {
		t.Fatalf("%d requests before anything was approved", n)
	}
	if again := waiting(); again.ID != first.ID {
		t.Errorf("the plan that waits is %s, it was %s", again.ID, first.ID)
	}
	leader.kill()
	w.start() // the next leader has the same plan waiting
	if again := waiting(); again.ID != first.ID {
		t.Errorf("with the next leader the plan that waits is %s, it was %s", again.ID, first.ID)
	}
	if a := w.order(t, control.CommandApprove, named("9-9")); a.Done {
		t.Errorf("another plan was approved: %s", a.Text)
	}
	if a := w.order(t, control.CommandApprove, named(first.ID)); !a.Done {
		t.Fatalf("approve: %s", a.Text)
	}
	w.run(10 * time.Second)
	var want, got []string
	for _, d := range first.Decisions {
		want = append(want, d.Bundle+">"+d.Destination)
	}
	for _, r := range w.requests {
		got = append(got, r.bundle+">"+r.to)
	}
	if !slices.Equal(want, got) {
		t.Errorf("reviewed was %v, what ran is %v", want, got)
	}

	second := waiting()
	if a := w.order(t, control.CommandDiscard, named(second.ID)); !a.Done {
		t.Errorf("discard: %s", a.Text)
	}
	w.run(11 * time.Second)
	third := waiting()
	if third.ID == second.ID {
		t.Errorf("%s waits although it was discarded", second.ID)
	}
	before := len(w.requests)
	w.owners[third.Decisions[1].Bundle] = third.Decisions[1].Destination // somebody else moved it
	if a := w.order(t, control.CommandApprove, named(third.ID)); a.Done || !strings.Contains(a.Text, "the cluster changed") {
		// The next cycle may have withdrawn it before the command came.
		if !strings.Contains(a.Text, "no plan waits") && !strings.Contains(a.Text, "the plan that waits is") {
			t.Errorf("a plan whose cluster changed: %+v", a)
		}
	}
	if len(w.requests) != before {
		t.Error("a part of a plan ran whose cluster had changed")
	}
	states := map[control.ReviewState]int{}
	for _, r := range w.since(time.UnixMilli(0), control.KindReview) {
		states[r.Review.State]++
	}
	if states[control.Approved] != 1 || states[control.Discarded] != 1 || states[control.Withdrawn] != 1 {
		t.Errorf("reviews ended %v", states)
	}
}

// The log is kept short, and what a next leader needs stays in it.
func TestTheLogIsPruned(t *testing.T) {
	w := newTown(4, 12)
	defer w.stop()
	w.options = func(o *control.Options) {
		o.Retention = control.Retention{Records: 30}
		o.Limits = guard.Limits{BundleCoolDown: 60_000}
	}
	p := w.start()
	w.run(5 * time.Minute)
	p.kill()
	w.log.Compact(topics.Decisions)
	sub, err := w.log.Subscribe(t.Context(), topics.Decisions, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	n := 0
	for {
		_, ok, err := sub.(*topics.MemorySubscription).TryReceive()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		n++
	}
	if written := len(w.records()); n > 45 || n < 30 || written < 3*n {
		t.Errorf("%d of %d records are left, want about 30", n, written)
	}
	all := w.since(time.UnixMilli(0), control.KindPlan)
	last := all[len(all)-1].Cycle
	began := w.now
	w.start()
	w.run(30 * time.Second)
	plans := w.since(began, control.KindPlan)
	if len(plans) == 0 || plans[0].Cycle != last+1 || plans[0].Plan.Strategy != fmt.Sprintf("toy %d", last+1) {
		t.Errorf("after pruning the next leader begins with %d plans, want one of cycle %d and its state", len(plans), last+1)
	}
}
