package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/topics"
)

// Every topic has a short name, and an event is decoded as what belongs there: what does not is shown with why.
func TestTailDecodesByTopic(t *testing.T) {
	for _, x := range []struct{ short, topic, good, bad string }{
		{"load", topics.BrokerLoadData, `{"cpu":{"usage":1.0,"limit":2.0}}`, `{"cpu":7}`},
		{"top", topics.TopBundles, `{"topBundlesLoadData":[]}`, `{"topBundlesLoadData":7}`},
		{"ownership", topics.ServiceUnitState, `{"state":"Owned","dstBroker":"a:8080","timestamp":1,"versionId":1}`, `{"state":7}`},
		{"decisions", topics.Decisions, `{"version":1,"kind":"leader","leader":{"what":"leads"}}`, `{"version":1,"kind":"plan"}`},
		{"takeover", topics.Takeover, `{"version":1,"set":{"a":"b"}}`, `{"set":7}`},
		{"reports", topics.LocalBrokerData, `{"loadReportType":"LocalBrokerData","webServiceUrl":"http://a:8080"}`, `{"loadReportType":"LocalBrokerData","cpu":7}`},
		{"bundles", topics.BundleData, `{"topics":1,"shortTermData":{"maxSamples":1},"longTermData":{"maxSamples":1}}`, `{"topics":"many"}`},
		{"averages", topics.BrokerAverages, `{"shortTermMsgRateIn":1.0}`, `{"shortTermMsgRateIn":"much"}`},
		{"stats", topics.BundleStats, `{"a":1}`, `{"a`},
		{"leader", topics.Leader, `{"a":1}`, `{"a`},
	} {
		names, err := tailNames([]string{x.short})
		if err != nil || len(names) != 1 || names[0] != x.topic {
			t.Errorf("%s: %v, %v", x.short, names, err)
		}
		if e := decode(topics.Message{Topic: x.topic, Payload: []byte(x.good)}); e.Error != "" || string(e.Value) != x.good {
			t.Errorf("%s: %+v", x.short, e)
		}
		if e := decode(topics.Message{Topic: x.topic, Payload: []byte(x.bad)}); e.Error == "" || e.Payload != x.bad || e.Value != nil {
			t.Errorf("%s takes %s: %+v", x.short, x.bad, e)
		}
	}
	if _, err := tailNames([]string{"nothing"}); err == nil || !strings.Contains(err.Error(), "commands") {
		t.Errorf("%v", err)
	}
}

// TestTailOfMissingTopics: topics that nobody has written are named and the others followed; without any there is nothing to follow.
func TestTailOfMissingTopics(t *testing.T) {
	log := topics.NewMemory(topics.MemoryOptions{})
	defer log.Close()
	publisher, err := log.Publisher(t.Context(), topics.Decisions, topics.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	if _, err := publisher.Publish(t.Context(), "k", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	var absent []string
	note := func(topic string) { absent = append(absent, topic) }
	messages, stop, err := merge(t.Context(), log, []string{topics.Commands, topics.Decisions, topics.Reported}, topics.Earliest, note)
	if err != nil {
		t.Fatal(err)
	}
	if m := <-messages; m.err != nil || m.Topic != topics.Decisions {
		t.Errorf("%+v", m)
	}
	stop()
	if want := []string{topics.Commands, topics.Reported}; !slices.Equal(absent, want) {
		t.Errorf("absent are %q, want %q", absent, want)
	}
	_, _, err = merge(t.Context(), log, []string{topics.Commands, topics.Reported}, topics.Earliest, note)
	if !errors.Is(err, topics.ErrNoTopic) || !strings.Contains(err.Error(), topics.Commands) || len(absent) != 2 {
		t.Errorf("none of them: %v, %q", err, absent)
	}
}
