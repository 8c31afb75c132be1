package main

import (
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
