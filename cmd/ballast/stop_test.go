package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A command that only looks ends soon after a signal, whatever it waits for; one that may have begun something ends in order.
func TestStopLimit(t *testing.T) {
	for args, limited := range map[string]bool{
		"plan --wait 5s": true, "-s http://a:8080 plan": true, "tail load": true, "doctor": true, "manager show": true, "log -f": true,
		"run --mode govern": false, "-s http://a:8080 run": false, "drain a:8080 --execute": false, "drain a:8080": true, "manager switch simple --execute": false,
		"release": false, "approve 1-2": false, "pause --reason x": false,
		"move b --to a:8080": true, "move b --to a:8080 --execute": false,
	} {
		if got := stopLimit(strings.Fields(args)); (got > 0) != limited {
			t.Errorf("%s: limit %v, limited should be %v", args, got, limited)
		}
	}
	never := make(chan int)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	var said strings.Builder
	if code := ended(stopped, never, time.Millisecond, &said); code != exitError || !strings.Contains(said.String(), "stopped") {
		t.Errorf("code %d, %q", code, said.String())
	}
	soon := make(chan int, 1)
	soon <- exitPlanned
	for _, limit := range []time.Duration{0, time.Hour} {
		if code := ended(stopped, soon, limit, &said); code != exitPlanned {
			t.Errorf("code %d, want that of the program", code)
		}
		soon <- exitPlanned
	}
}

// No flag takes a negative number or duration.
func TestNoNegatives(t *testing.T) {
	for _, args := range []string{"plan --wait -5s", "tail load --count -1", "log --cycle -7", "monitor --interval -1s", "restart-gate --calm -1s", "whatif --add -1"} {
		fields := strings.Fields(args)
		_, stderr, code := ballast(t, nil, fields...)
		flag := fields[len(fields)-2]
		if code != exitError || !strings.Contains(stderr, flag[max(0, strings.LastIndex(flag, "-")+1):]) || !strings.Contains(stderr, "it must not be negative") {
			t.Errorf("%s ended with %d: %s", args, code, stderr)
		}
	}
}
