//go:build integration

package integration

import (
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"testing"
)

// firstGroup is the first of the groups that programs run in which are cut off.
const firstGroup = 54001

// cut drops what a group's programs send to a port, as a network that loses everything does, until back is called or the test ends.
func cut(t *testing.T, group, port int) (back func()) {
	t.Helper()
	rule := func(what string) error {
		out, err := exec.Command("iptables", what, "OUTPUT", "-p", "tcp", "--dport", strconv.Itoa(port),
			"-m", "owner", "--gid-owner", strconv.Itoa(group), "-j", "DROP").CombinedOutput()
		if err != nil {
			return fmt.Errorf("iptables %s: %w: %s", what, err, out)
		}
		return nil
	}
	if err := rule("-I"); err != nil {
		t.Fatal(err)
	}
	back = sync.OnceFunc(func() {
		if err := rule("-D"); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(back)
	return back
}
