package guard

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// capacity (bytes/s) is what uses a broker up in the random clusters.
const capacity = 1000.0

// model is a random cluster whose brokers use what their bundles carry.
type model struct {
	snap     *cluster.Snapshot
	policies *policy.Set
}

func drawModel(t *rapid.T) *model {
	m := &model{}
	n := rapid.IntRange(2, 7).Draw(t, "brokers")
	conf := settings.Defaults()
	conf.LoadManagerClassName = rapid.SampledFrom([]string{"extensible", "modular"}).Draw(t, "manager")
	conf.FailureDomainsEnabled = rapid.Bool().Draw(t, "domains")
	m.snap = &cluster.Snapshot{Now: now, Settings: conf}
	for i := range n {
		m.snap.Brokers = append(m.snap.Brokers, cluster.Broker{ID: fmt.Sprintf("b%d:8080", i), PersistentTopics: true, NonPersistentTopics: true,
			StartedAt: now - rapid.SampledFrom([]int64{0, 90_000, 86_400_000}).Draw(t, "age"), LoadHeard: now})
	}
	for i := range rapid.IntRange(0, 30).Draw(t, "bundles") {
		ns := rapid.SampledFrom([]string{"t/a", "t/b", "t/c", "t/d", "pulsar/system"}).Draw(t, "namespace")
		b := cluster.Bundle{Name: fmt.Sprintf("%s/0x%08x_0x%08x", ns, i, i+1), Namespace: ns, State: event.Owned, Known: rapid.Bool().Draw(t, "known")}
		b.Owner = m.snap.Brokers[rapid.IntRange(0, n-1).Draw(t, "owner")].ID
		b.Stats.MsgThroughputIn = float64(rapid.IntRange(0, 300).Draw(t, "throughput"))
		b.Stats.Topics = rapid.Int64Range(0, 200).Draw(t, "topics")
		if rapid.IntRange(0, 9).Draw(t, "moving") == 0 {
			b.State = event.Releasing
		}
		m.snap.Bundles = append(m.snap.Bundles, b)
	}
	var isolation []policy.Isolation
	if rapid.Bool().Draw(t, "isolated") {
		isolation = append(isolation, policy.Isolation{Name: "p", Namespaces: []string{"t/a"}, Primary: []string{rapid.SampledFrom([]string{"b0", "b[01]", "b[0-3]"}).Draw(t, "primary")},
			AutoFailover: policy.AutoFailover{MinLimit: 1}})
	}
	groups := map[string]string{}
	if rapid.Bool().Draw(t, "group") {
		groups["t/b"], groups["t/c"] = "g", "g"
	}
	unread := map[string]string{}
	if rapid.IntRange(0, 5).Draw(t, "unread") == 0 {
		unread["t/d"] = "503"
	}
	m.policies = policy.New(isolation, groups, []policy.Domain{{Name: "east", Brokers: []string{"b0:8080", "b2:8080"}}}, unread)
	m.snap.Policies = m.policies
	m.report()
	return m
}

// report makes every broker's load data what its bundles carry.
func (m *model) report() {
	m.snap.Index()
	for i := range m.snap.Brokers {
		b := &m.snap.Brokers[i]
		b.Load, b.LoadHeard = &event.BrokerLoadData{MsgThroughputIn: m.carried(b.ID), WeightedMaxEMA: m.carried(b.ID) / capacity}, m.snap.Now
	}
}

func (m *model) carried(id string) float64 {
	sum := 0.0
	for i := range m.snap.Bundles {
		if m.snap.Bundles[i].Owner == id {
			sum += m.snap.Bundles[i].Stats.MsgThroughputIn
		}
	}
	return sum
}

func (m *model) most() float64 {
	most := 0.0
	for i := range m.snap.Brokers {
		most = max(most, m.carried(m.snap.Brokers[i].ID))
	}
	return most
}

func (m *model) view() *policy.View {
	var brokers []policy.Broker
	for i := range m.snap.Brokers {
		brokers = append(brokers, policy.Broker{ID: m.snap.Brokers[i].ID, PersistentTopics: true, NonPersistentTopics: true})
	}
	return m.policies.Over(brokers)
}

func (m *model) decision(i int, to string) plan.Decision {
	b := &m.snap.Bundles[i]
	return plan.Decision{Action: plan.Transfer, Bundle: b.Name, Source: b.Owner, Destination: to, Throughput: b.Stats.MsgThroughputIn, Topics: b.Stats.Topics}
}

// move carries a decision out.
func (m *model) move(d plan.Decision) {
	if i := m.snap.BundleIndex(d.Bundle); i >= 0 && d.Destination != "" {
		m.snap.Bundles[i].Owner = d.Destination
	}
}

// drawDecisions are decisions of somebody who knows nothing.
func drawDecisions(t *rapid.T, m *model) []plan.Decision {
	var out []plan.Decision
	if len(m.snap.Bundles) == 0 {
		return nil
	}
	for range rapid.IntRange(0, 20).Draw(t, "decisions") {
		to := rapid.SampledFrom([]string{"", "gone:8080", m.snap.Brokers[0].ID}).Draw(t, "odd")
		if rapid.IntRange(0, 4).Draw(t, "even") > 0 {
			to = m.snap.Brokers[rapid.IntRange(0, len(m.snap.Brokers)-1).Draw(t, "to")].ID
		}
		d := m.decision(rapid.IntRange(0, len(m.snap.Bundles)-1).Draw(t, "bundle"), to)
		if to == "" {
			d.Action = plan.Unload
		}
		switch rapid.IntRange(0, 15).Draw(t, "wrong") {
		case 0:
			d.Source = m.snap.Brokers[0].ID
		case 1:
			d.Bundle = "t/a/0xf0000000_0xffffffff"
		case 2:
			d.Throughput, d.MsgRate = math.NaN(), math.Inf(1)
		case 3:
			d.PulsarReason = "Admin"
		case 4:
			d.Topics, d.Throughput = math.MaxInt64, math.MaxFloat64
		}
		out = append(out, d)
	}
	return out
}

func drawLimits(t *rapid.T) Limits {
	return Limits{
		BundlesPerCycle: rapid.IntRange(0, 6).Draw(t, "perCycle"), BundlesPerSource: rapid.IntRange(0, 4).Draw(t, "perSource"),
		BundlesPerTarget: rapid.IntRange(0, 4).Draw(t, "perTarget"), TopicsPerCycle: rapid.Int64Range(0, 400).Draw(t, "topics"),
		ThroughputPerCycle: float64(rapid.IntRange(0, 600).Draw(t, "throughput")), LoadDataTTL: 60_000, SilentFraction: 0.25,
		BundleCoolDown: rapid.SampledFrom([]int64{0, 120_000}).Draw(t, "coolDown"), FailureCoolDown: 120_000,
		GainBy:        rapid.SampledFrom([]Figure{Usage, Throughput}).Draw(t, "gainBy"),
		NewBrokerTime: 600_000, NewBrokerShare: rapid.SampledFrom([]float64{0.05, 0.1, 0.5}).Draw(t, "share"),
		DrainPoints:       rapid.SampledFrom([]float64{0, 0.05}).Draw(t, "points"),
		OscillationWindow: 3_600_000, OscillationTurns: rapid.IntRange(0, 4).Draw(t, "turns"), MovesAtOnce: 4, SlowMove: 10_000, MaxLatency: 100, MaxReconnects: 10,
	}
}

// TestCycleProperty: whatever is planned, no hard rule is broken, no budget is exceeded, nothing gets worse, and what is refused
// has a code and a sentence.
func TestCycleProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, lim := drawModel(t), drawLimits(t)
		st := Observe(NewState(), m.snap, nil, lim)
		drained := ""
		if rapid.IntRange(0, 3).Draw(t, "drain") == 0 {
			drained = m.snap.Brokers[0].ID
			st = Drain(st, drained, now)
		}
		if rapid.IntRange(0, 7).Draw(t, "paused") == 0 {
			st = Stop(st, Pause{Since: now})
		}
		decisions := drawDecisions(t, m)
		v := Check(m.snap, decisions, m.view(), st, lim)
		again := Check(m.snap, decisions, m.view(), st, lim)
		if diff := cmp.Diff(v, again, cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("two checks of one plan differ:\n%s", diff)
		}
		if len(v.Run)+len(v.Refused) != len(decisions) {
			t.Fatalf("%d of %d decisions have a verdict", len(v.Run)+len(v.Refused), len(decisions))
		}
		for _, r := range v.Refused {
			if r.Why.Code == "" || r.Why.Text == "" {
				t.Fatalf("%+v is refused without a reason: %+v", r.Decision, r.Why)
			}
		}
		hardRules(t, m, v.Run, drained)
		budgets(t, m, v.Run, lim)
		if drained != "" && lim.DrainPoints > 0 {
			spread(t, m, v.Run, drained, lim)
		}
		before, ordered := m.most(), false
		for _, d := range v.Run {
			ordered = ordered || Ordered(d)
			if st.Paused != nil && !Ordered(d) {
				t.Fatalf("%+v runs in a pause", d)
			}
			// What a decision lies about its load is not seen through; so the bundle's own figures are compared where they are known.
			if i := m.snap.BundleIndex(d.Bundle); i < 0 || d.Throughput != m.snap.Bundles[i].Stats.MsgThroughputIn || d.Throughput == 0 && !m.snap.Bundles[i].Known {
				ordered = true
			}
			m.move(d)
		}
		if after := m.most(); !ordered && after > before {
			t.Fatalf("the most loaded broker carried %v, now %v: %+v", before, after, v.Run)
		}
	})
}

func hardRules(t *rapid.T, m *model, run []plan.Decision, drained string) {
	view, seen := m.view(), map[string]bool{}
	for _, d := range run {
		i := m.snap.BundleIndex(d.Bundle)
		switch {
		case seen[d.Bundle]:
			t.Fatalf("%s runs twice", d.Bundle)
		case i >= 0 && (m.snap.Bundles[i].State != event.Owned || m.snap.Bundles[i].Owner != d.Source):
			t.Fatalf("%+v runs, but the bundle is %+v", d, m.snap.Bundles[i])
		case event.NamespaceOf(d.Bundle) == "pulsar/system":
			t.Fatalf("%s runs", d.Bundle)
		case d.Destination == d.Source:
			t.Fatalf("%s moves to where it is", d.Bundle)
		case d.Destination != "" && m.snap.BrokerIndex(d.Destination) < 0:
			t.Fatalf("%s moves to %s", d.Bundle, d.Destination)
		case d.Destination != "" && d.Destination == drained:
			t.Fatalf("%s moves to the drained %s", d.Bundle, d.Destination)
		}
		seen[d.Bundle] = true
		if d.Destination == "" {
			continue
		}
		if why := view.Move(policy.Placed{Bundle: d.Bundle, Broker: d.Source}, d.Destination); !why.IsZero() {
			t.Fatalf("%+v runs against %v", d, why)
		}
	}
}

// spread: while a broker is drained no other ends above an even part of all topics and the points, or above what it had and what
// operators ordered it to take. That is exact where the topics of every bundle are known.
func spread(t *rapid.T, m *model, run []plan.Decision, drained string, lim Limits) {
	had, all := map[string]int64{}, int64(0)
	for i := range m.snap.Bundles {
		b := &m.snap.Bundles[i]
		if !b.Known && b.Stats.Topics == 0 {
			return
		}
		had[b.Owner] += b.Stats.Topics
		all += b.Stats.Topics
	}
	has, ordered := map[string]int64{}, false
	for id, n := range had {
		has[id] = n
	}
	for _, d := range run {
		ordered = ordered || Ordered(d)
		if i := m.snap.BundleIndex(d.Bundle); i >= 0 && d.Destination != "" {
			has[d.Source] -= m.snap.Bundles[i].Stats.Topics
			has[d.Destination] += m.snap.Bundles[i].Stats.Topics
		}
	}
	limit := float64(all) * (1/float64(len(m.snap.Brokers)-1) + lim.DrainPoints)
	for id, n := range has {
		if !ordered && id != drained && n > had[id] && float64(n) > limit+1e-6 {
			t.Fatalf("while %s is drained %s comes from %d to %d of %d topics, the limit is %v: %+v", drained, id, had[id], n, all, limit, run)
		}
	}
}

func budgets(t *rapid.T, m *model, run []plan.Decision, lim Limits) {
	from, to, newcomers := map[string]int{}, map[string]int{}, map[string]int{}
	var topics int64
	var throughput float64
	for k, d := range run {
		n, b := d.Topics, d.Throughput
		if i := m.snap.BundleIndex(d.Bundle); i >= 0 {
			if n == 0 {
				n = m.snap.Bundles[i].Stats.Topics
			}
		}
		if !measured(b) {
			b = 0 // nothing is known of it
		}
		topics, throughput = topics+min(n, 1<<40), throughput+b
		from[d.Source]++
		to[d.Destination]++
		if !Ordered(d) {
			newcomers[d.Destination]++
		}
		switch {
		case lim.BundlesPerCycle > 0 && k+1 > lim.BundlesPerCycle, lim.BundlesPerSource > 0 && from[d.Source] > lim.BundlesPerSource,
			lim.BundlesPerTarget > 0 && d.Destination != "" && to[d.Destination] > lim.BundlesPerTarget:
			t.Fatalf("bundles: %v from, %v to, limits %+v", from, to, lim)
		case lim.TopicsPerCycle > 0 && k > 0 && topics > lim.TopicsPerCycle, lim.ThroughputPerCycle > 0 && k > 0 && throughput > lim.ThroughputPerCycle:
			t.Fatalf("%d topics, %v bytes/s after %d moves, limits %+v", topics, throughput, k+1, lim)
		}
	}
	oldest := int64(math.MaxInt64)
	for i := range m.snap.Brokers {
		oldest = min(oldest, m.snap.Brokers[i].StartedAt)
	}
	for i := range m.snap.Brokers {
		b := &m.snap.Brokers[i]
		limit := max(1, int(lim.NewBrokerShare*float64(len(m.snap.Bundles))))
		if b.StartedAt > now-lim.NewBrokerTime && b.StartedAt-oldest > together && newcomers[b.ID] > limit {
			t.Fatalf("%s is new and receives %d bundles, at most %d of %d are right", b.ID, newcomers[b.ID], limit, len(m.snap.Bundles))
		}
	}
}

// greedy plans moves from the most to the least loaded broker, heaviest bundles first, whatever came of it before.
func greedy(m *model) []plan.Decision {
	most, least := 0, 0
	for i := range m.snap.Brokers {
		if m.carried(m.snap.Brokers[i].ID) > m.carried(m.snap.Brokers[most].ID) {
			most = i
		}
		if m.carried(m.snap.Brokers[i].ID) < m.carried(m.snap.Brokers[least].ID) {
			least = i
		}
	}
	var out []plan.Decision
	for i := range m.snap.Bundles {
		if m.snap.Bundles[i].Owner == m.snap.Brokers[most].ID && most != least {
			out = append(out, m.decision(i, m.snap.Brokers[least].ID))
		}
	}
	slices.SortStableFunc(out, func(a, b plan.Decision) int { return int(b.Throughput - a.Throughput) })
	return out
}

// cycle is one cycle of a minute; what runs ends well.
func (m *model) cycle(st State, decisions []plan.Decision, lim Limits) (State, Verdict) {
	m.snap.Now += 60_000
	m.report()
	st = Observe(st, m.snap, nil, lim)
	v := Check(m.snap, decisions, m.view(), st, lim)
	for k, d := range v.Run {
		m.move(d)
		st = Learn(st, Outcome{Decision: d, Moved: true, Millis: 200, At: m.snap.Now + int64(k)}, lim)
	}
	return st, v
}

// TestNewBrokerProperty: a broker that comes only receives until it is above the average, and nothing gets worse on the way.
func TestNewBrokerProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, lim := drawModel(t), drawLimits(t)
		for i := range m.snap.Brokers {
			m.snap.Brokers[i].StartedAt = now - 86_400_000
		}
		st := Observe(NewState(), m.snap, nil, lim)
		m.snap.Brokers = append(m.snap.Brokers, cluster.Broker{ID: "new:8080", PersistentTopics: true, NonPersistentTopics: true, StartedAt: now})
		before := m.most()
		for range 9 {
			m.report()
			had, mean := m.carried("new:8080"), 0.0
			for i := range m.snap.Brokers {
				mean += m.carried(m.snap.Brokers[i].ID) / float64(len(m.snap.Brokers))
			}
			decisions := append(greedy(m), drawDecisions(t, m)...)
			decisions = slices.DeleteFunc(decisions, func(d plan.Decision) bool {
				i := m.snap.BundleIndex(d.Bundle) // no lies about load, no orders
				return Ordered(d) || i < 0 || d.Throughput != m.snap.Bundles[i].Stats.MsgThroughputIn || d.Throughput == 0 && !m.snap.Bundles[i].Known
			})
			var v Verdict
			st, v = m.cycle(st, decisions, lim)
			for _, d := range v.Run {
				if d.Source == "new:8080" && had <= mean && m.carried("new:8080") <= mean {
					t.Fatalf("the new broker carries %v of a mean of %v and gives: %+v", had, mean, d)
				}
			}
			if after := m.most(); after > before {
				t.Fatalf("the most loaded broker carried %v, now %v", before, after)
			}
			before = m.most()
		}
	})
}

// TestDrainProperty: a drained broker ends empty, but for what policies or ownership keep there, and receives nothing.
func TestDrainProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, lim := drawModel(t), drawLimits(t)
		lim.TopicsPerCycle = max(lim.TopicsPerCycle, 200) // one bundle a cycle at least
		st, source := Drain(NewState(), m.snap.Brokers[0].ID, now), m.snap.Brokers[0].ID
		stays := map[string]plan.Reason{}
		for range 40 {
			clear(stays)
			var decisions []plan.Decision
			view := m.view()
			for i := range m.snap.Bundles {
				b := &m.snap.Bundles[i]
				if b.Owner != source {
					continue
				}
				to := ""
				allowed := view.Allowed(b.Namespace, true)
				for _, k := range allowed.Candidates() {
					if id := m.snap.Brokers[k].ID; id != source && (to == "" || m.carried(id) < m.carried(to)) {
						to = id
					}
				}
				d := m.decision(i, to)
				if d.PulsarReason = "Admin"; to == "" {
					d.Action = plan.Unload
				}
				decisions = append(decisions, d)
			}
			var v Verdict
			st, v = m.cycle(st, append(decisions, greedy(m)...), lim)
			for _, d := range v.Run {
				if d.Destination == source {
					t.Fatalf("the drained broker receives %+v", d)
				}
			}
			for _, r := range v.Refused {
				if Ordered(r.Decision) {
					stays[r.Decision.Bundle] = r.Why
				}
			}
		}
		keeps := []string{policy.Frozen.ID, policy.NoOtherBroker.ID, policy.SystemNamespace.ID, InFlight.ID, Closer.ID, CloserDomain.ID}
		for i := range m.snap.Bundles {
			b := &m.snap.Bundles[i]
			if b.Owner == source && !slices.Contains(keeps, stays[b.Name].Code) {
				t.Fatalf("%s stays on the drained broker: %+v", b.Name, stays[b.Name])
			}
		}
	})
}

// TestStateProperty: a state survives JSON, and the verdicts of what is read back are the same.
func TestStateProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, lim := drawModel(t), drawLimits(t)
		st := NewState()
		for range rapid.IntRange(0, 6).Draw(t, "cycles") {
			m.snap.Now += 60_000
			m.report()
			var h *Harm
			if rapid.Bool().Draw(t, "metrics") {
				h = &Harm{At: m.snap.Now}
				for i := range m.snap.Brokers {
					x := rapid.SampledFrom([]float64{-1, 0, 5, 5000, math.NaN(), math.Inf(1)})
					h.Brokers = append(h.Brokers, Clients{Broker: m.snap.Brokers[i].ID, Latency: x.Draw(t, "latency"), Reconnects: x.Draw(t, "reconnects")})
				}
			}
			st = Observe(st, m.snap, h, lim)
			for _, d := range drawDecisions(t, m) {
				before, err := json.Marshal(st)
				if err != nil {
					t.Fatalf("state: %v", err)
				}
				o := Outcome{Decision: d, Moved: rapid.Bool().Draw(t, "moved"), Millis: rapid.Int64Range(0, 20_000).Draw(t, "millis"), At: m.snap.Now}
				next := Learn(st, o, lim)
				if after, err := json.Marshal(st); err != nil || string(after) != string(before) {
					t.Fatalf("Learn changed the state that went in, or %v:\n%s\n%s", err, before, after)
				}
				st = next
			}
		}
		if rapid.Bool().Draw(t, "stopped") {
			st = Stop(st, Pause{Reason: "r", By: "me", Since: now, Until: now + 1000})
		}
		raw, err := json.Marshal(st)
		if err != nil {
			t.Fatal(err)
		}
		read, err := DecodeState(raw)
		if err != nil {
			t.Fatal(err)
		}
		st.Version = StateVersion
		if diff := cmp.Diff(st, read, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("read back (-was +is):\n%s", diff)
		}
		decisions := drawDecisions(t, m)
		if diff := cmp.Diff(Check(m.snap, decisions, m.view(), st, lim), Check(m.snap, decisions, m.view(), read, lim), cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("verdicts differ (-was +read back):\n%s", diff)
		}
	})
}

func marshal(t testing.TB, st State) []byte {
	t.Helper()
	raw, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
