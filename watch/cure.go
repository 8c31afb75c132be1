package watch

import (
	"maps"
	"slices"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Why an anomaly is cured, or is left to the cluster and its operator.
var (
	CureStuck     = plan.Code{ID: "CURE_STUCK_BUNDLE", Template: "{code} since {seconds} s and the cluster's leader has not mended it: unload it, attempt {attempt} of {most}"}
	CureNone      = plan.Code{ID: "CURE_NONE", Template: "{code} has no cure that is safe: an operator has to decide"}
	CureWait      = plan.Code{ID: "CURE_WAITS", Template: "{code} is left to the cluster's own leader until it must have looked twice"}
	CureBacksOff  = plan.Code{ID: "CURE_BACKS_OFF", Template: "the last attempt was {age} ms ago, the next one is due after {limit} ms"}
	CureExhausted = plan.Code{ID: "CURE_EXHAUSTED", Template: "{attempts} attempts did not help: an operator has to look"}
	CureBudget    = plan.Code{ID: "CURE_BUDGET", Template: "{limit} cures at a time are used up"}
)

// CureLimits bound the cures.
type CureLimits struct {
	AtOnce   int   // cures of one look
	Attempts int   // of one bundle, until it was well for as long as the next attempt would have been due after
	BackOff  int64 // ms after the first attempt; doubled after each
}

// DefaultCureLimits are one bundle at a time, three times, after 5 and 10 minutes.
var DefaultCureLimits = CureLimits{AtOnce: 1, Attempts: 3, BackOff: 300_000}

// CureState is which bundles were treated. It is versioned, plain data; the zero value is nothing.
type CureState struct {
	Version int                `json:"version"`
	Tried   map[string]Attempt `json:"tried,omitempty"` // by bundle
}

// Attempt is how often a bundle was treated, and when last.
type Attempt struct {
	Count  int   `json:"count"`
	Last   int64 `json:"last"`             // Unix ms
	Before int64 `json:"before,omitempty"` // Unix ms of the one before; 0 = none
}

// Untried is the state without the newest attempt at a bundle, which was counted and then not made.
func (st CureState) Untried(bundle string) CureState {
	tried, ok := st.Tried[bundle]
	if !ok {
		return st
	}
	st.Tried = maps.Clone(st.Tried)
	if tried.Count <= 1 {
		delete(st.Tried, bundle)
	} else {
		st.Tried[bundle] = Attempt{Count: tried.Count - 1, Last: tried.Before}
	}
	return st
}

// wait is how long (ms) after the last attempt the next one is due.
func (t Attempt) wait(lim CureLimits) int64 {
	if t.Count == 0 {
		return 0
	}
	return lim.BackOff << min(t.Count-1, 20)
}

// Cures are the decisions that cure what has a safe cure: an admin unload of a bundle that is stuck on its way. By the rules of
// the channel (ServiceUnitStateChannelImpl) the record that it makes is no valid transition from a state in flight, so it takes
// nothing from whoever acts on the bundle: it mends where brokers see more than the log shows, and says why where they do not.
// What would mend by force, as the cluster's leader does, is left to that one.
//
// held is why a bundle may not be touched now; nil = none is held. The state that is returned counts the cures as tried; what is
// well again is forgotten once the next attempt would have been due, so that one that comes and goes is not cured each time.
// left says why the others are not cured now.
func Cures(anomalies []Anomaly, st CureState, now int64, lim CureLimits, held func(bundle string) (plan.Reason, bool)) (cures []plan.Decision, left []plan.LeftOut, next CureState) {
	next = CureState{Version: 1, Tried: map[string]Attempt{}}
	for bundle, tried := range st.Tried {
		if now-tried.Last < tried.wait(lim) {
			next.Tried[bundle] = tried
		}
	}
	for _, a := range anomalies {
		tried, again := st.Tried[a.Bundle]
		if again && a.Why.Code == InFlight.ID {
			next.Tried[a.Bundle] = tried
		}
		why, no := refuse(a, tried, now, lim, len(cures))
		if !no && held != nil {
			why, no = held(a.Bundle)
		}
		if no {
			left = append(left, plan.LeftOut{Bundle: a.Bundle, Broker: a.Broker, Why: why})
			continue
		}
		tried = Attempt{Count: tried.Count + 1, Last: now, Before: tried.Last}
		next.Tried[a.Bundle] = tried
		cures = append(cures, plan.Decision{Action: plan.Unload, Bundle: a.Bundle, Why: CureStuck.Because(plan.S("code", a.Why.Code),
			plan.N("seconds", (now-a.Since)/1000), plan.N("attempt", tried.Count), plan.N("most", lim.Attempts))})
	}
	return cures, left, next
}

func refuse(a Anomaly, tried Attempt, now int64, lim CureLimits, used int) (plan.Reason, bool) {
	code := plan.S("code", a.Why.Code)
	switch {
	case a.Why.Code != InFlight.ID || a.state == event.Splitting:
		return CureNone.Because(code), true
	case a.Severity != Error:
		return CureWait.Because(code), true
	}
	if why := policy.Unmanaged(policy.NamespaceOf(a.Bundle), nil); !why.IsZero() {
		return plan.FromPolicy(why), true
	}
	if tried.Count >= lim.Attempts {
		return CureExhausted.Because(plan.N("attempts", tried.Count)), true
	}
	if wait := tried.wait(lim); now-tried.Last < wait {
		return CureBacksOff.Because(plan.N("age", now-tried.Last), plan.N("limit", wait)), true
	}
	if used >= lim.AtOnce {
		return CureBudget.Because(plan.N("limit", lim.AtOnce)), true
	}
	return plan.Reason{}, false
}

// Worst is the severity of the worst anomaly, "" without any.
func Worst(list []Anomaly) Severity {
	var worst Severity
	for _, a := range list {
		if a.Severity == Error {
			return Error
		}
		worst = a.Severity
	}
	return worst
}

// Codes are the codes of anomalies, ordered, each once.
func Codes(list []Anomaly) []string {
	codes := map[string]bool{}
	for _, a := range list {
		codes[a.Why.Code] = true
	}
	return slices.Sorted(maps.Keys(codes))
}
