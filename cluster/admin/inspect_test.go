package admin_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
)

func TestTopicState(t *testing.T) {
	const topic, path = "persistent://pulsar/system/t", "GET /admin/v2/persistent/pulsar/system/t"
	f := newFake(t).on(path+"/stats", text(200, `{"publishers":[{"producerName":"c-1-2","address":"/10.0.0.2:4455"},{"producerName":"a","address":"host/10.0.0.1:1"},
		{"producerName":"b","metadata":{"application":"ballast"}}],"subscriptions":{"s":{}}}`)).
		on(path+"/internalStats", text(200, `{"lastConfirmedEntry":"7:12"}`))
	c := newClient(t, admin.Options{}, f.URL)
	got, err := c.TopicState(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	want := admin.TopicState{Ledger: 7, Entry: 12, Subscribers: 1, Producers: []admin.TopicProducer{{Name: "a", Address: "10.0.0.1"}, {Name: "b", Own: true}, {Name: "c-1-2", Address: "10.0.0.2"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	f.on(path+"/internalStats", text(200, `{"lastConfirmedEntry":"none"}`))
	if _, err := c.TopicState(t.Context(), topic); !errors.Is(err, admin.BadAnswer) || !strings.Contains(err.Error(), "want ledger:entry") {
		t.Errorf("error is %v", err)
	}
	if _, err := c.TopicState(t.Context(), "pulsar/system"); !errors.Is(err, admin.BadRequest) {
		t.Errorf("error is %v", err)
	}
}

func TestReplicationAndSchemas(t *testing.T) {
	f := newFake(t).on("GET /admin/v2/namespaces/pulsar/system/replication", text(200, `["west","east"]`)).
		on("GET /admin/v2/schemas/pulsar/system/t/schemas", text(200, `{"getSchemaResponses":[{"version":0,"type":"JSON","data":"{}","properties":{}},{"version":1,"type":"BYTES","data":""}]}`)).
		on("GET /admin/v2/schemas/pulsar/system/none/schemas", reason(404, "Schema not found"))
	c := newClient(t, admin.Options{}, f.URL)
	clusters, err := c.ReplicationClusters(t.Context(), "pulsar/system")
	if err != nil || !slices.Equal(clusters, []string{"east", "west"}) {
		t.Errorf("clusters are %v, %v", clusters, err)
	}
	schemas, err := c.Schemas(t.Context(), "non-persistent://pulsar/system/t")
	if diff := cmp.Diff([]admin.SchemaVersion{{Type: "JSON", Definition: "{}"}, {Version: 1, Type: "BYTES"}}, schemas); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if schemas, err := c.Schemas(t.Context(), "persistent://pulsar/system/none"); err != nil || schemas != nil {
		t.Errorf("no schema gives %v, %v", schemas, err)
	}
}

func TestClock(t *testing.T) {
	date := func(by time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
		}
	}
	f := newFake(t)
	c := newClient(t, admin.Options{}, f.URL)
	for _, by := range []time.Duration{0, time.Minute, -time.Hour} {
		f.on("GET /admin/v2/brokers/version", date(by))
		ahead, uncertain, err := c.Clock(t.Context(), f.id())
		if err != nil || (ahead-by).Abs() > uncertain+time.Second/2 || uncertain < time.Second/2 {
			t.Errorf("a clock that is ahead by %v is read as %v +- %v, %v", by, ahead, uncertain, err)
		}
	}
	f.on("GET /admin/v2/brokers/version", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", "noon") })
	if _, _, err := c.Clock(t.Context(), f.id()); !errors.Is(err, admin.BadAnswer) {
		t.Errorf("error is %v", err)
	}
}

// Probes name what does not exist: an answer about that shows that the permission is there.
func TestProbe(t *testing.T) {
	const unload = "PUT /admin/v2/namespaces/pulsar/ballast-probe-of-permissions/0x00000000_0xffffffff/unload"
	f := newFake(t)
	c := newClient(t, admin.Options{}, f.URL)
	for _, tc := range []struct {
		answer http.HandlerFunc
		want   error
	}{
		{reason(404, "Namespace does not exist"), nil},
		{reason(412, "no such bundle"), nil},
		{text(204, ""), nil},
		{reason(401, "Unauthorized"), admin.Unauthorized},
		{reason(403, "Don't have permission"), admin.Unauthorized},
		{reason(500, "broken"), admin.Server},
		{text(404, "<html>"), admin.BadAnswer},
	} {
		f.on(unload, tc.answer)
		if err := c.Probe(t.Context(), admin.MayUnload); !errors.Is(err, tc.want) {
			t.Errorf("error is %v, want %v", err, tc.want)
		}
	}
	f.on("POST /admin/v2/brokers/configuration/ballastProbeOfPermissions/1", reason(412, "not dynamic"))
	f.on("PUT /admin/v2/namespaces/pulsar/ballast-probe-of-permissions/0x00000000_0xffffffff/split", reason(401, "no"))
	if err := c.Probe(t.Context(), admin.MayConfigure); err != nil {
		t.Error(err)
	}
	if err := c.Probe(t.Context(), admin.MaySplit); !errors.Is(err, admin.Unauthorized) {
		t.Error(err)
	}
	if err := c.Probe(t.Context(), "fly"); !errors.Is(err, admin.BadRequest) {
		t.Errorf("error is %v", err)
	}
}
