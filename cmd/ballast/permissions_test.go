package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// refusing is a log whose topics may not all be consumed or produced to.
type refusing struct {
	topics.Log
	consume, produce string // topics that are refused
}

var errRefused = errors.New("server error: AuthorizationError: not granted")

func (r refusing) Subscribe(ctx context.Context, topic string, o topics.SubscribeOptions) (topics.Subscription, error) {
	if topic == r.consume {
		return nil, errRefused
	}
	return r.Log.Subscribe(ctx, topic, o)
}

func (r refusing) Publisher(ctx context.Context, topic string, o topics.PublishOptions) (topics.Publisher, error) {
	if topic == r.produce {
		return nil, errRefused
	}
	return r.Log.Publisher(ctx, topic, o)
}

// What may not be consumed or produced is told with its name, and trying leaves nothing on a topic.
func TestPermissionsOfTopics(t *testing.T) {
	memory := topics.NewMemory(topics.MemoryOptions{})
	defer memory.Close()
	log := refusing{Log: memory, consume: topics.TopBundles, produce: topics.ServiceUnitState}
	own := settings.DefaultBallast()
	own.BallastVia = viaChannel
	e := &examination{session: &session{log: log, logger: quietLogger()}}
	for _, u := range topicUses(own, false) {
		pub, err := memory.Publisher(t.Context(), u.topic, topics.PublishOptions{}) // it exists
		if err != nil {
			t.Fatal(err)
		}
		if err := pub.Close(); err != nil {
			t.Fatal(err)
		}
		e.probe(u.String(), u.needed, func() error { return u.try(t.Context(), log) })
	}
	var denied []string
	for _, p := range e.facts.Probes {
		if p.Denied != "" {
			denied = append(denied, p.What+" in "+p.Needed)
		}
	}
	if want := []string{"consume " + topics.TopBundles + " in observe", "produce to " + topics.ServiceUnitState + " in govern"}; !slices.Equal(denied, want) {
		t.Errorf("denied: %q, want %q", denied, want)
	}
	if len(e.facts.Unchecked) > 0 {
		t.Errorf("not checked: %+v", e.facts.Unchecked)
	}
}

// The least mode that uses a topic follows from the settings and from what the cluster runs.
func TestTopicUses(t *testing.T) {
	needs := func(via, report string, onReports, produce bool, topic string) string {
		own := settings.DefaultBallast()
		own.BallastVia, own.BallastReport = via, report
		for _, u := range topicUses(own, onReports) {
			if u.topic == topic && u.produce == produce {
				return u.needed
			}
		}
		return ""
	}
	for _, x := range []struct {
		via, report string
		onReports   bool
		produce     bool
		topic, want string
	}{
		{"admin", "auto", false, false, topics.ServiceUnitState, "observe"},
		{"admin", "auto", false, true, topics.ServiceUnitState, ""},
		{"channel", "auto", false, true, topics.ServiceUnitState, "govern"},
		{"admin", "auto", true, true, topics.BrokerLoadData, "advise"},
		{"admin", "always", true, true, topics.BrokerLoadData, "observe"},
		{"admin", "never", true, true, topics.BrokerLoadData, ""},
		{"admin", "auto", false, true, topics.BrokerLoadData, ""}, // its brokers publish it themselves
		{"admin", "auto", false, true, topics.BundleStats, "advise"},
		{"admin", "auto", true, true, topics.BundleData, "govern"},
		{"admin", "auto", true, false, topics.BundleData, "observe"},
		{"admin", "auto", true, true, topics.Decisions, "govern"},
	} {
		if got := needs(x.via, x.report, x.onReports, x.produce, x.topic); got != x.want {
			t.Errorf("%+v: %q", x, got)
		}
	}
}
