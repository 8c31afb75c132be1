// Package story tells the decision log to people: one sentence for a record, and the story of a bundle, a broker or a cycle
// with its numbers. It is pure.
package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/plan"
)

// Line is a record in one sentence.
func Line(r control.Record) string {
	switch r.Kind {
	case control.KindLeader:
		return leader(r)
	case control.KindPlan:
		return planned(r)
	case control.KindIntent:
		if r.Decision != nil {
			return "begins: " + action(*r.Decision)
		}
	case control.KindOutcome:
		if r.Outcome != nil {
			return outcome(*r.Outcome)
		}
	case control.KindPause:
		if r.Pause != nil {
			return pause(*r.Pause)
		}
	case control.KindReview:
		if r.Review != nil {
			return review(*r.Review)
		}
	case control.KindCommand:
		if r.Command != nil && r.Answer != nil {
			return command(*r.Command, *r.Answer)
		}
	}
	return fmt.Sprintf("a record of kind %q that this version cannot tell", r.Kind)
}

func leader(r control.Record) string {
	l := r.Leader
	switch {
	case l == nil:
		return "a record of a leader that says nothing"
	case l.What == control.Leads && l.Memory != "":
		return fmt.Sprintf("%s leads without what the leader before knew: %s", r.Instance, l.Memory)
	case l.What == control.Leads:
		return fmt.Sprintf("%s leads (epoch %d)", r.Instance, r.Epoch)
	case l.What == control.StepsDown:
		return fmt.Sprintf("%s leads no longer: %s", r.Instance, l.Why)
	}
	return fmt.Sprintf("%s ends: %s", r.Instance, l.Why)
}

// planned is what a cycle planned in one sentence.
func planned(r control.Record) string {
	if len(r.Frozen) > 0 {
		return "nothing can be decided: " + texts(r.Frozen)
	}
	if r.Plan == nil {
		return "a cycle without a plan"
	}
	total := len(r.Plan.Decisions) + r.DecisionsMore
	if total == 0 {
		return "plans nothing: " + orElse(r.Plan.Outcome.String(), "there is nothing to do")
	}
	text := fmt.Sprintf("plans %s", count(total, "decision"))
	if r.Plan.Strategy != "" {
		text += " by " + r.Plan.Strategy
	}
	if why := r.Plan.Outcome.String(); why != "" {
		text += ": " + why
	}
	if r.Verdict != nil {
		if held := len(r.Verdict.Refused) + r.RefusedMore; held > 0 {
			text += fmt.Sprintf("; %d held back", held)
		}
	}
	switch {
	case r.Review != nil && r.Review.State == control.Waiting:
		text += fmt.Sprintf("; waits for ballast approve %s", r.Review.ID)
	case r.Pause != nil:
		text += "; paused: " + r.Pause.Reason
	}
	return text
}

// action is a decision in words.
func action(d plan.Decision) string {
	switch {
	case d.Action == plan.Split:
		return fmt.Sprintf("split %s on %s", d.Bundle, d.Source)
	case d.Action == plan.Place:
		return fmt.Sprintf("place %s on %s", d.Bundle, d.Destination)
	case d.Source == "" && d.Destination == "": // it is stuck on its way
		return "unload " + d.Bundle
	case d.Destination == "":
		return fmt.Sprintf("unload %s from %s", d.Bundle, d.Source)
	}
	return fmt.Sprintf("move %s from %s to %s", d.Bundle, d.Source, d.Destination)
}

// outcome is what came of a decision, in words.
func outcome(o control.Outcome) string {
	d, found := o.Decision, ""
	if o.Inherited {
		found = " (seen by the next leader)"
	}
	why := ""
	if o.Why != "" {
		why = ": " + o.Why
	}
	switch o.Result {
	case control.Done:
		took := ""
		if !o.Inherited {
			took = fmt.Sprintf(" in %d ms", o.Millis)
		}
		switch {
		case d.Action == plan.Split:
			return fmt.Sprintf("%s was split%s%s", d.Bundle, took, found)
		case d.Source == "" && d.Destination == "":
			return fmt.Sprintf("%s is stuck no longer%s%s: %s owns it", d.Bundle, took, found, orElse(o.Owner, "nobody"))
		case o.Owner == "":
			return fmt.Sprintf("%s left %s%s%s", d.Bundle, d.Source, took, found)
		}
		return fmt.Sprintf("%s moved from %s to %s%s%s", d.Bundle, d.Source, o.Owner, took, found)
	case control.Elsewhere:
		return fmt.Sprintf("%s went to %s instead of %s%s", d.Bundle, o.Owner, d.Destination, found)
	case control.Refused:
		return fmt.Sprintf("the cluster refused to %s%s", action(d), why)
	case control.Failed:
		return fmt.Sprintf("it failed to %s%s", action(d), why)
	case control.TimedOut:
		return fmt.Sprintf("no new owner was seen in time when it was to %s%s", action(d), why)
	case control.Skipped:
		return fmt.Sprintf("it did not %s%s", action(d), why)
	case control.Unknown:
		return fmt.Sprintf("it is not known yet whether the leader before did %s%s", action(d), why)
	case control.Lost:
		return fmt.Sprintf("another record came before the one that was to %s%s", action(d), why)
	}
	return fmt.Sprintf("%s: %s%s", action(d), o.Result, why)
}

func pause(p control.Pause) string {
	if !p.On {
		return "resumes" + by(p.By) + because(p.Reason)
	}
	text := "pauses" + by(p.By) + because(p.Reason)
	if p.Until > 0 {
		text += ", until " + At(p.Until)
	}
	return text
}

func review(r control.Review) string {
	what := count(len(r.Decisions), "decision")
	switch r.State {
	case control.Waiting:
		return fmt.Sprintf("plan %s of %s waits", r.ID, what)
	case control.Withdrawn:
		return fmt.Sprintf("plan %s of %s is withdrawn%s", r.ID, what, because(r.Why))
	}
	return fmt.Sprintf("plan %s of %s is %s%s%s", r.ID, what, r.State, by(r.By), because(r.Why))
}

func command(c control.Command, a control.Answer) string {
	verdict := "done"
	switch {
	case a.Begun:
		verdict = "begun"
	case c.What == control.CommandSwitchManager && !a.Done:
		verdict = "not done"
	case !a.Done:
		verdict = "refused"
	}
	return fmt.Sprintf("command %s%s%s: %s: %s", c.What, by(c.By), because(c.Reason), verdict, a.Text)
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", why)
}

func texts(reasons []plan.Reason) string {
	var out []string
	for _, r := range reasons {
		out = append(out, r.String())
	}
	return strings.Join(out, "; ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// At is a time (Unix ms) as the stories write it.
func At(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000") }
