// Package traffic puts a load on a cluster that balancing can be seen on: producers and exclusive consumers on many topics
// whose rates follow a skewed distribution. It then says what was lost, doubled, out of order or late, and how the load was
// spread over the brokers. The layout of the load and the judgement are plain functions of their input.
package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Shape describes a load. The same shape always gives the same layout.
type Shape struct {
	Bundles         []string // the bundles to load, as tenant/namespace/0x........_0x........
	TopicsPerBundle int      // 0 = 2
	Rate            float64  // messages per second over all topics; 0 = 500
	Exponent        float64  // of the Zipf distribution of the topics' rates: rate of rank k ~ 1/k^Exponent; 0 = all alike
	MaxShare        float64  // the largest part of the rate that one bundle may have, such as 0.12; 0 = no limit
	Seed            uint64   // decides which topic gets which rank
}

// Topic is a topic of a layout.
type Topic struct {
	Name   string // persistent://tenant/namespace/name
	Bundle string
	Rate   float64 // messages per second
}

// Layout is a load: topics, each in a known bundle with a known rate.
type Layout []Topic

// NewLayout works a shape out. The error names the field that makes no sense.
func NewLayout(s Shape) (Layout, error) {
	if len(s.Bundles) == 0 {
		return nil, errors.New("traffic: Shape.Bundles is empty: name at least one bundle")
	}
	if s.MaxShare < 0 || s.MaxShare > 0 && s.MaxShare*float64(len(s.Bundles)) < 1 {
		return nil, fmt.Errorf("traffic: Shape.MaxShare %v of %d bundles is less than the whole: at least %v, or 0 for no limit",
			s.MaxShare, len(s.Bundles), 1/float64(len(s.Bundles)))
	}
	if !(s.Exponent >= 0) || !(s.Rate >= 0) || math.IsInf(s.Rate+s.Exponent, 0) {
		return nil, fmt.Errorf("traffic: Shape.Rate %v and Shape.Exponent %v have to be finite and not negative", s.Rate, s.Exponent)
	}
	perBundle := cmp.Or(s.TopicsPerBundle, 2)
	var layout Layout
	for _, bundle := range s.Bundles {
		names, err := topicsIn(bundle, perBundle)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			layout = append(layout, Topic{Name: name, Bundle: bundle})
		}
	}
	for i, rank := range rand.New(rand.NewPCG(s.Seed, 0)).Perm(len(layout)) {
		layout[i].Rate = math.Pow(float64(rank+1), -s.Exponent)
	}
	layout.scale(cmp.Or(s.Rate, 500))
	if s.MaxShare > 0 {
		layout.capBundles(s.MaxShare)
	}
	return layout, nil
}

// MustLayout is NewLayout for a test, which it fails on an error.
func MustLayout(t testing.TB, s Shape) Layout {
	t.Helper()
	layout, err := NewLayout(s)
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

// Rate is the rate of all topics together, in messages per second.
func (l Layout) Rate() float64 {
	sum := 0.0
	for _, t := range l {
		sum += t.Rate
	}
	return sum
}

// Bundles are the rates of the bundles, in messages per second.
func (l Layout) Bundles() map[string]float64 {
	rates := map[string]float64{}
	for _, t := range l {
		rates[t.Bundle] += t.Rate
	}
	return rates
}

// Best is the ratio of the highest to the mean load of n brokers when the bundles are dealt out heaviest first, each to the
// broker that has least: what a balancer can hope for, usually the optimum or close to it.
func (l Layout) Best(n int) float64 {
	rates := make([]float64, 0, len(l))
	for _, r := range l.Bundles() {
		rates = append(rates, r)
	}
	slices.SortFunc(rates, func(a, b float64) int { return cmp.Compare(b, a) })
	brokers := make([]float64, n)
	for _, r := range rates {
		least := 0
		for i := range brokers {
			if brokers[i] < brokers[least] {
				least = i
			}
		}
		brokers[least] += r
	}
	return MaxOverMean(brokers)
}

// MaxOverMean is the ratio of the highest to the mean of loads: 1 is even. It is NaN without any load.
func MaxOverMean(loads []float64) float64 {
	sum := 0.0
	for _, x := range loads {
		sum += x
	}
	if len(loads) == 0 || sum == 0 {
		return math.NaN()
	}
	return slices.Max(loads) * float64(len(loads)) / sum
}

func (l Layout) scale(rate float64) {
	factor := rate / l.Rate()
	for i := range l {
		l[i].Rate *= factor
	}
}

// capBundles takes from every bundle what it has above the share and gives it to the others in proportion, until none is
// above.
func (l Layout) capBundles(share float64) {
	total := l.Rate()
	limit := share * total
	full := map[string]bool{}
	for {
		rates := l.Bundles()
		over, rest := false, 0.0
		for _, t := range l { // not over the map: the sum depends on the order
			if rates[t.Bundle] > limit*(1+1e-9) {
				full[t.Bundle], over = true, true
			} else if !full[t.Bundle] {
				rest += t.Rate
			}
		}
		if !over || rest == 0 {
			return
		}
		factor := (total - limit*float64(len(full))) / rest
		for i, t := range l {
			if full[t.Bundle] {
				l[i].Rate *= limit / rates[t.Bundle]
			} else {
				l[i].Rate *= factor
			}
		}
	}
}

// TopicIn is the name of a topic that Pulsar puts into the bundle.
func TopicIn(bundle string) (string, error) {
	names, err := topicsIn(bundle, 1)
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// topicsIn finds n names of topics in the bundle by trying. A topic belongs to the bundle whose range its name's CRC32 is
// in (Pulsar: NamespaceBundleFactory).
func topicsIn(bundle string, n int) ([]string, error) {
	ns, low, high, err := parseBundle(bundle)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := 0; len(names) < n; i++ {
		name := fmt.Sprintf("persistent://%s/t-%d", ns, i)
		if hash := uint64(crc32.ChecksumIEEE([]byte(name))); low <= hash && (hash < high || hash == high && high == math.MaxUint32) {
			names = append(names, name)
		}
	}
	return names, nil
}

// parseBundle takes tenant/namespace/0xlow_0xhigh apart.
func parseBundle(bundle string) (ns string, low, high uint64, err error) {
	slash := strings.LastIndexByte(bundle, '/')
	from, to, ok := strings.Cut(bundle[slash+1:], "_")
	if slash > 0 && ok {
		var errs [2]error
		low, errs[0] = strconv.ParseUint(from, 0, 32)
		high, errs[1] = strconv.ParseUint(to, 0, 32)
		if errors.Join(errs[:]...) == nil && low < high {
			return bundle[:slash], low, high, nil
		}
	}
	return "", 0, 0, fmt.Errorf("traffic: bundle %q is not of the form tenant/namespace/0x00000000_0x40000000", bundle)
}
