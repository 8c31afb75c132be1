package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fileLayer(scope Scope, pairs ...string) Layer {
	l := Layer{Origin: OriginFile, Scope: scope}
	for i := 0; i+1 < len(pairs); i += 2 {
		l.Entries = append(l.Entries, Entry{Key: pairs[i], Text: pairs[i+1], Where: "f.conf:" + string(rune('1'+i/2))})
	}
	return l
}

func TestLaterOriginsWin(t *testing.T) {
	environment, err := Environment([]string{"PATH=/bin", "PULSAR_PREFIX_maxUnloadPercentage=0.4", "PULSAR_PREFIX_minUnloadMessage=4",
		"PULSAR_PREFIX_zookeeperServers=zk", "BALLAST_MIN_UNLOAD_MESSAGE=5", "BALLAST_MODE=observe", "BALLAST_CONFIG=x.yaml"}, "BALLAST_CONFIG")
	if err != nil {
		t.Fatal(err)
	}
	flags := Layer{Origin: OriginFlag, Entries: []Entry{{Key: "ballastMode", Text: "govern", Where: "--mode"}, {Key: "token", Text: "s3cret", Where: "--token"}}}
	layers := append([]Layer{flags, fileLayer(ScopeAll, "minUnloadMessage", "3", "adminUrl", "http://file:8080"),
		ClusterLayer("b:8080", map[string]string{"maxUnloadPercentage": "0.3", "loadBalanceSheddingDelayInSeconds": "7", "zookeeperServers": "zk",
			"tlsTrustCertsFilePath": "/on/the/broker", "loadBalancerOverrideBrokerNicSpeedGbps": "Optional[2.5]"})}, environment...)
	l, err := Resolve("4.2.4", layers...) // given in another order than they count
	if err != nil {
		t.Fatal(err)
	}
	type got struct {
		Text, Where string
		Origin      Origin
	}
	values := map[string]got{}
	for _, v := range l.Values() {
		if v.Origin != OriginDefault {
			values[v.Key.Name] = got{v.Text, v.Where, v.Origin}
		}
	}
	want := map[string]got{
		"maxUnloadPercentage":                    {"0.4", "PULSAR_PREFIX_maxUnloadPercentage", OriginEnvironment},
		"minUnloadMessage":                       {"5", "BALLAST_MIN_UNLOAD_MESSAGE", OriginEnvironment},
		"loadBalanceSheddingDelayInSeconds":      {"7", "b:8080", OriginCluster},
		"loadBalancerOverrideBrokerNicSpeedGbps": {"2.5", "b:8080", OriginCluster},
		"ballastMode":                            {"govern", "--mode", OriginFlag},
		"token":                                  {"***", "--token", OriginFlag},
		"webServiceUrl":                          {"http://file:8080", "f.conf:2", OriginFile},
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if l.Ballast.Token != "s3cret" || l.Settings.MinUnloadMessage != 5 || l.Ballast.WebServiceURL != "http://file:8080" {
		t.Errorf("values did not arrive: %+v", l.Ballast)
	}
	if v, ok := l.Value("adminUrl"); !ok || v.Key.Name != "webServiceUrl" || v.Text != "http://file:8080" {
		t.Errorf("by alias: %+v, %t", v, ok)
	}
	if v, ok := l.Value("maxUnloadBundleNumPerShedding"); !ok || v.Origin != OriginDefault || v.Text != "-1" {
		t.Errorf("a default: %+v, %t", v, ok)
	}
}

func TestResolveErrors(t *testing.T) {
	cluster := func(key, text string) Layer { return ClusterLayer("b:8080", map[string]string{key: text}) }
	for _, c := range []struct {
		name  string
		layer Layer
		want  []string // the lines of the error
	}{
		{"all faults at once", fileLayer(ScopeAll, "loadBalancerSheddingDelayInSeconds", "1", "maxUnloadPercentage", "2", "zookeeperServers", "zk"), []string{
			`f.conf:1: unknown key "loadBalancerSheddingDelayInSeconds": did you mean loadBalanceSheddingDelayInSeconds?`,
			`f.conf:2: maxUnloadPercentage is "2": it must be a number from 0 to 1`,
			`f.conf:3: unknown key "zookeeperServers"`}},
		{"twice in one file", fileLayer(ScopeAll, "minUnloadMessage", "1", "minUnloadMessage", "2"), []string{
			`f.conf:2: minUnloadMessage is set twice: "1" at f.conf:1, then "2"`}},
		{"name and alias", fileLayer(ScopeAll, "webServiceUrl", "http://a", "adminUrl", "http://b"), []string{
			`f.conf:2: webServiceUrl is set twice: "http://a" at f.conf:1, then "http://b"`}},
		{"a secret twice", fileLayer(ScopeAll, "token", "abc", "token", "def"), []string{`f.conf:2: token is set twice: "***" at f.conf:1, then "***"`}},
		{"misspelt in a broker.conf", fileLayer(ScopeBroker, "zookeeperServers", "zk", "maxUnloadPercentge", "1", "loadBalancerFoo", "1"), []string{
			`f.conf:2: unknown key "maxUnloadPercentge": did you mean maxUnloadPercentage?`,
			`f.conf:3: unknown key "loadBalancerFoo"`}},
		{"Ballast's key in a broker.conf", fileLayer(ScopeBroker, "ballastMode", "govern"), []string{
			`f.conf:1: key "ballastMode" does not belong in a broker.conf: put it into Ballast's own file`}},
		{"misspelt in a client.conf", fileLayer(ScopeClient, "authPlugins", "x"), []string{
			`f.conf:1: unknown key "authPlugins": did you mean authPlugin?`}},
		{"a broker's value that cannot be read", cluster("minUnloadMessage", "many"), []string{
			`b:8080: minUnloadMessage is "many": it must be a whole number of at least 0`}},
	} {
		_, err := Resolve("4.2.4", c.layer)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		if diff := cmp.Diff(c.want, strings.Split(err.Error(), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if _, err := Resolve("latest"); err == nil || err.Error() != `version of Pulsar is "latest": it must be like 4.2.4` {
		t.Errorf("bad version: %v", err)
	}
}

func TestResolveNotes(t *testing.T) {
	l, err := Resolve("4.2.4",
		ClusterLayer("b:8080", map[string]string{"maxUnloadPercentage": "2.0", "loadBalancerNewThing": "1", "loadManagerMigrationEnabled": "true", "tlsKeyFilePath": "k"}),
		fileLayer(ScopeBroker, "minUnloadMessage", "1", "minUnloadMessage", "2", "loadBalancerOverrideBrokerNicSpeedGbps", "", "loadBalancerOverrideBrokerNics", ""))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range l.Notes {
		got = append(got, p.String())
	}
	slices.Sort(got)
	want := []string{
		`warning KEY_TOO_NEW: loadManagerMigrationEnabled has no effect in Pulsar 4.2.4: brokers know it since 5.0.0`,
		`warning SET_TWICE: minUnloadMessage is set twice, the last one counts: "1" at f.conf:1, then "2" at f.conf:2`,
		`warning UNKNOWN_KEY: the cluster has a load-balancing key that is not known: unknown key "loadBalancerNewThing"`,
		`warning VALUE_OUT_OF_RANGE: maxUnloadPercentage is "2.0": it must be a number from 0 to 1; the cluster runs with it`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if l.Settings.MaxUnloadPercentage != 2 || l.Settings.MinUnloadMessage != 2 || l.Ballast.TLSKeyFile != "" {
		t.Errorf("maxUnloadPercentage %v, minUnloadMessage %v, tlsKeyFile %q", l.Settings.MaxUnloadPercentage, l.Settings.MinUnloadMessage, l.Ballast.TLSKeyFile)
	}
}

func TestEnvironment(t *testing.T) {
	_, err := Environment([]string{"BALLAST_MODES=govern", "BALLAST_XYZZY=1", "BALLAST_LOAD_BALANCER_CPU_RESORCE_WEIGHT=1",
		"BALLAST_SERVICE_HOST=10.0.0.1", "BALLAST_SERVICE_PORT=8484", "BALLAST_SERVICE_PORT_HTTP=8484", "BALLAST_PORT=tcp://10.0.0.1:8484",
		"BALLAST_PORT_8484_TCP=tcp://10.0.0.1:8484", "BALLAST_PORT_8484_TCP_ADDR=10.0.0.1", "BALLAST_METRICS_SERVICE_HOST=10.0.0.2"})
	want := "unknown environment variable BALLAST_LOAD_BALANCER_CPU_RESORCE_WEIGHT: did you mean BALLAST_LOAD_BALANCER_CPU_RESOURCE_WEIGHT?\n" +
		"unknown environment variable BALLAST_MODES: did you mean BALLAST_MODE?\n" +
		"unknown environment variable BALLAST_XYZZY: variables that begin with BALLAST_ must name a setting"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for key, want := range map[string]string{
		"loadBalancerBrokerLoadDataTTLInSeconds": "BALLAST_LOAD_BALANCER_BROKER_LOAD_DATA_TTL_IN_SECONDS",
		"loadBalancerCPUResourceWeight":          "BALLAST_LOAD_BALANCER_CPU_RESOURCE_WEIGHT",
		"flowOrQpsDifferenceThresholdPercentage": "BALLAST_FLOW_OR_QPS_DIFFERENCE_THRESHOLD_PERCENTAGE",
		"ballastCPUWeight":                       "BALLAST_CPU_WEIGHT",
		"serviceUrl":                             "BALLAST_SERVICE_URL",
	} {
		if k, ok := Lookup(key); !ok || k.Variable() != want {
			t.Errorf("%s: %s, want %s", key, k.Variable(), want)
		}
	}
}
