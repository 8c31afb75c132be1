package main

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"slices"

	"github.com/ballast-lb/ballast/internal/benchstate"
)

// decision is what was decided, short enough to compare: how many things, and the digest of their lines in order of text.
type decision struct {
	Decided int    `json:"decided"`
	Digest  string `json:"digest"`
}

func (d decision) String() string { return fmt.Sprintf("%d decided, digest %s", d.Decided, d.Digest) }

// digest is FNV-1a of 64 bits over texts, each ended by a newline, and doubles, as their eight bytes with the highest first.
type digest struct{ hash.Hash64 }

func newDigest() digest { return digest{fnv.New64a()} }

func (d digest) text(s string) { _, _ = d.Write(append([]byte(s), '\n')) }

func (d digest) numbers(xs ...float64) {
	var b [8]byte
	for _, x := range xs {
		binary.BigEndian.PutUint64(b[:], math.Float64bits(x))
		_, _ = d.Write(b[:])
	}
}

func (d digest) String() string { return fmt.Sprintf("%016x", d.Sum64()) }

func decisionOf(lines []string) decision {
	lines = slices.Sorted(slices.Values(lines))
	d := newDigest()
	for _, l := range lines {
		d.text(l)
	}
	return decision{len(lines), d.String()}
}

// stateDigest covers every name and every number of a cluster, bit for bit.
func stateDigest(s *benchstate.State) string {
	d := newDigest()
	for i := range s.Brokers {
		b := &s.Brokers[i]
		d.text(b.ID)
		d.numbers(b.Load, b.System.CPU.Usage, b.System.Memory.Usage, b.System.DirectMemory.Usage,
			b.System.BandwidthIn.Usage, b.System.BandwidthOut.Usage, b.In, b.Out)
	}
	for i := range s.Bundles {
		b := &s.Bundles[i]
		d.text(b.Name)
		d.numbers(b.In, b.Out)
	}
	return d.String()
}
