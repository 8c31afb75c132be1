package control

import "fmt"

// Mode is how far Ballast may go.
type Mode string

// The modes.
const (
	Observe Mode = "observe" // watches, and compares the cluster's own balancer with what TransferShedder says
	Advise  Mode = "advise"  // plans and explains, changes nothing
	Govern  Mode = "govern"  // plans and acts
)

// ParseMode reads a mode.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Observe, Advise, Govern:
		return m, nil
	}
	return "", fmt.Errorf("mode is %q: it must be observe, advise or govern", s)
}
