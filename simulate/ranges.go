package simulate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ballast-lb/ballast/event"
)

const lastHash = 0xffffffff

// EvenRanges are n ranges of equal size that cover all hashes, as Pulsar makes them for a new namespace.
func EvenRanges(n int) []string {
	out := make([]string, 0, max(n, 0))
	for i := range n {
		out = append(out, evenRange(i, n).String())
	}
	return out
}

func evenRange(i, n int) event.Range {
	size := uint64(1<<32) / uint64(n)
	r := event.Range{Lower: uint32(uint64(i) * size), Upper: lastHash}
	if i < n-1 {
		r.Upper = uint32(uint64(i+1) * size)
	}
	return r
}

func parseBoundary(s string) (uint32, error) {
	v, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 32)
	if err != nil {
		return 0, fmt.Errorf("boundary is %q: it must be a hash such as 0x40000000", s)
	}
	return uint32(v), nil
}
