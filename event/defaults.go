package event

// NewSystemResourceUsage returns a usage of which nothing is known: (-1, -1) everywhere.
func NewSystemResourceUsage() SystemResourceUsage {
	unknown := ResourceUsage{Usage: -1, Limit: -1}
	return SystemResourceUsage{
		BandwidthIn: unknown, BandwidthOut: unknown, CPU: unknown, Memory: unknown, DirectMemory: unknown,
	}
}

// NewBrokerLoadData returns load data as a broker has it before its first update: fully used, never updated.
func NewBrokerLoadData() BrokerLoadData {
	return BrokerLoadData{MaxResourceUsage: 1, WeightedMaxEMA: 1}
}

// NewTopBundlesLoadData returns an empty list of bundles.
func NewTopBundlesLoadData() TopBundlesLoadData {
	return TopBundlesLoadData{TopBundlesLoadData: []BundleLoad{}}
}

// NewLocalBrokerData returns an empty load report made at now (Unix ms).
func NewLocalBrokerData(now int64) LocalBrokerData {
	return LocalBrokerData{
		PersistentTopicsEnabled: true, NonPersistentTopicsEnabled: true,
		LastUpdate: now, StartTimestamp: now,
		LastStats: []NamedBundleStats{},
		Bundles:   []string{}, LastBundleGains: []string{}, LastBundleLosses: []string{},
		Protocols: map[string]string{}, AdvertisedListeners: map[string]AdvertisedListener{},
	}
}

// NewLoadReport returns an empty Simple load report.
func NewLoadReport() LoadReport {
	return LoadReport{
		PersistentTopicsEnabled: true, NonPersistentTopicsEnabled: true,
		Protocols: map[string]string{}, BundleGains: []string{}, BundleLosses: []string{},
	}
}

// NewResourceQuota returns a quota of nothing that the balancer may adapt.
func NewResourceQuota() ResourceQuota { return ResourceQuota{Dynamic: true} }

// DefaultResourceQuota returns what a bundle without a stored quota is expected to need.
func DefaultResourceQuota() ResourceQuota {
	return ResourceQuota{MsgRateIn: 40, MsgRateOut: 120, BandwidthIn: 100000, BandwidthOut: 300000, Memory: 80, Dynamic: true}
}
