package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/ballast-lb/ballast/settings"
)

func newConfig(a *app) *cobra.Command {
	var output string
	var all, offline bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting, its value and where it comes from",
		Long: `Shows every setting with its value and origin: default, cluster, file, environment or flag, and what makes no sense.
The cluster's runtime configuration is read unless --offline. Secrets are never shown.`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return checkOutput(output) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.layered(cmd.Context(), offline)
			if err != nil {
				return err
			}
			values := l.Values()
			if !all {
				values = given(values)
			}
			problems := l.Check()
			if output == "table" {
				return a.configTable(values, problems)
			}
			return a.encode(output, configDocument(values, problems))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	cmd.Flags().BoolVar(&all, "all", true, "show defaults, too")
	cmd.Flags().BoolVar(&offline, "offline", false, "do not ask the cluster")
	return cmd
}

// layered is the settings, with the cluster's runtime configuration unless offline.
func (a *app) layered(ctx context.Context, offline bool) (*settings.Layered, error) {
	if offline {
		return a.resolve("")
	}
	s, err := a.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w (config --offline shows the settings without the cluster)", err)
	}
	defer s.close()
	return s.settings, nil
}

func given(values []settings.Value) []settings.Value {
	var out []settings.Value
	for _, v := range values {
		if v.Origin != settings.OriginDefault {
			out = append(out, v)
		}
	}
	return out
}

type configValue struct {
	Key    string          `json:"key"`
	Value  string          `json:"value"`
	Unit   string          `json:"unit,omitempty"`
	Origin settings.Origin `json:"origin"`
	Where  string          `json:"where,omitempty"`
}

type configOutput struct {
	Settings []configValue      `json:"settings"`
	Problems []settings.Problem `json:"problems,omitempty"`
}

func configDocument(values []settings.Value, problems []settings.Problem) configOutput {
	out := configOutput{Problems: problems}
	for _, v := range values {
		out.Settings = append(out.Settings, configValue{Key: v.Key.Name, Value: v.Text, Unit: v.Key.Unit, Origin: v.Origin, Where: v.Where})
	}
	return out
}

func (a *app) configTable(values []settings.Value, problems []settings.Problem) error {
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tVALUE\tUNIT\tORIGIN\tWHERE")
	for _, v := range values {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", v.Key.Name, v.Text, v.Key.Unit, v.Origin, v.Where)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Fprintln(a.stdout, p)
	}
	return nil
}

// encode writes a value as JSON or YAML; YAML has the field names of JSON.
func (a *app) encode(format string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if format == "yaml" {
		var plain any
		if err := yaml.Unmarshal(b, &plain); err != nil { // JSON is YAML
			return err
		}
		if b, err = yaml.Marshal(plain); err != nil {
			return err
		}
		_, err = a.stdout.Write(b)
		return err
	}
	_, err = fmt.Fprintln(a.stdout, string(b))
	return err
}
