package guard

import (
	"time"

	"github.com/ballast-lb/ballast/plan"
)

// Why nothing runs.
var (
	ManySilent = plan.Code{ID: "GUARD_MANY_SILENT", Template: "{silent} of {brokers} brokers have no fresh load data, {broker} among them; {limit} is the most that may be silent"}
	BackingOff = plan.Code{ID: "GUARD_BACKING_OFF", Template: "nothing moves until {until}: {why}"}
	Paused     = plan.Code{ID: "GUARD_PAUSED", Template: "paused since {since} until {until}: {reason}"}
	Closed     = plan.Code{ID: "GUARD_OUTSIDE_WINDOWS", Template: "no moves now; the next window opens {opens}"}
)

// freeze is why nothing runs, and why nothing runs that no operator ordered.
func (c *check) freeze() (frozen, stopped plan.Reason) {
	frozen = c.manySilent()
	if none(frozen) {
		frozen = Held(c.st, c.snap.Now, c.lim)
	}
	if p := c.st.paused(c.snap.Now); p != nil {
		until := "it is resumed"
		if p.Until > 0 {
			until = moment(p.Until)
		}
		return frozen, Paused.Because(plan.S("since", moment(p.Since)), plan.S("until", until), plan.S("reason", orNone(p.Reason)))
	}
	now := time.UnixMilli(c.snap.Now)
	if c.lim.Windows.Open(now) {
		return frozen, plan.Reason{}
	}
	opens := "never"
	if at, ok := c.lim.Windows.Next(now); ok {
		opens = moment(at.UnixMilli())
	}
	return frozen, Closed.Because(plan.S("opens", opens))
}

// manySilent: brokers that fall silent together mean that we do not hear, more than that they do not speak.
func (c *check) manySilent() plan.Reason {
	if !(c.lim.SilentFraction > 0) {
		return plan.Reason{}
	}
	silent, first := 0, ""
	for i := range c.snap.Brokers {
		b := &c.snap.Brokers[i]
		none := b.Load == nil && b.Local == nil && b.Report == nil
		if none || c.lim.LoadDataTTL > 0 && c.snap.Now-b.LoadHeard > c.lim.LoadDataTTL {
			if silent++; silent == 1 {
				first = b.ID
			}
		}
	}
	limit := c.lim.SilentFraction * float64(len(c.snap.Brokers))
	if silent < 2 || float64(silent) <= limit {
		return plan.Reason{}
	}
	return ManySilent.Because(plan.N("silent", silent), plan.N("brokers", len(c.snap.Brokers)), plan.S("broker", first), plan.N("limit", limit))
}

func (c *check) stop(d *plan.Decision) (plan.Reason, bool) {
	return c.stopped, !none(c.stopped) && !Ordered(*d)
}

func moment(unixMillis int64) string { return time.UnixMilli(unixMillis).UTC().Format(time.RFC3339) }

func orNone(reason string) string {
	if reason == "" {
		return "no reason was given"
	}
	return reason
}
