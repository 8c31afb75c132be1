package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/manager"
)

// inStore gives every broker the same stored report, or an error.
type inStore struct {
	document string
	err      error
}

func (s inStore) LoadReport(context.Context, string) (event.BrokerReport, error) {
	if s.err != nil {
		return event.BrokerReport{}, s.err
	}
	return event.DecodeReport([]byte(s.document))
}

// TestStoredReports: where a broker gives no load report, the one in ZooKeeper is shown, and said to be from there.
func TestStoredReports(t *testing.T) {
	for _, kind := range []manager.Kind{manager.Modular, manager.Simple} {
		m, url := newManaged(t, kind)
		m.refused = "/admin/v2/broker-stats/load-report"
		id := strings.TrimPrefix(url, "http://")
		m.extra["/admin/v2/clusters"], m.extra["/admin/v2/brokers/c"] = `["c"]`, `["`+id+`"]`
		m.extra["/admin/v2/brokers/c/"+id+"/ownedNamespaces"] = `{}`
		c, err := admin.New(admin.Options{URLs: []string{url}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		w := &watcher{s: &session{cluster: c, logger: quietLogger()}}
		look := func() *picture {
			t.Helper()
			p, err := w.look(t.Context(), "", time.Second)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		if b := look().brokers[0]; !strings.Contains(b.Error, "403") || b.document != nil || b.stored != "" {
			t.Errorf("%v without ZooKeeper: %+v", kind, b)
		}
		w.stored = inStore{document: m.reports[kind]}
		p := look()
		b := p.brokers[0]
		rows, notes := brokerRows(p, history{}), strings.Join(missingFrom(p, history{}), "\n")
		if b.Error != "" || b.Runs() != kind || len(b.document) == 0 || rows[0].Usage == nil || !strings.Contains(notes, "the load report in ZooKeeper is shown") || !strings.Contains(notes, "403") {
			t.Errorf("%v from ZooKeeper: %+v, %s", kind, b, notes)
		}
		var out strings.Builder
		new(tables).print(&out, p, history{})
		if !strings.Contains(out.String(), "read from ZooKeeper") || !strings.Contains(out.String(), id+":\n") {
			t.Errorf("%v: monitor prints %s", kind, out.String())
		}
		w.stored = inStore{err: errors.New("nobody is there")}
		if b := look().brokers[0]; !strings.Contains(b.Error, "403") || !strings.Contains(b.Error, "nobody is there") || b.stored != "" {
			t.Errorf("%v with neither: %+v", kind, b)
		}
	}
}

// TestReportOfAnother: what answers at a broker's address and is another broker is not shown as that broker.
func TestReportOfAnother(t *testing.T) {
	m, url := newManaged(t, manager.Modular)
	id := strings.TrimPrefix(url, "http://")
	report, err := event.Decode[event.LocalBrokerData]([]byte(m.reports[manager.Modular]))
	if err != nil {
		t.Fatal(err)
	}
	report.WebServiceURL = "http://" + id
	m.reports[manager.Modular] = string(mustJSON(report))
	m.extra["/admin/v2/brokers"] = `["a:8080","` + id + `"]`
	with := []string{"--admin-service-url", url, "--set", "ballastBrokerAddresses=a:8080=" + id}
	fails(t, nil, append([]string{"report", "a:8080"}, with...), "a:8080", "is that of "+id, "ballastBrokerAddresses", "REPORT_OF_ANOTHER")
	stdout, stderr, code := ballast(t, nil, append([]string{"brokers"}, with...)...)
	if code != exitOK || !strings.Contains(stdout, "nothing is known of a:8080") || !strings.Contains(stdout, "ballastBrokerAddresses") {
		t.Errorf("brokers: exit %d, %s%s", code, stdout, stderr)
	}
	stdout, stderr, code = ballast(t, nil, append([]string{"monitor", "-n", "1"}, with...)...)
	if code != exitOK || !strings.Contains(stdout, "Nothing is known of broker a:8080") || strings.Contains(stdout, "Broker Data for a:8080") || !strings.Contains(stdout, "Broker Data for "+id) {
		t.Errorf("monitor: exit %d, %s%s", code, stdout, stderr)
	}
	if stdout, stderr, code := ballast(t, nil, append([]string{"report", id}, with...)...); code != exitOK {
		t.Errorf("the broker itself: exit %d, %s%s", code, stdout, stderr)
	}
}
