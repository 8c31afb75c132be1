//go:build integration

package integration

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/reporter"
	config "github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// haunted is a cluster with one broker more, which answers what another one does.
type haunted struct {
	*admin.Client
	ghost, like string // broker ids
}

func (c haunted) BrokerIDs(ctx context.Context) ([]string, error) {
	ids, err := c.Client.BrokerIDs(ctx)
	return append(ids, c.ghost), err
}

func (c haunted) LoadManagerOf(ctx context.Context, id string) (string, error) {
	return c.Client.LoadManagerOf(ctx, strings.Replace(id, c.ghost, c.like, 1))
}

func (c haunted) LoadReport(ctx context.Context, id string) (event.BrokerReport, error) {
	r, err := c.Client.LoadReport(ctx, strings.Replace(id, c.ghost, c.like, 1))
	if err != nil || id != c.ghost {
		return r, err
	}
	switch url := "http://" + c.ghost; {
	case r.Local != nil:
		r.Local.WebServiceURL, r.Local.BrokerID = url, ""
	case r.Simple != nil:
		r.Simple.WebServiceURL, r.Simple.Name = url, c.ghost
	}
	return r, nil
}

// afterACrash: where brokers make no topics the reporter makes its own, and what it reported of a broker before it crashed is
// taken back by the next one when that broker is gone.
func afterACrash(t *testing.T, c *harness.Cluster) {
	running := conf(t, c)
	rest, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer rest.Close()
	if runtime, err := rest.RuntimeConfig(t.Context()); err != nil || runtime["allowAutoTopicCreation"] != "false" {
		t.Fatalf("brokers make topics themselves: %s, %v", runtime["allowAutoTopicCreation"], err)
	}
	layers, err := config.Resolve(harness.Version(), config.ClusterLayer(c.AdminURL(), running))
	if err != nil {
		t.Fatal(err)
	}
	its := []string{topics.BrokerLoadData, topics.TopBundles, topics.LocalBrokerData, topics.Reported}
	exist := func(want bool) {
		t.Helper()
		harness.Eventually(t, time.Minute, fmt.Sprintf("topics exist: %v", want), func(ctx context.Context) error {
			for _, topic := range its {
				if info, err := rest.TopicInfo(ctx, topic); err != nil || info.Exists != want {
					return fmt.Errorf("%s exists: %v, %w", topic, info.Exists, err)
				}
			}
			return nil
		})
	}
	process := func(on reporter.Cluster) *reporter.Reporter {
		return reporter.New(reporter.Options{Cluster: on, Log: connect(t, c), Settings: layers.Settings, Version: harness.Version(),
			Clock: control.SystemClock{}, Logger: slog.New(slog.DiscardHandler)})
	}
	exist(false)
	const ghost = "198.18.0.1:8080"
	crashed := process(haunted{rest, ghost, c.Brokers()[0].ID})
	if _, err := crashed.Poll(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	exist(true)
	reports := hearTopic(t, connect(t, c), topics.LocalBrokerData)
	if _, err := crashed.Poll(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 30*time.Second, "the broker is reported", func(context.Context) error {
		if _, ok := reports.get(ghost); !ok {
			return fmt.Errorf("nothing of %s", ghost)
		}
		return nil
	})
	next := process(rest) // the other does nothing any more, and the broker is gone
	round, err := next.Poll(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	back := map[string]bool{}
	for _, e := range round.Published {
		if e.Value == nil {
			back[e.Key+" on "+e.Topic] = true
		}
	}
	for _, topic := range its[:3] {
		if !back[ghost+" on "+topic] || len(back) != 3 {
			t.Errorf("taken back are %v, want %s on each of three topics", back, ghost)
		}
	}
	harness.Eventually(t, 30*time.Second, "what was reported of it is taken back", func(context.Context) error {
		if _, ok := reports.get(ghost); ok {
			return fmt.Errorf("the report of %s is there", ghost)
		}
		return nil
	})
	if err := next.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	sub, err := connect(t, c).Subscribe(t.Context(), topics.Reported, topics.SubscribeOptions{From: topics.Earliest, Compacted: true, Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if err := topics.Drain(t.Context(), sub, func(m topics.Message) error { left[m.Key] = !m.Tombstone(); return nil }); err != nil {
		t.Fatal(err)
	}
	for id, there := range left {
		if there {
			t.Errorf("%s is recorded although all was taken back", id)
		}
	}
}
