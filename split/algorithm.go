package split

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Algorithm is the name of a split algorithm, as in broker.conf.
type Algorithm string

// Pulsar's split algorithms.
const (
	RangeEquallyDivide      Algorithm = "range_equally_divide"       // in the middle of the range
	TopicCountEquallyDivide Algorithm = "topic_count_equally_divide" // so that both halves have as many topics
	SpecifiedPositions      Algorithm = "specified_positions_divide" // where the caller says
	FlowOrQPSEquallyDivide  Algorithm = "flow_or_qps_equally_divide" // so that no part exceeds the rate or bandwidth limit
)

// Algorithms are all of them, in Pulsar's order.
func Algorithms() []Algorithm {
	return []Algorithm{RangeEquallyDivide, TopicCountEquallyDivide, SpecifiedPositions, FlowOrQPSEquallyDivide}
}

// ParseAlgorithm reads the name of an algorithm; an unknown one is an error that lists those that exist.
func ParseAlgorithm(name string) (Algorithm, error) {
	if a := Algorithm(name); slices.Contains(Algorithms(), a) {
		return a, nil
	}
	var names []string
	for _, a := range Algorithms() {
		names = append(names, string(a))
	}
	return "", fmt.Errorf("split algorithm %q is unknown; there are %s", name, strings.Join(names, ", "))
}

// Topic is one topic that the owner of a bundle has loaded.
type Topic struct {
	Hash       uint32
	Known      bool    // its traffic is known
	MsgRate    float64 // msg/s in + out
	Throughput float64 // bytes/s in + out
}

// Request is what to split and what the algorithms may look at.
type Request struct {
	Range  Range
	Topics []Topic

	Positions []uint32 // specified_positions_divide: where to cut; those outside the range are left out
	Force     bool     // specified_positions_divide: also with fewer than two topics

	MaxMsgRate        float64 // flow_or_qps_equally_divide: msg/s a part may have (loadBalancerNamespaceBundleMaxMsgRate)
	MaxThroughput     float64 // flow_or_qps_equally_divide: bytes/s a part may have
	DifferencePercent float64 // flow_or_qps_equally_divide: excess needed to act (flowOrQpsDifferenceThresholdPercentage)
}

// ErrNoPositions says that specified_positions_divide was asked for without a position.
var ErrNoPositions = errors.New("specified_positions_divide needs at least one position")

// Boundaries are where the algorithm cuts, ascending. ok is false when it declines; a flow split may also find nothing to
// cut, and topics of equal hash can make it cut outside the range or twice at one place, which Children refuses.
func Boundaries(a Algorithm, r Request) (boundaries []uint32, ok bool, err error) {
	switch a {
	case RangeEquallyDivide:
		return []uint32{middle(r.Range.Lower, r.Range.Upper)}, true, nil
	case TopicCountEquallyDivide:
		boundaries, ok = topicCount(r.Topics)
	case SpecifiedPositions:
		if len(r.Positions) == 0 {
			return nil, false, ErrNoPositions
		}
		boundaries, ok = specified(&r)
	case FlowOrQPSEquallyDivide:
		boundaries, ok = flowOrQPS(&r)
	default:
		_, err = ParseAlgorithm(string(a))
	}
	return boundaries, ok, err
}

// middle is the bound half way from a up to b.
func middle(a, b uint32) uint32 { return a + (b-a)/2 }

// topicCount cuts between the two middle topics. Pulsar: TopicCountEquallyDivideBundleSplitAlgorithm.
func topicCount(topics []Topic) ([]uint32, bool) {
	n := len(topics)
	if n <= 1 {
		return nil, false
	}
	hashes := make([]uint32, n)
	for i := range topics {
		hashes[i] = topics[i].Hash
	}
	slices.Sort(hashes)
	return []uint32{middle(hashes[n/2-1], hashes[n/2])}, true
}

// specified cuts at the given positions. Pulsar: SpecifiedPositionsBundleSplitAlgorithm.
func specified(r *Request) ([]uint32, bool) {
	if len(r.Topics) <= 1 && !r.Force {
		return nil, false
	}
	var inside []uint32
	for _, p := range r.Positions {
		if p > r.Range.Lower && p < r.Range.Upper {
			inside = append(inside, p)
		}
	}
	slices.Sort(inside)
	return inside, len(inside) > 0
}

// flowOrQPS walks the topics by hash and cuts before the one with which a part would exceed a limit. Of topics of equal
// hash each counts with the traffic of the last one. Pulsar: FlowOrQpsEquallyDivideBundleSplitAlgorithm.
func flowOrQPS(r *Request) ([]uint32, bool) {
	var busy []Topic
	last := make(map[uint32]Topic)
	var rate, throughput float64
	for _, t := range r.Topics {
		if t.Known && (t.MsgRate > 0 || t.Throughput > 0) {
			busy = append(busy, t)
			last[t.Hash] = t
			rate += t.MsgRate
			throughput += t.Throughput
		}
	}
	if len(last) < 2 {
		return nil, false
	}
	slack := 1 + r.DifferencePercent/100
	if rate < r.MaxMsgRate*slack && throughput < r.MaxThroughput*slack {
		return nil, false
	}
	slices.SortStableFunc(busy, func(a, b Topic) int { return cmp.Compare(a.Hash, b.Hash) })
	first := last[busy[0].Hash]
	rate, throughput = first.MsgRate, first.Throughput
	cuts := []uint32{}
	for i := 1; i < len(busy); i++ {
		t := last[busy[i].Hash]
		if rate+t.MsgRate > r.MaxMsgRate || throughput+t.Throughput > r.MaxThroughput {
			if cut := middle(busy[i-1].Hash, t.Hash); cut < Full {
				cuts = append(cuts, cut+1)
			}
			rate, throughput = 0, 0
		}
		rate += t.MsgRate
		throughput += t.Throughput
	}
	return cuts, true
}
