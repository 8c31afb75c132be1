package extensible

import (
	"fmt"

	"github.com/ballast-lb/ballast/internal/semver"
	"github.com/ballast-lb/ballast/plan"
)

// BrokerVersionFilter keeps brokers of the latest version, if preferLaterVersions is set. From Pulsar 5 on builds count.
// A version that is missing or no strict semantic version is an error: then nothing is said about any broker.
type BrokerVersionFilter struct{}

// Name implements Filter.
func (BrokerVersionFilter) Name() string { return "BrokerVersionFilter" }

// PerBundle implements Filter.
func (BrokerVersionFilter) PerBundle() bool { return false }

// Keep implements Filter.
func (BrokerVersionFilter) Keep(c *Cycle, _ string, candidates []int) ([]int, error) {
	snap := c.Snap
	if !snap.Settings.PreferLaterVersions || len(candidates) == 0 {
		return candidates, nil
	}
	builds := semver.Major(snap.Version) >= 5
	latest := snap.Brokers[candidates[0]].Version
	for _, i := range candidates {
		v := snap.Brokers[i].Version
		if err := semver.Check(v); err != nil {
			return candidates, fmt.Errorf("%s: %w", snap.Brokers[i].ID, err)
		}
		if semver.Compare(v, latest, builds) > 0 {
			latest = v
		}
	}
	left := candidates[:0]
	for _, i := range candidates {
		if v := snap.Brokers[i].Version; semver.Compare(v, latest, builds) == 0 {
			left = append(left, i)
		} else {
			c.dropped(i, func() plan.Reason { return OlderVersion.Because(plan.S("version", v)) })
		}
	}
	return left, nil
}
