// Package split computes where bundles are split: the hash ranges of bundles and Pulsar's split algorithms. It is pure.
package split

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
)

// Full is the greatest hash. A range that ends here includes its upper bound.
const Full uint32 = 0xffffffff

// Range is the hash range of a bundle: from Lower up to but without Upper, or with Upper if it is Full.
type Range struct {
	Lower, Upper uint32
}

// ParseRange reads "0xLLLLLLLL_0xUUUUUUUU".
func ParseRange(text string) (Range, error) {
	low, up, ok := strings.Cut(text, "_")
	if !ok {
		return Range{}, fmt.Errorf("range %q has no '_' between its bounds; right is 0x00000000_0x40000000", text)
	}
	lower, err := parseBound(low)
	if err != nil {
		return Range{}, fmt.Errorf("lower bound of range %q: %w", text, err)
	}
	upper, err := parseBound(up)
	if err != nil {
		return Range{}, fmt.Errorf("upper bound of range %q: %w", text, err)
	}
	if lower >= upper {
		return Range{}, fmt.Errorf("range %q is empty: its lower bound must be below its upper bound", text)
	}
	return Range{lower, upper}, nil
}

func parseBound(text string) (uint32, error) {
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok {
		return 0, fmt.Errorf("%q does not begin with 0x", text)
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not 0x and up to 8 hex digits", text)
	}
	return uint32(n), nil
}

// ParseBundle reads a bundle name: tenant/namespace and the range.
func ParseBundle(name string) (namespace string, r Range, err error) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "", Range{}, fmt.Errorf("bundle %q has no namespace; right is tenant/namespace/0x00000000_0x40000000", name)
	}
	if r, err = ParseRange(name[i+1:]); err != nil {
		return "", Range{}, fmt.Errorf("bundle %q: %w", name, err)
	}
	return name[:i], r, nil
}

// FormatBound is a bound as it stands in bundle names.
func FormatBound(b uint32) string {
	const digits = "0123456789abcdef"
	text := [10]byte{'0', 'x'}
	for i := 9; i > 1; i-- {
		text[i] = digits[b&0xf]
		b >>= 4
	}
	return string(text[:])
}

// String is the range as it stands in bundle names.
func (r Range) String() string { return FormatBound(r.Lower) + "_" + FormatBound(r.Upper) }

// CanSplit says whether there is a bound between the bounds of the range. Pulsar: NamespaceBundleFactory.canSplitBundle.
func (r Range) CanSplit() bool { return int64(r.Upper)-int64(r.Lower) > 1 }

// Contains says whether a topic of this hash belongs to the range.
func (r Range) Contains(hash uint32) bool {
	return hash >= r.Lower && (hash < r.Upper || hash == Full && r.Upper == Full)
}

// Hash is the hash of a topic's full name, such as persistent://tenant/namespace/topic-partition-0.
func Hash(topic string) uint32 { return crc32.ChecksumIEEE([]byte(topic)) }

// Children are the ranges that boundaries cut a range into. The boundaries may come in any order; each must lie strictly
// inside the range and only once, since two equal ones would make a bundle without hashes.
// Pulsar: NamespaceBundleFactory.splitBundles.
func (r Range) Children(boundaries []uint32) ([]Range, error) {
	if len(boundaries) == 0 {
		return nil, fmt.Errorf("range %s: no boundary to split at", r)
	}
	cuts := slices.Sorted(slices.Values(boundaries))
	children := make([]Range, 0, len(cuts)+1)
	from := r.Lower
	for _, cut := range cuts {
		switch {
		case cut <= r.Lower || cut >= r.Upper:
			return nil, fmt.Errorf("boundary %s is not strictly inside the range %s", FormatBound(cut), r)
		case cut == from:
			return nil, fmt.Errorf("boundary %s of range %s is given twice", FormatBound(cut), r)
		}
		children = append(children, Range{from, cut})
		from = cut
	}
	return append(children, Range{from, r.Upper}), nil
}

// Apply puts boundaries into the partition bounds of a namespace (ascending, from 0 to Full): r must be one of its bundles,
// for the boundaries see Children. The given slice is not changed.
func Apply(partitions []uint32, r Range, boundaries []uint32) ([]uint32, error) {
	at := slices.Index(partitions, r.Lower)
	if at < 0 || at+1 >= len(partitions) || partitions[at+1] != r.Upper {
		return nil, fmt.Errorf("range %s is not a bundle of the namespace", r)
	}
	children, err := r.Children(boundaries)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(partitions[:at+1])
	for _, c := range children[:len(children)-1] {
		out = append(out, c.Upper)
	}
	return append(out, partitions[at+1:]...), nil
}
