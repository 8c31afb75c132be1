package simple

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// recording is one sequence of calls of the real SimpleLoadManagerImpl of Pulsar 4.2.4. testdata/README.md says how it was made.
type recording struct {
	Case     int
	Scenario string
	Config   map[string]any
	Input    struct {
		Bundles       []string
		StoredDefault *event.ResourceQuota
		Stored        map[string]event.ResourceQuota
		Isolation     map[string]struct {
			Primary, Secondary []string
			MinLimit           int
		}
		NonPersistent []string
		StartedAt     int64
		Ops           []recordedOp
	}
	Output struct{ Ops []recordedResult }
}

type recordedOp struct {
	Op              string
	Registered      []string
	Reports         []event.LoadReport
	Bundle          string
	Draw            int
	BundleCount     int
	Report          *event.LoadReport
	Forced          bool
	Age, CheckedAgo int64
	Last, Now       *event.LoadReport
}

type recordedResult struct {
	Exception string
	Failed    string

	Order        map[string][]string // update: bundles per broker, in the order of Pulsar's maps
	BrokerOrder  []string
	CPUFactor    float64
	MemoryFactor float64
	Updated      int64
	Average      event.ResourceQuota
	Quotas       map[string]event.ResourceQuota
	Rankings     map[string]recordedRanking

	Broker     string // place
	Cursor     int64
	Candidates [][2]any
	Unloads    []string // shed
	Recent     []string
	Written    json.RawMessage // writes: bundles; due: whether a report was written
	Splits     []string
	Forced     bool
	Checked    bool
	Report     *event.LoadReport
}

type recordedRanking struct {
	Loaded, Preallocated                                                     []string
	Rank                                                                     int64
	Allocated, PreallocatedQuota                                             event.ResourceQuota
	LoadCPU, LoadMemory, LoadDirectMemory, LoadBandwidthIn, LoadBandwidthOut float64
	Load, MsgRate                                                            float64
	Capacity                                                                 int64
	Served                                                                   map[string]int
}

// fixedDraw is a source of randomness that always draws the same number.
type fixedDraw int

func (d fixedDraw) IntN(n int) int { return int(d) % n }

// about allows sums to differ in their last bits: Pulsar adds in the order of its hash sets.
var about = cmp.Options{cmpopts.EquateApprox(1e-12, 0), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()}

func recordings(t *testing.T, path string) []recording {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<24)
	var out []recording
	for lines.Scan() {
		var r recording
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("line %d: %v", len(out)+1, err)
		}
		out = append(out, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// UnmarshalJSON also keeps the order of the brokers.
func (r *recordedResult) UnmarshalJSON(b []byte) error {
	type plain recordedResult
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	var raw struct{ Order json.RawMessage }
	if err := json.Unmarshal(b, &raw); err != nil || raw.Order == nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(string(raw.Order)))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		r.BrokerOrder = append(r.BrokerOrder, name.(string))
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return err
		}
	}
	return nil
}

// player runs a recording against this package.
type player struct {
	t    *testing.T
	rec  *recording
	set  *settings.Settings
	pol  *policy.Set
	m    *Manager
	st   plan.State
	snap *cluster.Snapshot
	now  int64
}

func TestRecorded(t *testing.T) {
	counts := map[string]int{}
	for _, rec := range recordings(t, "testdata/simple_manager.jsonl.gz") {
		t.Run(fmt.Sprintf("%d_%s", rec.Case, strings.ReplaceAll(rec.Scenario, "/", "_")), func(t *testing.T) {
			p := newPlayer(t, &rec)
			for i := range rec.Input.Ops {
				op, want := &rec.Input.Ops[i], &rec.Output.Ops[i]
				if want.Failed != "" {
					t.Fatalf("the recorder failed: %s", want.Failed)
				}
				if diff := p.play(op, want); diff != "" {
					t.Fatalf("call %d, %s %s (-Pulsar +Ballast):\n%s", i, op.Op, op.Bundle, diff)
				}
				counts[op.Op]++
			}
		})
	}
	for _, op := range []string{"update", "place", "candidates", "shed", "writes", "split", "due"} {
		if counts[op] < 50 {
			t.Errorf("only %d recorded calls of %s", counts[op], op)
		}
	}
}

func newPlayer(t *testing.T, rec *recording) *player {
	p := &player{t: t, rec: rec, set: settings.Defaults(), m: &Manager{}, now: rec.Input.StartedAt}
	for key, v := range rec.Config {
		if key == "loadBalancerPlacementStrategy" {
			p.set.LoadBalancerPlacementStrategy = v.(string) // recordings also have unknown ones
		} else if err := settings.Set(p.set, key, fmt.Sprint(v)); err != nil {
			t.Fatal(err)
		}
	}
	var isolation []policy.Isolation
	for ns, i := range rec.Input.Isolation {
		isolation = append(isolation, policy.Isolation{Name: ns, Namespaces: []string{regexp.QuoteMeta(ns)}, Primary: i.Primary,
			Secondary: i.Secondary, AutoFailover: policy.AutoFailover{MinLimit: i.MinLimit}})
	}
	p.pol = policy.New(isolation, nil, nil, nil)
	st := NewState()
	st.Quotas.Stored = Stored{Default: rec.Input.StoredDefault, Bundles: rec.Input.Stored}
	p.st = st
	p.snap = p.snapshot(nil, nil)
	return p
}

func (p *player) snapshot(reports []event.LoadReport, others []string) *cluster.Snapshot {
	snap := &cluster.Snapshot{Now: p.now, Policies: p.pol, Settings: p.set}
	for i := range reports {
		snap.Brokers = append(snap.Brokers, cluster.Broker{ID: reports[i].Name, Report: &reports[i]})
	}
	for _, id := range others {
		snap.Brokers = append(snap.Brokers, cluster.Broker{ID: id})
	}
	for _, b := range p.rec.Input.Bundles {
		snap.Bundles = append(snap.Bundles, cluster.Bundle{Name: b, Namespace: namespaceOf(b), NonPersistent: slices.Contains(p.rec.Input.NonPersistent, b)})
	}
	return snap.Index()
}

func (p *player) play(op *recordedOp, want *recordedResult) string {
	switch op.Op {
	case "update":
		return p.update(op, want)
	case "place":
		var d plan.Decision
		d, p.st = p.m.Place(p.snap, op.Bundle, p.st, fixedDraw(op.Draw), new(plan.Trace))
		return cmp.Diff([]any{want.Broker, want.Cursor}, []any{d.Destination, p.st.(*State).Cursor})
	case "candidates":
		s := p.m.search(p.snap, p.st.(*State), op.Bundle, nil)
		var got [][2]any
		for _, c := range s.find(s.available()) {
			got = append(got, [2]any{float64(c.rank), c.broker})
		}
		return cmp.Diff(want.Candidates, got, cmpopts.EquateEmpty())
	case "shed":
		return p.shed(want)
	case "writes":
		var wanted, got []string
		if err := json.Unmarshal(want.Written, &wanted); err != nil {
			p.t.Fatal(err)
		}
		for _, w := range p.st.(*State).Quotas.Writes(Options{}) {
			got = append(got, w.Bundle)
		}
		return cmp.Diff(wanted, got, cmpopts.EquateEmpty())
	case "split":
		return p.split(op, want)
	case "due":
		return p.due(op, want)
	}
	return "unknown call " + op.Op
}

func (p *player) update(op *recordedOp, want *recordedResult) string {
	byName := map[string]event.LoadReport{}
	for _, r := range op.Reports {
		byName[r.Name] = r
	}
	var reports []event.LoadReport
	for _, name := range want.BrokerOrder {
		r := byName[name]
		place := map[string]int{}
		for i, b := range want.Order[name] {
			place[b] = i
		}
		slices.SortFunc(r.BundleStats, func(a, b event.NamedBundleStats) int { return place[a.Bundle] - place[b.Bundle] })
		reports = append(reports, r)
	}
	others := slices.DeleteFunc(slices.Clone(op.Registered), func(id string) bool { return slices.Contains(want.BrokerOrder, id) })
	p.snap = p.snapshot(reports, others)
	p.st = p.m.Update(p.snap, p.st)
	return cmp.Diff(wantedState(want), p.state(), about)
}

// comparable is what of the state is compared after an update.
type comparable struct {
	CPUFactor, MemoryFactor float64
	Updated                 int64
	Average                 event.ResourceQuota
	Quotas                  map[string]event.ResourceQuota
	Rankings                map[string]recordedRanking
}

func wantedState(r *recordedResult) comparable {
	for name, k := range r.Rankings {
		for ns, n := range k.Served {
			if n == 0 {
				delete(k.Served, ns)
			}
		}
		r.Rankings[name] = k
	}
	return comparable{r.CPUFactor, r.MemoryFactor, r.Updated, r.Average, r.Quotas, r.Rankings}
}

func (p *player) state() comparable {
	st := p.st.(*State)
	x := st.lookups(p.snap, false)
	c := comparable{float64(st.Quotas.CPUFactor), float64(st.Quotas.MemoryFactor), st.Quotas.Updated, st.Quotas.Average,
		map[string]event.ResourceQuota{}, map[string]recordedRanking{}}
	for b := range st.Quotas.Bundles {
		c.Quotas[b] = st.Quotas.Of(b)
	}
	for b := range st.Quotas.Seen {
		c.Quotas[b] = st.Quotas.Of(b)
	}
	for i := range st.Rankings {
		r := &st.Rankings[i]
		e := r.Estimate()
		c.Rankings[r.Broker] = recordedRanking{
			Loaded: slices.Sorted(slices.Values(r.Loaded)), Preallocated: slices.Sorted(slices.Values(r.Preallocated)), Rank: r.Rank,
			Allocated: r.Allocated, PreallocatedQuota: r.PreallocatedQuota, LoadCPU: e.CPU, LoadMemory: e.Memory, LoadDirectMemory: e.DirectMemory,
			LoadBandwidthIn: e.BandwidthIn, LoadBandwidthOut: e.BandwidthOut, Load: e.Load, MsgRate: e.MsgRate,
			Capacity: capacity(&r.Usage, st.Quotas.Stored.OfDefault(), float64(st.Factor), Options{}), Served: x.counts[r.Broker],
		}
	}
	return c
}

func (p *player) shed(want *recordedResult) string {
	trace := new(plan.Trace)
	got, next := p.m.Shed(p.snap, p.st, nil, trace)
	if want.Exception != "" { // a candidate without a report: Pulsar's cycle ends without any unload
		return ""
	}
	p.st = next
	var unloads []string
	for _, d := range got.Decisions {
		unloads = append(unloads, d.Bundle)
		p.st = p.m.Record(p.st, d, p.now)
	}
	slices.Sort(unloads)
	st := p.st.(*State)
	st.forgetUnloads(p.now, p.set.LoadBalancerSheddingGracePeriodMinutes) // as Pulsar's cache does by itself
	var recent []string
	for b := range st.RecentlyUnloaded {
		recent = append(recent, b)
	}
	slices.Sort(recent)
	return cmp.Diff([][]string{want.Unloads, want.Recent}, [][]string{unloads, recent}, cmpopts.EquateEmpty())
}

func (p *player) split(op *recordedOp, want *recordedResult) string {
	snap := &cluster.Snapshot{Now: p.now, Settings: p.set, Brokers: []cluster.Broker{{ID: op.Report.Name, Report: op.Report}}}
	namespaces := map[string]int{}
	for i := range op.Report.BundleStats {
		b := op.Report.BundleStats[i].Bundle
		namespaces[namespaceOf(b)]++
		snap.Bundles = append(snap.Bundles, cluster.Bundle{Name: b, Namespace: namespaceOf(b)})
	}
	for ns, n := range namespaces {
		for ; n < op.BundleCount; n++ {
			snap.Bundles = append(snap.Bundles, cluster.Bundle{Name: fmt.Sprintf("%s/other-%d", ns, n), Namespace: ns})
		}
		if n > op.BundleCount {
			return "" // the recording counts fewer bundles than it reports
		}
	}
	snap.Index()
	got, _ := p.m.Split(snap, p.st, new(plan.Trace))
	var splits []string
	for _, d := range got.Decisions {
		splits = append(splits, fmt.Sprintf("%s %t", d.Bundle, d.UnloadAfter))
	}
	slices.Sort(splits)
	return cmp.Diff([]any{want.Splits, want.Forced}, []any{splits, len(splits) > 0}, cmpopts.EquateEmpty())
}

func (p *player) due(op *recordedOp, want *recordedResult) string {
	const now = int64(1_800_000_000_000)
	last := *op.Last
	last.Timestamp = now - op.Age
	s := ReportState{Last: &last, UsageChecked: now - op.CheckedAgo, Forced: op.Forced}
	usage := *op.Now.SystemResourceUsage
	due, why := s.Due(now, int64(len(op.Now.BundleStats)), usage, p.set)
	var report *event.LoadReport
	if due {
		r := s.Report(Identity{Broker: last.Name}, now, usage, op.Now.BundleStats, p.set, p.st.(*State))
		s.Written(&r)
		report = &r
	}
	if diff := cmp.Diff([]any{string(want.Written), want.Checked}, []any{fmt.Sprint(due), s.UsageChecked == now}); diff != "" {
		return diff + why.String()
	}
	if report == nil {
		return ""
	}
	return cmp.Diff(content(want.Report), content(report), about)
}

// content is what the recordings have of a report.
func content(r *event.LoadReport) any {
	return []any{r.OverLoaded, r.UnderLoaded, slices.Sorted(slices.Values(r.BundleGains)), slices.Sorted(slices.Values(r.BundleLosses)),
		r.AllocatedCPU, r.AllocatedMemory, r.AllocatedBandwidthIn, r.AllocatedBandwidthOut, r.AllocatedMsgRateIn, r.AllocatedMsgRateOut,
		r.PreAllocatedCPU, r.PreAllocatedMemory, r.PreAllocatedBandwidthIn, r.PreAllocatedBandwidthOut, r.PreAllocatedMsgRateIn, r.PreAllocatedMsgRateOut}
}

func TestCapacityAsRecorded(t *testing.T) {
	usage := event.SystemResourceUsage{
		CPU: event.ResourceUsage{Usage: 40, Limit: 400}, Memory: event.ResourceUsage{Usage: 100, Limit: 1000}, DirectMemory: event.ResourceUsage{Usage: 10, Limit: 100},
		BandwidthIn: event.ResourceUsage{Usage: 1000, Limit: 1e6}, BandwidthOut: event.ResourceUsage{Usage: 1000, Limit: 1e6},
	}
	r := Ranking{Usage: usage, Allocated: event.DefaultResourceQuota()}
	r.reckon(0.05)
	if got := capacity(&usage, event.DefaultResourceQuota(), 0.05, Options{}); r.estimate.Load != 10 || got != 12 {
		t.Errorf("load %v, capacity %d; Pulsar's is 10 and 12", r.estimate.Load, got)
	}
	unknown := event.NewSystemResourceUsage()
	if got := capacity(&unknown, event.DefaultResourceQuota(), 0.05, Options{}); got != 0 {
		t.Errorf("without limits: %d, Pulsar's is 0", got)
	}
	if got := capacity(&usage, event.NewResourceQuota(), 0.05, Options{}); got != math.MaxInt64 {
		t.Errorf("zero quota: %d, Pulsar's is %d", got, int64(math.MaxInt64))
	}
}
