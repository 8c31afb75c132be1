package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/strategies"
)

type demoOptions struct {
	seed   uint64
	cycles int
	pause  time.Duration // of real time between two simulated minutes
}

func newDemo(a *app) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Balance an embedded cluster, without any Pulsar",
		Long: `Starts a simulated cluster of six brokers with 120 bundles under a skewed load, on an in-memory event log, and lets the same
engine and loop govern it that govern a real cluster. A cycle is one simulated minute.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.cycles < 1 {
				return fmt.Errorf("--cycles is %d: it must be 1 or more", o.cycles)
			}
			return a.demo(cmd.Context(), o)
		},
	}
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "of the simulated load; the same seed gives the same run")
	cmd.Flags().IntVar(&o.cycles, "cycles", 12, "most cycles; it ends earlier when there is nothing left to do")
	cmd.Flags().DurationVar(&o.pause, "pause", 3*time.Second, "real time between two cycles")
	return cmd
}

func (a *app) demo(ctx context.Context, o demoOptions) error {
	cl, err := simulate.New(simulate.DemoCluster(o.seed))
	if err != nil {
		return err
	}
	e, err := simulate.NewEmbedded(ctx, cl, simulate.EmbeddedOptions{SelfDriven: true})
	if err != nil {
		return err
	}
	defer e.Close()
	runtime, err := e.RuntimeConfig(ctx)
	if err != nil {
		return err
	}
	layered, err := settings.Resolve("4.2.4", settings.ClusterLayer("the embedded cluster", runtime))
	if err != nil {
		return err
	}
	planAnyway(layered)
	// The demo's cluster has no balancer of its own: Ballast is the only one.
	if err := e.SetDynamicConfig(ctx, "loadBalancerSheddingEnabled", "false"); err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	views := control.NewViews(control.ViewOptions{Cluster: e, Log: e.Log(), Settings: layered.Settings, Version: "4.2.4", Stepwise: true, Logger: quiet})
	if err := views.Open(ctx); err != nil {
		return err
	}
	defer views.Close()
	manager, _, err := strategies.New(layered)
	if err != nil {
		return err
	}
	lock := control.NewLock(e.Log(), "demo", time.Second, e.Now)
	d := &demo{app: a, cluster: e, options: o, start: e.Now().UnixMilli()}
	controller := control.New(control.Options{Instance: "demo", Mode: control.Govern, Manager: manager, Viewer: views, Clock: e, Lock: lock,
		Executor: control.NewExecutor(e, views, e, control.ExecLimits{Request: time.Minute, Verify: 10 * time.Second, Poll: 50 * time.Millisecond}),
		Journal:  control.NewTopicJournal(e.Log()), Seed: o.seed, Explain: true, Logger: quiet,
		Limits: guard.Limits{BundlesPerCycle: 40, TopicsPerSecond: 500, BundleCoolDown: 600_000, FailureCoolDown: 60_000}})
	// The brokers' first reports, with rates in them, take two minutes.
	if err := e.Sleep(ctx, 2*time.Minute+5*time.Second); err != nil {
		return err
	}
	if err := d.sample(ctx, &d.before); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "An embedded cluster: %d brokers, %d bundles, %s/s of traffic; no Pulsar needed.\n", simulate.DemoBrokers, simulate.DemoBundles, megabytes(d.before.total()))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	service := &control.Service{Cluster: e, Controller: controller, Lock: lock, TakeOvers: control.NewTakeOvers(e.Log(), e, "demo", e.Now),
		Interval: time.Minute, Standby: time.Second, Leave: time.Minute, Clock: e, Logger: quiet,
		Each: func(cy *control.Cycle) {
			if d.show(ctx, cy) {
				stop()
			}
		}}
	if err := service.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return d.summary(context.WithoutCancel(ctx))
}

// demo shows what happens.
type demo struct {
	app     *app
	cluster *simulate.Embedded
	options demoOptions
	start   int64 // Unix ms of the simulated clock
	before  loads
	idle    int // cycles in a row without a move
}

type loads struct{ simulate.Sample }

func (l loads) total() (sum float64) {
	for _, x := range l.Loads {
		sum += x
	}
	return sum
}

func (d *demo) sample(ctx context.Context, to *loads) error {
	return d.cluster.With(ctx, func(c *simulate.Cluster) { to.Sample = c.Sample(simulate.Throughput) })
}

// show prints one cycle and says whether the demo is over.
func (d *demo) show(ctx context.Context, cy *control.Cycle) bool {
	w := d.app.stdout
	fmt.Fprintf(w, "\n--- cycle %d, minute %d\n", cy.N, (cy.At-d.start)/60_000)
	if len(cy.Frozen) == 0 {
		printBars(w, cy)
	}
	printVerdict(w, &control.Cycle{At: cy.At, Plan: cy.Plan, Verdict: cy.Verdict, Frozen: cy.Frozen, Snapshot: cy.Snapshot})
	moved, slowest := 0, int64(0)
	for _, o := range cy.Outcomes {
		if o.Result == control.Done {
			moved++
			slowest = max(slowest, o.Millis)
		} else {
			fmt.Fprintf(w, "%s of %s: %s\n", o.Result, o.Decision.Bundle, o.Why)
		}
	}
	if moved > 0 {
		fmt.Fprintf(w, "%d moved and verified at their new owners, the slowest in %d ms\n", moved, slowest)
		d.idle = 0
	} else {
		d.idle++
	}
	if d.idle == 3 || int(cy.N) >= d.options.cycles {
		return true
	}
	return control.SystemClock{}.Sleep(ctx, d.options.pause) != nil
}

// printBars draws each broker's load as the cycle saw it, before it acted; | marks the mean.
func printBars(w io.Writer, cy *control.Cycle) {
	const width = 30
	mean, most := 0.0, 0.0
	for i := range cy.Snapshot.Brokers {
		x := throughput(cy.Snapshot.Brokers[i].Load)
		mean, most = mean+x/float64(len(cy.Snapshot.Brokers)), max(most, x)
	}
	for i := range cy.Snapshot.Brokers {
		b := &cy.Snapshot.Brokers[i]
		bar := fmt.Sprintf("%-*s", width, strings.Repeat("#", int(throughput(b.Load)/mean*width+0.5)))
		fmt.Fprintf(w, "%-22s %3d bundles %8s/s %5.1f %% %s|%s\n", b.ID, b.Load.BundleCount, megabytes(throughput(b.Load)), b.Load.WeightedMaxEMA*100, bar[:width], bar[width:])
	}
	fmt.Fprintf(w, "%-22s max/mean %.2f\n\n", "", most/mean)
}

func throughput(d *event.BrokerLoadData) float64 { return d.MsgThroughputIn + d.MsgThroughputOut }

func (d *demo) summary(ctx context.Context) error {
	var after loads
	if err := d.sample(ctx, &after); err != nil {
		return err
	}
	moves, topicCount := 0, 0
	err := d.cluster.With(ctx, func(c *simulate.Cluster) {
		for _, m := range c.Moves() {
			moves++
			topicCount += m.Topics
		}
	})
	fmt.Fprintf(d.app.stdout, "\nmax/mean of broker throughput: %.2f before, %.2f after; %d moves, %d topics moved\n", d.before.MaxMean, after.MaxMean, moves, topicCount)
	return err
}

func megabytes(bytes float64) string { return fmt.Sprintf("%.1f MB", bytes/1e6) }
