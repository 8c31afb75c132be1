package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

// brokerLimit is what brokers take as one message.
const brokerLimit = 5 << 20

// crowd is a cluster of many bundles with long names, whose first broker has them all; it is a control.Viewer.
type crowd struct {
	control.Viewer // what is not asked for panics
	brokers        []string
	bundles        []string
}

func newCrowd(bundles int) *crowd {
	w := &crowd{}
	for i := range 3 {
		w.brokers = append(w.brokers, fmt.Sprintf("pulsar-production-broker-%d.pulsar-production-broker.messaging.svc.cluster.local:8080", i))
	}
	for i := range bundles {
		w.bundles = append(w.bundles, fmt.Sprintf("department-of-payments-and-settlement/%s-%04d/0x%08x_0x%08x", strings.Repeat("orders-", 9), i/16, i<<10, (i+1)<<10))
	}
	return w
}

func (w *crowd) Look(_ context.Context, now time.Time) (*control.Look, error) {
	set := settings.Defaults()
	set.LoadManagerClassName = townManager
	in := control.Inputs{Now: now.UnixMilli(), Cluster: "crowd", Version: "4.2.4", Leader: w.brokers[0], Settings: set}
	for _, id := range w.brokers {
		in.Brokers = append(in.Brokers, cluster.Broker{ID: id, Version: "4.2.4", LoadManager: townManager, PersistentTopics: true, NonPersistentTopics: true})
		in.Load = append(in.Load, control.Heard[event.BrokerLoadData]{Key: id, Value: event.NewBrokerLoadData(), At: now.UnixMilli()})
	}
	for _, bundle := range w.bundles {
		in.Owners = append(in.Owners, control.Ownership{Bundle: bundle, Owner: w.brokers[0], State: event.Owned})
	}
	return &control.Look{Snapshot: control.Assemble(in)}, nil
}

// everything moves each bundle and passes each over, with all that a reason may say, and remembers as much as may be.
type everything struct {
	script
	of    *crowd
	state int // bytes
}

type muchState struct{ Text string }

func (m everything) NewState() plan.State { return &muchState{strings.Repeat("s", m.state)} }

func (m everything) Shed(snap *cluster.Snapshot, state plan.State, _ plan.Rand, tr *plan.Trace) (plan.Plan, plan.State) {
	why := plan.Code{ID: "FROM_HIGHEST", Template: "{bundle} carries {throughput} bytes/s of {source}, which is {ratio} above the average of {brokers}; {destination} has least"}
	p := plan.Plan{Strategy: "everything", At: snap.Now}
	for i, bundle := range m.of.bundles {
		d := plan.Decision{Action: plan.Transfer, Bundle: bundle, Source: m.of.brokers[0], Destination: m.of.brokers[1+i%2], Label: "Success", PulsarReason: "Overloaded",
			Throughput: 1234567.8 + float64(i), MsgRate: 98765.4321, Topics: 12}
		d.Why = why.Because(plan.S("bundle", bundle), plan.N("throughput", d.Throughput), plan.S("source", d.Source), plan.N("ratio", 1.23456), plan.N("brokers", 3), plan.S("destination", d.Destination))
		p.Decisions = append(p.Decisions, d)
		tr.Skip(bundle, d.Source, d.Destination, d.Why)
	}
	return p, state
}

// The largest record that a cycle can have, with a plan without budgets over thousands of bundles that waits for review, is one that
// brokers take. What the record has no room for is refused by name, and what is left is carried out and no more.
func TestTheLargestRecordIsTaken(t *testing.T) {
	for _, review := range []bool{true, false} {
		w, journal, done := newCrowd(6000), &memoryJournal{}, 0
		o := control.Options{Mode: control.Govern, Manager: everything{of: w, state: 100}, Viewer: w, Journal: journal, Clock: &proc{town: newTown(1, 1)},
			Explain: true, Review: review, Logger: quiet}
		if review {
			o.Manager = everything{of: w, state: 500 << 10}
		}
		o.Executor = acting(func(_ context.Context, d plan.Decision) control.Outcome {
			done++
			return control.Outcome{Decision: d, Result: control.Skipped, Why: "not in this test"}
		})
		cy, err := control.New(o).Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		run, late := len(cy.Verdict.Run), 0
		for _, r := range cy.Verdict.Refused {
			if r.Why.Code == control.CycleFull.ID {
				late++
			}
		}
		if run < 300 || run > 1000 || run+late != len(w.bundles) {
			t.Errorf("of %d decisions %d run, and %d wait for the next cycle", len(w.bundles), run, late)
		}
		if want := run; !review && done != want || review && done != 0 {
			t.Errorf("review %t: %d of %d were carried out", review, done, run)
		}
		largest := 0
		for _, r := range journal.records {
			b, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			largest = max(largest, len(b))
		}
		t.Logf("review %t: %d decisions run, the largest of %d records has %d bytes", review, run, len(journal.records), largest)
		if largest >= brokerLimit {
			t.Errorf("review %t: a record has %d bytes, brokers take %d", review, largest, brokerLimit)
		}
		r := journal.records[0]
		if len(r.Verdict.Run) != run || review && len(r.Memory.Review.Decisions) != run {
			t.Errorf("review %t: the record has %d of %d decisions that run", review, len(r.Verdict.Run), run)
		}
	}
}

// A command that would make its answer too large is not read.
func TestLargeCommandsAreNotRead(t *testing.T) {
	k := control.NewCommand(control.CommandPause, "anna@desk", time.UnixMilli(1), time.Second)
	for reason, ok := range map[int]bool{100: true, 10_000: true, 17_000: false, 5 << 20: false} {
		k.Reason = strings.Repeat("x", reason)
		b, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := control.DecodeCommand(b); (err == nil) != ok {
			t.Errorf("a reason of %d bytes: %v", reason, err)
		}
	}
}
