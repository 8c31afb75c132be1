package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/conformance"
)

func newConformance(a *app) *cobra.Command {
	var pulsar string
	cmd := &cobra.Command{
		Use:   "conformance FILE...",
		Short: "Hold Ballast's decisions against decisions recorded from Pulsar's own classes",
		Long: `Reads recorded decisions (JSON lines, plain or gzip-compressed), takes each decision again and compares. Prints matched
and total per kind with the first differences. Exit code 1 on any difference and on a kind that is not known.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			report, err := conformance.RunFiles(files, pulsar)
			fmt.Fprint(a.stdout, report)
			if err != nil {
				return err
			}
			if !report.OK() {
				return exitCode(exitError)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&pulsar, "pulsar", conformance.Pulsar4, "Pulsar version whose decisions are asked for: 4.2.4 or 5.0.1")
	return cmd
}
