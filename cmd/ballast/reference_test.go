package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/reporter"
)

var rewrite = flag.Bool("rewrite", false, "write the references in docs anew")

// TestReferences holds docs/cli.md and docs/metrics.md to the code; -rewrite makes them from it.
func TestReferences(t *testing.T) {
	for file, want := range map[string]string{"../../docs/cli.md": cliReference(), "../../docs/metrics.md": metricsReference(t)} {
		if *rewrite {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what the code says (go test ./cmd/ballast -rewrite makes it anew):\n%s", file, diff)
		}
	}
}

func cliReference() string {
	root := newRoot(&app{})
	root.InitDefaultCompletionCmd()
	var b strings.Builder
	b.WriteString("# Command line\n\nMade from the code; `ballast COMMAND --help` says the same.\n\n")
	fmt.Fprintf(&b, "%s\n\nFlags of every command:\n\n%s", root.Long, flagTable(root.PersistentFlags()))
	for _, c := range root.Commands() {
		describe(&b, c)
	}
	return b.String()
}

func describe(b *strings.Builder, c *cobra.Command) {
	if c.Name() == "help" {
		return
	}
	long := c.Long
	if long == "" || c.Name() == "completion" {
		long = c.Short + "."
	}
	fmt.Fprintf(b, "\n## %s\n\n    %s\n\n%s\n", c.CommandPath(), c.UseLine(), long)
	if table := flagTable(c.LocalNonPersistentFlags()); table != "" {
		b.WriteString("\n" + table)
	}
}

func flagTable(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		if b.Len() == 0 {
			b.WriteString("| flag | default | meaning |\n|---|---|---|\n")
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		def := f.DefValue
		if def == "[]" {
			def = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, def, f.Usage)
	})
	return b.String()
}

var descriptor = regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)", .*constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)

// described collects the descriptors of what is registered.
type described struct {
	prometheus.Registerer
	rows []string
}

func (d *described) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		ch := make(chan *prometheus.Desc, 16)
		c.Describe(ch)
		close(ch)
		for desc := range ch {
			m := descriptor.FindStringSubmatch(desc.String())
			labels := strings.Split(m[3], ",")
			if m[4] != "" {
				labels = append(labels, strings.Split(m[4], ",")...)
			}
			labels = slices.DeleteFunc(labels, func(l string) bool { return strings.HasPrefix(l, "cluster=") })
			d.rows = append(d.rows, fmt.Sprintf("| `%s` | %s | %s |", m[1], strings.ReplaceAll(strings.Join(labels, ","), `"`, ""), m[2]))
		}
	}
}

func metricsReference(t *testing.T) string {
	t.Helper()
	d := &described{}
	control.NewMetrics(d, "example")
	d.MustRegister(control.NewCollector(nil, "example"))
	reporter.NewMetrics(d, "example")
	if len(d.rows) < 5 {
		t.Fatalf("only %d metrics are registered", len(d.rows))
	}
	return "# Metrics\n\nServed at `/metrics` of `ballastHttpListenAddress` while `ballast run` runs. Every metric has the label `cluster`. Names that\n" +
		"begin with `pulsar_` are Pulsar's own, with the same meaning and Pulsar's label `metric`; the broker is named where a figure is about one. Beside them are those of the Go runtime and of the process (`go_`, `process_`).\n\n| metric | labels | meaning |\n|---|---|---|\n" + strings.Join(d.rows, "\n") + "\n"
}
