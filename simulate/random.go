package simulate

import "math/rand/v2"

// splitmix is the SplitMix64 generator. It is small, well known and the same on every machine and in every release of Go,
// which a recorded outcome needs.
type splitmix struct{ state uint64 }

// Uint64 is the next number.
func (s *splitmix) Uint64() uint64 {
	s.state += 0x9E3779B97F4A7C15
	return mix(s.state)
}

func mix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// NewRand is the package's source of randomness: SplitMix64 from a seed. stream separates uses of one seed, so that one
// more draw in one place changes nothing in another.
func NewRand(seed, stream uint64) *rand.Rand {
	return rand.New(&splitmix{state: mix(seed) ^ mix(stream+0x51ED2701)})
}

// unit is a number in [0, 1) that depends on its arguments alone.
func unit(seed, n uint64) float64 {
	return float64(mix(mix(seed)+n*0x9E3779B97F4A7C15)>>11) / (1 << 53)
}

// hash is FNV-1a: a seed out of a name.
func hash(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return h
}
