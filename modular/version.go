package modular

import (
	"errors"
	"fmt"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/internal/semver"
)

// ErrVersions is wrapped by the error about candidates whose versions cannot be compared.
var ErrVersions = errors.New("broker versions cannot be compared")

// isPulsar5 says whether a Pulsar version is 5.0.0 or later. A version that cannot be read is not.
func isPulsar5(version string) bool { return semver.Major(version) >= 5 }

// LatestVersion is the candidates (indexes into Snapshot.Brokers) of the latest version among them, if preferLaterVersions
// is set, else all. Versions are strict semantic versions; their builds count from Pulsar 5 on. Its errors wrap
// ErrVersions: no candidates, a candidate without a load report, a version that is none.
// Pulsar: BrokerVersionFilter of the Modular manager.
func LatestVersion(snap *cluster.Snapshot, candidates []int) ([]int, error) {
	if !snap.Settings.PreferLaterVersions {
		return candidates, nil
	}
	if len(candidates) == 0 {
		return nil, fmt.Errorf("%w: no candidates", ErrVersions)
	}
	version := func(i int) string { return snap.Brokers[i].Local.BrokerVersionString }
	builds, latest := isPulsar5(snap.Version), ""
	for _, i := range candidates {
		b := &snap.Brokers[i]
		if b.Local == nil {
			return nil, fmt.Errorf("%w: %s has no load report", ErrVersions, b.ID)
		}
		if err := semver.Check(version(i)); err != nil {
			return nil, fmt.Errorf("%w: %s has %w", ErrVersions, b.ID, err)
		}
		if latest == "" || semver.Compare(version(i), latest, builds) > 0 {
			latest = version(i)
		}
	}
	var left []int
	for _, i := range candidates {
		if semver.Compare(version(i), latest, builds) == 0 {
			left = append(left, i)
		}
	}
	return left, nil
}
