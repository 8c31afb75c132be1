package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ballast-lb/ballast/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFormsAreEqual reads the same settings from every form of file.
func TestFormsAreEqual(t *testing.T) {
	want := settings.Defaults()
	want.LoadBalancerEnabled = false
	want.MaxUnloadPercentage = 0.35
	want.MinUnloadMessageThroughput = 1000
	want.LoadBalanceSheddingDelayInSeconds = 9007199254740993
	want.LoadBalancerSheddingExcludedNamespaces = []string{"public/a", "public/b"}
	for name, text := range map[string]string{
		"x.conf":       "loadBalancerEnabled=false\nmaxUnloadPercentage = 0.35\nminUnloadMessageThroughput=1000\nloadBalanceSheddingDelayInSeconds=9007199254740993\nloadBalancerSheddingExcludedNamespaces=public/a, public/b\nballastMode=observe\n",
		"x.properties": "loadBalancerEnabled: false\nmaxUnloadPercentage: 0.35\nminUnloadMessageThroughput: 1000\nloadBalanceSheddingDelayInSeconds: 9007199254740993\nloadBalancerSheddingExcludedNamespaces: public/a,\\\n  public/b\nballastMode observe",
		"x.yaml":       "loadBalancerEnabled: false\nmaxUnloadPercentage: 0.35\nminUnloadMessageThroughput: 1e3\nloadBalanceSheddingDelayInSeconds: 9007199254740993\nloadBalancerSheddingExcludedNamespaces:\n  - public/a\n  - public/b\nballastMode: observe\n",
		"x.YML":        "{loadBalancerEnabled: 'false', maxUnloadPercentage: 0.35, minUnloadMessageThroughput: 1000, loadBalanceSheddingDelayInSeconds: 9007199254740993, loadBalancerSheddingExcludedNamespaces: 'public/a,public/b', ballastMode: observe}",
		"x.json":       `{"loadBalancerEnabled":false,"maxUnloadPercentage":0.35,"minUnloadMessageThroughput":1e3,"loadBalanceSheddingDelayInSeconds":9007199254740993,"loadBalancerSheddingExcludedNamespaces":["public/a","public/b"],"ballastMode":"observe"}`,
	} {
		layer, err := File(write(t, name, text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		l, err := settings.Resolve("4.2.4", layer)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, l.Settings); diff != "" || l.Ballast.BallastMode != "observe" {
			t.Errorf("%s: mode %s (-want +got):\n%s", name, l.Ballast.BallastMode, diff)
		}
	}
}

func TestOtherPeoplesFiles(t *testing.T) {
	broker, err := BrokerConf(write(t, "broker.conf", "zookeeperServers=zk:2181\nloadBalancerOverrideBrokerNicSpeedGbps=\nbrokerServicePort=6650\nmaxUnloadPercentage=0.5\ntlsTrustCertsFilePath=/broker\n"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := ClientConf(write(t, "client.conf", "webServiceUrl=http://admin:8080\nbrokerServiceUrl=pulsar://broker:6650\nauthPlugin=\ntlsTrustStoreType=JKS\n"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := settings.Resolve("4.2.4", broker, client)
	if err != nil {
		t.Fatal(err)
	}
	if l.Settings.MaxUnloadPercentage != 0.5 || l.Ballast.ServiceURL != "pulsar://broker:6650" || l.Ballast.WebServiceURL != "http://admin:8080" || l.Ballast.TLSTrustCertsFilePath != "" {
		t.Errorf("maxUnloadPercentage %v, connection %+v", l.Settings.MaxUnloadPercentage, l.Ballast)
	}
}

func TestBadFiles(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"x.toml", "a=1", "it must end in .conf, .properties, .yaml, .yml or .json"},
		{"x", "a=1", `its name ends in ""`},
		{"x.conf", "a=\\u1", "it must be u and four hexadecimal digits"},
		{"x.yaml", "a: [1", "read configuration file"},
		{"x.yaml", "minUnloadMessage: 1\nminUnloadMessage: 2\n", "already defined"},
		{"x.yaml", "- a\n", "read configuration file"},
		{"x.yaml", "loadBalancerEnabled:\n", "loadBalancerEnabled: it must be a text, a number, true, false, or a list of these"},
		{"x.yaml", "loadBalancer:\n  enabled: true\n", "loadBalancer: it must be a text"},
		{"x.yaml", "ballastRepairs: [[a]]\n", "ballastRepairs: it must be a text"},
		{"x.yaml", "ballastRepairs: ['a,b']\n", `list item "a,b" must not hold a comma`},
		{"x.json", `{"a":1}{}`, "there is more after the JSON object"},
		{"x.json", `{"a":1,"a":2}`, `key "a" occurs twice`},
		{"x.json", `[1]`, "it must be one JSON object"},
		{"x.json", ``, "EOF"},
		{"x.json", `{"minUnloadMessage":1e999}`, "minUnloadMessage: number 1e999"},
	} {
		_, err := File(write(t, c.name, c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s %q: %v, want %s", c.name, c.text, err, c.want)
		}
	}
	for _, name := range []string{"missing.conf", "missing.yaml"} {
		if _, err := File(filepath.Join(t.TempDir(), name)); err == nil || !strings.Contains(err.Error(), "read configuration file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
