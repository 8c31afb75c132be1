package manager

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ballast-lb/ballast/topics"
)

const transferShedder = "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder"

// MigrationStep is one step of a migration: what to do, how, what to watch meanwhile, and when to stop.
type MigrationStep struct {
	Title string   `json:"title"`
	Do    []string `json:"do"`              // commands, or lines of broker.conf
	Watch []string `json:"watch,omitempty"` // what must be so before the next step
	Stop  string   `json:"stop,omitempty"`  // when to stop and go back
}

// Order is the order in which brokers are restarted: those that are not through yet, the leader last, since it assigns
// bundles for all others until it goes.
func (c *Cluster) Order() []Broker {
	var out []Broker
	var leader []Broker
	for _, b := range c.Brokers {
		switch {
		case b.Runs() == Extensible:
		case b.ID == c.Leader:
			leader = append(leader, b)
		default:
			out = append(out, b)
		}
	}
	return append(out, leader...)
}

// steps are the steps of a migration; what the findings ask for comes first.
func (f *Facts) steps(findings []Finding) []MigrationStep {
	var out []MigrationStep
	if first := f.firstStep(findings); len(first.Do) > 0 {
		out = append(out, first)
	}
	out = append(out, f.prepare())
	for i, b := range f.Order() {
		out = append(out, f.restart(i, b))
	}
	return append(out, f.finish())
}

func (f *Facts) firstStep(findings []Finding) MigrationStep {
	s := MigrationStep{Title: "Do first what the checks ask for"}
	for _, x := range findings {
		if x.Severity != First {
			continue
		}
		text := x.Why.String()
		if x.Broker != "" {
			text = x.Broker + ": " + text
		}
		s.Do = append(s.Do, text)
		switch x.Why.Code {
		case DynamicManager.ID:
			s.Do = append(s.Do, "pulsar-admin brokers delete-dynamic-config --config "+Key)
		case DynamicShedder.ID:
			s.Do = append(s.Do, "pulsar-admin brokers delete-dynamic-config --config loadBalancerLoadSheddingStrategy")
		case Replicated.ID:
			s.Do = append(s.Do, "pulsar-admin namespaces set-clusters --clusters "+f.Name+" pulsar/system")
		case NoSchema.ID:
			s.Do = append(s.Do, "pulsar-admin namespaces set-is-allow-auto-update-schema --enable pulsar/system")
		case Expires.ID:
			s.Do = append(s.Do, "pulsar-admin namespaces remove-message-ttl pulsar/system")
		case OldRecords.ID:
			s.Do = append(s.Do, "pulsar-admin topics delete --force "+topics.ServiceUnitState)
		case TakenOver.ID:
			s.Do = append(s.Do, "ballast release")
		}
	}
	s.Watch = []string{"ballast migrate plan ends with exit code 0"}
	return s
}

func (f *Facts) prepare() MigrationStep {
	s := MigrationStep{Title: "Write this into the broker.conf of every broker, without restarting one", Do: []string{
		Key + "=" + Extensible.Class(),
		"loadBalancerLoadSheddingStrategy=" + transferShedder,
	}}
	if f.Settings != nil {
		least := 2 * 60 * f.Settings.LoadBalancerReportUpdateMaxIntervalMinutes
		if f.Settings.LoadBalancerBrokerLoadDataTTLInSeconds < least {
			s.Do = append(s.Do, fmt.Sprintf("loadBalancerBrokerLoadDataTTLInSeconds=%d", least))
		}
	}
	if _, five := f.Config["loadManagerMigrationEnabled"]; five {
		s.Do = append(s.Do, "loadManagerMigrationEnabled=true")
	}
	s.Watch = []string{"keep the old broker.conf: it is the way back", "stop Ballast where it governs; one that observes or advises may go on: it waits while brokers are mixed"}
	return s
}

func (f *Facts) restart(i int, b Broker) MigrationStep {
	s := MigrationStep{
		Title: fmt.Sprintf("Restart %s", b.ID),
		Do:    []string{"stop the broker in order, so that it hands its bundles over, and start it"},
		Watch: []string{
			fmt.Sprintf("ballast manager show: %s runs extensible, nobody else has left", b.ID),
			"the rate of failed look-ups and the publish latency of clients are what they were",
		},
		Stop: "clients cannot look topics up for longer than two minutes: put the old broker.conf back and restart this broker",
	}
	if b.ID == f.Leader {
		s.Title += ", which leads"
	}
	if i == 0 {
		s.Watch = append(s.Watch,
			fmt.Sprintf("%s, %s and %s exist", topics.ServiceUnitState, topics.BrokerLoadData, topics.TopBundles),
			"from now on look-ups are led to brokers of the load manager that the newest broker runs: it takes most bundles until more are through, so go on without a long pause")
	}
	return s
}

func (f *Facts) finish() MigrationStep {
	s := MigrationStep{
		Title: "Check that the cluster is through",
		Do:    []string{"ballast manager show", "ballast bundles --sort owner", "ballast plan --wait 2m"},
		Watch: []string{
			"every broker runs extensible and one leads",
			"every bundle in use has an owner, and look-ups lead there",
			"ballast plan hears every broker; Ballast goes on as before, now from the brokers' own events",
		},
		Stop: "a bundle stays in Assigning, Releasing or Splitting for longer than a minute (ballast tail): look at the log of the broker that it names",
	}
	if _, five := f.Config["loadManagerMigrationEnabled"]; five {
		s.Do = append(s.Do, "set loadManagerMigrationEnabled=false in broker.conf; it counts from the next restart on")
	}
	return s
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
