package reporter

import (
	"net/url"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// judge says whether a report cannot be believed.
func (b *Broker) judge(in *Reading, r *Rules) (plan.Reason, bool) {
	if other, is := Another(b.ID, in.Report, in.Registered); is {
		return OfAnother.Because(plan.S("other", other)), true
	}
	if why, bad := b.age(in, r); bad {
		return why, true
	}
	if d := in.Report.Local; d != nil && d.NullResources.Without(event.Memory) != 0 {
		return Unreadable.Because(plan.N("seconds", 0), plan.S("error", d.NullResources.String()+" is null")), true
	}
	if what, value, bad := badFigure(in.Report); bad {
		return BadFigure.Because(plan.S("what", what), plan.N("value", value)), true
	}
	if !anyUsage(in.Report.Usage()) {
		return NoUsage.Because(), true
	}
	return plan.Reason{}, false
}

// Another is the registered broker whose report came instead of that of id.
func Another(id string, report event.BrokerReport, registered func(id string) bool) (string, bool) {
	plain, secure := report.Addresses()
	a, z := hostPort(plain), hostPort(secure)
	if registered == nil || a == id || z == id {
		return "", false
	}
	for _, other := range []string{a, z} {
		if other != "" && registered(other) {
			return other, true
		}
	}
	return "", false
}

func hostPort(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// age judges the lastUpdate of a report. Brokers' clocks may be off, so that it counts by how it moves; only for the very
// first report it is compared with our clock.
func (b *Broker) age(in *Reading, r *Rules) (plan.Reason, bool) {
	update, now, before := in.Report.UpdatedAt(), in.Now, b.update
	limit := r.advanceLimit(in.Report.Kind())
	trust := func() { b.update, b.newest, b.advanced, b.doubt = update, update, now, nil }
	doubt := func(why plan.Reason) { b.update, b.doubt = update, &why }
	first := max(limit, r.advanceLimit(event.ModularReport)) // of the age by our clock, when nothing else tells it
	switch {
	case update == 0 || r.Unwritten && in.Report.Kind() == event.ModularReport:
		trust()
	case before == 0:
		trust()
		if now-update > first {
			doubt(Old.Because(plan.N("seconds", (now-update)/1000), plan.N("limit", first/1000), plan.N("lastUpdate", update)))
		}
	case update > before && b.doubt != nil && update < b.newest && now-update > first:
		b.update = update // yesterday goes on; a clock that was set right would be near ours
	case update > before:
		trust()
	case update < before-r.MinInterval: // a clock that was set back a little makes no old report
		doubt(WentBack.Because(plan.N("lastUpdate", update), plan.N("before", before)))
	case b.doubt == nil && now-b.advanced > limit:
		doubt(NotAdvancing.Because(plan.N("lastUpdate", update), plan.N("seconds", (now-b.advanced)/1000), plan.N("limit", limit/1000)))
	}
	if b.doubt != nil {
		return *b.doubt, true
	}
	return plan.Reason{}, false
}
