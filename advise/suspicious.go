package advise

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

var (
	// IdleButBusy: the broker uses far less CPU for its traffic than others do.
	IdleButBusy = plan.Code{ID: "CPU_UNLIKE_TRAFFIC", Template: "{usage} of {limit} % CPU at {throughput} bytes/s is {times} times less per byte than the median broker's: usage and limit may be of different scope (host and container)"}
	// BelowTraffic: the broker's network usage is less than what its messages must have carried.
	BelowTraffic = plan.Code{ID: "NETWORK_BELOW_TRAFFIC", Template: "{resource} is {usage} kbit/s, its messages alone are {traffic}: the wrong interface is measured, or clients are on its host"}
	// UnlikeLimit: the limit of the broker's network is far from that of the others.
	UnlikeLimit = plan.Code{ID: "LIMIT_UNLIKE_OTHERS", Template: "the limit of {resource} is {limit} kbit/s, the median broker's {median}: override it (ballastCapacityOverridesFile) if it is not so"}
)

const (
	fewest     = 3   // brokers that must be comparable
	cpuTimes   = 5   // times less CPU per byte than the median that is not believed
	limitTimes = 4   // times the median limit, or a part of it, that is not believed
	leastRate  = 1e6 // bytes/s below which traffic is not compared with anything
)

// Suspicious are the brokers whose reports can hardly be true. What is compared is CPU per byte of messages among brokers with at
// least half of the median traffic, network usage with the broker's own messages, and limits of networks among brokers. Brokers whose
// load is estimated are not compared.
func Suspicious(snap *cluster.Snapshot) []plan.LeftOut {
	w := load.WeightsOf(snap.Settings)
	reports := make([]report, len(snap.Brokers))
	heard := make([]bool, len(snap.Brokers))
	for i := range snap.Brokers {
		reports[i], heard[i] = reportOf(&snap.Brokers[i], w)
		heard[i] = heard[i] && !snap.Brokers[i].Estimated // what was filled in says nothing about how a broker measures
	}
	s := suspicion{snap: snap, reports: reports, heard: heard}
	s.cpu()
	s.traffic()
	s.limits(event.BandwidthIn)
	s.limits(event.BandwidthOut)
	return s.out
}

type suspicion struct {
	snap    *cluster.Snapshot
	reports []report
	heard   []bool
	out     []plan.LeftOut
}

func (s *suspicion) add(i int, c plan.Code, numbers ...plan.Number) {
	s.out = append(s.out, plan.LeftOut{Broker: s.snap.Brokers[i].ID, Why: c.Because(numbers...)})
}

// values collects a figure of the brokers that have it.
func (s *suspicion) values(of func(*report) (float64, bool)) []float64 {
	var out []float64
	for i := range s.reports {
		if s.heard[i] {
			if v, ok := of(&s.reports[i]); ok {
				out = append(out, v)
			}
		}
	}
	return out
}

func (s *suspicion) cpu() {
	half := median(s.values(func(r *report) (float64, bool) { return r.throughput(), r.hasTraffic })) / 2
	perByte := func(r *report) (float64, bool) {
		cpu := r.resources[event.CPU]
		if !r.hasTraffic || !known(cpu) || r.throughput() < max(half, leastRate) {
			return 0, false
		}
		return cpu.Usage / r.throughput(), true
	}
	costs := s.values(perByte)
	if len(costs) < fewest {
		return
	}
	usual := median(costs)
	for i := range s.reports {
		r := &s.reports[i]
		cost, ok := perByte(r)
		if s.heard[i] && ok && cost*cpuTimes < usual {
			times := usual / max(cost, usual/1000) // no infinity for a broker that reports no usage at all
			s.add(i, IdleButBusy, plan.N("usage", r.resources[event.CPU].Usage), plan.N("limit", r.resources[event.CPU].Limit),
				plan.N("throughput", r.throughput()), plan.N("times", times))
		}
	}
}

func (s *suspicion) traffic() {
	for i := range s.reports {
		r := &s.reports[i]
		if !s.heard[i] || !r.hasTraffic {
			continue
		}
		for _, x := range []struct {
			resource event.Resource
			bytes    float64
		}{{event.BandwidthIn, r.in}, {event.BandwidthOut, r.out}} {
			u, kbit := r.resources[x.resource], x.bytes*8/1000
			if known(u) && x.bytes >= leastRate && u.Usage < kbit/2 { // half: both are measured at their own times
				s.add(i, BelowTraffic, plan.S("resource", x.resource.String()), plan.N("usage", u.Usage), plan.N("traffic", kbit))
			}
		}
	}
}

func (s *suspicion) limits(resource event.Resource) {
	limit := func(r *report) (float64, bool) { return r.resources[resource].Limit, known(r.resources[resource]) }
	all := s.values(limit)
	if len(all) < fewest {
		return
	}
	usual := median(all)
	for i := range s.reports {
		if l, ok := limit(&s.reports[i]); s.heard[i] && ok && (l >= limitTimes*usual || l*limitTimes <= usual) {
			s.add(i, UnlikeLimit, plan.S("resource", resource.String()), plan.N("limit", l), plan.N("median", usual))
		}
	}
}
