package main

import (
	"strings"
	"testing"
)

// TestEmptyArguments: an argument that is empty is refused by its name, before anybody is asked.
func TestEmptyArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		name string
	}{
		{[]string{"report", ""}, `BROKER is ""`},
		{[]string{"report", " "}, `BROKER is " "`},
		{[]string{"drain", ""}, `BROKER is ""`},
		{[]string{"drain", "b:8080", "--also", ""}, `--also is ""`},
		{[]string{"undrain", "", "--reason", "x"}, `BROKER is ""`},
		{[]string{"move", "", "--to", "b:8080"}, `BUNDLE is ""`},
		{[]string{"move", "public/default/0x00000000_0xffffffff", "--to", ""}, "--to is missing"},
		{[]string{"move", "public/default/0x00000000_0xffffffff", "--to", " "}, "--to is missing"},
		{[]string{"unload", ""}, `BUNDLE|NAMESPACE is ""`},
		{[]string{"split", ""}, `BUNDLE is ""`},
		{[]string{"place", ""}, `NAMESPACE is ""`},
		{[]string{"explain", ""}, `BUNDLE|BROKER|CYCLE is ""`},
		{[]string{"approve", "", "--reason", "x"}, `ID is ""`},
		{[]string{"discard", "", "--reason", "x"}, `ID is ""`},
		{[]string{"whatif", "--lose", ""}, `--lose is ""`},
		{[]string{"bundles", "--broker", ""}, `--broker is ""`},
		{[]string{"bundles", "--namespace", ""}, `--namespace is ""`},
		{[]string{"log", "--broker", ""}, `--broker is ""`},
		{[]string{"log", "--bundle", ""}, `--bundle is ""`},
		{[]string{"manager", "check", ""}, `NAME is ""`},
		{[]string{"manager", "switch", ""}, `NAME is ""`},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) { fails(t, nil, append(c.args, "--admin-service-url", unreachable), c.name) })
	}
}
