package diagnose_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/diagnose"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/watch"
)

const extensible = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"

// healthy is a cluster of which nothing bad is to be said.
func healthy() diagnose.Facts {
	config := map[string]string{"loadBalancerSheddingEnabled": "true", "loadBalancerServiceUnitTableViewSyncer": "None"}
	return diagnose.Facts{
		Brokers: []cluster.Broker{{ID: "a:8080", Version: "4.2.4", LoadManager: extensible}, {ID: "b:8080", Version: "4.2.4", LoadManager: extensible}},
		Configs: map[string]map[string]string{"a:8080": config, "b:8080": config}, Version: "4.2.4", Cluster: "c", Replicated: []string{"c"},
		Probes:  []diagnose.Probe{{What: "read brokers", Needed: "observe"}, {What: "unload bundles", Needed: "govern"}},
		Schemas: []diagnose.Schema{{Topic: "load", Class: "BrokerLoadData", Versions: []diagnose.SchemaVersion{{Type: "JSON", Definition: event.SchemasOf("BrokerLoadData")[0].Definition}}}},
		Clocks:  []diagnose.Clock{{Broker: "a:8080", Ahead: 400, Uncertain: 500}}, Watched: 10_000, Bundles: 5, Mode: "advise",
		Shedders: []string{"org.example.Known"},
	}
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*diagnose.Facts)
		want   []string // "severity CODE about"; the rest is ok
		text   string   // in one of the sentences
	}{
		{name: "healthy", change: func(*diagnose.Facts) {}},
		{name: "no brokers", change: func(f *diagnose.Facts) { f.Brokers = nil }, want: []string{"error NO_BROKER"}},
		{name: "a silent broker", change: func(f *diagnose.Facts) { f.Silent = map[string]string{"b:8080": "refused"} },
			want: []string{"error BROKER_SILENT b:8080"}, text: "does not answer: refused"},
		{name: "mixed versions", change: func(f *diagnose.Facts) { f.Brokers[1].Version = "5.0.1" },
			want: []string{"warning VERSIONS_MIXED"}, text: "4.2.4 (1), 5.0.1 (1)"},
		{name: "untested", change: func(f *diagnose.Facts) { f.Brokers[0].Version, f.Brokers[1].Version = "4.20.0", "4.20.0" },
			want: []string{"warning VERSION_UNTESTED 4.20.0"}, text: "tested are 4.2 and 5.0"},
		{name: "mixed managers", change: func(f *diagnose.Facts) { f.Brokers[1].LoadManager = "x.ModularLoadManagerImpl" },
			want: []string{"error LOAD_MANAGERS_MIXED"}, text: "ExtensibleLoadManagerImpl (1), ModularLoadManagerImpl (1)"},
		{name: "settings", change: func(f *diagnose.Facts) {
			f.Problems = []settings.Problem{{Severity: settings.Warning, Code: "NO_WEIGHT", Keys: []string{"k1", "k2"}, Text: "all 0"}, {Severity: settings.Error, Code: "ADDRESS", Keys: []string{"serviceUrl"}, Text: "wrong"}}
		}, want: []string{"error ADDRESS serviceUrl", "warning NO_WEIGHT k1, k2"}, text: "all 0"},
		{name: "brokers differ", change: func(f *diagnose.Facts) {
			f.Configs["b:8080"] = map[string]string{"loadBalancerSheddingEnabled": "true", "loadBalancerServiceUnitTableViewSyncer": "None", "loadBalancerOverrideBrokerNicSpeedGbps": "1", "loadBalancerBrokerLoadTargetStd": "0.1", "advertisedAddress": "b"}
			f.Configs["a:8080"] = map[string]string{"loadBalancerSheddingEnabled": "true", "loadBalancerServiceUnitTableViewSyncer": "None", "loadBalancerOverrideBrokerNicSpeedGbps": "2", "loadBalancerBrokerLoadTargetStd": "0.2", "advertisedAddress": "a"}
		}, want: []string{"warning CONFIG_DIFFERS loadBalancerBrokerLoadTargetStd"}, text: "0.1 on b:8080; 0.2 on a:8080"},
		{name: "an address of nobody", change: func(f *diagnose.Facts) { f.Addressed = []string{"a:8080", "x:8080"} },
			want: []string{"warning BROKER_ADDRESS_UNKNOWN ballastBrokerAddresses"}, text: "names x:8080, which is no registered broker: they are a:8080, b:8080"},
		{name: "no ZooKeeper", change: func(f *diagnose.Facts) { f.Keeper = "refused" },
			want: []string{"warning ZOOKEEPER_UNREADABLE ballastZooKeeper"}, text: "ballastZooKeeper names: refused"},
		{name: "dangerous leftovers", change: func(f *diagnose.Facts) {
			f.Dynamic = map[string]string{"loadManagerClassName": extensible, "loadBalancerLoadSheddingStrategy": "org.example.Gone", "loadBalancerAutoBundleSplitEnabled": "false"}
		}, want: []string{"warning DYNAMIC_LOAD_MANAGER loadManagerClassName", "warning DYNAMIC_UNKNOWN_STRATEGY loadBalancerLoadSheddingStrategy", "info SPLITTING_OFF loadBalancerAutoBundleSplitEnabled"}, text: "org.example.Gone"},
		{name: "a known strategy", change: func(f *diagnose.Facts) {
			f.Dynamic = map[string]string{"loadBalancerLoadSheddingStrategy": "org.example.Known"}
		}},
		{name: "nobody balances", change: func(f *diagnose.Facts) { f.Configs["a:8080"]["loadBalancerSheddingEnabled"] = "false" },
			want: []string{"warning NOBODY_BALANCES loadBalancerSheddingEnabled"}},
		{name: "Ballast balances", change: func(f *diagnose.Facts) { f.Configs["a:8080"]["loadBalancerSheddingEnabled"], f.Acting = "false", 1 }},
		{name: "a syncer", change: func(f *diagnose.Facts) {
			f.Configs["a:8080"]["loadBalancerServiceUnitTableViewSyncer"] = "SystemTopicToMetadataStoreSyncer"
		}, want: []string{"warning TABLE_VIEW_SYNCER loadBalancerServiceUnitTableViewSyncer"}},
		{name: "a take-over left behind", change: func(f *diagnose.Facts) {
			f.Left = &diagnose.Left{Instance: "i", At: 7, Keys: []string{"k"}}
			f.Configs["a:8080"]["loadBalancerSheddingEnabled"] = "false"
		}, want: []string{"error TAKE_OVER_LEFT i"}},
		{name: "a take-over in force", change: func(f *diagnose.Facts) { f.Left, f.Acting = &diagnose.Left{Instance: "i", Keys: []string{"k"}}, 1 },
			want: []string{"info TAKE_OVER_IN_FORCE i"}},
		{name: "two locks", change: func(f *diagnose.Facts) { f.Acting = 2 }, want: []string{"error SEVERAL_LOCKS"}},
		{name: "replicated", change: func(f *diagnose.Facts) { f.Replicated = []string{"c", "far"} },
			want: []string{"error SYSTEM_NAMESPACE_REPLICATED pulsar/system"}, text: "replicated to far:"},
		{name: "denied", change: func(f *diagnose.Facts) {
			f.Mode, f.Probes[1].Denied = "govern", "403"
		}, want: []string{"error PERMISSION_DENIED unload bundles"}},
		{name: "denied but not needed", change: func(f *diagnose.Facts) { f.Probes[1].Denied = "403" }, want: []string{"info PERMISSION_MISSING unload bundles"}},
		{name: "foreign schema", change: func(f *diagnose.Facts) {
			f.Schemas[0].Versions = append([]diagnose.SchemaVersion{{Version: 0, Type: "BYTES"}}, f.Schemas[0].Versions...)
		}, want: []string{"warning SCHEMA_FOREIGN load"}},
		{name: "unknown schema", change: func(f *diagnose.Facts) {
			f.Schemas[0].Versions = append(f.Schemas[0].Versions, diagnose.SchemaVersion{Version: 1, Type: "JSON", Definition: `{"type":"record"}`})
		}, want: []string{"warning SCHEMA_UNKNOWN load"}},
		{name: "a schema of another form", change: func(f *diagnose.Facts) {
			f.Schemas[0].Versions[0].Definition = strings.ReplaceAll(f.Schemas[0].Versions[0].Definition, ",", ", ")
		}},
		{name: "clock behind", change: func(f *diagnose.Facts) { f.Clocks[0].Ahead = -6000 }, want: []string{"warning CLOCK_OFF a:8080"}, text: "6 s behind (give or take 0.5 s)"},
		{name: "clock just right", change: func(f *diagnose.Facts) { f.Clocks[0].Ahead = 5500 }},
		{name: "anomalies", change: func(f *diagnose.Facts) {
			f.Anomalies = []watch.Anomaly{{Severity: watch.Warning, Producer: "p", Why: plan.Reason{Code: "W"}}, {Severity: watch.Error, Bundle: "x", Why: plan.Reason{Code: "E"}}}
		}, want: []string{"error E x", "warning W p"}},
		{name: "no ownership log", change: func(f *diagnose.Facts) { f.NoLog, f.Watched = "x.ModularLoadManagerImpl", 0 }, text: "ModularLoadManagerImpl keeps no ownership log"},
		{name: "not checked", change: func(f *diagnose.Facts) {
			f.Unchecked = []diagnose.Unchecked{{Area: diagnose.Clocks, About: "b:8080", Error: "hangs"}}
		}, want: []string{"error NOT_CHECKED b:8080"}, text: "hangs"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := healthy()
			f.Configs["b:8080"] = map[string]string{}
			tc.change(&f)
			var got, texts []string
			areas := map[string]bool{}
			for _, x := range diagnose.Check(f) {
				areas[x.Area] = true
				texts = append(texts, x.Why.String())
				if x.Severity != diagnose.OK {
					got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", x.Severity, x.Why.Code, x.About)))
				}
				if strings.Contains(x.Why.Text, "{") {
					t.Errorf("a number is missing in %q", x.Why.Text)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, tc.text) }) {
				t.Errorf("no sentence has %q: %q", tc.text, texts)
			}
			for _, area := range diagnose.Areas {
				if !areas[area] {
					t.Errorf("nothing is said about %s", area)
				}
			}
		})
	}
}

func TestWorst(t *testing.T) {
	for _, tc := range []struct {
		list []diagnose.Severity
		want diagnose.Severity
	}{{nil, diagnose.OK}, {[]diagnose.Severity{diagnose.OK, diagnose.Info}, diagnose.Info},
		{[]diagnose.Severity{diagnose.Warning, diagnose.Info}, diagnose.Warning}, {[]diagnose.Severity{diagnose.Warning, diagnose.Error, diagnose.OK}, diagnose.Error}} {
		var list []diagnose.Finding
		for _, s := range tc.list {
			list = append(list, diagnose.Finding{Severity: s})
		}
		if got := diagnose.Worst(list); got != tc.want {
			t.Errorf("the worst of %v is %s", tc.list, got)
		}
	}
}
