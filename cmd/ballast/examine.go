package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/diagnose"
	"github.com/ballast-lb/ballast/strategies"
	"github.com/ballast-lb/ballast/topics"
)

// examination finds out what doctor judges. What cannot be found out is noted, and the rest goes on.
type examination struct {
	*session
	facts diagnose.Facts
}

func (e *examination) unchecked(area, about string, err error) {
	e.facts.Unchecked = append(e.facts.Unchecked, diagnose.Unchecked{Area: area, About: about, Error: err.Error()})
}

func (e *examination) all(ctx context.Context) {
	e.brokers(ctx)
	e.connections(ctx)
	e.configuration(ctx)
	e.permissions(ctx)
	e.system(ctx)
	e.schemas(ctx)
}

func (e *examination) brokers(ctx context.Context) {
	brokers, silent, err := e.cluster.Answers(ctx)
	if err != nil {
		e.unchecked(diagnose.Brokers, "", err)
		return
	}
	e.facts.Brokers, e.facts.Silent, e.facts.Configs = brokers, map[string]string{}, map[string]map[string]string{}
	for id, err := range silent {
		e.facts.Silent[id] = err.Error()
	}
	for _, b := range brokers {
		if silent[b.ID] != nil {
			continue
		}
		config, err := e.cluster.RuntimeConfigOf(ctx, b.ID)
		if err != nil {
			e.unchecked(diagnose.Configuration, b.ID, err)
		} else {
			e.facts.Configs[b.ID] = config
		}
		ahead, uncertain, err := e.cluster.Clock(ctx, b.ID)
		if err != nil {
			e.unchecked(diagnose.Clocks, b.ID, err)
			continue
		}
		e.facts.Clocks = append(e.facts.Clocks, diagnose.Clock{Broker: b.ID, Ahead: ahead.Milliseconds(), Uncertain: uncertain.Milliseconds()})
	}
}

// connections looks whether what Ballast's settings name is there.
func (e *examination) connections(ctx context.Context) {
	if addresses, err := parseAddresses(e.settings.Ballast.BallastBrokerAddresses); err == nil { // connect has refused what is wrong
		e.facts.Addressed = slices.Sorted(maps.Keys(addresses))
	}
	if e.keeper == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := e.keeper.Brokers(limited); err != nil && ctx.Err() == nil {
		e.facts.Keeper = err.Error()
	}
}

func (e *examination) configuration(ctx context.Context) {
	e.facts.Problems = e.settings.Check()
	dynamic, err := e.cluster.DynamicConfig(ctx)
	if err != nil && !errors.Is(err, admin.Unauthorized) { // then it is told among the permissions
		e.unchecked(diagnose.Configuration, "dynamic configuration", err)
	}
	e.facts.Dynamic = dynamic
	registry, err := strategies.Registry(nil)
	if err != nil {
		e.unchecked(diagnose.Configuration, "strategies", err)
		return
	}
	for _, s := range registry.Shedders {
		if s.Class != "" {
			e.facts.Shedders = append(e.facts.Shedders, s.Class)
		}
	}
}

func (e *examination) probe(what, needed string, try func() error) {
	p := diagnose.Probe{What: what, Needed: needed}
	if err := try(); errors.Is(err, admin.Unauthorized) || err != nil && strings.Contains(err.Error(), "AuthorizationError") {
		p.Denied = err.Error()
	} else if err != nil {
		e.unchecked(diagnose.Permissions, what, err)
		return
	}
	e.facts.Probes = append(e.facts.Probes, p)
}

// system looks at the system namespace, and at what other Ballast processes do there.
func (e *examination) system(ctx context.Context) {
	var err error
	if e.facts.Replicated, err = e.cluster.ReplicationClusters(ctx, "pulsar/system"); err != nil {
		e.unchecked(diagnose.Replication, "pulsar/system", err)
	}
	if e.facts.Acting, err = e.cluster.Publishers(ctx, topics.Leader); err != nil {
		e.unchecked(diagnose.TakeOver, topics.Leader, err)
	}
	left, err := control.NewTakeOvers(e.log, e.cluster, e.instance, time.Now).Current(ctx)
	switch {
	case err != nil:
		e.unchecked(diagnose.TakeOver, topics.Takeover, err)
	case left != nil:
		e.facts.Left = &diagnose.Left{Instance: left.Instance, At: left.At, Keys: slices.Sorted(maps.Keys(left.Set))}
	}
}

func (e *examination) schemas(ctx context.Context) {
	for _, s := range []struct{ topic, class string }{{topics.BrokerLoadData, "BrokerLoadData"}, {topics.TopBundles, "TopBundlesLoadData"},
		{topics.ServiceUnitState, "ServiceUnitStateData"}} {
		versions, err := e.cluster.Schemas(ctx, s.topic)
		if err != nil {
			e.unchecked(diagnose.Schemas, s.topic, err)
			continue
		}
		out := diagnose.Schema{Topic: s.topic, Class: s.class}
		for _, v := range versions {
			out.Versions = append(out.Versions, diagnose.SchemaVersion{Version: v.Version, Type: v.Type, Definition: v.Definition})
		}
		if len(versions) > 0 { // a Modular cluster has no such topics
			e.facts.Schemas = append(e.facts.Schemas, out)
		}
	}
}
