package pulsar

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestGapsAreLogged: a gap is logged with its cause, and without the attribute where there is none.
func TestGapsAreLogged(t *testing.T) {
	for _, err := range []error{nil, errors.New("down")} {
		var out bytes.Buffer
		s := &persistent{loop: &loop{logger: slog.New(slog.NewTextHandler(&out, nil))}}
		s.lost(position{}, 1, "the entry is gone", err)
		s.uncertain(position{}, "the ledger was deleted", err)
		if n := strings.Count(out.String(), "error="); n != 0 && err == nil || n != 2 && err != nil || strings.Contains(out.String(), "nil") {
			t.Errorf("%v: %s", err, out.String())
		}
	}
}
