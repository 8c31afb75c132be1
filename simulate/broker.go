package simulate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
)

// cell is the grid on which changing traffic is counted.
const cell = int64(1000) // ms

// broker is one broker: its process, its place in the registry, and what it counted.
type broker struct {
	Broker
	c          *Cluster
	life       int  // which start of the process this is; what an earlier one had in mind is dropped
	up         bool // the process runs
	frozen     bool // it runs but does nothing (SIGSTOP)
	registered bool
	session    int // which session with the metadata store this is
	startedAt  int64
	deferred   []func() // what it will do when it thaws
	skew       time.Duration
	mute       bool // it publishes no load data

	serving []*bundle // in the order in which they came
	counted int64     // Unix ms up to which the counters below are right
	cpu     float64   // percent of a core x seconds
	in, out float64   // kbit
	bytes   float64   // in and out

	hostAt int64 // last measurement of the host, and the counters then
	host   event.SystemResourceUsage
	hostAs struct{ cpu, in, out float64 }

	statsAt int64 // last statistics pass
	stats   []event.NamedBundleStats
	totals  load.Totals

	reporter reporter
}

// alive says whether the broker does anything.
func (b *broker) alive() bool { return b.up && !b.frozen }

// clock is the broker's own idea of the time.
func (b *broker) clock() int64 { return b.c.now + b.skew.Milliseconds() }

// count brings the counters up to the present. It must run before anything changes that they depend on.
func (b *broker) count() {
	now := b.c.now
	if !b.alive() {
		b.counted = now
		return
	}
	steady := !slices.ContainsFunc(b.serving, func(x *bundle) bool { return !x.steady })
	for b.counted < now {
		end := now
		if !steady {
			end = min(now, (b.counted/cell+1)*cell)
		}
		b.countUntil(end)
	}
}

func (b *broker) countUntil(end int64) {
	seconds, elapsed := float64(end-b.counted)/1000, b.c.elapsedAt(b.counted)
	demand := b.demand(elapsed)
	share := b.handled(demand)
	for _, x := range b.serving {
		x.counted = x.counted.Plus(x.demand(elapsed).Times(share * seconds))
	}
	cpu, in, out := b.work(demand.Times(share))
	b.cpu += float64(cpu * seconds)
	b.in += float64(in * seconds)
	b.out += float64(out * seconds)
	b.bytes += float64(demand.Throughput() * share * seconds)
	b.counted = end
}

// demand is the traffic of everything it serves.
func (b *broker) demand(elapsed time.Duration) Traffic {
	var sum Traffic
	for _, x := range b.serving {
		sum = sum.Plus(x.demand(elapsed))
	}
	return sum
}

// work is what traffic costs: percent of a core, kbit/s in and out, background included.
func (b *broker) work(t Traffic) (cpu, in, out float64) {
	k := b.c.cfg.Cost
	cpu = b.Background.CPU + float64(k.CPUPerMsg*(t.MsgIn+t.MsgOut)) + float64(k.CPUPerMB*t.Throughput()/1e6)
	in = b.Background.InKbit + t.BytesIn*8/1000
	out = b.Background.OutKbit + (t.BytesOut+float64(k.Replicas*t.BytesIn))*8/1000
	return cpu, in, out
}

// handled is the part of the demanded traffic that CPU and network can bear, at most 1.
func (b *broker) handled(demand Traffic) float64 {
	cpu, in, out := b.work(demand)
	part := 1.0
	limit := func(use, background, most float64) {
		if most > 0 && use > most && use > background {
			part = min(part, max(0, (most-background)/(use-background)))
		}
	}
	limit(cpu, b.Background.CPU, 100*b.Cores)
	limit(in, b.Background.InKbit, b.NICKbit)
	limit(out, b.Background.OutKbit, b.NICKbit)
	return part
}

// usage is what the demand of the moment would be, in the form of a load report. CPU and network are not cut off at the
// limit: this is the truth that the scoreboard measures, not what the broker reports.
func (b *broker) usage(elapsed time.Duration) event.SystemResourceUsage {
	cpu, in, out := b.work(b.demand(elapsed))
	return b.resources(cpu, in, out)
}

func (b *broker) resources(cpu, in, out float64) event.SystemResourceUsage {
	u := event.SystemResourceUsage{CPU: event.ResourceUsage{Usage: cpu, Limit: 100 * b.Cores}}
	nic := b.NICKbit
	if gbps := b.c.settings.LoadBalancerOverrideBrokerNicSpeedGbps; gbps > 0 {
		nic = gbps * 1e6
	}
	unknown := event.ResourceUsage{Usage: -1, Limit: -1}
	u.BandwidthIn, u.BandwidthOut = unknown, unknown
	if nic > 0 {
		u.BandwidthIn = event.ResourceUsage{Usage: in, Limit: nic}
		u.BandwidthOut = event.ResourceUsage{Usage: out, Limit: nic}
	}
	u.Memory = event.ResourceUsage{Usage: b.heap(), Limit: b.HeapMiB}
	u.DirectMemory = event.ResourceUsage{Usage: b.direct(), Limit: b.DirectMiB}
	return u
}

// heap is a saw-tooth: what is allocated piles up from the floor to the ceiling, then a collection brings it down.
func (b *broker) heap() float64 {
	k := b.c.cfg.Cost
	floor, span := k.HeapFloor*b.HeapMiB, (k.HeapCeiling-k.HeapFloor)*b.HeapMiB
	if !(span > 0) {
		return floor
	}
	allocated := float64(k.HeapPerMB*b.bytes/1e6) + float64(k.HeapIdle*float64(b.counted-b.startedAt)/1000)
	return floor + math.Mod(allocated, span)
}

func (b *broker) direct() float64 {
	k := b.c.cfg.Cost
	use := k.DirectFloor + float64(k.DirectPerMBs*(b.totals.MsgThroughputIn+b.totals.MsgThroughputOut)/1e6)
	return math.Floor(min(use, b.DirectMiB))
}

// measureHost takes CPU and network usage since the last measurement.
func (b *broker) measureHost() {
	b.count()
	seconds := float64(b.c.now-b.hostAt) / 1000
	if seconds <= 0 {
		return
	}
	b.host = b.resources((b.cpu-b.hostAs.cpu)/seconds, (b.in-b.hostAs.in)/seconds, (b.out-b.hostAs.out)/seconds)
	b.hostAt, b.hostAs.cpu, b.hostAs.in, b.hostAs.out = b.c.now, b.cpu, b.in, b.out
}

// systemUsage is the last measurement of the host with the memory of this moment, as load reports carry it.
func (b *broker) systemUsage() event.SystemResourceUsage {
	b.count()
	u := b.host
	u.Memory = event.ResourceUsage{Usage: b.heap(), Limit: b.HeapMiB}
	u.DirectMemory = event.ResourceUsage{Usage: b.direct(), Limit: b.DirectMiB}
	return u
}

// updateStats is the statistics pass: rates of every bundle since the last one, and their sums. Pulsar reads the bundles
// from a hash map; here their order follows from a hash of the name as well, so that nothing can rely on it.
func (b *broker) updateStats() {
	b.count()
	b.stats, b.totals, b.statsAt = nil, load.Totals{}, b.c.now
	mapOrder := slices.Clone(b.serving)
	slices.SortFunc(mapOrder, func(x, y *bundle) int {
		return cmp.Or(cmp.Compare(mix(hash(x.name)^b.c.cfg.Seed), mix(hash(y.name)^b.c.cfg.Seed)), cmp.Compare(x.name, y.name))
	})
	for _, x := range mapOrder {
		if len(x.topics) == 0 {
			continue
		}
		s := x.stats(b.c.now)
		b.stats = append(b.stats, event.NamedBundleStats{Bundle: x.name, Stats: s})
		b.totals.MsgRateIn += s.MsgRateIn
		b.totals.MsgRateOut += s.MsgRateOut
		b.totals.MsgThroughputIn += s.MsgThroughputIn
		b.totals.MsgThroughputOut += s.MsgThroughputOut
		b.totals.BundleCount++
		b.totals.Topics += s.Topics
	}
}

// serve makes the broker the one that has the bundle's topics loaded.
func (c *Cluster) serve(x *bundle, b *broker) {
	if x.server == b {
		return
	}
	if old := x.server; old != nil {
		old.count()
		old.serving = slices.DeleteFunc(old.serving, func(y *bundle) bool { return y == x })
	}
	if x.server = b; b != nil {
		b.count()
		b.serving = append(b.serving, x)
		x.counted, x.from = Traffic{}, c.now
		c.moved(x, b)
	}
	c.notice(x)
}
