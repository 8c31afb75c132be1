package admin_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
)

func TestLoadReportDocument(t *testing.T) {
	f := broker(t)
	client := newClient(t, admin.Options{}, f.URL)
	const path = "GET /admin/v2/broker-stats/load-report"
	for _, file := range []string{"load-report-modular.json", "load-report-simple.json"} {
		f.on(path, text(200, sample(t, file)))
		if got, err := client.LoadReportDocument(t.Context(), f.id()); err != nil || string(got) != sample(t, file) {
			t.Errorf("%s: %v, %s", file, err, got)
		}
	}
	f.on(path, text(500, sample(t, "load-report-extensible.json")))
	_, err := client.LoadReportDocument(t.Context(), f.id())
	checkError(t, err, admin.Unsupported, false, true)
	f.on(path, text(200, `{"cpu":{"usage":1`))
	_, err = client.LoadReportDocument(t.Context(), f.id())
	checkError(t, err, admin.BadAnswer, false, true)
}

func TestNamespaceInfo(t *testing.T) {
	f := broker(t)
	client := newClient(t, admin.Options{Retries: -1}, f.URL)
	const path = "GET /admin/v2/namespaces/pulsar/system"
	for answer, want := range map[string]admin.NamespaceInfo{
		`{"replication_clusters":["h2"],"is_allow_auto_update_schema":true,"publishMaxMessageRate":{}}`: {Clusters: []string{"h2"}},
		`{"replication_clusters":["a","b"],"message_ttl_in_seconds":60,"is_allow_auto_update_schema":false,"publishMaxMessageRate":{"h2":{"publishThrottlingRateInMsg":5},"far":{"publishThrottlingRateInMsg":9}}}`: {
			Clusters: []string{"a", "b"}, TTL: 60, PublishRate: 5, SchemasClosed: true},
		`{"publishMaxMessageRate":{"h2":{"publishThrottlingRateInMsg":-1}}}`: {},
	} {
		f.on(path, text(200, answer)).on("GET /admin/v2/brokers/configuration/runtime", text(200, `{"clusterName":"h2"}`))
		got, err := client.NamespaceInfo(t.Context(), "pulsar/system")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", answer, diff)
		}
	}
	f.on(path, reason(404, "Namespace does not exist"))
	if _, err := client.NamespaceInfo(t.Context(), "pulsar/system"); !errors.Is(err, admin.NotFound) {
		t.Error(err)
	}
	f.on(path, text(200, "[]"))
	if _, err := client.NamespaceInfo(t.Context(), "pulsar/system"); !errors.Is(err, admin.BadAnswer) {
		t.Error(err)
	}
}

func TestTopicInfo(t *testing.T) {
	const base = "GET /admin/v2/persistent/pulsar/system/x"
	for _, x := range []struct {
		name, partitions, stats string
		want                    admin.TopicInfo
	}{
		{"stands", `{"partitions":0}`, `{"numberOfEntries":12}`, admin.TopicInfo{Exists: true, Entries: 12}},
		{"partitioned", `{"partitions":3}`, "", admin.TopicInfo{Exists: true, Partitions: 3}},
		{"missing", "", "", admin.TopicInfo{}},
		{"missing, with an empty answer about partitions", `{"partitions":0}`, "", admin.TopicInfo{}},
	} {
		f := newFake(t)
		for path, answer := range map[string]string{base + "/partitions": x.partitions, base + "/internalStats": x.stats} {
			if answer == "" {
				f.on(path, reason(404, "Topic not found"))
			} else {
				f.on(path, text(200, answer))
			}
		}
		client := newClient(t, admin.Options{Retries: -1}, f.URL)
		if got, err := client.TopicInfo(t.Context(), "persistent://pulsar/system/x"); err != nil || got != x.want {
			t.Errorf("%s: %+v, %v; want %+v", x.name, got, err, x.want)
		}
	}
	f := newFake(t).on(base+"/partitions", reason(404, "")).on(base+"/internalStats", reason(500, "broken"))
	client := newClient(t, admin.Options{Retries: -1}, f.URL)
	if got, err := client.TopicInfo(t.Context(), "persistent://pulsar/system/x"); err == nil || got.Exists {
		t.Errorf("%+v, %v; want the broker's error", got, err)
	}
	if _, err := client.TopicInfo(t.Context(), "x"); !errors.Is(err, admin.BadRequest) {
		t.Error(err)
	}
}
