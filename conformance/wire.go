package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
)

// wireKinds are the decisions about the wire: JSON formats, schemas, orders of load, the ownership topic's rules.
var wireKinds = map[string]Check{
	"json_broker_load_data":         recode[event.BrokerLoadData],
	"json_top_bundles":              recode[event.TopBundlesLoadData],
	"json_state_data":               recode[event.ServiceUnitStateData],
	"json_broker_lookup":            recode[event.BrokerLookupData],
	"json_local_broker_data":        recode[event.LocalBrokerData],
	"json_load_report":              recode[event.LoadReport],
	"json_bundle_data":              recode[event.BundleData],
	"json_time_average_broker_data": recode[event.TimeAverageBrokerData],
	"json_report_type":              reportType,
	"schema_info":                   schemaInfo,
	"resource_usage":                resourceUsage,
	"stats_compare":                 statsCompare,
	"state_transitions":             stateTransitions,
	"conflict":                      conflict,
	"conflict_table":                conflictTable,
}

// recode decodes a document and encodes it again.
func recode[T any, P interface {
	*T
	json.Unmarshaler
}](l Line, _ string) string {
	var in struct {
		JSON json.RawMessage `json:"json"`
	}
	var out struct {
		Mapper           *string `json:"mapper"` // as the metadata store has it
		Schema           *string `json:"schema"` // as the topics have it
		MapperException  string  `json:"mapperException"`
		SchemaException  string  `json:"schemaException"`
		MaxResourceUsage *Float  `json:"maxResourceUsage"`
	}
	if diff := wireLine(l, &in, &out); diff != "" {
		return diff
	}
	if out.Mapper == nil && out.Schema == nil && out.MapperException == "" && out.SchemaException == "" {
		return "output: it says neither what was written nor that the document was refused"
	}
	got, err := recoded[T, P](in.JSON)
	var diffs []string
	for _, want := range []struct {
		text    *string
		refused string
	}{{out.Mapper, out.MapperException}, {out.Schema, out.SchemaException}} {
		switch {
		case want.refused != "" && err == nil:
			diffs = append(diffs, fmt.Sprintf("- refused: %s\n+ accepted: %s\n", want.refused, got))
		case want.text != nil && err != nil:
			diffs = append(diffs, fmt.Sprintf("- accepted: %s\n+ refused: %v\n", *want.text, err))
		case want.text != nil:
			diffs = append(diffs, Diff(json.RawMessage(*want.text), json.RawMessage(got),
				Sets("bundles", "lastBundleGains", "lastBundleLosses", "bundleGains", "bundleLosses")))
		}
	}
	if out.MaxResourceUsage != nil && err == nil {
		diffs = append(diffs, maxResourceUsage(*out.MaxResourceUsage, got))
	}
	return strings.Join(diffs, "")
}

func recoded[T any, P interface {
	*T
	json.Unmarshaler
}](document []byte) ([]byte, error) {
	value, err := event.Decode[T, P](document)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// maxResourceUsage compares what is derived in a Modular load report.
func maxResourceUsage(want Float, document []byte) string {
	report, err := event.Decode[event.LocalBrokerData](document)
	if err != nil {
		return "own value: " + err.Error() + "\n"
	}
	return Diff(want, Float(report.MaxResourceUsage()))
}

// reportType says as which class a stored report is read.
func reportType(l Line, _ string) string {
	var in struct {
		JSON json.RawMessage `json:"json"`
	}
	var out struct {
		Class string `json:"class"`
	}
	if diff := wireLine(l, &in, &out); diff != "" {
		return diff
	}
	kind, err := event.KindOfReport(in.JSON)
	if err != nil {
		return "own value: " + err.Error()
	}
	return Diff(out.Class, kind.String())
}

// schemaInfo compares the schema of a class, its text exactly.
func schemaInfo(l Line, pulsar string) string {
	var in struct {
		Class string `json:"class"`
	}
	var out struct {
		Name             string            `json:"name"`
		Type             string            `json:"type"`
		Properties       map[string]string `json:"properties"`
		Schema           string            `json:"schema"`
		SchemaDefinition string            `json:"schemaDefinition"`
	}
	if diff := wireLine(l, &in, &out); diff != "" {
		return diff
	}
	schema, ok := event.SchemaOf(in.Class[strings.LastIndexByte(in.Class, '.')+1:], pulsar)
	if !ok {
		return fmt.Sprintf("- schema of %s\n+ no schema\n", in.Class)
	}
	want := out
	out.Name, out.Type, out.Properties = "", "JSON", schema.Properties()
	out.Schema, out.SchemaDefinition = schema.Definition, schema.Definition
	return Diff(want, out)
}

// resourceUsage derives the usage in percent and compares two resources.
func resourceUsage(l Line, _ string) string {
	var in struct {
		A Resource `json:"a"`
		B Resource `json:"b"`
	}
	type output struct {
		PercentA     Float  `json:"percentA"`
		PercentABits string `json:"percentABits"`
		PercentB     Float  `json:"percentB"`
		PercentBBits string `json:"percentBBits"`
		Compare      int    `json:"compare"`
	}
	var out output
	if diff := wireLine(l, &in, &out); diff != "" {
		return diff
	}
	a, b := in.A.Usage(), in.B.Usage()
	return Diff(out, output{
		PercentA: Float(a.PercentUsage()), PercentABits: floatBits(a.PercentUsage()),
		PercentB: Float(b.PercentUsage()), PercentBBits: floatBits(b.PercentUsage()),
		Compare: a.Compare(b),
	})
}

// floatBits are the bits of a float as Java shows them: every NaN is the same one.
func floatBits(x float32) string {
	if x != x {
		return "7fc00000"
	}
	return fmt.Sprintf("%08x", math.Float32bits(x))
}

// statsCompare orders two bundles by their load.
func statsCompare(l Line, _ string) string {
	var in struct {
		A event.NamespaceBundleStats `json:"a"`
		B event.NamespaceBundleStats `json:"b"`
	}
	type output struct {
		BundleStats int `json:"bundleStats"`
		TimeAverage int `json:"timeAverage"`
	}
	var out output
	if diff := wireLine(l, &in, &out); diff != "" {
		return diff
	}
	return Diff(out, output{in.A.Compare(in.B), oneSample(in.A).Compare(oneSample(in.B))})
}

// oneSample is a time average of one sample.
func oneSample(s event.NamespaceBundleStats) event.TimeAverageMessageData {
	return event.TimeAverageMessageData{
		MsgThroughputIn: s.MsgThroughputIn, MsgThroughputOut: s.MsgThroughputOut, MsgRateIn: s.MsgRateIn, MsgRateOut: s.MsgRateOut,
	}
}

// stateTransitions lists which state may follow which.
func stateTransitions(l Line, _ string) string {
	var in struct {
		StorageType string `json:"storageType"`
	}
	type output struct {
		Valid    map[event.ServiceUnitState][]event.ServiceUnitState `json:"valid"`
		InFlight []event.ServiceUnitState                            `json:"inFlight"`
		Active   []event.ServiceUnitState                            `json:"active"`
		States   []event.ServiceUnitState                            `json:"states"`
	}
	var out output
	if diff := wireLine(l, &in, &out); diff != "" {
		return diff
	}
	store, err := ownership.ParseStore(in.StorageType)
	if err != nil {
		return err.Error()
	}
	got := output{Valid: make(map[event.ServiceUnitState][]event.ServiceUnitState), States: ownership.States()}
	for _, from := range ownership.States() {
		got.Valid[from] = []event.ServiceUnitState{}
		for _, to := range ownership.States() {
			if ownership.ValidTransition(from, to, store) {
				got.Valid[from] = append(got.Valid[from], to)
			}
		}
		if ownership.InFlight(from) {
			got.InFlight = append(got.InFlight, from)
		}
		if ownership.Active(from) {
			got.Active = append(got.Active, from)
		}
	}
	return Diff(out, got)
}

// resolver is the rule of conflict that a line's configuration asks for.
func resolver(l Line) (ownership.Resolver, error) {
	var store string
	check := true
	if _, err := l.Option("storageType", &store); err != nil {
		return ownership.Resolver{}, err
	}
	if _, err := l.Option("checkBrokers", &check); err != nil {
		return ownership.Resolver{}, err
	}
	s, err := ownership.ParseStore(store)
	return ownership.Resolver{Store: s, IgnoreBrokers: !check}, err
}

// conflict decides between two records.
func conflict(l Line, _ string) string {
	var in struct {
		From json.RawMessage `json:"from"`
		To   json.RawMessage `json:"to"`
	}
	out := make(map[string]any)
	if diff := wireLine(l, &in, &out); diff != "" {
		return diff
	}
	r, err := resolver(l)
	if err != nil {
		return err.Error()
	}
	var records [2]*event.ServiceUnitStateData
	for i, document := range []json.RawMessage{in.From, in.To} {
		if len(document) == 0 || string(document) == "null" {
			continue
		}
		record, err := event.Decode[event.ServiceUnitStateData](document)
		if err != nil {
			return Diff(out, map[string]any{"invalidData": true})
		}
		records[i] = &record
	}
	verdict := r.Decide(records[0], records[1])
	if verdict.Rule == ownership.Undecidable {
		return Diff(out, map[string]any{"exception": "java.lang.NullPointerException"})
	}
	return Diff(out, map[string]any{"keepLeft": verdict.Keep})
}

// conflictTable decides between all combinations of brokers of two records.
func conflictTable(l Line, _ string) string {
	var in struct {
		FromState   *event.ServiceUnitState `json:"fromState"`
		ToState     event.ServiceUnitState  `json:"toState"`
		FromVersion int64                   `json:"fromVersion"`
		ToVersion   int64                   `json:"toVersion"`
		Force       bool                    `json:"force"`
		Brokers     []*string               `json:"brokers"`
	}
	var out struct {
		KeepLeft string `json:"keepLeft"`
	}
	if diff := wireLine(l, &in, &out); diff != "" {
		return diff
	}
	r, err := resolver(l)
	if err != nil {
		return err.Error()
	}
	var got strings.Builder
	next := event.ServiceUnitStateData{State: in.ToState, VersionID: in.ToVersion, Force: in.Force}
	for from := range pairs(in.Brokers, in.FromState != nil) {
		var present *event.ServiceUnitStateData
		if in.FromState != nil {
			present = &event.ServiceUnitStateData{State: *in.FromState, VersionID: in.FromVersion}
			setBrokers(present, from)
		}
		for to := range pairs(in.Brokers, true) {
			setBrokers(&next, to)
			got.WriteByte(verdictByte(r, present, &next))
		}
	}
	return Diff(out.KeepLeft, got.String())
}

// pairs yields every destination with every source; without any, one empty pair.
func pairs(brokers []*string, any bool) func(func([2]*string) bool) {
	return func(yield func([2]*string) bool) {
		if !any {
			yield([2]*string{})
			return
		}
		for _, dst := range brokers {
			for _, source := range brokers {
				if !yield([2]*string{dst, source}) {
					return
				}
			}
		}
	}
}

func setBrokers(d *event.ServiceUnitStateData, pair [2]*string) {
	d.DstBroker, d.EmptyDst = maybe(pair[0])
	d.SourceBroker, d.EmptySource = maybe(pair[1])
}

// maybe is a string that may be null, and whether it is "" instead.
func maybe(s *string) (text string, empty bool) {
	if s == nil {
		return "", false
	}
	return *s, *s == ""
}

func verdictByte(r ownership.Resolver, present, next *event.ServiceUnitStateData) byte {
	if present != nil && present.Validate() != nil || next.Validate() != nil {
		return '-'
	}
	verdict := r.Decide(present, next)
	switch {
	case verdict.Rule == ownership.Undecidable:
		return 'x'
	case verdict.Keep:
		return '1'
	}
	return '0'
}

// wireLine decodes the input and output of a line.
func wireLine(l Line, in, out any) (diff string) {
	if err := json.Unmarshal(l.Input, in); err != nil {
		return "input: " + err.Error()
	}
	if err := json.Unmarshal(l.Output, out); err != nil {
		return "output: " + err.Error()
	}
	return ""
}
