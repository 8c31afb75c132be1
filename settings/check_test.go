package settings

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	extensibleClass = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
	transferClass   = "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder"
	avgClass        = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
	uniformClass    = "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"
	simpleClass     = "org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl"
)

func TestCheck(t *testing.T) {
	extensible := []string{"loadManagerClassName", extensibleClass, "loadBalancerLoadSheddingStrategy", transferClass}
	simple := []string{"loadManagerClassName", simpleClass}
	for _, c := range []struct {
		name    string
		version string
		set     []string
		want    []string // "severity CODE"
	}{
		{"defaults of 4", "4.2.4", nil, nil},
		{"defaults of 5", "5.0.1", nil, nil},
		{"extensible", "4.2.4", extensible, nil},
		{"simple", "4.2.4", simple, nil},
		{"extensible with the shipped shedder", "4.2.4", extensible[:2], []string{"warning SHEDDER_OF_OTHER_MANAGER"}},
		{"tombstones too early", "4.2.4", append(extensible, "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds", "29"), []string{"error TOMBSTONE_BEFORE_IN_FLIGHT"}},
		{"tombstones just in time", "4.2.4", append(extensible, "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds", "30"), nil},
		{"tombstones matter to the extensible manager only", "4.2.4", []string{"loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds", "29"}, nil},
		{"TTL below the report interval", "4.2.4", append(extensible, "loadBalancerBrokerLoadDataTTLInSeconds", "899"), []string{"error LOAD_DATA_EXPIRES_BETWEEN_REPORTS"}},
		{"TTL equal to the report interval", "4.2.4", append(extensible, "loadBalancerBrokerLoadDataTTLInSeconds", "900"), nil},
		{"target std above what is possible", "4.2.4", append(extensible, "loadBalancerBrokerLoadTargetStd", "0.5"), []string{"warning TARGET_STD_UNREACHED"}},
		{"hits for longer than the grace period", "4.2.4", append(extensible, "loadBalancerSheddingConditionHitCountThreshold", "30"), []string{"warning HITS_OUTLAST_GRACE_PERIOD"}},
		{"hits within the grace period", "4.2.4", append(extensible, "loadBalancerSheddingConditionHitCountThreshold", "29"), nil},
		{"short cool-down", "4.2.4", append(extensible, "loadBalanceSheddingDelayInSeconds", "59"), []string{"warning COOL_DOWN_BELOW_STATS"}},
		{"nothing reported, no pairs", "4.2.4", append(extensible, "loadBalancerMaxNumberOfBundlesInBundleLoadReport", "0", "loadBalancerMaxNumberOfBrokerSheddingPerCycle", "0"),
			[]string{"warning NO_PAIRS", "warning NO_TOP_BUNDLES"}},
		{"avg places, threshold sheds", "4.2.4", []string{"loadBalancerLoadPlacementStrategy", avgClass}, []string{"error AVG_SHEDDER_ONLY_PLACES"}},
		{"avg places, uniform sheds, Pulsar 5", "5.0.1", []string{"loadBalancerLoadSheddingStrategy", uniformClass}, []string{"warning AVG_SHEDDER_ONLY_PLACES"}},
		{"avg sheds only", "4.2.4", []string{"loadBalancerLoadSheddingStrategy", avgClass}, []string{"warning AVG_SHEDDER_ONLY_SHEDS"}},
		{"avg in both", "4.2.4", []string{"loadBalancerLoadSheddingStrategy", avgClass, "loadBalancerLoadPlacementStrategy", avgClass}, nil},
		{"avg thresholds", "5.0.1", []string{"loadBalancerAvgShedderLowThreshold", "41", "loadBalancerAvgShedderHitCountLowThreshold", "1"},
			[]string{"error AVG_SHEDDER_THRESHOLDS", "warning AVG_SHEDDER_HIT_COUNTS"}},
		{"uniform is off", "4.2.4", []string{"loadBalancerLoadSheddingStrategy", uniformClass, "loadBalancerMsgRateDifferenceShedderThreshold", "0",
			"loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold", "-1"}, []string{"error UNIFORM_OFF"}},
		{"uniform moves nothing", "4.2.4", []string{"loadBalancerLoadSheddingStrategy", uniformClass, "maxUnloadPercentage", "0"}, []string{"error NOTHING_TO_UNLOAD"}},
		{"lower boundary without threshold", "4.2.4", []string{"loadBalancerLoadSheddingStrategy", uniformClass, "lowerBoundarySheddingEnabled", "true"}, []string{"warning LOWER_BOUNDARY_IGNORED"}},
		{"reports", "4.2.4", []string{"loadBalancerReportUpdateMinIntervalMillis", "60001", "loadBalancerReportUpdateMaxIntervalMinutes", "1"}, []string{"error REPORT_INTERVALS"}},
		{"stats rarer than cycles", "4.2.4", []string{"statsUpdateFrequencyInSecs", "61"}, []string{"warning SHEDDING_FASTER_THAN_STATS"}},
		{"off", "4.2.4", []string{"loadBalancerEnabled", "false"}, []string{"warning LOAD_BALANCER_OFF"}},
		{"no weight", "4.2.4", append(extensible, "loadBalancerCPUResourceWeight", "0", "loadBalancerBandwidthInResourceWeight", "0", "loadBalancerBandwidthOutResourceWeight", "0"), []string{"error NO_WEIGHT"}},
		{"memory weight alone", "4.2.4", append(extensible, "loadBalancerCPUResourceWeight", "0", "loadBalancerBandwidthInResourceWeight", "0", "loadBalancerBandwidthOutResourceWeight", "0", "loadBalancerMemoryResourceWeight", "1"), nil},
		{"memory weight alone, modular", "4.2.4", []string{"loadBalancerCPUResourceWeight", "0", "loadBalancerBandwidthInResourceWeight", "0", "loadBalancerBandwidthOutResourceWeight", "0", "loadBalancerMemoryResourceWeight", "1"},
			[]string{"error NO_WEIGHT", "warning MEMORY_WEIGHT_IGNORED"}},
		{"misspelt weight", "4.2.4", []string{"loadBalancerBandwithInResourceWeight", "0.5"}, []string{"warning MISSPELT_KEY"}},
		{"misspelt weight beside the right one", "4.2.4", []string{"loadBalancerBandwithOutResourceWeight", "0.5", "loadBalancerBandwidthOutResourceWeight", "2"}, []string{"warning WEIGHT_TWICE"}},
		{"simple thresholds", "4.2.4", append(simple, "loadBalancerBrokerOverloadedThresholdPercentage", "50"), []string{"error COMFORT_ABOVE_OVERLOADED", "error UNDERLOADED_ABOVE_OVERLOADED"}},
		{"simple thresholds, other manager", "4.2.4", []string{"loadBalancerBrokerOverloadedThresholdPercentage", "50"}, nil},
		{"simple strategy in the modular key", "4.2.4", []string{"loadBalancerLoadPlacementStrategy", "leastLoadedServer"}, []string{"error SIMPLE_STRATEGY_FOR_MODULAR"}},
		{"split algorithm", "4.2.4", []string{"supportedNamespaceBundleSplitAlgorithms", "topic_count_equally_divide"}, []string{"error SPLIT_ALGORITHM_NOT_SUPPORTED"}},
		{"split by positions", "4.2.4", []string{"defaultNamespaceBundleSplitAlgorithm", "specified_positions_divide"}, []string{"error SPLIT_WITHOUT_POSITIONS"}},
		{"never split, wrapping bandwidth", "4.2.4", []string{"loadBalancerNamespaceMaximumBundles", "4", "loadBalancerNamespaceBundleMaxBandwidthMbytes", "2048"},
			[]string{"warning NEVER_SPLIT", "warning SPLIT_BANDWIDTH_WRAPS"}},
	} {
		s := DefaultsOf(c.version)
		for i := 0; i < len(c.set); i += 2 {
			if err := Set(s, c.set[i], c.set[i+1]); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		if diff := cmp.Diff(c.want, codes(t, Check(s, c.version))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// codes are "severity CODE" of the problems, sorted; every problem must name known keys and say something about them.
func codes(t *testing.T, problems []Problem) []string {
	t.Helper()
	var got []string
	for _, p := range problems {
		got = append(got, string(p.Severity)+" "+p.Code)
		for _, key := range p.Keys {
			if _, ok := Lookup(key); !ok {
				t.Errorf("%s names %q, which is no key", p.Code, key)
			}
		}
		if len(p.Keys) == 0 || p.Text == "" || strings.Contains(p.Text, "%!") {
			t.Errorf("%s: keys %v, text %q", p.Code, p.Keys, p.Text)
		}
	}
	slices.Sort(got)
	return got
}

func TestCheckBallast(t *testing.T) {
	for _, c := range []struct {
		name string
		set  []string
		want []string
	}{
		{"defaults", nil, nil},
		{"two tokens", []string{"token", "a", "tokenFile", "b"}, []string{"error TOKEN_TWICE"}},
		{"token and plug-in", []string{"token", "a", "authPlugin", "tls"}, []string{"error TWO_AUTHENTICATIONS"}},
		{"parameters alone", []string{"authParams", "a"}, []string{"error AUTH_PARAMS_ALONE"}},
		{"half a certificate", []string{"tlsCertFile", "a"}, []string{"error CERTIFICATE_WITHOUT_KEY"}},
		{"half of OAuth", []string{"issuerEndpoint", "https://i"}, []string{"error OAUTH_INCOMPLETE"}},
		{"TLS for nothing", []string{"tlsTrustCertsFilePath", "ca.pem"}, []string{"warning TLS_UNUSED"}},
		{"TLS", []string{"tlsTrustCertsFilePath", "ca.pem", "serviceUrl", "pulsar+ssl://a:6651,b:6651/", "webServiceUrl", "https://[::1]:8443/"}, nil},
		{"TLS both ways", []string{"tlsAllowInsecureConnection", "true", "tlsEnableHostnameVerification", "true", "serviceUrl", "pulsar+ssl://a"}, []string{"error TLS_CONTRADICTION"}},
		{"addresses", []string{"serviceUrl", "http://a:8080", "webServiceUrl", "localhost:8080", "ballastHttpListenAddress", "8484"},
			[]string{"error ADDRESS", "error ADDRESS", "error LISTEN_ADDRESS"}},
		{"no host", []string{"serviceUrl", "pulsar://", "webServiceUrl", "http://:8080"}, []string{"error ADDRESS", "error ADDRESS"}},
		{"no listener", []string{"ballastHttpListenAddress", ""}, nil},
		{"broker addresses", []string{"ballastBrokerAddresses", "b1:8080=localhost:1, b2:8080, b1:8080=localhost:3, =h:1"},
			[]string{"error BROKER_ADDRESS", "error BROKER_ADDRESS", "error BROKER_ADDRESS_TWICE"}},
		{"take over without acting", []string{"ballastTakeOver", "true"}, []string{"error TAKE_OVER_WITHOUT_GOVERN"}},
		{"take over", []string{"ballastTakeOver", "true", "ballastMode", "govern"}, nil},
		{"reports too often", []string{"ballastReportInterval", "200ms"}, []string{"error REPORT_INTERVAL"}},
		{"bundles too often", []string{"ballastBundleStatsInterval", "1s"}, []string{"error BUNDLE_STATS_INTERVAL"}},
		{"reports at the cluster's pace, bundles never", []string{"ballastReportInterval", "0s", "ballastBundleStatsInterval", "0s"}, nil},
		{"no limit on bundles", []string{"ballastMaxBundlesPerCycle", "0", "ballastMode", "govern"}, nil},
		{"no bundle can be seen going to and fro", []string{"ballastBundleCoolDown", "1h"}, []string{"warning COOL_DOWN_HIDES_OSCILLATION"}},
		{"nobody looks who goes to and fro", []string{"ballastBundleCoolDown", "1h", "ballastOscillationTurns", "0"}, nil},
		{"windows", []string{"ballastMaintenanceWindows", "Mon-Fri 22:00-06:00 Europe/Berlin, not Sat+Sun 08:00-20:00 UTC"}, nil},
		{"windows that are none", []string{"ballastMaintenanceWindows", "22:00-06:00, Mon 22:00-26:00 UTC"}, []string{"error MAINTENANCE_WINDOW", "error MAINTENANCE_WINDOW"}},
		{"short cool-down", []string{"ballastBundleCoolDown", "59s"}, []string{"warning COOL_DOWN_BELOW_CYCLE"}},
		{"no weights", []string{"ballastLoadSource", "derived", "ballastCPUWeight", "0", "ballastBandwidthInWeight", "0", "ballastBandwidthOutWeight", "0"}, []string{"error NO_WEIGHT"}},
	} {
		b := DefaultBallast()
		for i := 0; i < len(c.set); i += 2 {
			if err := SetBallast(b, c.set[i], c.set[i+1]); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		if diff := cmp.Diff(c.want, codes(t, CheckBallast(b))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	const secret = "hunter2"
	b := DefaultBallast()
	b.WebServiceURL, b.ServiceURL = "ftp://admin:"+secret+"@host", "pulsar+ssl://me:"+secret+"@:1"
	b.AuthParams, b.Token, b.TokenFile = secret, secret, "f"
	problems := CheckBallast(b)
	if len(problems) < 4 {
		t.Errorf("%d problems, want at least 4", len(problems))
	}
	for _, p := range problems {
		if strings.Contains(p.String(), secret) {
			t.Errorf("shows a secret: %s", p)
		}
	}
}

// TestLayeredCheck: what the cluster runs with is described, not refused; what the operator adds is.
func TestLayeredCheck(t *testing.T) {
	cluster := ClusterLayer("b", map[string]string{"loadBalancerLoadPlacementStrategy": avgClass})
	for _, c := range []struct {
		name   string
		layers []Layer
		want   []string
	}{
		{"the cluster's", []Layer{cluster}, []string{"warning AVG_SHEDDER_ONLY_PLACES"}},
		{"the operator's", []Layer{cluster, fileLayer(ScopeAll, "loadBalancerLoadSheddingStrategy", uniformClass)}, []string{"error AVG_SHEDDER_ONLY_PLACES"}},
		{"nobody's but the operator's", []Layer{fileLayer(ScopeAll, "loadBalancerLoadPlacementStrategy", avgClass)}, []string{"error AVG_SHEDDER_ONLY_PLACES"}},
		{"mended", []Layer{cluster, fileLayer(ScopeAll, "loadBalancerLoadSheddingStrategy", avgClass)}, nil},
	} {
		l, err := Resolve("4.2.4", c.layers...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, codes(t, l.Check())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestBandwidthWeights(t *testing.T) {
	for _, c := range []struct{ weight, misspelt, want float64 }{{1, 1, 1}, {1, 0.5, 0.5}, {2, 0.5, 2}, {0, 3, 0}, {1, 0, 0}} {
		s := Defaults()
		s.LoadBalancerBandwidthInResourceWeight, s.LoadBalancerBandwithInResourceWeight = c.weight, c.misspelt
		s.LoadBalancerBandwidthOutResourceWeight, s.LoadBalancerBandwithOutResourceWeight = c.weight, c.misspelt
		if in, out := s.BandwidthInWeight(), s.BandwidthOutWeight(); in != c.want || out != c.want {
			t.Errorf("%v, misspelt %v: in %v, out %v, want %v", c.weight, c.misspelt, in, out, c.want)
		}
	}
}

// TestCheckIsTotal: no numbers, however wild, break the checks.
func TestCheckIsTotal(t *testing.T) {
	wild := rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, math.MaxInt64})
	floats := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 1})
	rapid.Check(t, func(t *rapid.T) {
		s := Defaults()
		s.LoadManagerClassName = rapid.SampledFrom([]string{"", ".", "simple", extensibleClass, s.LoadManagerClassName}).Draw(t, "manager")
		s.LoadBalancerLoadSheddingStrategy = rapid.SampledFrom([]string{"", "...", avgClass, uniformClass}).Draw(t, "shedder")
		s.LoadBalancerBrokerLoadDataTTLInSeconds, s.LoadBalancerReportUpdateMaxIntervalMinutes = wild.Draw(t, "ttl"), wild.Draw(t, "max")
		s.LoadBalancerServiceUnitStateTombstoneDelayTimeInSeconds = wild.Draw(t, "tombstone")
		s.LoadBalancerSheddingConditionHitCountThreshold, s.LoadBalancerSheddingIntervalMinutes = wild.Draw(t, "hits"), wild.Draw(t, "interval")
		s.LoadBalancerBrokerLoadTargetStd, s.LoadBalancerCPUResourceWeight = floats.Draw(t, "std"), floats.Draw(t, "cpu")
		for _, p := range Check(s, rapid.SampledFrom([]string{"", "5", "x"}).Draw(t, "version")) {
			if p.Code == "" || p.Text == "" {
				t.Fatalf("empty problem %+v", p)
			}
		}
	})
}
