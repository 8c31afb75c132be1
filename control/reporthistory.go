package control

import (
	"context"
	"time"

	"github.com/ballast-lb/ballast/modular"
)

// remember takes new reports into the histories of the bundles, and fills those in. Every look that heard something new adds
// one sample of every reported bundle, as in Pulsar every report of any broker does; with oneSamplePerReport only of the
// brokers that reported.
func (l *reportLook) remember(ready bool) {
	v, h := l.ReportViews, l.o.History
	news := false
	for i := range l.snap.Brokers {
		if !ready {
			break // a part of the brokers, or of what was kept, would give other averages
		}
		b := &l.snap.Brokers[i]
		if e, ok := l.reports.Get(b.ID); ok && b.Local != nil && e.Received.After(v.counted[b.ID]) {
			v.counted[b.ID], news = e.Received, true
		}
	}
	for i := range l.snap.Bundles {
		l.snap.Bundles[i].Data = h.Bundle(l.snap.Bundles[i].Name)
	}
	if !news {
		for i := range l.snap.Brokers {
			b := &l.snap.Brokers[i]
			if a, ok := v.averages[b.ID]; ok && b.Local != nil {
				b.TimeAverage = &a
			}
		}
		return
	}
	manager := modular.Manager{Options: v.o.Repairs}
	next, st, _ := manager.Update(l.snap, &modular.State{Version: modular.StateVersion, Sampled: v.sampled})
	l.snap, v.sampled = next, st.(*modular.State).Sampled
	h.take(l.snap)
	clear(v.averages)
	for i := range l.snap.Brokers {
		if a := l.snap.Brokers[i].TimeAverage; a != nil {
			v.averages[l.snap.Brokers[i].ID] = *a
		}
	}
}

// forget ends the histories of what is gone: bundles that no broker reports and that are in no namespace, and brokers that
// are not registered.
func (l *reportLook) forget() {
	l.o.History.forget(func(bundle string) bool {
		i := l.snap.BundleIndex(bundle)
		return i >= 0 && l.snap.Bundles[i].Owner != "" || !l.bundles.gone(bundle)
	}, func(broker string) bool { return l.snap.BrokerIndex(broker) >= 0 })
}

// keep has the history written when that is due.
func (v *ReportViews) keep(ctx context.Context, now time.Time) {
	if !v.o.History.due(now) {
		return
	}
	if v.o.Stepwise {
		v.save(ctx, now)
		return
	}
	select {
	case v.due <- now:
	default: // it is being written
	}
}
