//go:build integration

package integration

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/monitor"
	"github.com/ballast-lb/ballast/reporter"
	config "github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// samples are the figures of a bundle, one for each time that reports were read.
type samples []event.NamespaceBundleStats

// average is their time average over at most so many of them, by Pulsar's formula: each new value counts 1/n and the average
// before it (n-1)/n, where n counts up to the limit.
func (s samples) average(limit int) *average {
	out := &average{Samples: int32(min(len(s), limit))}
	for k := range s {
		n := float64(min(k+1, limit))
		for j, v := range four(&s[k]) {
			out.rates[j] = (out.rates[j]*(n-1) + v) / n
		}
	}
	return out
}

func four(s *event.NamespaceBundleStats) [4]float64 {
	return [4]float64{s.MsgRateIn, s.MsgRateOut, s.MsgThroughputIn, s.MsgThroughputOut}
}

// average is four rates (messages in and out, bytes in and out, each per second) and what they were made from.
type average struct {
	rates   [4]float64
	Samples int32
}

func ratesOf(r *monitor.Rates) [4]float64 {
	return [4]float64{float64(r.MsgRateIn), float64(r.MsgRateOut), float64(r.MsgThroughputIn), float64(r.MsgThroughputOut)}
}

// near says in what rates differ by more than a part of their value.
func near(got, want [4]float64, part float64) error {
	for j := range got {
		if math.Abs(got[j]-want[j]) > part*math.Abs(want[j])+1e-9 {
			return fmt.Errorf("rates are %v, want %v within %v %%", got, want, 100*part)
		}
	}
	return nil
}

// The numbers of samples of a short- and of a long-term average (Pulsar: ModularLoadManagerImpl).
const (
	shortSamples = 10
	longSamples  = 1000
)

// averages has the averages of the bundles kept on the log, as a process that governs does, and remembers what they are from.
func (i *inspected) averages(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	rest, err := admin.New(admin.Options{URLs: []string{i.c.AdminURL()}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer rest.Close()
	running, err := rest.RuntimeConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	layered, err := config.Resolve(harness.Version(), config.ClusterLayer(i.c.AdminURL(), running))
	if err != nil {
		t.Fatal(err)
	}
	i.awaitStatistics(t, rest)
	log, set := connect(t, i.c), layered.Settings
	for _, topic := range []string{topics.LocalBrokerData, topics.BundleData, topics.BrokerAverages} {
		if err := rest.CreateTopic(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
	}
	read := &recording{Client: rest, readings: map[string][]reading{}}
	history := control.NewHistory(control.HistoryOptions{Log: log, Keep: true, Interval: time.Hour, Stepwise: true, Logger: quiet})
	views := control.NewReportViews(control.ReportOptions{Cluster: rest, Log: log, History: history, Settings: set, Version: harness.Version(),
		Class: running["loadManagerClassName"], Stale: 5 * time.Minute, Stepwise: true, Logger: quiet})
	if err := views.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer views.Close()
	r := reporter.New(reporter.Options{Cluster: read, Log: log, Settings: set, Version: harness.Version(), Clock: control.SystemClock{}, Logger: quiet})
	defer r.Close(context.Background())
	const rounds = shortSamples + 3 // the short-term average has forgotten the first ones
	i.kept, i.last = map[string]*samples{}, map[string][]string{}
	for range rounds {
		if _, err := r.Poll(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the reports arrive
		if l, err := views.Look(t.Context(), time.Now()); err != nil || len(l.Frozen) > 0 {
			t.Fatalf("%v, frozen %+v", err, l.Frozen)
		}
	}
	if err := views.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, b := range i.c.Brokers() {
		list := read.of(b.ID)
		if len(list) != rounds {
			t.Fatalf("%s was read %d times in %d rounds", b.ID, len(list), rounds)
		}
		for k, x := range list {
			for _, s := range x.report.Stats() {
				if i.kept[s.Bundle] == nil {
					i.kept[s.Bundle] = &samples{}
				}
				*i.kept[s.Bundle] = append(*i.kept[s.Bundle], s.Stats)
				if k == len(list)-1 {
					i.last[b.ID] = append(i.last[b.ID], s.Bundle)
				}
			}
		}
	}
}

// awaitStatistics waits until the brokers' reports show the load: all bundles with the rates that they have.
func (i *inspected) awaitStatistics(t *testing.T, rest *admin.Client) {
	t.Helper()
	want := map[string]float64{}
	for _, topic := range i.layout {
		want[topic.Bundle] += topic.Rate
	}
	harness.Eventually(t, 3*time.Minute, "the reports show the load", func(ctx context.Context) error {
		got := map[string]float64{}
		for _, b := range i.c.Brokers() {
			r, err := rest.LoadReport(ctx, b.ID)
			if err != nil {
				return err
			}
			for _, s := range r.Stats() {
				got[s.Bundle] = s.Stats.MsgRateIn
			}
		}
		for bundle, rate := range want {
			if math.Abs(got[bundle]-rate) > 0.2*rate {
				return fmt.Errorf("%s has %.1f messages/s in the reports, want %.1f", bundle, got[bundle], rate)
			}
		}
		return nil
	})
}
