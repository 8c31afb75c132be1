package policy

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files hold what Pulsar's own classes (LoadManagerShared, SimpleResourceAllocationPolicies) answered to random
// policies, brokers and namespaces: the candidates that policies leave, and what anti-affinity leaves of all brokers.
// Half of the policies name brokers by host:port, which 4.2.4 never matches and 5.0.1 does.
type recorded struct {
	Policies []struct {
		Name                           string
		Namespaces, Primary, Secondary []string
		Min                            int
	}
	Brokers []struct {
		ID                        string
		Persistent, NonPersistent bool
	}
	Namespace             string
	Persistent, HasPolicy bool
	Allowed               []string
	Domains               map[string]string
	Counts                map[string]int
	FailureDomainsEnabled bool
	Spread                []string
}

func TestRecordedCandidates(t *testing.T) {
	for _, c := range []struct {
		file  string
		ports PortPatterns
	}{
		{"testdata/candidates-4.2.4.jsonl.gz", HostOnly},
		{"testdata/candidates-5.0.1.jsonl.gz", HostAndPort},
	} {
		t.Run(c.file, func(t *testing.T) {
			cases := readRecorded(t, c.file)
			differ := 0
			for i, r := range cases {
				view, verdict := r.evaluate(c.ports)
				compareRecorded(t, i, &r, view, &verdict)
				if _, other := r.evaluate(HostOnly); !cmp.Equal(ids(&other), ids(&verdict)) {
					differ++
				}
			}
			if len(cases) < 400 || c.ports == HostAndPort && differ < 20 {
				t.Errorf("%d cases, %d of them depend on ports", len(cases), differ)
			}
		})
	}
}

func compareRecorded(t *testing.T, i int, r *recorded, view *View, verdict *Verdict) {
	t.Helper()
	if !verdict.Frozen.IsZero() {
		t.Errorf("case %d: frozen: %s", i, verdict.Frozen)
	}
	if diff := cmp.Diff(r.Allowed, ids(verdict)); diff != "" {
		t.Errorf("case %d: allowed (-pulsar +ballast):\n%s", i, diff)
	}
	if has := verdict.Policy != ""; has != r.HasPolicy || has != view.set.HasIsolation(r.Namespace) {
		t.Errorf("case %d: policy %q, pulsar says %v", i, verdict.Policy, r.HasPolicy)
	}
	all, counts := make([]int, len(r.Brokers)), make([]int, len(r.Brokers))
	for i, b := range r.Brokers {
		all[i], counts[i] = i, r.Counts[b.ID]
	}
	dropped := 0
	spread := []string{}
	for _, b := range view.AntiAffinity(all, counts, r.FailureDomainsEnabled, func(int, Reason) { dropped++ }) {
		spread = append(spread, r.Brokers[b].ID)
	}
	if diff := cmp.Diff(r.Spread, spread); diff != "" {
		t.Errorf("case %d: anti-affinity (-pulsar +ballast):\n%s", i, diff)
	}
	if dropped+len(spread) != len(all) {
		t.Errorf("case %d: of %d brokers %d kept and %d reasons", i, len(all), len(spread), dropped)
	}
}

func (r *recorded) evaluate(ports PortPatterns) (*View, Verdict) {
	var isolation []Isolation
	for _, p := range r.Policies {
		isolation = append(isolation, Isolation{p.Name, p.Namespaces, p.Primary, p.Secondary, AutoFailover{MinLimit: p.Min}})
	}
	var brokers []Broker
	var domains []Domain
	for _, b := range r.Brokers {
		brokers = append(brokers, Broker{b.ID, b.Persistent, b.NonPersistent})
		if d, ok := r.Domains[b.ID]; ok {
			domains = append(domains, Domain{d, []string{b.ID}})
		}
	}
	view := New(isolation, nil, domains, nil, WithPorts(ports)).Over(brokers)
	return view, view.Allowed(r.Namespace, r.Persistent)
}

func ids(v *Verdict) []string {
	out := []string{}
	for _, i := range v.Candidates() {
		out = append(out, v.Brokers[i].Broker)
	}
	return out
}

func readRecorded(t *testing.T, file string) (out []recorded) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}
