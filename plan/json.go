package plan

import (
	"encoding/json"

	"github.com/ballast-lb/ballast/internal/jsonfloat"
)

type plainDecision Decision

type decisionJSON struct {
	plainDecision
	Throughput jsonfloat.Float `json:"throughput"`
	MsgRate    jsonfloat.Float `json:"msgRate"`
}

// MarshalJSON writes the decision; rates that are no finite numbers become strings.
func (d Decision) MarshalJSON() ([]byte, error) {
	return json.Marshal(decisionJSON{plainDecision(d), jsonfloat.Float(d.Throughput), jsonfloat.Float(d.MsgRate)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Decision) UnmarshalJSON(b []byte) error {
	var in decisionJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*d = Decision(in.plainDecision)
	d.Throughput, d.MsgRate = float64(in.Throughput), float64(in.MsgRate)
	return nil
}

type plainPlan Plan

type planJSON struct {
	plainPlan
	LoadAvg jsonfloat.Float `json:"loadAvg"`
	LoadStd jsonfloat.Float `json:"loadStd"`
}

// MarshalJSON writes the plan; the standard deviation of loads can be no number, and a plan without decisions has an empty list.
func (p Plan) MarshalJSON() ([]byte, error) {
	if p.Decisions == nil {
		p.Decisions = []Decision{}
	}
	return json.Marshal(planJSON{plainPlan(p), jsonfloat.Float(p.LoadAvg), jsonfloat.Float(p.LoadStd)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Plan) UnmarshalJSON(b []byte) error {
	var in planJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*p = Plan(in.plainPlan)
	p.LoadAvg, p.LoadStd = float64(in.LoadAvg), float64(in.LoadStd)
	return nil
}
