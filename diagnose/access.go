package diagnose

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/watch"
)

// What is found about permissions, schemas and clocks.
var (
	Denied        = plan.Code{ID: "PERMISSION_DENIED", Template: "the credentials may not {what}, which mode {mode} needs: {answer}"}
	DeniedLater   = plan.Code{ID: "PERMISSION_MISSING", Template: "the credentials may not {what}; mode {mode} would need it: {answer}"}
	ForeignSchema = plan.Code{ID: "SCHEMA_FOREIGN", Template: "version {version} of the schema is {type} and none that brokers declare: somebody else published onto the topic"}
	NewSchema     = plan.Code{ID: "SCHEMA_UNKNOWN", Template: "the newest schema (version {version}, {type}) is none that is known: brokers of another version declare it, or somebody else published onto the topic"}
	ClockOff      = plan.Code{ID: "CLOCK_OFF", Template: "its clock is {seconds} s {direction} (give or take {uncertain} s), the limit is {limit} s"}
)

// modes in the order in which they need more.
var modes = map[string]int{"observe": 0, "advise": 1, "govern": 2}

func (c *checker) permissions() {
	granted := 0
	for _, p := range c.Probes {
		switch {
		case p.Denied == "":
			granted++
		case modes[p.Needed] <= modes[c.Mode]:
			c.add(Permissions, Error, p.What, Denied.Because(plan.S("what", p.What), plan.S("mode", c.Mode), plan.S("answer", p.Denied)), "grant it to Ballast's role, or choose a lesser mode")
		default:
			c.add(Permissions, Info, p.What, DeniedLater.Because(plan.S("what", p.What), plan.S("mode", p.Needed), plan.S("answer", p.Denied)), "that is right while Ballast does not act")
		}
	}
	c.fine(Permissions, "the credentials may do what mode {mode} needs ({count} permissions were tried, none changes anything)", plan.S("mode", c.Mode), plan.N("count", granted))
}

// schemas compares the schemas of the load topics with those that brokers declare. Earlier versions count, too: brokers of
// an older Pulsar declared them, or somebody declared another one, which stays for ever.
func (c *checker) schemas() {
	for _, s := range c.Schemas {
		known := event.SchemasOf(s.Class)
		for i, v := range s.Versions {
			if v.Type == "JSON" && declared(known, v.Definition) {
				continue
			}
			kind := strings.ToUpper(v.Type)
			number, named := plan.N("version", v.Version), plan.S("type", kind)
			if i == len(s.Versions)-1 && kind == "JSON" {
				c.add(Schemas, Warning, s.Topic, NewSchema.Because(number, named), "compare with what the brokers' version declares; nothing is published onto the topic by Ballast meanwhile")
			} else {
				c.add(Schemas, Warning, s.Topic, ForeignSchema.Because(number, named), "find the client that declared it; it can be taken away by deleting the topic's schema, after which brokers declare theirs again")
			}
		}
	}
	c.fine(Schemas, "{count} load topics have the brokers' schemas, and no other", plan.N("count", len(c.Schemas)))
}

func declared(known []event.Schema, definition string) bool {
	var got any
	if json.Unmarshal([]byte(definition), &got) != nil {
		return false
	}
	for _, k := range known {
		var want any
		if json.Unmarshal([]byte(k.Definition), &want) == nil && reflect.DeepEqual(want, got) {
			return true
		}
	}
	return false
}

// clockLimit (ms) is how far a broker's clock may be off.
const clockLimit = 5000

func (c *checker) clocks() {
	for _, k := range c.Clocks {
		ahead, direction := k.Ahead, "ahead"
		if ahead < 0 {
			ahead, direction = -ahead, "behind"
		}
		if ahead-k.Uncertain <= clockLimit {
			continue
		}
		c.add(Clocks, Warning, k.Broker, ClockOff.Because(plan.N("seconds", float64(ahead)/1000), plan.S("direction", direction),
			plan.N("uncertain", float64(k.Uncertain)/1000), plan.N("limit", clockLimit/1000)),
			"Pulsar compares timestamps of different brokers; let a time service keep the clocks")
	}
	c.fine(Clocks, "{count} brokers' clocks agree with this one within {limit} s", plan.N("count", len(c.Clocks)), plan.N("limit", clockLimit/1000))
}

func (c *checker) ownership() {
	for _, a := range c.Anomalies {
		severity, about := Warning, a.Bundle
		if a.Severity == watch.Error {
			severity = Error
		}
		for _, other := range []string{a.Broker, a.Producer} {
			if about == "" {
				about = other
			}
		}
		c.out = append(c.out, Finding{Area: Ownership, Severity: severity, About: about, Why: a.Why, Advice: a.Advice, Anomaly: &a})
	}
	if c.NoLog != "" {
		c.fine(Ownership, "{manager} keeps no ownership log", plan.S("manager", short(c.NoLog)))
		return
	}
	if c.Watched > 0 {
		c.fine(Ownership, "{count} bundles have records, and nothing is wrong with them; the log was watched for {seconds} s", plan.N("count", c.Bundles), plan.N("seconds", c.Watched/1000))
	}
}
