package monitor

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/event"
)

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func readJSON(t *testing.T, file string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, file)), v); err != nil {
		t.Fatal(err)
	}
}

// modularSample is what a real Modular cluster had in its metadata store when the reference tool printed its last tables.
type modularSample struct {
	Brokers  map[string]event.LocalBrokerData
	Averages map[string]event.TimeAverageBrokerData
}

// TestModularAsTheReference: from the same reports the same tables, to the last character.
func TestModularAsTheReference(t *testing.T) {
	var s modularSample
	readJSON(t, "modular.json", &s)
	want := read(t, "modular-reference.txt")
	for _, id := range []string{"127.0.0.1:18081", "127.0.0.1:18083"} {
		avg := s.Averages[id]
		if got := Modular(id, s.Brokers[id], &avg); !strings.Contains(want, got+"\n") {
			t.Errorf("%s: the reference did not print\n%s\nbut\n%s", id, got, want)
		}
	}
	// The third broker's averages were written anew after its table was printed: all but those is equal.
	const id = "127.0.0.1:18082"
	avg := s.Averages[id]
	got, _, _ := strings.Cut(Modular(id, s.Brokers[id], &avg), "||SHORT")
	if !strings.Contains(want, got) {
		t.Errorf("%s: the reference did not print\n%s", id, got)
	}
}

// TestModularWithoutHistory: averages that nobody knows are blank, not zero.
func TestModularWithoutHistory(t *testing.T) {
	var s modularSample
	readJSON(t, "modular.json", &s)
	const id = "127.0.0.1:18081"
	_, history, _ := strings.Cut(Modular(id, s.Brokers[id], nil), "||SHORT")
	if strings.ContainsAny(history, "0123456789") || strings.Count(history, "\n") != 4 {
		t.Errorf("history is\n%s", history)
	}
}

// TestExtensibleAsTheReference: from the events of a real cluster every table that the reference printed, but for the topics,
// which it leaves blank although the event has them.
func TestExtensibleAsTheReference(t *testing.T) {
	var events map[string][]event.BrokerLoadData
	readJSON(t, "extensible.json", &events)
	got := map[string]bool{}
	for id, list := range events {
		for _, d := range list {
			topics := d.Topics
			lines := strings.Split(Extensible(id, d), "\n")
			for i := range lines {
				if i > 0 && strings.HasPrefix(lines[i-1], "||COUNT") {
					lines[i] = strings.Replace(lines[i], fmt.Sprintf("||               |%-15d|", topics), fmt.Sprintf("||               |%-15s|", ""), 1)
				}
			}
			got[strings.Join(lines, "\n")] = true
		}
	}
	want := strings.Split(strings.TrimSpace(read(t, "extensible-reference.txt")), "\n\n")
	if len(want) != 6 {
		t.Fatalf("%d tables", len(want))
	}
	for _, table := range want {
		if !got[table] {
			t.Errorf("not printed:\n%s", table)
		}
	}
}

// TestSimple: the rows of Pulsar's documents, with throughput where the reference shows bits of the network interface.
func TestSimple(t *testing.T) {
	var d event.LoadReport
	readJSON(t, "simple.json", &d)
	const line = "==================================================================================================================="
	want := `Load Report for 127.0.0.1:18081:
` + line + `
||COUNT          |TOPIC          |BUNDLE         |PRODUCER       |CONSUMER       |BUNDLE +       |BUNDLE -       ||
||               |9              |4              |9              |9              |0              |0              ||
||RAW SYSTEM     |CPU %          |MEMORY %       |DIRECT %       |BW IN %        |BW OUT %       |MAX %          ||
||               |99.73          |21.46          |6.25           |-0.00          |-0.00          |99.73          ||
||ALLOC SYSTEM   |CPU %          |MEMORY %       |DIRECT %       |BW IN %        |BW OUT %       |MAX %          ||
||               |8.00           |82.75          |               |40.00          |100.00         |100.00         ||
||RAW MSG        |MSG/S IN       |MSG/S OUT      |TOTAL          |KB/S IN        |KB/S OUT       |TOTAL          ||
||               |179.52         |179.21         |358.73         |95.16          |95.00          |190.16         ||
||ALLOC MSG      |MSG/S IN       |MSG/S OUT      |TOTAL          |KB/S IN        |KB/S OUT       |TOTAL          ||
||               |160.11         |479.97         |640.07         |390.59         |1171.75        |1562.34        ||
` + line
	if diff := cmp.Diff(want, Simple("127.0.0.1:18081", d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r := SimpleRow("127.0.0.1:18081", d)
	if r.Bundles != 4 || math.Abs(r.MsgRate-358.73) > 0.01 || math.Abs(r.LongMsgRate-640.07) > 0.01 || math.Abs(r.MaxUsage-0.9973) > 0.0001 {
		t.Errorf("row is %+v", r)
	}
}

// TestOverallPutsRight: the same figures as in the reference's last table of all brokers, each under its own header: there the
// brokers' rows have KB/S and LONG/S exchanged and MAX % as a fraction, while the row TOTAL is in order.
func TestOverallPutsRight(t *testing.T) {
	var s modularSample
	readJSON(t, "modular.json", &s)
	var rows []Row
	for _, id := range []string{"127.0.0.1:18081", "127.0.0.1:18082", "127.0.0.1:18083"} {
		avg := s.Averages[id]
		rows = append(rows, ModularRow(id, s.Brokers[id], &avg))
	}
	_, reference, _ := strings.Cut(read(t, "modular-reference.txt"), "Overall Broker Data:\n")
	want, got := cells(reference), cells(Overall(rows))
	if diff := cmp.Diff(want[0], got[0]); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	for i := 1; i < len(want); i++ {
		w := append([]string{}, want[i]...)
		if i < len(want)-1 {
			w[3], w[4] = w[4], w[3]
		}
		for _, k := range []int{0, 1, 2, 4} {
			if w[k] != got[i][k] {
				t.Errorf("row %d, %s: %s, want %s", i, want[0][k], got[i][k], w[k])
			}
		}
		if got[i][5] != "99.82" && got[i][5] != "99.81" {
			t.Errorf("row %d: MAX %% is %s", i, got[i][5])
		}
	}
}

func cells(table string) (out [][]string) {
	for line := range strings.Lines(table) {
		if row, ok := strings.CutPrefix(strings.TrimSpace(line), "||"); ok {
			var c []string
			for cell := range strings.SplitSeq(strings.TrimSuffix(row, "||"), "|") {
				c = append(c, strings.TrimSpace(cell))
			}
			out = append(out, c)
		}
	}
	return out
}
