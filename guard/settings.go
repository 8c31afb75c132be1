package guard

import (
	"fmt"
	"math"
	"time"

	"github.com/ballast-lb/ballast/advise"
	"github.com/ballast-lb/ballast/internal/schedule"
	"github.com/ballast-lb/ballast/settings"
)

// FromSettings are the limits that the settings give. planLife is how old a plan may become while it is carried out, 0 = any age:
// what would not be started in it at the pace of ballastMaxTopicsPerSecond is left to a later plan. locate finds a time zone, as
// time.LoadLocation does; an error names the maintenance window of which it does not.
func FromSettings(own *settings.Ballast, pulsar *settings.Settings, planLife time.Duration, locate func(string) (*time.Location, error)) (Limits, error) {
	windows, err := schedule.ParseAll(own.BallastMaintenanceWindows, locate)
	if err != nil {
		return Limits{}, fmt.Errorf("ballastMaintenanceWindows: %w", err)
	}
	return Limits{
		BundlesPerCycle: int(own.BallastMaxBundlesPerCycle), BundlesPerSource: int(own.BallastMaxBundlesPerSource),
		BundlesPerTarget: int(own.BallastMaxBundlesPerDestination), ThroughputPerCycle: own.BallastMaxThroughputPerCycle,
		TopicsPerSecond: own.BallastMaxTopicsPerSecond, TopicsPerCycle: topicsWithin(own.BallastMaxTopicsPerSecond, planLife),
		BundleCoolDown: own.BallastBundleCoolDown.Milliseconds(), BrokerCoolDown: own.BallastBrokerCoolDown.Milliseconds(),
		FailureCoolDown: own.BallastBundleCoolDown.Milliseconds(), LoadDataTTL: pulsar.LoadBalancerBrokerLoadDataTTLInSeconds * 1000,
		SilentFraction: own.BallastMaxSilentBrokersPercent / 100, GainBy: gainBy(own.BallastGainBy, pulsar),
		NewBrokerTime: own.BallastNewBrokerTime.Milliseconds(), NewBrokerShare: own.BallastNewBrokerPercent / 100,
		DrainPoints:       own.BallastDrainPoints / 100,
		OscillationWindow: own.BallastOscillationWindow.Milliseconds(), OscillationTurns: int(own.BallastOscillationTurns),
		MovesAtOnce: int(own.BallastMaxMovesAtOnce), SlowMove: own.BallastSlowMove.Milliseconds(),
		MaxLatency: float64(own.BallastMaxPublishLatency) / float64(time.Millisecond), MaxReconnects: own.BallastMaxReconnectRate,
		Windows: windows,
	}, nil
}

// topicsWithin is how many topics move at a pace within a time, at least 1; 0 for no limit.
func topicsWithin(perSecond float64, d time.Duration) int64 {
	if !(perSecond > 0) || d <= 0 {
		return 0
	}
	return int64(max(1, min(perSecond*d.Seconds(), math.MaxInt32)))
}

// gainBy is a value of ballastGainBy as a figure. UniformLoadShedder moves for messages or for bytes.
func gainBy(value string, pulsar *settings.Settings) Figure {
	switch value {
	case "off":
		return NoFigure
	case "strategy":
		switch advise.MeasureOf(pulsar.LoadBalancerLoadSheddingStrategy, pulsar) {
		case advise.MsgRate, advise.Throughput:
			return Traffic
		}
		return Usage
	}
	return Figure(value)
}
