package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// seenView is a view whose look and owners are given.
type seenView struct {
	view
	look  control.Look
	owner string // of every bundle, as the brokers say; "" = they do not answer
}

func (v *seenView) Look(context.Context, time.Time) (*control.Look, error) {
	l := v.look
	return &l, nil
}

func (v *seenView) Owner(_ context.Context, bundle string) (control.Ownership, error) {
	if v.owner == "" {
		return control.Ownership{}, errors.New("connection refused")
	}
	return control.Ownership{Bundle: bundle, Owner: v.owner, State: event.Owned}, nil
}

func liveOn(v *seenView) *live {
	return &live{session: &session{logger: slog.New(slog.DiscardHandler)}, views: v, look: &control.Look{Snapshot: v.look.Snapshot, Frozen: v.look.Frozen}, stop: func() {}}
}

// Nothing is planned on a picture that may not be decided on: move, unload, split and the plan of a drain say why.
func TestNoPlanOnAFrozenPicture(t *testing.T) {
	v := &seenView{look: control.Look{Snapshot: new(cluster.Snapshot).Index(), Frozen: []plan.Reason{control.LostEvents.Because(plan.S("topic", "x"), plan.N("count", 2))}}}
	built := 0
	build := func(*live) ([]plan.Decision, []plan.LeftOut, error) {
		built++
		return nil, nil, nil
	}
	a := &app{stdout: io.Discard}
	err := a.operateOn(t.Context(), liveOn(v), operation{output: "json"}, 0, build)
	if !errors.Is(err, control.ErrFrozen) || !strings.Contains(err.Error(), control.LostEvents.ID) || built > 0 {
		t.Errorf("a frozen picture: built %d plans, %v", built, err)
	}
	l := liveOn(v)
	v.look.Frozen = nil // when it is looked at again
	if err := a.operateOn(t.Context(), l, operation{output: "json"}, time.Second, build); err != nil || built != 1 || len(l.look.Frozen) > 0 {
		t.Errorf("a picture that thaws: built %d plans, %v", built, err)
	}
}

// A bundle that no report names is not nobody's: the brokers are asked, and what they do not answer is an error.
func TestWhoOwnsWhatNoReportNames(t *testing.T) {
	const bundle = "public/default/0x00000000_0x40000000"
	snap := (&cluster.Snapshot{Brokers: []cluster.Broker{{ID: "a:1"}}, Bundles: []cluster.Bundle{{Name: bundle, Namespace: "public/default", State: event.Init}}}).Index()
	v := &seenView{look: control.Look{Snapshot: snap}}
	if b, ok, err := liveOn(v).owned(t.Context(), bundle); err == nil {
		t.Errorf("nobody answers: %v, %+v", ok, b)
	}
	v.owner = "a:1"
	l := liveOn(v)
	b, ok, err := l.owned(t.Context(), bundle)
	if err != nil || !ok || b.Owner != "a:1" || b.State != event.Owned || l.look.Snapshot.Bundles[0].Owner != "a:1" {
		t.Errorf("the brokers say a:1: %v, %+v, %v", ok, b, err)
	}
}

// A command whose exit code is an answer does not give the good one when it is stopped before its end.
func TestStoppedIsNoAnswer(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	bad := errors.New("bad")
	if err := unanswered(ctx, bad); err != bad || unanswered(ctx, nil) != nil {
		t.Errorf("before it is stopped: %v", err)
	}
	stop()
	var code exitCode
	if err := unanswered(ctx, fmt.Errorf("look: %w", ctx.Err())); !errors.As(err, &code) || code != exitError {
		t.Errorf("stopped: %v", err)
	}
	if err := unanswered(ctx, bad); err != bad || unanswered(ctx, nil) != nil {
		t.Errorf("it had an answer when it was stopped: %v", err)
	}
}
