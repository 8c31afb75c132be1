package simulate

import (
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/simple"
)

// reportSimple is the periodic task of a Simple broker: it writes its load report when that is due.
func (b *broker) reportSimple() {
	c, r := b.c, &b.reporter.simple
	usage := b.systemUsage()
	r.AddHeap(int64(usage.Memory.Usage), c.settings)
	if b.reporter.forced {
		r.Forced, b.reporter.forced = true, false
	}
	if due, _ := r.Due(b.clock(), int64(len(b.stats)), r.WithHeap(usage), c.settings); !due || b.mute {
		return
	}
	d := b.asSimple()
	r.Written(d)
	c.modular.simple[b.ID] = d
	c.updateAll()
}

// asSimple is a Simple broker's load report as of now.
func (b *broker) asSimple() *event.LoadReport {
	c, r := b.c, &b.reporter.simple
	st, ok := c.balancer.state.(*simple.State)
	if !ok {
		st = simple.NewState()
	}
	who := simple.Identity{Broker: b.ID, Version: b.Version, WebServiceURL: "http://" + b.ID, PulsarServiceURL: "pulsar://" + short(b.ID),
		LoadManager: Simple.class()}
	d := r.Report(who, b.clock(), r.WithHeap(b.systemUsage()), b.stats, c.settings, st)
	return &d
}

// simpleReport is what a broker of a Simple cluster answers when asked for its load report.
func (c *Cluster) simpleReport(id string) (*event.LoadReport, error) {
	b, err := c.answering(id)
	if err != nil {
		return nil, err
	}
	return b.asSimple(), nil
}
