package control_test

import (
	"context"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/topics"
)

// stuckLog is a log whose publishers do not come back before they are let go.
type stuckLog struct {
	topics.Log
	begun chan struct{}
	free  chan struct{}
}

type stuckPublisher struct {
	topics.Publisher
	log *stuckLog
}

func (l *stuckLog) Publisher(ctx context.Context, topic string, o topics.PublishOptions) (topics.Publisher, error) {
	p, err := l.Log.Publisher(ctx, topic, o)
	return stuckPublisher{p, l}, err
}

func (p stuckPublisher) Publish(ctx context.Context, key string, payload []byte) (topics.MessageID, error) {
	select {
	case p.log.begun <- struct{}{}:
	default:
	}
	<-p.log.free
	return p.Publisher.Publish(ctx, key, payload)
}

// A look does not wait for averages that are being written. By default they are written every minute, from the first one on.
func TestALookDoesNotWaitForTheHistory(t *testing.T) {
	r := modularCluster(t, nil)
	log := &stuckLog{Log: r.log, begun: make(chan struct{}, 1), free: make(chan struct{})}
	h := control.NewHistory(control.HistoryOptions{Log: log, Keep: true, Stepwise: true, Logger: quiet})
	v := r.views(h, nil)
	r.pass(time.Minute)
	r.report(a, b, c)
	r.look(v)
	wrote, looked := make(chan error, 1), make(chan error, 1)
	now := r.Now()
	go func() { wrote <- h.Write(t.Context(), now) }()
	select {
	case <-log.begun:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is written")
	}
	go func() {
		_, err := v.Look(t.Context(), now)
		looked <- err
	}()
	select {
	case err := <-looked:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("a look waits for what is being written")
		defer func() { <-looked }()
	}
	close(log.free)
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	before, _ := r.kept(topics.BundleData)
	if len(before) == 0 {
		t.Fatal("nothing was kept")
	}
	r.pass(61 * time.Second)
	r.report(a, b, c)
	r.look(v)
	after, _ := r.kept(topics.BundleData)
	changed := 0
	for name, value := range after {
		if before[name] != value {
			changed++
		}
	}
	if changed == 0 {
		t.Error("a minute later nothing is written")
	}
}
