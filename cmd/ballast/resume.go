package main

import (
	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
)

func newResume(a *app) *cobra.Command {
	return simpleCommand(a, control.CommandResume, "resume", "End a pause, or the hold after moves that ended badly",
		`Tells the process that governs to act again: from the next cycle on it carries out what it plans. It ends a pause, and also
the time in which nothing moves because moves ended badly again and again (GUARD_BACKING_OFF).`, cobra.NoArgs)
}

func newApprove(a *app) *cobra.Command {
	return simpleCommand(a, control.CommandApprove, "approve ID", "Let a plan run that waits for review",
		`With ballastReview=true a plan waits in the decision log; "ballast log --kind plan" shows it with its ID. What was reviewed is
what runs: when a bundle is not where it was, a broker came or went, or the guard would hold anything back by now, the
plan is refused and the next cycle plans anew.`, one("ID", aPlan))
}

func newDiscard(a *app) *cobra.Command {
	return simpleCommand(a, control.CommandDiscard, "discard ID", "Drop a plan that waits for review",
		"The plan is not carried out; the next cycle plans anew.", one("ID", aPlan))
}

// simpleCommand is a command to the leader whose one argument, if any, is the plan.
func simpleCommand(a *app, what, use, short, long string, args cobra.PositionalArgs) *cobra.Command {
	var flags commandFlags
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: args,
		PreRunE: func(*cobra.Command, []string) error { return flags.check() },
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.command(cmd.Context(), what, flags, func(c *control.Command) {
				if len(args) > 0 {
					c.Plan = args[0]
				}
			})
		},
	}
	flags.add(cmd, "why, for the log")
	return cmd
}
