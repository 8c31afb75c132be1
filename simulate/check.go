package simulate

import (
	"errors"
	"fmt"
	"math"

	"github.com/ballast-lb/ballast/event"
)

// check finds what no cluster could be made of. All faults are reported at once.
func (c Config) check() error {
	var errs []error
	if len(c.Brokers) == 0 {
		errs = append(errs, errors.New("simulate: no broker: at least one is needed"))
	}
	ids := map[string]bool{}
	for i, b := range c.Brokers {
		if b.ID == "" || ids[b.ID] {
			errs = append(errs, fmt.Errorf("simulate: broker %d has the id %q: ids must be there and differ", i, b.ID))
		}
		ids[b.ID] = true
		if bad := firstBad(b.Cores, b.HeapMiB, b.DirectMiB, b.NICKbit, b.Background.CPU, b.Background.InKbit, b.Background.OutKbit); bad != nil {
			errs = append(errs, fmt.Errorf("simulate: broker %s has the capacity %v: it must be finite", b.ID, *bad))
		}
	}
	names := map[string]bool{event.SystemNamespace: c.System >= 0}
	for _, ns := range c.Namespaces {
		if ns.Name == "" || names[ns.Name] {
			errs = append(errs, fmt.Errorf("simulate: namespace %q: names must be there and differ", ns.Name))
		}
		names[ns.Name] = true
		errs = append(errs, ns.check(ids))
	}
	return errors.Join(errs...)
}

func (ns Namespace) check(brokers map[string]bool) error {
	var errs []error
	end, given := uint32(0), 0
	for i, b := range ns.Bundles {
		t := b.Traffic
		if bad := firstBad(t.MsgIn, t.MsgOut, t.BytesIn, t.BytesOut); bad != nil || min(t.MsgIn, t.MsgOut, t.BytesIn, t.BytesOut) < 0 {
			errs = append(errs, fmt.Errorf("simulate: bundle %d of %s has the traffic %+v: it must be finite and not negative", i, ns.Name, t))
		}
		if b.Owner != "" && !brokers[b.Owner] {
			errs = append(errs, fmt.Errorf("simulate: bundle %d of %s starts on %q, which is no broker", i, ns.Name, b.Owner))
		}
		if b.Range == "" {
			continue
		}
		given++
		r, err := event.ParseRange(b.Range)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("simulate: bundle %d of %s: %w", i, ns.Name, err))
		case r.Lower < end:
			errs = append(errs, fmt.Errorf("simulate: bundle %d of %s begins at 0x%08x, before the end of the one before it", i, ns.Name, r.Lower))
		}
		end = r.Upper
	}
	if given != 0 && given != len(ns.Bundles) {
		errs = append(errs, fmt.Errorf("simulate: %d of the %d bundles of %s have a range: give all or none", given, len(ns.Bundles), ns.Name))
	}
	return errors.Join(errs...)
}

func firstBad(values ...float64) *float64 {
	for i := range values {
		if math.IsNaN(values[i]) || math.IsInf(values[i], 0) {
			return &values[i]
		}
	}
	return nil
}
