package event

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
)

// lastHash is the end of the range of hashes. It belongs to the last bundle, whose range is closed.
const lastHash = 0xffffffff

// Range is the part of a namespace that a bundle serves: the hashes from Lower up to but without Upper, and with it if it is
// 0xffffffff.
type Range struct{ Lower, Upper uint32 }

// ParseRange reads "0xLLLLLLLL_0xUUUUUUUU".
func ParseRange(text string) (Range, error) {
	lower, upper, _ := strings.Cut(text, "_")
	l, okL := parseBound(lower)
	u, okU := parseBound(upper)
	if !okL || !okU || l >= u {
		return Range{}, fmt.Errorf("%q is not a range of hashes: it must be 0xLLLLLLLL_0xUUUUUUUU with the lower bound first", text)
	}
	return Range{l, u}, nil
}

func parseBound(text string) (uint32, bool) {
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || len(digits) != 8 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	return uint32(n), err == nil
}

// String is the range as it stands in a bundle's name.
func (r Range) String() string {
	const hex = "0123456789abcdef"
	text := []byte("0x00000000_0x00000000")
	for i := range 8 {
		text[9-i] = hex[r.Lower>>(4*i)&15]
		text[20-i] = hex[r.Upper>>(4*i)&15]
	}
	return string(text)
}

// Contains says whether a topic of this hash belongs to the range.
func (r Range) Contains(hash uint32) bool {
	return r.Lower <= hash && (hash < r.Upper || r.Upper == lastHash && hash == lastHash)
}

// CanSplit says whether the range can be divided at all.
func (r Range) CanSplit() bool { return r.Upper-r.Lower > 1 }

// BundleName is a bundle's name in parts.
type BundleName struct {
	Namespace string // "tenant/namespace", or "tenant/cluster/namespace" of the old form
	Range     Range
}

// ParseBundle reads "tenant/namespace/0xLLLLLLLL_0xUUUUUUUU".
func ParseBundle(name string) (BundleName, error) {
	namespace, text, ok := CutBundle(name)
	if !ok || !strings.Contains(namespace, "/") || strings.HasPrefix(namespace, "/") || strings.HasSuffix(namespace, "/") {
		return BundleName{}, fmt.Errorf("%q is not a bundle: it must be tenant/namespace/0xLLLLLLLL_0xUUUUUUUU", name)
	}
	r, err := ParseRange(text)
	if err != nil {
		return BundleName{}, fmt.Errorf("bundle %q: %w", name, err)
	}
	return BundleName{namespace, r}, nil
}

// String is the bundle's name.
func (b BundleName) String() string { return b.Namespace + "/" + b.Range.String() }

// CutBundle cuts a bundle's name at its last slash, without looking at the parts; false if there is none.
func CutBundle(name string) (namespace, hashRange string, ok bool) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}

// NamespaceOf is the namespace of a bundle's name, the text before the last slash; "" if there is none.
func NamespaceOf(bundle string) string {
	namespace, _, ok := CutBundle(bundle)
	if !ok {
		return ""
	}
	return namespace
}

// TopicHash is where a topic lies in its namespace: the CRC-32 of its full name, with domain and partition, such as
// "persistent://tenant/namespace/topic-partition-0". It holds for Pulsar's default assigner,
// ConsistentHashingTopicBundleAssigner (setting topicBundleAssignmentStrategy).
func TopicHash(topic string) uint32 { return crc32.ChecksumIEEE([]byte(topic)) }

// Boundaries are a namespace's bundles, as its policies have them: ascending hashes, each bundle reaching from one to the next.
type Boundaries []uint32

// ParseBoundaries reads boundaries such as "0x00000000", "0x40000000", ..., "0xffffffff".
func ParseBoundaries(texts []string) (Boundaries, error) {
	b := make(Boundaries, len(texts))
	for i, text := range texts {
		n, ok := parseBound(text)
		if !ok {
			return nil, fmt.Errorf("boundary %d: %q is not a hash: it must be 0x and eight hexadecimal digits", i, text)
		}
		if i > 0 && n <= b[i-1] {
			return nil, fmt.Errorf("boundary %d: %q is not above the one before, %q", i, text, texts[i-1])
		}
		b[i] = n
	}
	if len(b) < 2 {
		return nil, fmt.Errorf("%d boundaries make no bundle: there must be two or more", len(b))
	}
	return b, nil
}

// Ranges are the ranges of the bundles in order.
func (b Boundaries) Ranges() []Range {
	if len(b) < 2 {
		return nil
	}
	ranges := make([]Range, len(b)-1)
	for i := range ranges {
		ranges[i] = Range{b[i], b[i+1]}
	}
	return ranges
}

// Find is the range of the bundle that a hash belongs to; false if it lies outside of all.
func (b Boundaries) Find(hash uint32) (Range, bool) {
	i, exact := slices.BinarySearch(b, hash)
	if !exact || i == len(b)-1 {
		i--
	}
	if i < 0 || i+1 >= len(b) {
		return Range{}, false
	}
	r := Range{b[i], b[i+1]}
	return r, r.Contains(hash)
}

// BrokerHost is the host of a broker id "host:webPort", the text before the last colon; false if there is no colon.
func BrokerHost(id string) (string, bool) {
	i := strings.LastIndexByte(id, ':')
	if i < 0 {
		return "", false
	}
	return id[:i], true
}

// SystemNamespace is the namespace of the system topics.
const SystemNamespace = "pulsar/system"

// IsSystem says whether a namespace, or the namespace of a bundle, is pulsar/system.
func IsSystem(name string) bool { return withoutRange(name) == SystemNamespace }

// IsHeartbeat says whether a namespace, or the namespace of a bundle, is one that a broker watches itself with:
// pulsar/host:port, or pulsar/cluster/host:port of the old form. It always stays on its broker.
func IsHeartbeat(name string) bool { return ofBroker(name, "pulsar/") }

// IsSLA says whether a namespace, or the namespace of a bundle, is one that monitors a broker: sla-monitor/host:port, or
// sla-monitor/cluster/host:port of the old form. It always stays on its broker.
func IsSLA(name string) bool { return ofBroker(name, "sla-monitor/") }

// IsBrokerBound says whether a namespace or bundle belongs to one broker and is never moved.
func IsBrokerBound(name string) bool { return IsHeartbeat(name) || IsSLA(name) }

// ofBroker matches Pulsar's pattern ^prefix([^:]+:\d+)$ after taking off the range of a bundle's name. The part before the
// colon may have slashes and so matches the old form, too; it may have no colon, so a broker with an IPv6 address as its host is not
// recognized, as in Pulsar.
func ofBroker(name, prefix string) bool {
	rest, ok := strings.CutPrefix(withoutRange(name), prefix)
	if !ok {
		return false
	}
	host, port, ok := strings.Cut(rest, ":")
	return ok && host != "" && port != "" && strings.Trim(port, "0123456789") == ""
}

// withoutRange takes the range off a bundle's name and leaves a namespace as it is.
func withoutRange(name string) string {
	if namespace, text, ok := CutBundle(name); ok {
		if _, err := ParseRange(text); err == nil {
			return namespace
		}
	}
	return name
}
