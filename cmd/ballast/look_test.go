package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/manager"
	"github.com/ballast-lb/ballast/monitor"
)

// TestReport: the report of a Modular or a Simple broker is what it answers.
func TestReport(t *testing.T) {
	for _, kind := range []manager.Kind{manager.Modular, manager.Simple} {
		m, url := newManaged(t, kind)
		id := strings.TrimPrefix(url, "http://")
		stdout, stderr, code := ballast(t, nil, "report", id, "--admin-service-url", url)
		var got, want any
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 {
			t.Fatalf("%v: exit %d, %v: %s%s", kind, code, err, stdout, stderr)
		}
		if err := json.Unmarshal([]byte(m.reports[kind]), &want); err != nil {
			t.Fatal(err)
		}
		if string(mustJSON(got)) != string(mustJSON(want)) {
			t.Errorf("%v: %s", kind, stdout)
		}
		fails(t, nil, []string{"report", "nobody:8080", "--admin-service-url", url}, "nobody:8080", "not registered", id)
	}
}

// TestBrokersAndBundles: what a Modular broker's report says, with blanks where nobody knows.
func TestBrokersAndBundles(t *testing.T) {
	m, url := newManaged(t, manager.Modular)
	id := strings.TrimPrefix(url, "http://")
	report, err := event.Decode[event.LocalBrokerData]([]byte(m.reports[manager.Modular]))
	if err != nil {
		t.Fatal(err)
	}
	const idle = "public/idle/0x00000000_0xffffffff"
	m.extra["/admin/v2/brokers/c/"+id+"/ownedNamespaces"] = `{"` + idle + `":{},"pulsar/` + id + `/0x00000000_0xffffffff":{}}`
	var brokers brokersDocument
	stdout, stderr, code := ballast(t, nil, "brokers", "-o", "json", "--admin-service-url", url)
	if err := json.Unmarshal([]byte(stdout), &brokers); err != nil || code != 0 || len(brokers.Brokers) != 1 {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	b := brokers.Brokers[0]
	if !b.Leads || b.ID != id || b.Manager != "modular" || *b.Bundles != int64(report.NumBundles) || *b.Topics != report.NumTopics || b.Short != nil || len(brokers.Notes) == 0 {
		t.Errorf("%s", stdout)
	}
	list := func(args ...string) []monitor.Bundle {
		t.Helper()
		var doc bundlesDocument
		stdout, stderr, code := ballast(t, nil, append([]string{"bundles", "-o", "json", "--admin-service-url", url}, args...)...)
		if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != 0 {
			t.Fatalf("%v: exit %d, %v: %s%s", args, code, err, stdout, stderr)
		}
		return doc.Bundles
	}
	all := list()
	if n := len(report.LastStats) + 1; len(all) != n {
		t.Errorf("%d bundles, want %d", len(all), n)
	}
	if last := all[len(all)-1]; last.Name != idle || last.Owner != id || last.Topics != nil || last.Now != nil {
		t.Errorf("the bundle without topics is %+v", last)
	}
	if got := list("--namespace", "public/idle"); len(got) != 1 || got[0].Name != idle {
		t.Errorf("of a namespace: %+v", got)
	}
	stdout, stderr, code = ballast(t, nil, "bundles", "--namespace", "nope/nope", "--admin-service-url", url)
	if code != exitOK || !strings.Contains(stderr, "no bundle of namespace nope/nope is known to be owned by any broker") {
		t.Errorf("of a namespace that there is not: exit %d, %s%s", code, stdout, stderr)
	}
	if got := list("--all", "--sort", "name", "--limit", "2"); len(got) != 2 || got[0].Name > got[1].Name {
		t.Errorf("by name: %+v", got)
	}
	fails(t, nil, []string{"bundles", "--broker", "x:1", "--admin-service-url", url}, "--broker", "x:1", id)
	fails(t, nil, []string{"bundles", "--sort", "size"}, "--sort", "size", "throughput")
	fails(t, nil, []string{"bundles", "--limit", "-1"}, "--limit is -1")
	fails(t, nil, []string{"bundles", "--namespace", "public"}, "--namespace", "tenant/namespace")
	fails(t, nil, []string{"brokers", "--wait", "-1s"}, "--wait is -1s")
	fails(t, nil, []string{"report"}, "0 brokers given")
	fails(t, nil, []string{"report", "b:8080", "-o", "table"}, "--output", "json or yaml")
}
