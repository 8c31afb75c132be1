package main

import (
	"context"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// topicTimeout bounds what opening a consumer or a producer may take to find out whether it may be opened.
const topicTimeout = 10 * time.Second

// permissions tries what each mode needs. What is tried changes nothing.
func (e *examination) permissions(ctx context.Context) {
	const observe, govern = string(control.Observe), string(control.Govern)
	e.probe("read the dynamic configuration", observe, func() error {
		_, err := e.cluster.DynamicConfig(ctx)
		return err
	})
	e.probe("list the namespaces", observe, func() error {
		_, err := e.cluster.Namespaces(ctx)
		return err
	})
	e.probe("read the isolation policies", observe, func() error {
		_, err := e.cluster.Isolation(ctx, e.facts.Cluster)
		return err
	})
	e.probe("read the failure domains", observe, func() error {
		_, err := e.cluster.FailureDomains(ctx, e.facts.Cluster)
		return err
	})
	_, only := e.onReports()
	for i := range e.facts.Brokers {
		id := e.facts.Brokers[i].ID
		if e.facts.Silent[id] != "" {
			continue
		}
		e.probe("read the statistics of topics", observe, func() error {
			_, err := e.cluster.TopicStats(ctx, id)
			return err
		})
		if only {
			e.probe("read the load reports", observe, func() error {
				_, err := e.cluster.LoadReport(ctx, id)
				return err
			})
		}
		break
	}
	for _, p := range []admin.Permission{admin.MayUnload, admin.MaySplit, admin.MayConfigure} {
		e.probe(string(p), govern, func() error { return e.cluster.Probe(ctx, p) })
	}
	for _, u := range topicUses(e.settings.Ballast, only) {
		if _, err := e.cluster.TopicState(ctx, u.topic); err != nil {
			continue // it does not exist yet: a producer would create it
		}
		e.probe(u.String(), u.needed, func() error { return u.try(ctx, e.log) })
	}
}

// topicUse is what a mode does with a topic.
type topicUse struct {
	topic   string
	needed  string // the least mode that does it
	produce bool
}

func (u topicUse) String() string {
	if u.produce {
		return "produce to " + u.topic
	}
	return "consume " + u.topic
}

// topicUses are the topics that modes read and write. onReports says whether brokers only report. Topics that one process alone produces
// to are left out: a second producer is refused whatever it may do.
func topicUses(own *settings.Ballast, onReports bool) (out []topicUse) {
	use := func(mode control.Mode, produce bool, names ...string) {
		for _, name := range names {
			out = append(out, topicUse{name, string(mode), produce})
		}
	}
	reported := []string{topics.BundleStats}
	if onReports {
		use(control.Observe, false, topics.BundleData, topics.BrokerAverages)
		use(control.Govern, true, topics.BundleData, topics.BrokerAverages)
		reported = []string{topics.BrokerLoadData, topics.TopBundles, topics.LocalBrokerData}
	} else {
		use(control.Observe, false, topics.BrokerLoadData, topics.TopBundles, topics.ServiceUnitState)
	}
	for _, mode := range []control.Mode{control.Observe, control.Advise, control.Govern} {
		if reporter.Wanted(own.BallastReport, string(mode)) {
			if onReports {
				use(mode, false, reported...)
			}
			use(mode, false, topics.Reported)
			use(mode, true, append(reported, topics.Reported)...)
			break
		}
	}
	use(control.Govern, false, topics.Decisions, topics.Takeover, topics.Commands)
	use(control.Govern, true, topics.Decisions, topics.Takeover)
	if own.BallastVia == viaChannel && !onReports {
		use(control.Govern, true, topics.ServiceUnitState)
	}
	return out
}

// try opens a consumer or a producer of the topic and closes it: nothing is read or written.
func (u topicUse) try(ctx context.Context, log topics.Log) error {
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()
	if u.produce {
		pub, err := log.Publisher(ctx, u.topic, topics.PublishOptions{})
		if err != nil {
			return err
		}
		return pub.Close()
	}
	sub, err := log.Subscribe(ctx, u.topic, topics.SubscribeOptions{From: topics.Latest, Existing: true})
	if err != nil {
		return err
	}
	return sub.Close()
}
