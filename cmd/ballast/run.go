package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/reporter"
)

const (
	lockTimeout  = 5 * time.Second // of one send through the lock; after it the lock counts as lost. Far below the lease
	leaveTimeout = 30 * time.Second
	standby      = 500 * time.Millisecond // between two tries to get the lock: who leads next acts within 2 s
)

func newRun(a *app) *cobra.Command {
	var mode string
	var via string
	var takeOver, review bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Follow the cluster and, in govern, keep it even",
		Long: `Runs until it is stopped, one cycle every ballastCycleInterval.

observe compares what the cluster's own balancer does with the plan on the same data, advise plans and explains, govern plans and
acts. Only one process acts on a cluster; further ones stand by. govern refuses while the built-in shedder is on, unless
--take-over: then it writes down what it finds, switches the shedder off, and puts everything back when it leaves, or at
the next start after a crash, or by "ballast release".

When all brokers were moved to another load manager, it ends as at a stop and begins anew in the same process, with the settings
and the views of that one. While brokers are mixed it decides nothing.`,
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("mode") {
				a.set = append(a.set, "ballastMode="+mode)
			}
			if cmd.Flags().Changed("via") {
				a.set = append(a.set, "ballastVia="+via)
			}
			if takeOver {
				a.set = append(a.set, "ballastTakeOver=true")
			}
			if review {
				a.set = append(a.set, "ballastReview=true")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			given, err := a.resolve("")
			if err != nil {
				return err
			}
			return anew(cmd.Context(), control.SystemClock{}, a.logger(given.Ballast), a.run)
		},
	}
	cmd.Flags().StringVar(&mode, "mode", string(control.Advise), "observe, advise or govern")
	cmd.Flags().StringVar(&via, "via", "admin", "admin or channel: move bundles by admin REST or by records on the ownership topic")
	cmd.Flags().BoolVar(&takeOver, "take-over", false, "switch the built-in shedder off while governing")
	cmd.Flags().BoolVar(&review, "review", false, "in govern, let a plan wait until ballast approve or discard (ballastReview)")
	return cmd
}

// run follows the cluster until it is stopped, or until it was moved to another load manager.
func (a *app) run(ctx context.Context) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	mode, err := control.ParseMode(s.settings.Ballast.BallastMode)
	if err != nil {
		return err
	}
	name, err := s.cluster.Name(ctx)
	if err != nil {
		return err
	}
	if err := s.checkVia(ctx, mode); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	s.metrics = control.NewMetrics(registry, name)
	s.reported = reporter.NewMetrics(registry, name)
	views, stop, err := s.followIn(ctx, mode)
	if err != nil {
		return err
	}
	defer stop()
	registry.MustRegister(control.NewCollector(views, name), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// The address is taken first: who cannot serve should not have taken anything over.
	var listener net.Listener
	if address := s.settings.Ballast.BallastHTTPListenAddress; address != "" {
		if listener, err = net.Listen("tcp", address); err != nil {
			return fmt.Errorf("ballastHttpListenAddress is %q: %w", address, err)
		}
		defer listener.Close()
	}
	service, end, err := s.service(views, mode)
	if err != nil {
		return err
	}
	defer end()
	s.logger.Info("following", "cluster", name, "version", s.version, "mode", mode, "instance", s.instance)
	runs := []func(context.Context) error{service.Run, s.managerWatch().run}
	if listener != nil {
		runs = append(runs, func(ctx context.Context) error { return serveMetrics(ctx, listener, registry) })
	}
	err = together(ctx, runs...)
	if errors.Is(err, context.Canceled) {
		return nil // stopped by the user
	}
	return err
}

// serveMetrics serves /metrics until ctx ends, and closes the listener.
func serveMetrics(ctx context.Context, listener net.Listener, registry *prometheus.Registry) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	shut, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := server.Shutdown(shut)
	<-done
	return err
}
