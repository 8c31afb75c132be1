package simulate

import (
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/settings"
)

// The cases are what users of Pulsar's load balancers reported about how a cluster's load moved over time, as small
// clusters. In all of them 100 % of a broker is 100 MB/s in and out of 1 kB messages, and only its CPU is busy, unless a
// case says otherwise.

const (
	full    = 100e6 // bytes/s in and out that fill a broker
	caseMsg = 1000  // bytes
)

var (
	caseBroker = Broker{Cores: 4, HeapMiB: 4096, DirectMiB: 4096, NICKbit: 1e7}
	caseCost   = Cost{CPUPerMB: 4, HeapPerMB: 0.1, HeapIdle: 1, HeapFloor: 0.2, HeapCeiling: 0.9, DirectFloor: 64}
)

// Cases are all of them.
func Cases() []Scenario {
	return []Scenario{
		caseA1(), caseA2(), caseA3a(), caseA3b(), caseA7(), caseA12(), caseA16(), caseA17(), caseA18(), caseA19(), caseA23(), caseA24(), caseA25(),
	}
}

// CaseNamed finds a case by its name.
func CaseNamed(name string) (Scenario, error) {
	var names []string
	for _, s := range Cases() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("case is %q: it must be one of %q", name, names)
}

// loaded is a scenario of brokers with the given loads in percent, each made of so many bundles of three topics whose sizes
// go from 70 % to 130 % of their mean.
func loaded(name, shows string, bundles int, loads ...float64) Scenario {
	var ns Namespace
	ns.Name = "public/case"
	for i, percent := range loads {
		for j := range bundles {
			if percent == 0 {
				break
			}
			size := 1.0
			if bundles > 1 {
				size = 0.7 + 0.6*float64(j)/float64(bundles-1)
			}
			ns.Bundles = append(ns.Bundles, Bundle{Traffic: carrying(percent / 100 * full * size / float64(bundles)), NumTopics: 3, Owner: brokerID(i + 1)})
		}
	}
	set := settings.Defaults()
	set.LoadBalancerDistributeBundlesEvenlyEnabled = false // a filter of its own, see A17
	return Scenario{
		Name: name, Shows: shows, Settle: 3 * time.Minute, Duration: 30 * time.Minute,
		Config: Config{Name: name, System: -1, Settings: set, Cost: caseCost, Brokers: brokersOf(len(loads), caseBroker), Namespaces: []Namespace{ns}},
	}
}

// carrying is traffic of a throughput, half of it in.
func carrying(throughput float64) Traffic { return Messages(throughput/2/caseMsg, caseMsg) }

// set changes a scenario's settings.
func (s Scenario) set(f func(*settings.Settings)) Scenario {
	s.Config.Settings = clone(s.Config.Settings)
	f(s.Config.Settings)
	return s
}

// With is the scenario with other settings, given as broker.conf has them.
func (s Scenario) With(key, value string) (Scenario, error) {
	s.Config.Settings = clone(s.Config.Settings)
	if err := settings.Set(s.Config.Settings, key, value); err != nil {
		return s, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return s, nil
}

func caseA1() Scenario {
	return loaded("A1", "90 and 10 %: a score with history goes on shedding after the load is even", 20, 90, 10)
}

func caseA2() Scenario {
	return loaded("A2", "ten brokers at 80 %, one idle: nobody exceeds the average by 10 points", 10,
		80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 0)
}

func caseA3a() Scenario {
	return loaded("A3a", "12, 2, 1 and 1 %: stuck below the thresholds", 10, 12, 2, 1, 1)
}

func caseA3b() Scenario {
	return loaded("A3b", "five brokers at 50 %, one idle: stuck below the thresholds", 10, 50, 50, 50, 50, 50, 0)
}

// caseA7 has bundles of many small and of few large messages: who places by rate and sheds by throughput plays ping-pong.
func caseA7() Scenario {
	s := loaded("A7", "placement by message rate, shedding by throughput, brokers that restart", 12, 50, 50, 50)
	for i := range s.Config.Namespaces[0].Bundles {
		b := &s.Config.Namespaces[0].Bundles[i]
		if size := float64(caseMsg); i%3 == 0 {
			b.Traffic = Messages(b.Traffic.BytesIn/(20*size), 20*size)
		}
	}
	s = s.set(func(x *settings.Settings) {
		x.LoadBalancerMsgThroughputMultiplierDifferenceShedderThreshold = 1.1
		x.LoadBalancerMsgRateDifferenceShedderThreshold = 0
		x.LoadBalancerSheddingGracePeriodMinutes = 5
	})
	for i := range 3 {
		s.Changes = append(s.Changes, killed(i+1, time.Duration(i)*4*time.Minute), restarted(i+1, time.Duration(i)*4*time.Minute+time.Minute))
	}
	s.Duration = 60 * time.Minute
	return s
}

// caseA12 changes the leader while the cluster is uneven.
func caseA12() Scenario {
	s := loaded("A12", "the leader is lost while one broker is idle: the new one has no history", 12, 70, 70, 70, 0)
	s.Changes = []Change{killed(1, 90*time.Second), restarted(1, 150*time.Second)}
	return s
}

// caseA16 saturates a network with one bundle of few large messages; another has far more, tiny messages.
func caseA16() Scenario {
	s := loaded("A16", "a saturated network: the bundle of few large messages must go, not that of many tiny ones", 8, 40, 30, 30)
	s.Config.Cost.CPUPerMB, s.Config.Cost.Replicas = 0.1, 0
	for i := range s.Config.Brokers {
		s.Config.Brokers[i].NICKbit = 800_000
	}
	b := s.Config.Namespaces[0].Bundles
	b[6].Traffic = Traffic{MsgIn: 1e6, BytesIn: 1e6, MsgOut: 1e6, BytesOut: 1e6}
	b[7].Traffic = Traffic{MsgIn: 50, BytesIn: 50e6, MsgOut: 100, BytesOut: 80e6}
	return s
}

// caseA17 has hot bundles where bundle counts differ: counting bundles keeps the brokers with less load out.
func caseA17() Scenario {
	s := loaded("A17", "eight hot bundles on two of eight brokers, which have fewer bundles than the others", 12, 8, 8, 8, 8, 8, 8, 8, 8)
	ns := &s.Config.Namespaces[0]
	var kept []Bundle
	for i, b := range ns.Bundles {
		if owner := i / 12; owner < 2 && i%12 >= 4 {
			continue // the hot brokers serve four bundles each
		} else if owner < 2 {
			b.Traffic = carrying(0.2 * full)
		}
		kept = append(kept, b)
	}
	ns.Bundles = kept
	s.Duration = 60 * time.Minute
	return s
}

// caseA18 lets the source be the only broker that the filter by bundle counts leaves.
func caseA18() Scenario {
	s := loaded("A18", "the hot bundle's broker has the fewest bundles of its namespace: it would be given the bundle back", 2, 0, 20, 20)
	s.Config.Namespaces[0].Bundles = append(s.Config.Namespaces[0].Bundles, Bundle{Traffic: carrying(0.8 * full), NumTopics: 3, Owner: brokerID(1)})
	s.Config.Namespaces = append(s.Config.Namespaces, Namespace{Name: "public/small", Bundles: []Bundle{{Traffic: carrying(1e6), Owner: brokerID(1)}}})
	return s
}

func caseA19() Scenario {
	s := loaded("A19", "all brokers at 90 %: there is nowhere to go", 10, 91, 90, 89, 90)
	return s
}

// caseA23 swings all load between the brokers faster than hit counts can follow.
func caseA23() Scenario {
	s := loaded("A23", "a square wave: half of the bundles are busy every other two minutes", 10, 60, 60, 60, 60)
	for i := range s.Config.Namespaces[0].Bundles {
		b := &s.Config.Namespaces[0].Bundles[i]
		b.Shape = Square{Period: 4 * time.Minute, Phase: time.Duration(i/10%2) * 2 * time.Minute, Duty: 0.5, High: 1.5, Low: 0.1}
	}
	s.Duration = 60 * time.Minute
	return s
}

// caseA24 restarts every broker, one every two minutes.
func caseA24() Scenario {
	const brokers = 6
	s := loaded("A24", "a rolling restart, one broker every two minutes: the last one comes back empty", 16, 45, 45, 45, 45, 45, 45)
	for i := range brokers {
		at := time.Duration(i) * 2 * time.Minute
		s.Changes = append(s.Changes, Change{at, fmt.Sprintf("stop %s", brokerID(i+1)), func(c *Cluster) error { return c.Stop(brokerID(i + 1)) }},
			restarted(i+1, at+30*time.Second))
	}
	s.Duration = 60 * time.Minute
	return s
}

func caseA25() Scenario {
	return loaded("A25", "two layers: five brokers at 70 %, five at 35 %", 12, 70, 70, 70, 70, 70, 35, 35, 35, 35, 35)
}

func killed(n int, after time.Duration) Change {
	return Change{after, "kill " + brokerID(n), func(c *Cluster) error { return c.Kill(brokerID(n)) }}
}

func restarted(n int, after time.Duration) Change {
	return Change{after, "restart " + brokerID(n), func(c *Cluster) error { return c.Restart(brokerID(n)) }}
}
