package extensible

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Filter drops brokers that may not take a bundle. Pulsar: BrokerFilter.
type Filter interface {
	// Name is Pulsar's name of the filter.
	Name() string
	// PerBundle says whether the answer depends on the bundle; the answers of the others are worked out once a cycle.
	PerBundle() bool
	// Keep returns the candidates (indexes into the snapshot's Brokers) that stay, in order. It may reuse their slice. On an
	// error, which says that nothing can be told, no candidate was removed.
	Keep(c *Cycle, bundle string, candidates []int) ([]int, error)
}

// Filters is Pulsar's pipeline, in order.
func Filters(o Options) []Filter {
	antiAffinity, isolation := AntiAffinityGroupPolicyFilter{Options: o}, BrokerIsolationPoliciesFilter{}
	first := []Filter{BrokerLoadManagerClassFilter{}, BrokerMaxTopicCountFilter{}, BrokerVersionFilter{}}
	if o.IsolationFirst {
		return append(first, isolation, antiAffinity)
	}
	return append(first, antiAffinity, isolation)
}

// Why a broker may not take a bundle, besides the reasons of package policy.
var (
	// OtherLoadManager: the broker runs another load manager.
	OtherLoadManager = plan.Code{ID: "OTHER_LOAD_MANAGER", Template: "load manager {class} is not {wanted}"}
	// TooManyTopics: the broker has its limit of topics.
	TooManyTopics = plan.Code{ID: "TOO_MANY_TOPICS", Template: "{topics} topics >= loadBalancerBrokerMaxTopics {limit}"}
	// OlderVersion: the broker has an older version and preferLaterVersions is set.
	OlderVersion = plan.Code{ID: "OLDER_VERSION", Template: "version {version} is not the latest (preferLaterVersions)"}
	// FilterFailed: the filter could not tell who may take the bundle.
	FilterFailed = plan.Code{ID: "FILTER_FAILED", Template: "{filter} failed: {error}"}
)

// Cycle is what the filters of one cycle, or of the placements on one snapshot, share.
type Cycle struct {
	Snap *cluster.Snapshot
	// Left is told of every candidate that a filter drops and why; nil = nobody asks.
	Left func(broker int, why plan.Reason)

	filters   []Filter
	kinds     bool  // Options.CheckTopicKinds
	shared    int   // how many filters at the beginning do not depend on the bundle
	base      []int // what they leave of all brokers
	failed    error // the error of one of them
	failedAt  string
	view      *policy.View
	viewIndex []int // by index of a broker: its index in view, -1 = none
	groups    map[string][]int
	domains   []int // by index of a broker: a number for its failure domain; nil = not worked out
	sums      []int // scratch: by number of a domain
}

// newCycle works out what holds for all bundles; left is told of the brokers that none may go to.
func newCycle(snap *cluster.Snapshot, filters []Filter, o Options, left func(filter string, broker int, why plan.Reason)) *Cycle {
	c := &Cycle{Snap: snap, filters: filters, kinds: o.CheckTopicKinds}
	c.base = make([]int, len(snap.Brokers))
	for i := range c.base {
		c.base[i] = i
	}
	for c.shared < len(filters) && !filters[c.shared].PerBundle() {
		f := filters[c.shared]
		if left != nil {
			c.Left = func(broker int, why plan.Reason) { left(f.Name(), broker, why) }
		}
		kept, err := f.Keep(c, "", c.base)
		if err != nil {
			if c.failed == nil {
				c.failed, c.failedAt = err, f.Name()
			}
		} else {
			c.base = kept
		}
		c.shared++
	}
	c.Left = nil
	return c
}

// policies is the view of the policies over the brokers that were left before the first filter per bundle: only they
// count as primaries.
func (c *Cycle) policies() (*policy.View, []int) {
	if c.view != nil {
		return c.view, c.viewIndex
	}
	brokers := make([]policy.Broker, len(c.base))
	c.viewIndex = make([]int, len(c.Snap.Brokers))
	for i := range c.viewIndex {
		c.viewIndex[i] = -1
	}
	for k, i := range c.base {
		b := &c.Snap.Brokers[i]
		brokers[k] = policy.Broker{ID: b.ID, PersistentTopics: b.PersistentTopics, NonPersistentTopics: b.NonPersistentTopics}
		c.viewIndex[i] = k
	}
	var opts []policy.ViewOption
	if c.kinds {
		opts = append(opts, policy.CheckTopicKinds)
	}
	c.view = c.Snap.Policies.Over(brokers, opts...)
	return c.view, c.viewIndex
}

// dropped tells why a candidate was dropped, if anybody asks.
func (c *Cycle) dropped(broker int, why func() plan.Reason) {
	if c.Left != nil {
		c.Left(broker, why())
	}
}

// BrokerLoadManagerClassFilter keeps brokers that report the configured load manager.
type BrokerLoadManagerClassFilter struct{}

// Name implements Filter.
func (BrokerLoadManagerClassFilter) Name() string { return "BrokerLoadManagerClassFilter" }

// PerBundle implements Filter.
func (BrokerLoadManagerClassFilter) PerBundle() bool { return false }

// Keep implements Filter.
func (BrokerLoadManagerClassFilter) Keep(c *Cycle, _ string, candidates []int) ([]int, error) {
	wanted := loadManagerClass(c.Snap.Settings.LoadManagerClassName)
	left := candidates[:0]
	for _, i := range candidates {
		if class := c.Snap.Brokers[i].LoadManager; class == wanted {
			left = append(left, i)
		} else {
			c.dropped(i, func() plan.Reason {
				return OtherLoadManager.Because(plan.S("class", quoted(class)), plan.S("wanted", wanted))
			})
		}
	}
	return left, nil
}

// quoted is a name that may be empty.
func quoted(name string) string {
	if name == "" {
		return `""`
	}
	return name
}

// BrokerMaxTopicCountFilter keeps brokers with fewer topics than loadBalancerBrokerMaxTopics. A broker without load data
// counts as one without topics.
type BrokerMaxTopicCountFilter struct {
	// LoadUnavailable says that the load data could not be read at all: then every broker passes.
	LoadUnavailable bool
}

// Name implements Filter.
func (BrokerMaxTopicCountFilter) Name() string { return "BrokerMaxTopicCountFilter" }

// PerBundle implements Filter.
func (BrokerMaxTopicCountFilter) PerBundle() bool { return false }

// Keep implements Filter.
func (f BrokerMaxTopicCountFilter) Keep(c *Cycle, _ string, candidates []int) ([]int, error) {
	if f.LoadUnavailable {
		return candidates, nil
	}
	limit := c.Snap.Settings.LoadBalancerBrokerMaxTopics
	left := candidates[:0]
	for _, i := range candidates {
		var topics int64
		if l := c.Snap.Brokers[i].Load; l != nil {
			topics = l.Topics
		}
		if topics < limit {
			left = append(left, i)
		} else {
			c.dropped(i, func() plan.Reason { return TooManyTopics.Because(plan.N("topics", topics), plan.N("limit", limit)) })
		}
	}
	return left, nil
}
