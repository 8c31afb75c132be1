//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/reporter"
)

// faultyProxy stands before a broker and breaks its load reports on demand.
type faultyProxy struct {
	*httptest.Server
	fault atomic.Value // string
	old   atomic.Value // string: the report from yesterday
}

func proxyTo(t *testing.T, b *harness.Broker) *faultyProxy {
	t.Helper()
	target, err := url.Parse(b.AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	p := &faultyProxy{}
	p.fault.Store("")
	ended := make(chan struct{})
	through := httputil.NewSingleHostReverseProxy(target)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := p.fault.Load().(string)
		if !strings.HasSuffix(r.URL.Path, "/load-report") || fault == "" {
			through.ServeHTTP(w, r)
			return
		}
		switch fault {
		case "fails":
			http.Error(w, `{"reason":"broken on purpose"}`, http.StatusInternalServerError)
		case "hangs":
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		case "garbage":
			fmt.Fprint(w, "\x00\xffgarbage<html>")
		case "half":
			body := get(t, b.AdminURL()+r.URL.Path)
			fmt.Fprint(w, string(body[:len(body)/2]))
		case "yesterday":
			p.old.CompareAndSwap(nil, yesterday(t, get(t, b.AdminURL()+r.URL.Path)))
			fmt.Fprint(w, p.old.Load())
		}
	}))
	t.Cleanup(func() { close(ended); p.Close() })
	return p
}

func get(t *testing.T, address string) []byte {
	resp, err := http.Get(address)
	if err != nil {
		t.Error(err)
		return []byte("{}")
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return b
}

// yesterday is a report as it was a day ago.
func yesterday(t *testing.T, document []byte) string {
	var m map[string]any
	if err := json.Unmarshal(document, &m); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"lastUpdate", "timestamp"} {
		if at, ok := m[key].(float64); ok {
			m[key] = int64(at) - 86_400_000
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// TestReporterWithBrokenReports: a broker whose reports break becomes stale with a reason, is no destination, keeps its
// bundles; the others go on; when it is well it counts again.
func TestReporterWithBrokenReports(t *testing.T) {
	for _, manager := range []harness.Manager{harness.Modular, harness.Simple} {
		t.Run(manager.String(), func(t *testing.T) {
			if manager == harness.Simple {
				full(t)
			}
			c := pool.Get(t, harness.Options{Manager: manager, Conf: reportConf()})
			sick := c.Brokers()[1]
			proxy := proxyTo(t, sick)
			r := report(t, c, map[string]string{sick.ID: proxy.Listener.Addr().String()})
			r.awaitAll(t, c.Brokers())
			for _, x := range []struct{ fault, code string }{
				{"fails", reporter.NotRead.ID}, {"hangs", reporter.NoAnswer.ID}, {"garbage", reporter.Unreadable.ID},
				{"half", reporter.Unreadable.ID}, {"yesterday", reporter.WentBack.ID},
			} {
				before, _ := r.reports.get(sick.ID)
				broken := time.Now()
				proxy.fault.Store(x.fault)
				// The others go on from the moment when it breaks; what they said before that is too old after ten seconds.
				took := time.Duration(0)
				for took == 0 || time.Since(broken) < reportEvery+reportSlack {
					for _, b := range c.Brokers() {
						if b == sick {
							continue
						}
						if m, ok := r.reports.get(b.ID); !ok || time.Since(m.Received) > reportEvery+reportSlack {
							t.Fatalf("%s: the report of %s is %v old (%v)", x.fault, b.ID, time.Since(m.Received), ok)
						}
					}
					if err := r.withdrawn(sick.ID, x.code); err == nil {
						if took == 0 {
							took = time.Since(broken)
						}
					} else if took > 0 || time.Since(broken) > time.Minute {
						t.Fatalf("%s: the broker is stale: %v", x.fault, err)
					}
					time.Sleep(250 * time.Millisecond)
				}
				harness.Figure(t, "stale after, ms: "+x.fault, took.Milliseconds())
				kept, ok := r.reports.get(sick.ID)
				old, err1 := event.DecodeReport(before.Payload)
				now, err2 := event.DecodeReport(kept.Payload)
				if !ok || err1 != nil || err2 != nil || len(now.Stats()) < len(old.Stats()) {
					t.Errorf("%s: its report is there %v, %v, %v, with %d bundles of %d", x.fault, ok, err1, err2, len(now.Stats()), len(old.Stats()))
				}
				if len(r.Stale()) != 1 {
					t.Errorf("%s: stale are %v", x.fault, r.Stale())
				}
				proxy.fault.Store("")
				harness.Eventually(t, 90*time.Second, x.fault+" is over: the broker counts again", func(context.Context) error {
					if why, stale := r.Stale()[sick.ID]; stale {
						return fmt.Errorf("%+v", why)
					}
					return r.left(sick.ID, true)
				})
			}
		})
	}
}

// withdrawn says whether a broker is stale for a reason, with its load data and its top bundles taken back.
func (r *reporting) withdrawn(broker, code string) error {
	if why, stale := r.Stale()[broker]; !stale || why.Code != code || why.Text == "" {
		return fmt.Errorf("stale %v: %+v", stale, why)
	}
	if _, there := r.load.get(broker); there {
		return errors.New("its load data is there still")
	}
	if _, there := r.top.get(broker); there {
		return errors.New("its top bundles are there still")
	}
	return nil
}
