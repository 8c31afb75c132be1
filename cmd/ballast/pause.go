package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
)

// commandFlags are those of every command to the leader.
type commandFlags struct {
	reason string
	wait   time.Duration
}

func (f *commandFlags) add(cmd *cobra.Command, reason string) {
	cmd.Flags().StringVar(&f.reason, "reason", "", reason)
	cmd.Flags().DurationVar(&f.wait, "wait", 15*time.Second, "how long to wait for the leader's answer; the command is not carried out later")
}

func (f *commandFlags) check() error {
	if f.wait < time.Second {
		return fmt.Errorf("--wait is %v: it must be at least 1s", f.wait)
	}
	return nil
}

func newPause(a *app) *cobra.Command {
	var flags commandFlags
	var during time.Duration
	cmd := &cobra.Command{
		Use:   "pause --reason TEXT",
		Short: "Let the Ballast that governs do nothing for a while",
		Long: `Tells the process that governs to carry nothing out, from the next action on, until "ballast resume" or for a time (--for).
Its cycles go on planning and say that they are paused. A leader that comes later keeps the pause.`,
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case flags.reason == "":
				return errors.New("--reason is empty: it must say why; whoever reads the log wants to know")
			case cmd.Flags().Changed("for") && during < time.Second:
				return fmt.Errorf("--for is %v: it must be at least 1s; without it the pause lasts until it is resumed", during)
			}
			return flags.check()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.command(cmd.Context(), control.CommandPause, flags, func(c *control.Command) { c.For = during.Milliseconds() })
		},
	}
	flags.add(cmd, "why (required)")
	cmd.Flags().DurationVar(&during, "for", 0, "for how long; without it until it is resumed")
	return cmd
}

// command sends a command to the leader and says what came of it.
func (a *app) command(ctx context.Context, what string, flags commandFlags, fill func(*control.Command)) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	c := control.NewCommand(what, operator(), time.Now(), flags.wait)
	c.Reason = flags.reason
	fill(&c)
	r, err := control.Send(ctx, s.log, s.cluster, c)
	if err != nil {
		return err
	}
	if !r.Answer.Done {
		return fmt.Errorf("%s refused: %s", r.Instance, r.Answer.Text)
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %s\n", r.Instance, r.Answer.Text)
	return err
}

// operator names who gives a command.
func operator() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return name + "@" + host
}
