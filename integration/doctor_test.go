//go:build integration

package integration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	clientlog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ballast-lb/ballast/diagnose"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/topics"
)

// examined is what `ballast doctor -o json` prints.
type examined struct {
	Severity diagnose.Severity
	Findings []diagnose.Finding
}

func (e examined) codes() []string {
	var out []string
	for _, f := range e.Findings {
		if f.Severity != diagnose.OK {
			out = append(out, f.Why.Code)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (e examined) find(t *testing.T, code string) diagnose.Finding {
	t.Helper()
	for _, f := range e.Findings {
		if f.Why.Code == code {
			return f
		}
	}
	t.Errorf("%s is not found, but %v", code, e.codes())
	return diagnose.Finding{}
}

func readDoctor(t *testing.T, p *program) (examined, int) {
	t.Helper()
	code := p.wait(t)
	stdout, stderr := p.text()
	var out examined
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("exit %d, output is no JSON: %v\n%s\n%s", code, err, stdout, stderr)
	}
	return out, code
}

// Nothing is wrong with a cluster that nobody did anything to, also while bundles move and one is split; and doctor leaves
// nothing behind.
func TestDoctorOnAHealthyCluster(t *testing.T) {
	c := shared(t)
	ns := c.CreateNamespace(t, 4)
	c.Place(t, ns, c.Brokers()...)
	before := conf(t, c)
	p := start(t, c, "doctor", "-o", "json", "--watch", "10s")
	for i := range 3 {
		c.Move(t, c.Bundles(t, ns)[0], c.Brokers()[(i+1)%3])
	}
	if err := c.Do(t.Context(), "PUT", "/admin/v2/namespaces/"+c.Bundles(t, ns)[1]+"/split", nil); err != nil {
		t.Error(err)
	}
	got, code := readDoctor(t, p)
	if code != 0 || len(got.codes()) > 0 {
		for _, f := range got.Findings {
			t.Logf("%s %s %s %s: %s", f.Severity, f.Area, f.Why.Code, f.About, f.Why)
		}
		t.Errorf("exit code %d, findings %v", code, got.codes())
	}
	for _, area := range diagnose.Areas {
		if !slices.ContainsFunc(got.Findings, func(f diagnose.Finding) bool { return f.Area == area }) {
			t.Errorf("nothing is said about %s", area)
		}
	}
	if after := conf(t, c); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the dynamic configuration is %v, it was %v", after, before)
	}
}

// foreign writes ownership records as a client that is no broker.
type foreign struct {
	producer client.Producer
}

func newForeign(t *testing.T, c *harness.Cluster) *foreign {
	t.Helper()
	cl, err := client.NewClient(client.ClientOptions{URL: c.ServiceURL(), Logger: clientlog.DefaultNopLogger(), MetricsRegisterer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	p, err := cl.CreateProducer(client.ProducerOptions{Topic: topics.ServiceUnitState, DisableBatching: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &foreign{producer: p}
}

func (f *foreign) write(t *testing.T, bundle string, d event.ServiceUnitStateData) {
	t.Helper()
	d.Timestamp = cmp.Or(d.Timestamp, time.Now().UnixMilli())
	payload, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.producer.Send(t.Context(), &client.ProducerMessage{Key: bundle, Payload: payload}); err != nil {
		t.Fatal(err)
	}
}

// Records that a client writes with gaps in their versions set bundles on a way that nobody takes on, and give them to a
// broker that does not exist: doctor sees each, with the records as evidence. Then the cluster's leader mends them.
func TestDoctorSeesWhatIsWrong(t *testing.T) {
	c := shared(t)
	ns := c.CreateNamespace(t, 16)
	c.Place(t, ns, c.Brokers()...)
	views := follow(t, c)
	bundles := c.Bundles(t, ns)
	harness.Eventually(t, time.Minute, "the log is known", func(context.Context) error {
		for _, b := range bundles {
			if _, ok := views.Ownership().Get(b); !ok {
				return fmt.Errorf("%s has no record", b)
			}
		}
		return nil
	})
	const gone = "10.255.255.1:8080"
	f := newForeign(t, c)
	p := start(t, c, "doctor", "-o", "json", "--watch", "20s", "--stuck-after", "1s")
	// Doctor does not say when it has begun to follow the log, so something is wrong all the time.
	written := 0
	for i := 0; ; i = (i + 1) % len(bundles) {
		select {
		case <-p.done:
		default:
			record, ok := views.Ownership().Get(bundles[i])
			if !ok {
				continue
			}
			d := event.ServiceUnitStateData{State: event.Owned, DstBroker: gone, VersionID: record.Data.VersionID + 7}
			if i%2 == 0 {
				d = event.ServiceUnitStateData{State: event.Releasing, SourceBroker: gone, VersionID: record.Data.VersionID + 7}
			}
			f.write(t, bundles[i], d)
			written++
			time.Sleep(time.Second)
			continue
		}
		break
	}
	got, code := readDoctor(t, p)
	if code != 1 && code != 2 || got.Severity == diagnose.OK {
		t.Errorf("exit code %d, severity %s", code, got.Severity)
	}
	if gap := got.find(t, "VERSION_GAP"); gap.Anomaly == nil || len(gap.Anomaly.Evidence) == 0 || gap.Anomaly.Evidence[len(gap.Anomaly.Evidence)-1].Producer != f.producer.Name() {
		t.Errorf("the evidence of a gap is %+v", gap.Anomaly)
	}
	if stuck := got.find(t, "BUNDLE_IN_FLIGHT"); stuck.Anomaly == nil || stuck.Anomaly.Broker != gone || !slices.Contains(bundles, stuck.Anomaly.Bundle) {
		t.Errorf("the stuck bundle is %+v", stuck.Anomaly)
	}
	for _, code := range []string{"FOREIGN_RECORD", "FOREIGN_PRODUCER"} {
		if who := got.find(t, code); who.Anomaly == nil || who.Anomaly.Producer != f.producer.Name() {
			t.Errorf("%s is about %+v", code, who.Anomaly)
		}
	}
	if owner := got.find(t, "OWNER_NOT_REGISTERED"); owner.About != gone {
		t.Errorf("the owner that is gone is %q", owner.About)
	}
	harness.Figure(t, "records with gaps that were written", written)
	begun := time.Now()
	for _, b := range bundles {
		harness.Eventually(t, 4*time.Minute, "the leader mends "+b, func(ctx context.Context) error {
			r, ok := views.Ownership().Get(b)
			if ok && (r.Owner() == gone || r.Data.SourceBroker == gone && r.State() == event.Releasing) {
				return fmt.Errorf("it is %s, owned by %q", r.State(), r.Owner())
			}
			_, err := c.Owner(ctx, b)
			return err
		})
	}
	harness.Figure(t, "seconds until the leader had mended all", int(time.Since(begun).Seconds()))
}
