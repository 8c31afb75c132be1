package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/event"
)

// bundle is a bundle and what it handled.
type bundle struct {
	name      string
	namespace string
	keys      event.Range
	traffic   Traffic
	shape     Shape
	steady    bool // the shape is constant
	topics    []Topic
	producers int
	consumers int

	server   *broker // has its topics loaded; nil = nobody
	counted  Traffic // messages and bytes since countFrom
	from     int64   // Unix ms
	gapSince int64   // Unix ms since when its clients are cut off; -1 = they are served
	last     *broker // the last one that served it
	why      Cause   // why it is about to change its broker; "" = it is not
}

// demand is the traffic its clients want to have handled.
func (b *bundle) demand(elapsed time.Duration) Traffic {
	if b.steady {
		return b.traffic
	}
	return b.traffic.Times(factor(b.shape, elapsed))
}

// served says whether clients reach the bundle's topics.
func (b *bundle) served() bool { return b.server != nil && b.server.alive() }

// stats are the rates since the last call, and starts counting anew.
func (b *bundle) stats(now int64) event.NamespaceBundleStats {
	n := len(b.topics)
	s := event.NamespaceBundleStats{
		ProducerCount: int32(n * b.producers), ConsumerCount: int32(n * b.consumers), Topics: int64(n),
	}
	if seconds := float64(now-b.from) / 1000; seconds > 0 {
		s.MsgRateIn, s.MsgRateOut = b.counted.MsgIn/seconds, b.counted.MsgOut/seconds
		s.MsgThroughputIn, s.MsgThroughputOut = b.counted.BytesIn/seconds, b.counted.BytesOut/seconds
	}
	b.counted, b.from = Traffic{}, now
	return s
}

// addNamespaces makes the bundles of the configuration, in its order, and gives each its first owner.
func (c *Cluster) addNamespaces() {
	system := Namespace{Name: event.SystemNamespace, Bundles: make([]Bundle, max(0, cmp.Or(c.cfg.System, 4)))}
	for _, ns := range append([]Namespace{system}, c.cfg.Namespaces...) {
		c.namespaces = append(c.namespaces, ns.Name)
		for i, spec := range ns.Bundles {
			keys := evenRange(i, len(ns.Bundles))
			if spec.Range != "" {
				keys, _ = event.ParseRange(spec.Range) // checked before
			}
			b := &bundle{
				namespace: ns.Name, keys: keys, name: ns.Name + "/" + keys.String(),
				traffic: spec.Traffic, shape: spec.Shape, steady: constant(spec.Shape), topics: spec.topics(keys),
				producers: cmp.Or(spec.Producers, 1), consumers: cmp.Or(spec.Consumers, 1), gapSince: -1,
			}
			c.addBundle(b)
			c.assignFirst(b, spec.Owner)
		}
	}
	slices.Sort(c.namespaces)
}

func (c *Cluster) addBundle(b *bundle) {
	b.from = c.now
	c.bundles[b.name] = b
}

// topics are the topics as given, or of equal share and spread evenly over the range.
func (s Bundle) topics(keys event.Range) []Topic {
	if s.Topics != nil {
		return slices.Clone(s.Topics)
	}
	n := cmp.Or(s.NumTopics, 1)
	out := make([]Topic, n)
	size := uint64(keys.Upper-keys.Lower) + 1
	for i := range out {
		out[i] = Topic{Hash: keys.Lower + uint32((2*uint64(i)+1)*size/(2*uint64(n))), Share: 1}
	}
	return out
}

// divide makes the two halves of a bundle: topics by hash, traffic by their shares.
func (b *bundle) divide(at uint32) (low, high *bundle) {
	part := func(keys event.Range) *bundle {
		p := *b
		p.keys, p.name, p.topics = keys, b.namespace+"/"+keys.String(), nil
		p.counted, p.server, p.gapSince = Traffic{}, nil, -1
		mine, all := 0.0, 0.0
		for _, t := range b.topics {
			all += t.Share
			if keys.Contains(t.Hash) {
				p.topics = append(p.topics, t)
				mine += t.Share
			}
		}
		p.traffic = Traffic{}
		if all > 0 {
			p.traffic = b.traffic.Times(mine / all)
		}
		return &p
	}
	return part(event.Range{Lower: b.keys.Lower, Upper: at}), part(event.Range{Lower: at, Upper: b.keys.Upper})
}

// namespaceBundles are the bundles of a namespace in range order.
func (c *Cluster) namespaceBundles(namespace string) []*bundle {
	var out []*bundle
	for _, b := range c.bundles {
		if b.namespace == namespace {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b *bundle) int { return cmp.Compare(a.keys.Lower, b.keys.Lower) })
	return out
}

func (c *Cluster) bundleOf(name string) (*bundle, error) {
	if b, ok := c.bundles[name]; ok {
		return b, nil
	}
	if _, err := event.ParseBundle(name); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("bundle %s does not exist", name)
}
