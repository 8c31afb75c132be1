package settings

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Severity says how bad a problem is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // makes no sense: refuse to go on
	Warning Severity = "warning" // works, but hardly as meant
)

// Problem is a value or a pair of values that makes no sense together.
type Problem struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"` // stable, UPPER_SNAKE_CASE
	Keys     []string `json:"keys"`
	Text     string   `json:"text"` // what is wrong, with the values, and what would be right
}

// String is "error CODE: text".
func (p Problem) String() string { return fmt.Sprintf("%s %s: %s", p.Severity, p.Code, p.Text) }

// checker collects the problems of one set of settings.
type checker struct {
	*Settings
	five     bool // Pulsar 5
	problems []Problem
}

func (c *checker) report(bad bool, severity Severity, code string, keys []string, format string, args ...any) {
	if bad {
		c.problems = append(c.problems, Problem{Severity: severity, Code: code, Keys: keys, Text: fmt.Sprintf(format, args...)})
	}
}

// Check finds values that make no sense together, for the load manager that the settings name, as the brokers of a Pulsar
// version take them. Names of classes are not looked up.
func Check(s *Settings, version string) []Problem {
	c := &checker{Settings: s, five: major(version) >= 5}
	c.reports()
	c.weights()
	c.placement()
	c.splitting()
	switch manager := short(s.LoadManagerClassName); manager {
	case "ExtensibleLoadManagerImpl", "extensible":
		c.extensible()
	case "ModularLoadManagerImpl", "modular":
		c.modular()
	case "SimpleLoadManagerImpl", "simple", "":
		c.simple()
	}
	return c.problems
}

// Check is Check of the layered settings and CheckBallast of Ballast's own, after the notes of Resolve. A pair of values
// that the cluster itself runs with is a warning at most: it describes the cluster, and nothing here could mend it.
func (l *Layered) Check() []Problem {
	problems := slices.Clone(l.Notes)
	for _, p := range slices.Concat(Check(l.Settings, l.Version), CheckBallast(l.Ballast)) {
		if p.Severity == Error && l.clusters(p.Keys) {
			p.Severity = Warning
			p.Text += "; the cluster runs with it"
		}
		problems = append(problems, p)
	}
	return problems
}

// clusters says whether the values of the keys are what the cluster runs with.
func (l *Layered) clusters(keys []string) bool {
	theirs := false
	for _, key := range keys {
		switch cmp.Or(l.origin[key], OriginDefault) {
		case OriginCluster:
			theirs = true
		case OriginDefault:
		default:
			return false
		}
	}
	return theirs
}

// short is the last part of a class name.
func short(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

func (c *checker) reports() {
	least, most := c.LoadBalancerReportUpdateMinIntervalMillis, c.LoadBalancerReportUpdateMaxIntervalMinutes
	c.report(float64(least) > float64(most)*60_000, Error, "REPORT_INTERVALS",
		[]string{"loadBalancerReportUpdateMinIntervalMillis", "loadBalancerReportUpdateMaxIntervalMinutes"},
		"loadBalancerReportUpdateMinIntervalMillis=%d is longer than loadBalancerReportUpdateMaxIntervalMinutes=%d: reports cannot be both rarer than the one and more frequent than the other",
		least, most)
	shed, stats := c.LoadBalancerSheddingIntervalMinutes, c.StatsUpdateFrequencyInSecs
	c.report(float64(shed)*60 < float64(stats), Warning, "SHEDDING_FASTER_THAN_STATS",
		[]string{"loadBalancerSheddingIntervalMinutes", "statsUpdateFrequencyInSecs"},
		"loadBalancerSheddingIntervalMinutes=%d is shorter than statsUpdateFrequencyInSecs=%d: consecutive cycles see the same rates, so several hits may be one measurement",
		shed, stats)
	c.report(!c.LoadBalancerEnabled, Warning, "LOAD_BALANCER_OFF", []string{"loadBalancerEnabled"},
		"loadBalancerEnabled=false: Simple and Modular brokers do not report their load, and nothing is shed")
}

func (c *checker) weights() {
	memory := c.LoadBalancerMemoryResourceWeight
	in, out := c.BandwidthInWeight(), c.BandwidthOutWeight()
	keys := []string{"loadBalancerCPUResourceWeight", "loadBalancerMemoryResourceWeight", "loadBalancerDirectMemoryResourceWeight",
		"loadBalancerBandwidthInResourceWeight", "loadBalancerBandwidthOutResourceWeight"}
	modular := strings.HasPrefix(short(c.LoadManagerClassName), "Modular")
	if modular {
		c.report(memory != 0, Warning, "MEMORY_WEIGHT_IGNORED", []string{"loadBalancerMemoryResourceWeight", "loadManagerClassName"},
			"loadBalancerMemoryResourceWeight=%v has no effect: the Modular load manager does not weigh heap memory", memory)
		memory = 0
	}
	c.report(c.LoadBalancerCPUResourceWeight == 0 && memory == 0 && c.LoadBalancerDirectMemoryResourceWeight == 0 && in == 0 && out == 0,
		Error, "NO_WEIGHT", keys, "all resource weights are 0: every broker counts as idle, so nothing is ever shed; give at least one resource a weight")
	c.misspelt("loadBalancerBandwidthInResourceWeight", "loadBalancerBandwithInResourceWeight",
		c.LoadBalancerBandwidthInResourceWeight, c.LoadBalancerBandwithInResourceWeight)
	c.misspelt("loadBalancerBandwidthOutResourceWeight", "loadBalancerBandwithOutResourceWeight",
		c.LoadBalancerBandwidthOutResourceWeight, c.LoadBalancerBandwithOutResourceWeight)
}

func (c *checker) misspelt(key, alias string, weight, old float64) {
	c.report(old != 1.0 && weight != 1.0 && old != weight, Warning, "WEIGHT_TWICE", []string{key, alias},
		"%s=%v and its misspelt alias %s=%v differ: the first one counts", key, weight, alias, old)
	c.report(old != 1.0 && weight == 1.0, Warning, "MISSPELT_KEY", []string{alias},
		"%s=%v is the misspelt name of %s and counts while that is 1.0: rename it", alias, old, key)
}

func (c *checker) placement() {
	simple := []string{"leastLoadedServer", "leastMsgPerSecond", "weightedRandomSelection"}
	c.report(slices.Contains(simple, c.LoadBalancerLoadPlacementStrategy), Error, "SIMPLE_STRATEGY_FOR_MODULAR",
		[]string{"loadBalancerLoadPlacementStrategy"},
		"loadBalancerLoadPlacementStrategy=%s is a strategy of the Simple load manager: did you mean loadBalancerPlacementStrategy?",
		c.LoadBalancerLoadPlacementStrategy)
}

func (c *checker) splitting() {
	algorithm := c.DefaultNamespaceBundleSplitAlgorithm
	keys := []string{"defaultNamespaceBundleSplitAlgorithm", "supportedNamespaceBundleSplitAlgorithms"}
	c.report(!slices.Contains(c.SupportedNamespaceBundleSplitAlgorithms, algorithm), Error, "SPLIT_ALGORITHM_NOT_SUPPORTED", keys,
		"defaultNamespaceBundleSplitAlgorithm=%s is not in supportedNamespaceBundleSplitAlgorithms=%v", algorithm, c.SupportedNamespaceBundleSplitAlgorithms)
	c.report(algorithm == "specified_positions_divide" && c.LoadBalancerAutoBundleSplitEnabled, Error, "SPLIT_WITHOUT_POSITIONS",
		[]string{"defaultNamespaceBundleSplitAlgorithm", "loadBalancerAutoBundleSplitEnabled"},
		"defaultNamespaceBundleSplitAlgorithm=%s with loadBalancerAutoBundleSplitEnabled=true: automatic splits name no positions; use range_equally_divide", algorithm)
	most, first := c.LoadBalancerNamespaceMaximumBundles, c.DefaultNumberOfNamespaceBundles
	c.report(most <= first && c.LoadBalancerAutoBundleSplitEnabled, Warning, "NEVER_SPLIT",
		[]string{"loadBalancerNamespaceMaximumBundles", "defaultNumberOfNamespaceBundles"},
		"loadBalancerNamespaceMaximumBundles=%d is not above defaultNumberOfNamespaceBundles=%d: new namespaces are never split", most, first)
	c.report(c.LoadBalancerNamespaceBundleMaxBandwidthMbytes > math.MaxInt32>>20, Warning, "SPLIT_BANDWIDTH_WRAPS",
		[]string{"loadBalancerNamespaceBundleMaxBandwidthMbytes"},
		"loadBalancerNamespaceBundleMaxBandwidthMbytes=%d: Pulsar's Modular and Extensible managers compute it in bytes with 32 bits, which wraps above 2047",
		c.LoadBalancerNamespaceBundleMaxBandwidthMbytes)
}
