package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What arguments must be, as errors say it.
const (
	aBroker    = "a broker id, host:webPort"
	aBundle    = "a bundle, tenant/namespace/0x........_0x........"
	aNamespace = "a namespace, tenant/namespace"
	aPlan      = "the ID of a plan that waits for review"
)

// one takes one argument that is not blank: an empty shell variable must not stand for anything.
func one(name, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cobra.ExactArgs(1)(cmd, args); err != nil {
			return err
		}
		return notBlank(name, args[0], what)
	}
}

func notBlank(name, value, what string) error {
	if strings.TrimSpace(value) == "" {
		return fmt.Errorf("%s is %q: it must be %s", name, value, what)
	}
	return nil
}

// flagGiven refuses a flag that was given without a value: it would count as not given at all.
func flagGiven(cmd *cobra.Command, name, what string) error {
	f := cmd.Flags().Lookup(name)
	if !f.Changed {
		return nil
	}
	values := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	if len(values) == 0 {
		values = []string{""}
	}
	for _, v := range values {
		if err := notBlank("--"+name, v, what); err != nil {
			return err
		}
	}
	return nil
}
