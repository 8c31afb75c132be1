package simulate

import (
	"math"
	"time"
)

// Shape is how traffic changes over time: the factor on the base traffic when a time has passed since the cluster's start.
// A factor that is negative or not a number counts as 0.
type Shape interface {
	Factor(elapsed time.Duration) float64
}

// Constant traffic never changes.
type Constant struct{}

// Factor is 1.
func (Constant) Factor(time.Duration) float64 { return 1 }

// Square switches between High (first, for the Duty fraction of each Period) and Low.
type Square struct {
	Period    time.Duration
	Phase     time.Duration // added to the elapsed time
	Duty      float64       // fraction of the period, 0 to 1
	High, Low float64
}

// Factor is High or Low.
func (s Square) Factor(elapsed time.Duration) float64 {
	if s.Period <= 0 {
		return s.High
	}
	if float64(positive(elapsed+s.Phase, s.Period)) < s.Duty*float64(s.Period) {
		return s.High
	}
	return s.Low
}

// Growth adds PerHour (1 = 100 % of the base) every hour, up to Limit (0 = no limit).
type Growth struct {
	PerHour float64
	Limit   float64
}

// Factor is 1 at the start.
func (g Growth) Factor(elapsed time.Duration) float64 {
	f := 1 + g.PerHour*elapsed.Hours()
	if g.Limit > 0 && f > g.Limit {
		return g.Limit
	}
	return f
}

// Daily is one smooth wave a Day: Low at its start, High at half of it.
type Daily struct {
	Day       time.Duration // 0 = 24 hours
	Phase     time.Duration // added to the elapsed time
	High, Low float64
}

// Factor follows a smooth step up and down. It uses no trigonometry, so that it is the same on every machine.
func (d Daily) Factor(elapsed time.Duration) float64 {
	day := d.Day
	if day <= 0 {
		day = 24 * time.Hour
	}
	x := 2 * float64(positive(elapsed+d.Phase, day)) / float64(day)
	if x > 1 {
		x = 2 - x
	}
	up := float64(float64(x*x) * (3 - 2*x))
	return d.Low + float64((d.High-d.Low)*up)
}

// Noise is uniform in 1-Amplitude to 1+Amplitude, drawn anew every Every (0 = 10 s). The same seed gives the same noise.
type Noise struct {
	Seed      uint64
	Amplitude float64
	Every     time.Duration
}

// Factor is the draw of the present period.
func (n Noise) Factor(elapsed time.Duration) float64 {
	every := n.Every
	if every <= 0 {
		every = 10 * time.Second
	}
	return 1 + float64(n.Amplitude*(2*unit(n.Seed, uint64(elapsed/every))-1))
}

// Step is Before until At and After from then on.
type Step struct {
	At            time.Duration
	Before, After float64
}

// Factor is Before or After.
func (s Step) Factor(elapsed time.Duration) float64 {
	if elapsed < s.At {
		return s.Before
	}
	return s.After
}

// Product multiplies shapes.
type Product []Shape

// Factor is the product of all factors.
func (p Product) Factor(elapsed time.Duration) float64 {
	f := 1.0
	for _, s := range p {
		f *= s.Factor(elapsed)
	}
	return f
}

// constant says whether a shape never changes, which makes its traffic cheap to count.
func constant(s Shape) bool {
	switch s := s.(type) {
	case nil, Constant:
		return true
	case Product:
		for _, f := range s {
			if !constant(f) {
				return false
			}
		}
		return true
	}
	return false
}

func factor(s Shape, elapsed time.Duration) float64 {
	if s == nil {
		return 1
	}
	f := s.Factor(elapsed)
	if !(f > 0) || math.IsInf(f, 1) {
		return 0
	}
	return f
}

func positive(d, period time.Duration) time.Duration {
	if d %= period; d < 0 {
		d += period
	}
	return d
}

// ZipfShares are n shares that sum to 1, the i-th proportional to 1/(i+1)^exponent, largest first.
func ZipfShares(n int, exponent float64) []float64 {
	shares := make([]float64, max(n, 0))
	sum := 0.0
	for i := range shares {
		// Rounded, since math.Pow may differ in the last bits between machines.
		shares[i] = math.Round(1e9*math.Pow(float64(i+1), -exponent)) / 1e9
		sum += shares[i]
	}
	for i := range shares {
		shares[i] /= sum
	}
	return shares
}
