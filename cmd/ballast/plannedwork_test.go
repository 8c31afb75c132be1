package main

import "testing"

// What operators' commands refuse before they ask anybody.
func TestPlannedWorkUsage(t *testing.T) {
	const bundle = "public/default/0x00000000_0x40000000"
	for _, tc := range []struct {
		args []string
		text string
	}{
		{[]string{"doctor", "--watch", "-1s"}, "must not be negative"},
		{[]string{"doctor", "-o", "xml"}, "--output is \"xml\""},
		{[]string{"move", bundle}, "--to is missing"},
		{[]string{"move", bundle, "--to", "b:8080", "--beside-leader"}, "it needs --execute"},
		{[]string{"drain", "b:8080", "--beside-leader"}, "does not act beside"},
		{[]string{"drain", "b:8080", "--hold", "-1s"}, "must not be negative"},
		{[]string{"restart-gate", "--brokers", "-1"}, "must not be negative"},
		{[]string{"whatif", "--traffic", "0"}, "it must be a factor above 0"},
		{[]string{"whatif", "--traffic", "x"}, "as x1.5"},
		{[]string{"unload", bundle, "-o", "xml"}, "--output is \"xml\""},
	} {
		fails(t, nil, tc.args, tc.text)
	}
	for _, command := range []string{"doctor", "whatif", "restart-gate"} {
		fails(t, nil, []string{command, "--admin-service-url", unreachable}, unreachable, "webServiceUrl", "refused")
	}
}
