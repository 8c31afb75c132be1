package settings

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var rewrite = flag.Bool("rewrite-docs", false, "write docs/configuration.md anew")

func TestReferenceIsTheDocument(t *testing.T) {
	const path = "../docs/configuration.md"
	if *rewrite {
		if err := os.WriteFile(path, []byte(Reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Reference(), string(got)); diff != "" {
		t.Errorf("%s is out of date; go test ./settings -run Reference -rewrite-docs writes it (-code +file):\n%s", path, diff)
	}
}

// TestTags holds the tables to their own rules: names, types that fit the fields, parsable ranges and defaults, documents.
func TestTags(t *testing.T) {
	types := map[Type]reflect.Type{
		TypeString: reflect.TypeFor[string](), TypeBoolean: reflect.TypeFor[bool](), TypeInt: reflect.TypeFor[int64](),
		TypeLong: reflect.TypeFor[int64](), TypeDouble: reflect.TypeFor[float64](), TypeList: reflect.TypeFor[[]string](),
		TypeDuration: reflect.TypeOf(DefaultBallast().BallastCycleInterval),
	}
	names, variables := map[string]bool{}, map[string]string{}
	check := func(k Key, f reflect.StructField) {
		t.Helper()
		if names[k.Name] || names[k.Alias] {
			t.Errorf("%s: the name or alias occurs twice", k.Name)
		}
		names[k.Name] = true
		if k.Alias != "" {
			names[k.Alias] = true
		}
		if other := variables[k.Variable()]; other != "" {
			t.Errorf("%s and %s have one environment variable, %s", k.Name, other, k.Variable())
		}
		variables[k.Variable()] = k.Name
		if serviceVariable.MatchString(k.Variable()) {
			t.Errorf("%s: its environment variable %s would be taken for one of Kubernetes", k.Name, k.Variable())
		}
		if types[k.Type] != f.Type {
			t.Errorf("%s: type %q does not fit field type %s", k.Name, k.Type, f.Type)
		}
		if k.Doc == "" || k.Group == "" || strings.Contains(k.Doc, "|") {
			t.Errorf("%s: doc %q and group %q must be there and fit into a table", k.Name, k.Doc, k.Group)
		}
		if k.Range != "" && !strings.Contains(k.Range, "..") {
			t.Errorf("%s: range %q must be least..most", k.Name, k.Range)
		}
	}
	for i, k := range Keys() {
		f := reflect.TypeFor[Settings]().Field(i)
		check(k, f)
		if want := strings.ToUpper(k.Name[:1]) + k.Name[1:]; f.Name != want {
			t.Errorf("%s: field is %s, not %s", k.Name, f.Name, want)
		}
		if strings.Trim(k.Users, "SMXH") != "" || k.Users == "" || k.Own() {
			t.Errorf("%s: users %q, own %t", k.Name, k.Users, k.Own())
		}
		switch k.Change {
		case ChangeNow, ChangeMixed, ChangeStart, ChangeRestart:
		default:
			t.Errorf("%s: change %q", k.Name, k.Change)
		}
	}
	for i, k := range BallastKeys() {
		check(k, reflect.TypeFor[Ballast]().Field(i))
		if !k.Own() || k.Dynamic() {
			t.Errorf("%s: own %t, dynamic %t", k.Name, k.Own(), k.Dynamic())
		}
	}
}

// TestDynamicKeys compares with what a broker lists as dynamic: GET /admin/v2/brokers/configuration.
func TestDynamicKeys(t *testing.T) {
	text, err := os.ReadFile("testdata/dynamic-config-names.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, name := range strings.Fields(string(text)) {
		listed[name] = true
		k, ok := Lookup(name)
		if !ok {
			t.Errorf("the broker's dynamic key %s is no setting", name)
		} else if !k.Dynamic() {
			t.Errorf("%s is dynamic, not %q", name, k.Change)
		}
	}
	for _, k := range Keys() {
		if strings.HasPrefix(k.Name, "loadBalanc") && k.Dynamic() && !listed[k.Name] {
			t.Errorf("%s is not dynamic: the broker does not list it", k.Name)
		}
	}
}

func TestDefaultsOfPulsar5(t *testing.T) {
	got := map[string][2]string{}
	four, five := DefaultsOf("4.2.4"), DefaultsOf("5.0.1")
	for _, k := range Keys() {
		a, _ := Get(four, k.Name)
		b, _ := Get(five, k.Name)
		if a != b {
			got[k.Name] = [2]string{short(a), short(b)}
		}
		if k.DefaultOf("5.0.1") != k.Default5 || k.DefaultOf("4.0.7") != k.Default {
			t.Errorf("%s: DefaultOf disagrees with its table", k.Name)
		}
	}
	want := map[string][2]string{
		"loadBalancerLoadSheddingStrategy":           {"ThresholdShedder", "AvgShedder"},
		"loadBalancerLoadPlacementStrategy":          {"LeastLongTermMessageRate", "AvgShedder"},
		"loadBalancerDistributeBundlesEvenlyEnabled": {"true", "false"},
		"maxUnloadPercentage":                        {"2", "5"}, // 0.2 and 0.5, after the point
		"defaultNumberOfNamespaceBundles":            {"4", "32"},
		"internalListenerName":                       {"", "internal"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what differs between the defaults of 4.2.4 and 5.0.1 (-want +got):\n%s", diff)
	}
	for version, same := range map[string]string{"": "4.2.4", "4.0.7": "4.2.4", "nonsense": "4.2.4", "5.1.0-rc.1": "5.0.1", "10": "5.0.1"} {
		if diff := cmp.Diff(DefaultsOf(same), DefaultsOf(version)); diff != "" {
			t.Errorf("defaults of %q are not those of %s:\n%s", version, same, diff)
		}
	}
}

func TestSetBadInput(t *testing.T) {
	for _, c := range []struct{ key, text, want string }{
		{"loadBalancerSheddingDelayInSeconds", "1", `unknown key "loadBalancerSheddingDelayInSeconds": did you mean loadBalanceSheddingDelayInSeconds?`},
		{"loadBalancerCpuResourceWeight", "1", `unknown key "loadBalancerCpuResourceWeight": did you mean loadBalancerCPUResourceWeight?`},
		{"maxUnloadPercentge", "1", `unknown key "maxUnloadPercentge": did you mean maxUnloadPercentage?`},
		{"", "1", `unknown key ""`},
		{"zookeeperServers", "x", `unknown key "zookeeperServers"`},
		{strings.Repeat("loadBalancer", 100), "x", `unknown key "` + strings.Repeat("loadBalancer", 100) + `"`},
		{"loadBalancerPlacementStrategy", "org.apache.pulsar.broker.loadbalance.impl.AvgShedder",
			`loadBalancerPlacementStrategy is "org.apache.pulsar.broker.loadbalance.impl.AvgShedder": it must be one of leastLoadedServer, leastMsgPerSecond, weightedRandomSelection; strategy classes of the Modular manager belong to loadBalancerLoadPlacementStrategy`},
		{"loadBalancerPlacementStrategy", "leastLoadedServers",
			`loadBalancerPlacementStrategy is "leastLoadedServers": it must be one of leastLoadedServer, leastMsgPerSecond, weightedRandomSelection; did you mean leastLoadedServer?`},
		{"loadBalancerEnabled", "yes", `loadBalancerEnabled is "yes": it must be true or false`},
		{"loadBalancerEnabled", "", `loadBalancerEnabled is "": it must be true or false`},
		{"maxUnloadPercentage", "20", `maxUnloadPercentage is "20": it must be a number from 0 to 1`},
		{"maxUnloadPercentage", "NaN", `maxUnloadPercentage is "NaN": it must be a finite number from 0 to 1`},
		{"maxUnloadPercentage", "Infinity", `maxUnloadPercentage is "Infinity": it must be a finite number from 0 to 1`},
		{"maxUnloadPercentage", "0x1p-2", `maxUnloadPercentage is "0x1p-2": it must be a finite number from 0 to 1`},
		{"maxUnloadPercentage", "1e999", `maxUnloadPercentage is "1e999": it must be a finite number from 0 to 1`},
		{"loadBalancerSheddingIntervalMinutes", "0", `loadBalancerSheddingIntervalMinutes is "0": it must be a whole number of at least 1`},
		{"loadBalancerSheddingGracePeriodMinutes", "-1", `loadBalancerSheddingGracePeriodMinutes is "-1": it must be a whole number of at least 0`},
		{"loadBalancerBrokerOverloadedThresholdPercentage", "101", `loadBalancerBrokerOverloadedThresholdPercentage is "101": it must be a whole number from 0 to 100`},
		{"loadBalancerBrokerOverloadedThresholdPercentage", "85%", `loadBalancerBrokerOverloadedThresholdPercentage is "85%": it must be a whole number from 0 to 100`},
		{"loadBalancerBrokerMaxTopics", "2147483648", `loadBalancerBrokerMaxTopics is "2147483648": it must be a whole number of 32 bits, at most 2147483647`},
		{"loadBalanceSheddingDelayInSeconds", "9223372036854775808", `loadBalanceSheddingDelayInSeconds is "9223372036854775808": it must be a whole number of at least 0`},
		{"supportedNamespaceBundleSplitAlgorithms", "[range_equally_divide, halves]",
			`supportedNamespaceBundleSplitAlgorithms is "[range_equally_divide, halves]": it must be one of range_equally_divide, topic_count_equally_divide, specified_positions_divide, flow_or_qps_equally_divide`},
		{"loadBalancerServiceUnitTableViewSyncer", "none", `loadBalancerServiceUnitTableViewSyncer is "none": it must be one of None, MetadataStoreToSystemTopicSyncer, SystemTopicToMetadataStoreSyncer; did you mean None?`},
		{"ballastMode", "govern", `key "ballastMode" belongs elsewhere: it is a key of Ballast`},
	} {
		s := Defaults()
		err := Set(s, c.key, c.text)
		if err == nil || err.Error() != c.want {
			t.Errorf("Set(%.60q, %q):\n got %v\nwant %s", c.key, c.text, err, c.want)
		}
		if diff := cmp.Diff(Defaults(), s); diff != "" {
			t.Errorf("Set(%.60q, %q) failed but changed something:\n%s", c.key, c.text, diff)
		}
	}
	for _, c := range []struct{ key, text, want string }{
		{"ballastMode", "obey", `ballastMode is "obey": it must be one of observe, advise, govern`},
		{"ballastCycleInterval", "60", `ballastCycleInterval is "60": it must be a duration with a unit, such as 30s or 5m of at least 1s`},
		{"ballastCycleInterval", "10ms", `ballastCycleInterval is "10ms": it must be a duration of at least 1s`},
		{"ballastModes", "govern", `unknown key "ballastModes": did you mean ballastMode?`},
		{"loadBalancerEnabled", "true", `key "loadBalancerEnabled" belongs elsewhere: it is a key of broker.conf`},
	} {
		if err := SetBallast(DefaultBallast(), c.key, c.text); err == nil || err.Error() != c.want {
			t.Errorf("SetBallast(%q, %q):\n got %v\nwant %s", c.key, c.text, err, c.want)
		}
	}
}

func TestSetGoodInput(t *testing.T) {
	s := Defaults()
	for key, text := range map[string]string{
		"loadBalancerEnabled": " FALSE ", "maxUnloadPercentage": "1e-1", "loadBalancerSheddingExcludedNamespaces": "[a/b, c/d]",
		"loadBalancerOverrideBrokerNics": "", "loadBalancerNamespaceBundleMaxSessions": "-5", "maxUnloadBundleNumPerShedding": "-1",
	} {
		if err := Set(s, key, text); err != nil {
			t.Error(err)
		}
	}
	want := Defaults()
	want.LoadBalancerEnabled, want.MaxUnloadPercentage = false, 0.1
	want.LoadBalancerSheddingExcludedNamespaces = []string{"a/b", "c/d"}
	want.LoadBalancerNamespaceBundleMaxSessions = -5
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGetReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Defaults()
		k := rapid.SampledFrom(Keys()).Draw(t, "key")
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`-?[0-9]{1,11}(\.[0-9]+)?`), rapid.Just("true"), rapid.StringMatching(`\[?[a-z/]+, ?[a-z]+\]?`)).Draw(t, "text")
		if Set(s, k.Name, text) != nil {
			if diff := cmp.Diff(Defaults(), s); diff != "" {
				t.Fatalf("a failed Set changed something:\n%s", diff)
			}
			return
		}
		shown, ok := Get(s, k.Name)
		again := Defaults()
		if err := Set(again, k.Name, shown); !ok || err != nil {
			t.Fatalf("Get gave %q, %t, which Set does not read: %v", shown, ok, err)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Fatalf("%q came back otherwise (-set +read back):\n%s", text, diff)
		}
	})
}

func TestSuggest(t *testing.T) {
	for _, k := range Keys() {
		for _, typo := range []string{k.Name[:len(k.Name)-1], "x" + k.Name, strings.ToLower(k.Name)} {
			got, known := Suggest(typo), false
			_, known = Lookup(typo)
			if !known && (got == "" || distance(strings.ToLower(typo), strings.ToLower(got)) > 1) {
				t.Errorf("Suggest(%q) = %q", typo, got)
			}
		}
	}
	if got := Suggest("completelyDifferent"); got != "" {
		t.Errorf("Suggest(completelyDifferent) = %q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b"), rapid.String().Draw(t, "c")
		if d := distance(a, b); d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Fatalf("distance(%q, %q) = %d", a, b, d)
		}
		if distance(a, b) > distance(a+c, b+c)+2*len(c) {
			t.Fatalf("a common end %q made %q and %q nearer than it can", c, a, b)
		}
	})
}

// TestRuntimeConfig lays what a real 4.2.4 broker reports over the defaults.
func TestRuntimeConfig(t *testing.T) {
	l, err := Resolve("4.2.4", runtimeLayer(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Notes) > 0 {
		t.Errorf("notes: %v", l.Notes)
	}
	want := Defaults()
	want.LoadManagerClassName = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
	want.LoadBalancerLoadSheddingStrategy = "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder"
	want.LoadBalancerReportUpdateMaxIntervalMinutes = 1
	want.LoadBalancerDebugModeEnabled = true
	if diff := cmp.Diff(want, l.Settings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, p := range l.Check() {
		t.Errorf("unexpected problem: %s", p)
	}
}

func runtimeLayer(t *testing.T) Layer {
	t.Helper()
	text, err := os.ReadFile("testdata/runtime_config.json")
	if err != nil {
		t.Fatal(err)
	}
	var runtime map[string]string
	if err := json.Unmarshal(text, &runtime); err != nil {
		t.Fatal(err)
	}
	return ClusterLayer("broker", runtime)
}
