package modular_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
)

func manager(t testing.TB, o modular.Options) *modular.Manager {
	t.Helper()
	m, err := modular.New(modular.ThresholdShedder{Options: o}, modular.LeastLongTermMessageRate{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// place asks where a bundle would go, among all that pass the filters, from an empty state.
func (w *world) place(t testing.TB, o modular.Options, bundle string) (string, *plan.Trace) {
	trace := &plan.Trace{}
	d, _ := manager(t, o).Place(w.snapshot(), longBundle(bundle), nil, nil, trace)
	return short(d.Destination), trace
}

// TestFilters holds each filter by the broker that is chosen (the first one of the best in order, as there is no randomness)
// and by what the log says of the others.
func TestFilters(t *testing.T) {
	three := []string{"broker b1", "broker b2", "broker b3"}
	for _, c := range []struct {
		name  string
		lines []string
		want  string
		codes map[string]string // broker -> code
	}{
		{"nothing in the way", three, "b1", nil},
		{"isolated to a primary", append([]string{"isolation p namespaces=t/.* primary=b3"}, three...), "b3",
			map[string]string{"b1": "POLICY_NOT_LISTED", "b2": "POLICY_NOT_LISTED"}},
		{"a secondary waits", append([]string{"isolation p namespaces=t/n primary=b3 secondary=b1,b2 min=1"}, three...), "b3",
			map[string]string{"b1": "POLICY_SECONDARY_WAITS"}},
		{"a secondary serves while primaries are missing", append([]string{"isolation p namespaces=t/n primary=b3,b4 secondary=b1 min=2"}, three...), "b1",
			map[string]string{"b2": "POLICY_NOT_LISTED"}},
		{"primaries of others are not shared", append([]string{"isolation p namespaces=other/.* primary=b1"}, three...), "b2",
			map[string]string{"b1": "POLICY_NOT_SHARED"}},
		{"topics of the wrong kind", []string{"broker b1 kinds=non-persistent-only", "broker b2", "broker b3 silent=true"}, "b2",
			map[string]string{"b1": "TOPIC_KIND_NOT_SERVED", "b3": "TOPIC_KIND_NOT_SERVED"}},
		{"an isolated namespace does not ask for the kind", []string{"isolation p namespaces=t/n primary=b1", "broker b1 kinds=non-persistent-only", "broker b2"}, "b1", nil},
		{"topic limit", []string{"broker b1 topics=50001", "broker b2 topics=50000"}, "b2", map[string]string{"b1": "TOPIC_LIMIT"}},
		{"topic limit reached by all", []string{"broker b1 topics=50001", "broker b2 topics=50002"}, "b1", nil},
		{"anti-affinity", append(slices.Clone(three), "group t/n name=G", "group t/m name=g", "bundle t/m/0 on=b1"), "b2",
			map[string]string{"b1": "ANTI_AFFINITY_BROKER"}},
		{"anti-affinity counts namespaces", []string{
			"group t/n name=g", "group t/m name=g", "group t/o name=g", "broker b1", "broker b2",
			"bundle t/m/0..5 on=b1", "bundle t/m/6 on=b2", "bundle t/o/0 on=b2"}, "b1", map[string]string{"b2": "ANTI_AFFINITY_BROKER"}},
		{"failure domains", append([]string{
			"set failureDomainsEnabled=true", "group t/n name=g", "group t/m name=g",
			"domain east brokers=b1,b2", "domain west brokers=b3"}, append(three, "bundle t/m/0 on=b1")...), "b3",
			map[string]string{"b2": "ANTI_AFFINITY_DOMAIN"}},
		{"failure domains are off", append([]string{
			"group t/n name=g", "group t/m name=g", "domain east brokers=b1,b2", "domain west brokers=b3"}, append(three, "bundle t/m/0 on=b1")...), "b2", nil},
		{"even distribution", append(slices.Clone(three), "bundle t/n/0 on=b1", "bundle t/n/1 on=b2"), "b3",
			map[string]string{"b1": "MORE_BUNDLES_OF_NAMESPACE", "b2": "MORE_BUNDLES_OF_NAMESPACE"}},
		{"no even distribution", append([]string{"set loadBalancerDistributeBundlesEvenlyEnabled=false"}, append(three, "bundle t/n/0 on=b1")...), "b1", nil},
		{"another load manager", []string{"broker b1 class=other", "broker b2"}, "b2", map[string]string{"b1": "OTHER_LOAD_MANAGER"}},
		{"all run another load manager", []string{"broker b1 class=other", "broker b2 class=other"}, "b1", map[string]string{"": "FILTERS_UNDONE"}},
		{"an older version", []string{"set preferLaterVersions=true", "broker b1 version=4.2.3", "broker b2 version=4.2.4"}, "b2", map[string]string{"b1": "OLDER_VERSION"}},
		{"a version that is none", []string{"set preferLaterVersions=true", "broker b1 class=other version=4.2", "broker b2 version=4.2"}, "b1",
			map[string]string{"": "FILTERS_FAILED"}},
		{"the first choice is at the threshold", []string{"set loadBalancerBrokerOverloadedThresholdPercentage=50", "broker b1 cpu=50", "broker b2 cpu=20 topics=60000", "bundle x/y/0 on=b1 rate=5"}, "b1", map[string]string{"b2": "TOPIC_LIMIT"}},
		{"the first choice is overloaded", []string{
			"broker b1 cpu=90", "broker b2 cpu=20 topics=60000", "broker b3 silent=true"}, "b2", map[string]string{"b2": "TOPIC_LIMIT"}},
	} {
		w := describe(t, c.lines...)
		got, trace := w.place(t, modular.Options{}, "t/n/15")
		if got != c.want {
			t.Errorf("%s: placed on %s, want %s", c.name, got, c.want)
		}
		for broker, code := range c.codes {
			if !slices.ContainsFunc(trace.Entries, func(e plan.LeftOut) bool { return short(e.Broker) == broker && e.Why.Code == code }) {
				t.Errorf("%s: the log does not say %s of %q:\n%s", c.name, code, broker, logged(trace))
			}
		}
	}
}

func logged(trace *plan.Trace) string {
	var b strings.Builder
	renderTrace(&b, trace)
	return short(b.String())
}

// TestSystemNamespaceIsEven holds that pulsar/system is distributed evenly even if that is switched off.
func TestSystemNamespaceIsEven(t *testing.T) {
	w := describe(t, "set loadBalancerDistributeBundlesEvenlyEnabled=false", "broker b1", "broker b2 cpu=1", "bundle pulsar/system/0 on=b1")
	if got, _ := w.place(t, modular.Options{}, "pulsar/system/15"); got != "b2" {
		t.Errorf("placed on %s", got)
	}
}

// TestNonPersistentBundle holds that a bundle with non-persistent topics goes where those are served.
func TestNonPersistentBundle(t *testing.T) {
	w := describe(t, "broker b1 kinds=no-non-persistent", "broker b2", "bundle t/n/0")
	snap := w.snapshot()
	for nonPersistent, want := range map[bool]string{false: "b1", true: "b2"} {
		snap.Bundles[0].NonPersistent = nonPersistent
		d, _ := manager(t, modular.Options{}).Place(snap, longBundle("t/n/0"), nil, nil, nil)
		if short(d.Destination) != want {
			t.Errorf("non-persistent %v: placed on %s, want %s", nonPersistent, d.Destination, want)
		}
	}
}

// TestCheckTopicKinds repairs that a broker named by a policy is not asked for the kind of topics.
func TestCheckTopicKinds(t *testing.T) {
	w := describe(t, "isolation p namespaces=t/n primary=b1,b2", "broker b1 kinds=non-persistent-only", "broker b2 cpu=50")
	if got, trace := w.place(t, modular.Options{CheckTopicKinds: true}, "t/n/0"); got != "b2" {
		t.Errorf("placed on %s:\n%s", got, logged(trace))
	}
}

// TestSecondChoice holds that after an overloaded first choice Pulsar draws again without the filters, and what the option
// makes of it. b1 and b4 are overloaded; b2 is dropped by the topic limit.
func TestSecondChoice(t *testing.T) {
	lines := []string{"broker b1 cpu=90", "broker b2 cpu=20 topics=60000", "broker b4 cpu=95"}
	for keep, want := range map[bool]string{false: "b2", true: "b1"} {
		w := describe(t, lines...)
		if got, trace := w.place(t, modular.Options{SecondChoiceKeepsFilters: keep}, "t/n/0"); got != want {
			t.Errorf("keep %v: placed on %s, want %s:\n%s", keep, got, want, logged(trace))
		}
	}
	// Excluded namespaces lose their turns at the second choice; with the option they keep them.
	for keep, want := range map[bool]string{false: "b3", true: "b2"} {
		w := describe(t, "set loadBalancerSheddingExcludedNamespaces=t/n loadBalancerDistributeBundlesEvenlyEnabled=false",
			"broker b1 cpu=90", "broker b2", "broker b3", "bundle x/y/0 on=b2 rate=10")
		m, st := manager(t, modular.Options{SecondChoiceKeepsFilters: keep}), modular.NewState()
		st.Excluded.Count = 0 // the turn of b1; among b2 and b3 the turn 1 is that of b3
		if keep {
			st.Excluded.Count = 3 // the turn of b1 again; then of b2
			want = "b2"
		}
		d, _ := m.Place(w.snapshot(), longBundle("t/n/0"), st, nil, nil)
		if short(d.Destination) != want {
			t.Errorf("excluded, keep %v: placed on %s, want %s", keep, d.Destination, want)
		}
	}
}

// TestExcludedNamespacesTakeTurns holds that bundles of excluded namespaces are placed by round robin.
func TestExcludedNamespacesTakeTurns(t *testing.T) {
	w := describe(t, "set loadBalancerSheddingExcludedNamespaces=t/n loadBalancerDistributeBundlesEvenlyEnabled=false", "broker b1", "broker b2", "broker b3")
	m, st := manager(t, modular.Options{}), plan.State(modular.NewState())
	var got []string
	for _, b := range []string{"t/n/0", "t/n/1", "t/m/0", "t/n/2", "t/n/3"} {
		var d plan.Decision
		d, st = m.Place(w.snapshot(), longBundle(b), st, nil, nil)
		got = append(got, short(d.Destination))
	}
	// t/m/0 goes to a broker with the least rate: the last turn has come by then.
	wantSlice(t, "placed", got, []string{"b1", "b2", "b3", "b3", "b1"})
}

// TestAssignment follows a bundle: assigned, asked for again, unloaded to a broker, asked for again.
func TestAssignment(t *testing.T) {
	w := describe(t, "broker b1", "broker b2", "broker b3")
	m, st := manager(t, modular.Options{}), plan.State(modular.NewState())
	place := func(b string) (string, string) {
		var d plan.Decision
		d, st = m.Place(w.snapshot(), longBundle(b), st, nil, nil)
		return short(d.Destination), d.Why.Code
	}
	expect := func(b, broker string, code plan.Code) {
		t.Helper()
		if got, why := place(b); got != broker || why != code.ID {
			t.Errorf("%s on %s (%s), want %s (%s)", b, got, why, broker, code.ID)
		}
	}
	expect("t/n/0", "b1", modular.Placed)
	expect("t/n/1", "b2", modular.Placed) // t/n/0 counts for b1 now, by its namespace and by its rate
	expect("t/n/0", "b1", modular.AlreadyAssigned)
	s := st.(*modular.State)
	if d := s.History.Get(-1, longBundle("t/n/0")); d == nil || d.LongTermData.TotalMsgRate() != 100 {
		t.Errorf("a bundle that was never seen counts for %+v", d)
	}
	if got := s.Preallocated.Get(-1, "b1:8080"); got == nil || len(got.Bundles) != 1 || got.Bundles[0].At != w.now {
		t.Errorf("pre-allocated on b1: %+v", got)
	}
	st = m.Record(st, plan.Decision{Action: plan.Transfer, Bundle: longBundle("t/n/0"), Source: "b1:8080", Destination: "b3:8080"}, w.now)
	expect("t/n/0", "b3", modular.HasAffinity)
	expect("t/n/0", "b1", modular.AlreadyAssigned) // the affinity is used up; it made no pre-allocation
	if at := st.(*modular.State).RecentlyUnloaded[longBundle("t/n/0")]; at != w.now {
		t.Errorf("unloaded at %d", at)
	}
}

// TestCheckAffinity holds that Pulsar assigns to the destination of an unload even if that broker is gone.
func TestCheckAffinity(t *testing.T) {
	for check, want := range map[bool]string{false: "gone", true: "b1"} {
		w := describe(t, "broker b1")
		m := manager(t, modular.Options{CheckAffinity: check})
		st := m.Record(nil, plan.Decision{Action: plan.Transfer, Bundle: longBundle("t/n/0"), Destination: "gone:8080"}, 0)
		d, _ := m.Place(w.snapshot(), longBundle("t/n/0"), st, nil, nil)
		if short(d.Destination) != want {
			t.Errorf("check %v: placed on %s, want %s", check, d.Destination, want)
		}
	}
}

// TestNobody holds the reasons for no broker.
func TestNobody(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		code  string
	}{
		"no brokers":        {nil, modular.NoneAllowed.ID},
		"policies":          {[]string{"broker b1", "isolation p namespaces=t/n primary=b9"}, modular.NoneAllowed.ID},
		"policies unknown":  {[]string{"broker b1", "unread t/n why=timeout"}, "POLICY_FROZEN"},
		"nobody reports":    {[]string{"broker b1 silent=true", "isolation p namespaces=t/n primary=b1"}, modular.NoneChosen.ID},
		"id without a port": {[]string{"broker b1:x"}, "PLACED"}, // the host of b1:x is b1
	} {
		w := describe(t, c.lines...)
		d, _ := manager(t, modular.Options{}).Place(w.snapshot(), longBundle("t/n/0"), nil, nil, nil)
		if d.Why.Code != c.code || (d.Destination == "") != (c.code != "PLACED") {
			t.Errorf("%s: on %q because %s (%s), want %s", name, d.Destination, d.Why.Code, d.Why, c.code)
		}
	}
}

// TestCycleSkips holds why a cycle does nothing at all.
func TestCycleSkips(t *testing.T) {
	for _, c := range []struct {
		lines []string
		code  plan.Code
	}{
		{[]string{"set loadBalancerEnabled=false", "broker b1", "broker b2"}, modular.Disabled},
		{[]string{"set loadBalancerSheddingEnabled=false", "broker b1", "broker b2"}, modular.Disabled},
		{[]string{"broker b1 cpu=99", "bundle t/n/0..5 on=b1 throughput=100M"}, modular.TooFewBrokers},
		{nil, modular.TooFewBrokers},
		{[]string{"broker b1 silent=true", "broker b2 silent=true"}, modular.NoBrokers},
		{[]string{"broker b1", "broker b2"}, modular.NoLoad},
	} {
		w := describe(t, c.lines...)
		p, _ := manager(t, modular.Options{}).Shed(w.snapshot(), nil, nil, nil)
		if len(p.Decisions) != 0 || p.Outcome.Code != c.code.ID {
			t.Errorf("%v: %d decisions, %s", c.lines, len(p.Decisions), p.Outcome)
		}
	}
}

// hot is a cluster whose first broker sheds t/n/0.
func hot(t testing.TB, more ...string) *world {
	w := describe(t, "broker b1 cpu=95", "broker b2 cpu=10", "broker b3 cpu=10", "set loadBalancerDistributeBundlesEvenlyEnabled=false")
	w.add(t, more...)
	w.add(t, "bundle t/n/0 on=b1 throughput=300M rate=10", "bundle t/n/1..3 on=b1 throughput=50M rate=10")
	return w
}

// TestCycleDrops holds, for a bundle that a strategy selected, the rules under which it does not leave.
func TestCycleDrops(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		code  string // "" = it leaves
	}{
		{"nothing in the way", nil, ""},
		{"excluded namespace", []string{"set loadBalancerSheddingExcludedNamespaces=t/n"}, modular.NamespaceExcluded.ID},
		{"isolated to its broker", []string{"isolation p namespaces=t/n primary=b1"}, modular.NoOtherBroker.ID},
		{"nobody may have it", []string{"isolation p namespaces=t/n primary=b9"}, modular.NoOtherBroker.ID},
		{"isolated to two", []string{"isolation p namespaces=t/n primary=b1,b2"}, ""},
		{"policies unknown", []string{"unread t/n why=timeout"}, "POLICY_FROZEN"},
		{"group: others have none", []string{"group t/n name=g"}, ""},
		{"group: all have as many", []string{
			"group t/n name=g", "group t/a name=g", "group t/b name=g", "bundle t/a/0 on=b2", "bundle t/b/0 on=b3"}, modular.AntiAffinityEven.ID},
		{"group: one has fewer", []string{"group t/n name=g", "group t/a name=g", "bundle t/a/0 on=b2"}, ""},
		{"group: uneven", []string{
			"group t/n name=g", "group t/a name=g", "group t/b name=g", "group t/c name=g",
			"bundle t/a/0 on=b2", "bundle t/b/0 on=b3", "bundle t/c/0 on=b3"}, ""}, // although it makes two of b2's one
		{"group: this one has more", []string{
			"group t/n name=g", "group t/a name=g", "group t/b name=g", "group t/c name=g",
			"bundle t/a/0 on=b1", "bundle t/b/0 on=b2", "bundle t/c/0 on=b3"}, ""},
		{"best where it is", []string{
			"set loadBalancerDistributeBundlesEvenlyEnabled=true", "bundle t/n/4..8 on=b2", "bundle t/n/9..13 on=b3", "set loadBalancerBrokerOverloadedThresholdPercentage=99"}, modular.BackToSource.ID},
		{"unloaded a moment ago", nil, "recent"},
	} {
		w := hot(t, c.lines...)
		st, trace := modular.NewState(), &plan.Trace{}
		if c.code == "recent" {
			st.RecentlyUnloaded = map[string]int64{longBundle("t/n/0"): w.now - 30*60000}
			c.code = modular.RecentlyUnloaded.ID
		}
		p, _ := manager(t, modular.Options{}).Shed(w.snapshot(), st, nil, trace)
		leaves := slices.Contains(bundles(p), "t/n/0")
		if leaves != (c.code == "") {
			t.Errorf("%s: leaves %v\n%s", c.name, leaves, logged(trace))
		}
		if c.code != "" && !slices.ContainsFunc(trace.Entries, func(e plan.LeftOut) bool {
			return short(e.Bundle) == "t/n/0" && e.Why.Code == c.code
		}) {
			t.Errorf("%s: the log does not say %s of t/n/0:\n%s", c.name, c.code, logged(trace))
		}
	}
}

// TestGracePeriod holds that an unload is forgotten after the grace period.
func TestGracePeriod(t *testing.T) {
	w, st := hot(t), modular.NewState()
	st.RecentlyUnloaded = map[string]int64{longBundle("t/n/0"): w.now - 30*60000 - 1}
	p, next := manager(t, modular.Options{}).Shed(w.snapshot(), st, nil, nil)
	if !slices.Contains(bundles(p), "t/n/0") || len(next.(*modular.State).RecentlyUnloaded) != 0 {
		t.Errorf("shed %v, remembered %v", bundles(p), next.(*modular.State).RecentlyUnloaded)
	}
}

// TestTransferHasDestination holds what a decision of the cycle carries.
func TestTransferHasDestination(t *testing.T) {
	p, _ := manager(t, modular.Options{}).Shed(hot(t).snapshot(), nil, nil, nil)
	if len(p.Decisions) == 0 {
		t.Fatal(p.Outcome)
	}
	d := p.Decisions[0]
	want := plan.Decision{
		Action: plan.Transfer, Bundle: longBundle("t/n/0"), Source: "b1:8080", Destination: "b2:8080", Throughput: 3e8, MsgRate: 10, Topics: 1, Why: d.Why,
	}
	if diff := cmp.Diff(want, d); diff != "" || d.Why.Code != modular.AboveAverage.ID {
		t.Errorf("%s\n%s", d.Why, diff)
	}
}

// TestCountPlanned holds that Pulsar sends everything that a cycle sheds to the broker with the least messages, and that the
// option counts what is on its way. Both receivers have the same rate but for one message.
func TestCountPlanned(t *testing.T) {
	for count, want := range map[bool][]string{false: {"b2", "b2"}, true: {"b2", "b3"}} {
		w := describe(t, "set loadBalancerDistributeBundlesEvenlyEnabled=false", "broker b1 cpu=80", "broker b2 cpu=10", "broker b3 cpu=10",
			"bundle t/n/0..3 on=b1 throughput=100M rate=1k", "bundle t/m/0 on=b2 rate=10", "bundle t/m/1 on=b3 rate=11")
		p, next := manager(t, modular.Options{CountPlanned: count}).Shed(w.snapshot(), nil, nil, nil)
		var got []string
		for _, d := range p.Decisions {
			got = append(got, short(d.Destination))
		}
		wantSlice(t, map[bool]string{false: "as Pulsar", true: "counted"}[count], got, want)
		if st := next.(*modular.State); st.Preallocated.Len() != 0 || len(st.Assigned) != 0 {
			t.Errorf("planned bundles stay pre-allocated: %+v %v", st.Preallocated.Entries(), st.Assigned)
		}
	}
}

// TestNew holds which strategies go together.
func TestNew(t *testing.T) {
	if _, err := modular.New(modular.ThresholdShedder{}, modular.AvgShedder{}, modular.Options{}); !errors.Is(err, modular.ErrStrategies) {
		t.Errorf("AvgShedder places what ThresholdShedder sheds: %v", err)
	}
	if _, err := modular.New(nil, modular.AvgShedder{}, modular.Options{}); err == nil {
		t.Error("no shedding strategy")
	}
	for _, p := range []plan.Placer{modular.AvgShedder{}, modular.LeastLongTermMessageRate{}} {
		if _, err := modular.New(modular.AvgShedder{}, p, modular.Options{}); err != nil {
			t.Error(err)
		}
	}
}

// TestNames holds that every strategy is found under Pulsar's class name and its short name, and that the documented variant,
// which Pulsar does not have, has no class.
func TestNames(t *testing.T) {
	r := plan.Registry{
		Managers: []plan.Entry[plan.NewManager]{modular.ManagerEntry(modular.Options{})},
		Shedders: modular.Shedders(modular.Options{}), Placers: modular.Placers(modular.Options{}),
	}
	for _, e := range r.Shedders {
		if _, err := r.Shedder("org.apache.pulsar.broker.loadbalance.impl."+e.Name, "modular"); err != nil {
			t.Error(err)
		}
		if s, err := r.Shedder(strings.ToLower(e.Name), "modular"); err != nil || s.New(nil) == nil {
			t.Error(err)
		}
	}
	for _, e := range r.Placers {
		if e.Class == "" != (e.Name == "LeastLongTermMessageRateDocumented") {
			t.Errorf("%s has the class %q", e.Name, e.Class)
		}
	}
	e, err := r.Manager("org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl")
	if err != nil {
		t.Fatal(err)
	}
	m, err := e.New(plan.Parts{Shedder: modular.AvgShedder{}, Placer: modular.AvgShedder{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m.NewState().(*modular.State); !ok {
		t.Errorf("the state is a %T", m.NewState())
	}
}

// TestRecordSplit holds that the history of a split bundle is dropped.
func TestRecordSplit(t *testing.T) {
	w := describe(t, "broker b1", "bundle t/n/0..1 on=b1 rate=5")
	m := manager(t, modular.Options{})
	_, st, _ := m.Update(w.snapshot(), nil)
	before, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	next := m.Record(st, plan.Decision{Action: plan.Split, Bundle: longBundle("t/n/0")}, 1).(*modular.State)
	if next.History.Get(-1, longBundle("t/n/0")) != nil || next.History.Get(-1, longBundle("t/n/1")) == nil {
		t.Errorf("history: %+v", next.History.Entries())
	}
	after, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("Record changed the state it was given")
	}
}

// TestOwnNamespaces holds that heartbeat and SLA bundles go to the broker they name, the latter only if it is there.
func TestOwnNamespaces(t *testing.T) {
	w := describe(t, "broker b1", "broker b2")
	for bundle, want := range map[string]string{
		"pulsar/b2:8080/0x00000000_0xffffffff": "b2", "pulsar/gone:8080/0x00000000_0xffffffff": "gone",
		"sla-monitor/b2:8080/0x00000000_0xffffffff": "b2", "sla-monitor/gone:8080/0x00000000_0xffffffff": "b1",
	} {
		if got, _ := w.place(t, modular.Options{}, bundle); got != want {
			t.Errorf("%s: placed on %s, want %s", bundle, got, want)
		}
	}
}

// TestUnloadEndsAssignment holds that with KeepPreallocations an unloaded bundle does not count as assigned any more.
func TestUnloadEndsAssignment(t *testing.T) {
	w := describe(t, "broker b1", "broker b2")
	m := manager(t, modular.Options{KeepPreallocations: true})
	_, st := m.Place(w.snapshot(), longBundle("t/n/0"), nil, nil, nil)
	st = m.Record(st, plan.Decision{Action: plan.Unload, Bundle: longBundle("t/n/0"), Source: "b1:8080"}, w.now)
	s := st.(*modular.State)
	if len(s.Assigned) != 0 || len(s.Preallocated.Get(-1, "b1:8080").Bundles) != 0 {
		t.Errorf("still assigned: %v %+v", s.Assigned, s.Preallocated.Entries())
	}
}
