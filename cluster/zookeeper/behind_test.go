package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/event"
)

// rest answers with a report of its own, an error, or not at all.
type rest struct {
	err  error
	hang bool
}

func (r *rest) LoadReport(ctx context.Context, broker string) (admin.LoadReport, error) {
	if r.hang {
		<-ctx.Done()
		return admin.LoadReport{}, &admin.Error{Op: "load report of " + broker, Kind: admin.Timeout, Err: ctx.Err()}
	}
	if r.err != nil {
		return admin.LoadReport{}, r.err
	}
	return admin.LoadReport{Local: &event.LocalBrokerData{BrokerVersionString: "from itself"}}, nil
}

// TestBehind: a report comes from the broker itself, from ZooKeeper when that fails, and from itself again.
func TestBehind(t *testing.T) {
	var log bytes.Buffer
	f := load(t, "modular")
	c := f.client(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	first := &rest{}
	reports := c.Behind(first)
	from := func() string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		report, err := reports.LoadReport(ctx, ids[0])
		if err != nil {
			t.Fatal(err)
		}
		return report.Local.BrokerVersionString
	}
	refused := &admin.Error{Op: "load report of " + ids[0], Kind: admin.Unauthorized, Status: 401}
	for i, want := range []string{"from itself", "4.2.4", "4.2.4", "from itself"} {
		first.err = nil
		if want == "4.2.4" {
			first.err = refused
		}
		if got := from(); got != want {
			t.Errorf("report %d: of %q, want %q", i+1, got, want)
		}
	}
	if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "is read from ZooKeeper") || !strings.Contains(got, "HTTP 401") ||
		!strings.Contains(got, "is read from itself again") {
		t.Errorf("logged:\n%s", got)
	}

	first.err = refused
	f.answers = []error{errors.New("odd"), errors.New("odd"), errors.New("odd")}
	_, err := reports.LoadReport(t.Context(), ids[0])
	if !errors.Is(err, admin.Unauthorized) || !errors.Is(err, admin.Unreachable) || !strings.Contains(err.Error(), "odd") {
		t.Errorf("when both fail: %v", err)
	}
	_, err = reports.LoadReport(t.Context(), "10.0.0.9:8080")
	if !errors.Is(err, admin.Unauthorized) || !errors.Is(err, admin.NotFound) {
		t.Errorf("a broker that is not registered: %v", err)
	}
}

// TestBehindOneThatHangs: half of the time is left for ZooKeeper; a caller that went away is not answered.
func TestBehindOneThatHangs(t *testing.T) {
	f := load(t, "modular")
	reports := f.client(t, Options{}).Behind(&rest{hang: true})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if report, err := reports.LoadReport(ctx, ids[0]); err != nil || report.Local.BrokerVersionString != "4.2.4" {
		t.Errorf("report %+v, %v", report, err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := reports.LoadReport(gone, ids[0]); !errors.Is(err, context.Canceled) || len(f.paths) != 1 {
		t.Errorf("a caller that went away: %v, asked for %v", err, f.paths)
	}
}
