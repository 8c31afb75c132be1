package plan

import (
	"encoding/json"
	"fmt"
	"math"
)

// number is a float64 that JSON can hold whatever its value: non-finite ones are the strings "NaN", "Infinity", "-Infinity".
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	switch x := float64(n); {
	case math.IsNaN(x):
		return []byte(`"NaN"`), nil
	case math.IsInf(x, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(x, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(x)
	}
}

func (n *number) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"NaN"`:
		*n = number(math.NaN())
	case `"Infinity"`:
		*n = number(math.Inf(1))
	case `"-Infinity"`:
		*n = number(math.Inf(-1))
	default:
		var x float64
		if err := json.Unmarshal(b, &x); err != nil {
			return fmt.Errorf("%s is not a number", b)
		}
		*n = number(x)
	}
	return nil
}

type plainDecision Decision

type decisionJSON struct {
	plainDecision
	Throughput number `json:"throughput"`
	MsgRate    number `json:"msgRate"`
}

// MarshalJSON writes the decision; rates that are no finite numbers become strings.
func (d Decision) MarshalJSON() ([]byte, error) {
	return json.Marshal(decisionJSON{plainDecision(d), number(d.Throughput), number(d.MsgRate)})
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
	LoadAvg number `json:"loadAvg"`
	LoadStd number `json:"loadStd"`
}

// MarshalJSON writes the plan; the standard deviation of loads can be no number.
func (p Plan) MarshalJSON() ([]byte, error) {
	return json.Marshal(planJSON{plainPlan(p), number(p.LoadAvg), number(p.LoadStd)})
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
