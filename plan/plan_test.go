package plan

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ballast-lb/ballast/settings"
)

func TestPlanSurvivesJSON(t *testing.T) {
	code := Code{ID: "RATE_DELTA", Template: "rate delta {delta} < minUnloadMessage {limit} of {broker}"}
	want := Plan{
		Strategy: "TransferShedder", At: 1_700_000_000_000, LoadAvg: 0.5, LoadStd: math.NaN(),
		Outcome: code.Because(N("delta", 312), N("limit", math.Inf(1)), S("broker", "b1:8080")),
		Counts:  []Count{{"Skip", "HitCount", 2}},
		Decisions: []Decision{{Action: Transfer, Bundle: "t/n/0x00000000_0xffffffff", Source: "b1:8080", Destination: "b2:8080",
			Label: "Success", PulsarReason: "Overloaded", Throughput: math.Inf(-1), MsgRate: math.NaN(), Topics: 1 << 62,
			Why: code.Because(N("delta", math.NaN()))}},
	}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Plan
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("after JSON (-want +got):\n%s\n%s", diff, b)
	}
	if text := got.Outcome.String(); text != "rate delta 312 < minUnloadMessage +Inf of b1:8080" {
		t.Errorf("sentence is %q", text)
	}
}

func TestPlanWithoutDecisionsHasAnEmptyList(t *testing.T) {
	b, err := json.Marshal(Plan{})
	if err != nil || !strings.Contains(string(b), `"decisions":[]`) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestDecisionRefusesOtherTypes(t *testing.T) {
	for _, text := range []string{`{"throughput":"many"}`, `{"throughput":{}}`, `{"bundle":7}`, `[]`} {
		if err := json.Unmarshal([]byte(text), new(Decision)); err == nil {
			t.Errorf("%s was read without an error", text)
		}
	}
}

func TestTraceOfNobody(t *testing.T) {
	var none *Trace
	none.Skip("b", "s", "d", Reason{}) // must not panic
	some := new(Trace)
	some.Skip("b", "s", "d", Reason{Code: "X"})
	if diff := cmp.Diff([]LeftOut{{Bundle: "b", Broker: "s", Other: "d", Why: Reason{Code: "X"}}}, some.Entries); diff != "" {
		t.Error(diff)
	}
}

func TestRegistry(t *testing.T) {
	make := func(*settings.Settings) Shedder { return nil }
	r := Registry{Shedders: []Entry[NewShedder]{
		{Name: "TransferShedder", Class: "org.example.TransferShedder", Managers: []string{"Extensible"}, New: make},
		{Name: "ThresholdShedder", Class: "org.example.ThresholdShedder", Managers: []string{"Modular"}, New: make},
		{Name: "Own", Managers: []string{"Modular", "Extensible"}, New: make},
	}}
	for _, tc := range []struct{ name, manager, want, fault string }{
		{"TransferShedder", "Extensible", "TransferShedder", ""},
		{"transfershedder", "Extensible", "TransferShedder", ""},
		{"org.example.TransferShedder", "Extensible", "TransferShedder", ""},
		{"own", "Modular", "Own", ""},
		{"org.example.ThresholdShedder", "Extensible", "", "works with the Modular load manager, not with Extensible: possible here are TransferShedder, Own"},
		{"ThresholdSheder", "Modular", "", `shedding strategy for the Modular load manager is "ThresholdSheder": it must be one of ThresholdShedder, Own`},
		{"", "Modular", "", `is "": it must be one of`},
	} {
		e, err := r.Shedder(tc.name, tc.manager)
		switch {
		case tc.fault == "" && (err != nil || e.Name != tc.want):
			t.Errorf("%q for %s is %q, %v; want %q", tc.name, tc.manager, e.Name, err, tc.want)
		case tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)):
			t.Errorf("%q for %s: error is %v; want %q in it", tc.name, tc.manager, err, tc.fault)
		}
	}
}

func TestNumbersAreReadable(t *testing.T) {
	for want, value := range map[string]float64{"0.25731": 0.257310049, "1307553": 1307552.6, "-250501": -250501.4, "12345.7": 12345.678, "3": 3,
		"1e+15": 1e15, "NaN": math.NaN(), "+Inf": math.Inf(1), "1.5e-07": 1.5e-7} {
		if got := N("x", value).String(); got != want {
			t.Errorf("%v reads %q, want %q", value, got, want)
		}
	}
}
