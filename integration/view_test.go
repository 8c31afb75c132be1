//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	ownerfold "github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/topics"
)

var systemTopics = []string{topics.BrokerLoadData, topics.TopBundles, topics.ServiceUnitState}

// reportThreshold is by how many percent a broker's load has to change for a report, looked at every 5 s: 0 makes reports frequent.
const reportThreshold = "loadBalancerReportUpdateThresholdPercentage"

// Ballast's view is what the brokers published, and `ballast tail` misses no event, counted by a client of its own.
func TestViewIsWhatBrokersPublish(t *testing.T) {
	c := shared(t)
	c.SetDynamic(t, reportThreshold, "0")
	testView(t, c, harness.Length(time.Minute, 10*time.Minute))
}

// The same with the default 15 minutes between the reports of a steady broker.
func TestViewOfRareReports(t *testing.T) {
	if !harness.Full() {
		t.Skip("takes longer than 15 minutes: only at full length (make verify)")
	}
	c := pool.Get(t, harness.Options{Conf: map[string]string{"loadBalancerReportUpdateMaxIntervalMinutes": "15", "statsUpdateFrequencyInSecs": "60"}})
	testView(t, c, 17*time.Minute)
}

func testView(t *testing.T, c *harness.Cluster, length time.Duration) {
	ns := c.CreateNamespace(t, 32)
	c.Place(t, ns, c.Brokers()...)
	whole := c.Bundles(t, c.CreateNamespace(t, 1))[0]
	if _, err := c.Owner(t.Context(), whole); err != nil { // somebody must serve what is split later
		t.Fatal(err)
	}
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 400, Seed: 3})
	load := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{})
	load.AwaitFlow(t)

	views := follow(t, c)
	heard := listen(t, c)
	printed := start(t, c, "tail", "load", "top", "ownership", "--from", "earliest")
	harness.Eventually(t, time.Minute, "tail prints", func(context.Context) error {
		if stdout, stderr := printed.text(); stdout == "" {
			return fmt.Errorf("nothing yet; %s", stderr)
		}
		return nil
	})
	time.Sleep(time.Second) // what is published from here on is after every subscription
	from, before := time.Now(), load.Report().Sum().Sent

	// Now and then the view is held against what was published last. In between bundles move and one is split.
	moved := c.Bundles(t, ns)[0]
	compared := 0
	for end := from.Add(length); time.Now().Before(end); {
		c.Move(t, moved, c.Brokers()[compared%3])
		harness.Eventually(t, time.Minute, "the view is what was published", func(ctx context.Context) error {
			return sameAsPublished(ctx, views, heard, c.Brokers())
		})
		compared++
		time.Sleep(length / 12)
	}
	if err := c.Do(t.Context(), http.MethodPut, "/admin/v2/namespaces/"+whole+"/split?unload=false", nil); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 2*time.Minute, "the tombstone of the split bundle", func(context.Context) error {
		last, gone := "", false
		for _, e := range events(t, printed) {
			if e.Topic == topics.ServiceUnitState {
				last = e.Key
				gone = gone || e.Tombstone && e.Key == whole
			}
		}
		if !gone {
			return fmt.Errorf("tail printed none; the newest ownership record is of %s", last)
		}
		return nil
	})
	to := time.Now()
	time.Sleep(3 * time.Second) // what was published until then arrives
	harness.Eventually(t, time.Minute, "the view is what was published", func(ctx context.Context) error {
		return sameAsPublished(ctx, views, heard, c.Brokers())
	})
	if code := printed.stop(t); code != 0 {
		t.Errorf("tail ended with %d", code)
	}

	all := events(t, printed)
	counted := sameEvents(t, heard.between(from, to), between(all, from, to))
	stones := everyEntry(t, c, all)
	sameOwners(t, c, views, all, ns, whole)
	rate := float64(load.Report().Sum().Sent-before) / time.Since(from).Seconds()
	if err := load.Stop(t).Err(); err != nil {
		t.Error(err)
	}
	harness.Figure(t, "events compared", counted)
	harness.Figure(t, "events missing", 0) // or the test has failed
	harness.Figure(t, "tombstones in the ownership topic", stones)
	harness.Figure(t, "comparisons of the view with what was published", compared+1)
	harness.Figure(t, "messages per second meanwhile", round(rate))
}

// sameAsPublished says in what Ballast's view of the load differs from the newest events, field by field. Only the time of
// the report differs on purpose: ages are counted from when it was heard.
func sameAsPublished(ctx context.Context, views *control.Views, heard *listener, brokers []*harness.Broker) error {
	look, err := views.Look(ctx, time.Now())
	if err != nil {
		return err
	}
	if len(look.Frozen) > 0 {
		return fmt.Errorf("frozen: %v", look.Frozen)
	}
	if len(look.Snapshot.Load) != len(brokers) {
		return fmt.Errorf("load of %d brokers", len(look.Snapshot.Load))
	}
	reports, top := heard.latest(topics.BrokerLoadData), heard.latest(topics.TopBundles)
	for _, l := range look.Snapshot.Load {
		seen, err := json.Marshal(l.Data)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(fields(reports[l.Broker]), fields(string(seen))); diff != "" {
			return fmt.Errorf("load of %s (-published +view):\n%s", l.Broker, diff)
		}
		if !l.HasTop {
			return fmt.Errorf("no top bundles of %s", l.Broker)
		}
		if seen, err = json.Marshal(event.TopBundlesLoadData{TopBundlesLoadData: l.TopBundles}); err != nil {
			return err
		}
		if diff := cmp.Diff(fields(top[l.Broker]), fields(string(seen))); diff != "" {
			return fmt.Errorf("top bundles of %s (-published +view):\n%s", l.Broker, diff)
		}
	}
	return nil
}

func fields(payload string) map[string]any {
	var out map[string]any
	if err := json.Unmarshal([]byte(payload), &out); err != nil {
		return map[string]any{"not JSON": payload}
	}
	delete(out, "updatedAt")
	return out
}

// everyEntry checks that tail printed every entry that the ownership topic's ledgers hold: those that the library drops are
// tombstones by what the brokers say. It gives how many tombstones there were.
func everyEntry(t *testing.T, c *harness.Cluster, all []printedEvent) (stones int) {
	t.Helper()
	path := "/admin/v2/" + strings.Replace(topics.ServiceUnitState, "://", "/", 1)
	var stats struct {
		LastConfirmedEntry string
		Ledgers            []struct{ LedgerID, Entries int64 }
	}
	if err := c.Get(t.Context(), path+"/internalStats", &stats); err != nil {
		t.Fatal(err)
	}
	byID := map[[2]int64]printedEvent{}
	var first [2]int64
	for _, e := range all {
		if e.Topic != topics.ServiceUnitState {
			continue
		}
		var id [2]int64
		if _, err := fmt.Sscanf(e.ID, "%d:%d:", &id[0], &id[1]); err != nil {
			t.Fatalf("id %q: %v", e.ID, err)
		}
		if len(byID) == 0 {
			first = id
		}
		byID[id] = e
	}
	var last [2]int64
	if _, err := fmt.Sscanf(stats.LastConfirmedEntry, "%d:%d", &last[0], &last[1]); err != nil {
		t.Fatalf("last entry %q: %v", stats.LastConfirmedEntry, err)
	}
	for _, ledger := range stats.Ledgers {
		entries := ledger.Entries
		if ledger.LedgerID == last[0] {
			entries = last[1] + 1
		}
		for entry := range entries {
			id := [2]int64{ledger.LedgerID, entry}
			if slices.Compare(id[:], first[:]) < 0 {
				continue
			}
			e, printed := byID[id]
			if !printed {
				t.Errorf("entry %v of the ownership topic was not printed", id)
				continue
			}
			if null := isTombstone(t, c, fmt.Sprintf("%s/ledger/%d/entry/%d", path, id[0], id[1]), e.Tombstone); null != e.Tombstone {
				t.Errorf("entry %v of %s: printed as a tombstone %v, the broker says %v", id, e.Key, e.Tombstone, null)
			}
			if e.Tombstone {
				stones++
			}
		}
	}
	if stones == 0 {
		t.Error("no tombstone was in the topic: nothing was shown about them")
	}
	return stones
}

// isTombstone asks a broker whether an entry has no value. Only those printed as tombstones are worth a request: a value that
// was printed is there.
func isTombstone(t *testing.T, c *harness.Cluster, path string, printed bool) bool {
	t.Helper()
	if !printed {
		return false
	}
	resp, err := http.Get(c.AdminURL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
	return resp.Header.Get("X-Pulsar-null-value") == "true" || resp.ContentLength == 0
}

// sameOwners folds what tail printed and compares it with the owners in Ballast's view and those that lookups give.
func sameOwners(t *testing.T, c *harness.Cluster, views *control.Views, all []printedEvent, ns, whole string) {
	t.Helper()
	fold := ownerfold.NewFold()
	for _, e := range all {
		if e.Topic != topics.ServiceUnitState {
			continue
		}
		m := ownerfold.Message{Bundle: e.Key, At: e.Published.UnixMilli()}
		if _, err := fmt.Sscanf(e.ID, "%d:%d:%d", &m.ID.Ledger, &m.ID.Entry, &m.ID.Batch); err != nil {
			t.Fatalf("id %q: %v", e.ID, err)
		}
		if !e.Tombstone {
			data, err := event.Decode[event.ServiceUnitStateData](e.Value)
			if err != nil {
				t.Fatal(err)
			}
			m.Data = &data
		}
		fold.Apply(m)
	}
	printed, seen := map[string]string{}, map[string]string{}
	for bundle, record := range fold.Snapshot().All() {
		printed[bundle] = record.Owner()
	}
	for bundle, record := range views.Ownership().All() {
		seen[bundle] = record.Owner()
	}
	// Of other tests' bundles the topic may have nothing left but what compaction kept, which tail does not read.
	others := func(bundle, _ string) bool {
		return !strings.HasPrefix(bundle, ns+"/") && event.NamespaceOf(bundle) != event.NamespaceOf(whole)
	}
	maps.DeleteFunc(printed, others)
	maps.DeleteFunc(seen, others)
	if diff := cmp.Diff(printed, seen); diff != "" || len(seen) < 32 {
		t.Errorf("owners (-folded from what tail printed +view):\n%s", diff)
	}
	if _, there := seen[whole]; there {
		t.Errorf("%s was split and is still there", whole)
	}
	maps.DeleteFunc(seen, func(bundle, _ string) bool { return !strings.HasPrefix(bundle, ns+"/") })
	if diff := cmp.Diff(c.Owners(t, ns), seen); diff != "" {
		t.Errorf("owners (-by lookup +view):\n%s", diff)
	}
}
