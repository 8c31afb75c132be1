//go:build integration

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
)

// referenceVersion is the newest pulsar-perf that Maven Central has; its monitor runs with the libraries of every Pulsar 4.
const referenceVersion = "4.0.8"

// referenceJar is the jar of pulsar-perf, fetched once.
func referenceJar(t *testing.T) []byte {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "ballast", "tools")
	path := filepath.Join(dir, "pulsar-testclient-"+referenceVersion+".jar")
	if _, err := os.Stat(path); err != nil {
		out, err := exec.CommandContext(t.Context(), "mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy",
			"-Dartifact=org.apache.pulsar:pulsar-testclient:"+referenceVersion, "-DoutputDirectory="+dir).CombinedOutput()
		if err != nil {
			t.Fatalf("fetching pulsar-perf: %v\n%s", err, out)
		}
	}
	jar, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return jar
}

// reference starts pulsar-perf monitor-brokers in the cluster's network.
func reference(t *testing.T, c *harness.Cluster) *harness.Tool {
	t.Helper()
	connect := c.ZooKeeper()
	if c.Manager() == harness.Extensible {
		connect = c.Brokers()[0].ServiceURL() + " --extensions"
	}
	// Each of the tool's other commands makes histograms when it starts, hence the memory.
	return c.RunTool(t, map[string][]byte{"testclient.jar": referenceJar(t)}, "cd /pulsar && exec java -Xms64m -Xmx640m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"+
		" -Djava.net.preferIPv4Stack=true -Dlog4j.configurationFile=/pulsar/conf/log4j2.xml -Dpulsar.log.root.level=info"+
		" --add-opens java.base/java.nio=ALL-UNNAMED --add-opens java.base/jdk.internal.misc=ALL-UNNAMED"+
		" -cp /tool/testclient.jar:'lib/*' org.apache.pulsar.testclient.PulsarPerfTestTool /dev/null monitor-brokers --connect-string "+connect)
}

// printed is one table that a monitor printed: the cells of its rows, without the spaces around them.
type printed struct {
	title string // "Broker Data for ...", "Load Report for ...", "Overall Broker Data"
	rows  [][]string
}

// parsePrinted finds the tables in what a monitor wrote.
func parsePrinted(text string) (out []printed) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for _, title := range []string{"Broker Data for ", "Load Report for ", "Overall Broker Data"} {
			if i := strings.Index(line, title); i >= 0 && strings.HasSuffix(line, ":") {
				out = append(out, printed{title: strings.TrimSuffix(line[i:], ":")})
			}
		}
		if cells, ok := strings.CutPrefix(line, "||"); ok && len(out) > 0 {
			var row []string
			for cell := range strings.SplitSeq(strings.TrimSuffix(cells, "||"), "|") {
				row = append(row, strings.TrimSpace(cell))
			}
			last := &out[len(out)-1]
			last.rows = append(last.rows, row)
		}
	}
	return out
}

// values is the row of figures below a header row, by the header's first cell.
func (p printed) values(header string) []string {
	for i := 0; i+1 < len(p.rows); i += 2 {
		if p.rows[i][0] == header {
			return p.rows[i+1][1:]
		}
	}
	return nil
}

// headers are the header rows of a broker's table.
func (p printed) headers() (out [][]string) {
	for i := 0; i < len(p.rows); i += 2 {
		out = append(out, p.rows[i])
	}
	return out
}

// The monitor of Ballast beside the reference tool, in the same cluster at the same time: the same tables with the same
// columns, and every row of figures that the reference prints of a broker's traffic is among those that Ballast prints.
func TestMonitorBesideTheReference(t *testing.T) {
	for _, kind := range []harness.Manager{harness.Modular, harness.Simple, harness.Extensible} {
		t.Run(kind.String(), func(t *testing.T) {
			c := pool.Get(t, harness.Options{Manager: kind, Conf: keeperConf()})
			ns := c.CreateNamespace(t, 6)
			if kind != harness.Simple { // it puts bundles where it likes
				c.Place(t, ns, c.Brokers()...)
			}
			layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 60, Seed: 1})
			load := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{Size: 500})
			load.AwaitFlow(t)
			tool := reference(t, c)
			p := start(t, c, "monitor", "--interval", "2s")
			carrying := layout.Rate() / 3
			if kind == harness.Simple {
				carrying = 0
			}
			var theirs, ours []printed
			harness.Eventually(t, 5*time.Minute, "the reference prints every broker's traffic, and Ballast the same", func(ctx context.Context) error {
				theirs, ours = parsePrinted(tool.Output(ctx)), parsePrinted(stdoutOf(p))
				if len(ours) > 0 && len(theirs) > 0 {
					return besides(c, theirs, ours, carrying)
				}
				if code, ended, err := tool.Ended(ctx); ended || err != nil {
					t.Fatalf("the reference ended with %d, %v: %s", code, err, tail(tool.Output(ctx)))
				}
				return fmt.Errorf("%d and %d tables", len(theirs), len(ours))
			})
			p.stop(t)
			t.Logf("reference: %d tables, Ballast: %d", len(theirs), len(ours))
			report := load.Stop(t)
			if err := report.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func stdoutOf(p *program) string {
	stdout, _ := p.text()
	return stdout
}

// besides checks what both monitors printed so far. The error is what does not fit yet.
func besides(c *harness.Cluster, theirs, ours []printed, carrying float64) error {
	// The figures of each row that must be equal: all, but for usage, which is measured anew for each report, and for what the
	// reference shows wrongly or not at all.
	rows := map[string]func([]string) []string{"COUNT": all, "LATEST": all}
	switch c.Manager() {
	case harness.Simple:
		rows = map[string]func([]string) []string{"COUNT": firstFour, "RAW MSG": firstThree} // KB/S of RAW MSG is kbit/1024 there
	case harness.Modular:
		rows["COUNT"] = firstFour // gains and losses are cleared when a report was written
	case harness.Extensible:
		rows["COUNT"] = func(r []string) []string { return r[1:2] } // bundles alone
	}
	for _, b := range c.Live() {
		t, o := of(theirs, b.ID), of(ours, b.ID)
		if len(t) == 0 || len(o) == 0 {
			return fmt.Errorf("%s: %d and %d tables", b.Name, len(t), len(o))
		}
		if want, got := t[0].headers(), o[0].headers(); !slices.EqualFunc(want, got, slices.Equal) {
			return fmt.Errorf("%s: columns are %v, want %v", b.Name, got, want)
		}
		if t[0].title != o[0].title {
			return fmt.Errorf("title is %q, want %q", o[0].title, t[0].title)
		}
		last := t[len(t)-1]
		if carrying > 0 && !carries(last, carrying) {
			return fmt.Errorf("%s: the reference does not show its traffic yet: %v", b.Name, last.rows)
		}
		for header, part := range rows {
			want := part(last.values(header))
			same := slices.ContainsFunc(o, func(x printed) bool { return slices.Equal(part(x.values(header)), want) })
			if !same {
				return fmt.Errorf("%s, %s: none of %d tables has %v; the last one has %v", b.Name, header, len(o), want, part(o[len(o)-1].values(header)))
			}
		}
	}
	return overall(c, theirs, ours)
}

func all(r []string) []string        { return r }
func firstThree(r []string) []string { return r[:3] }
func firstFour(r []string) []string  { return r[:4] }

// carries says whether a table shows that a broker passes about as many messages as it should.
func carries(p printed, rate float64) bool {
	latest := p.values("LATEST")
	var in float64
	_, err := fmt.Sscan(latest[0], &in)
	return err == nil && in > rate*0.9 && in < rate*1.1
}

// of are the tables of one broker.
func of(list []printed, id string) (out []printed) {
	for _, p := range list {
		if strings.HasSuffix(p.title, " "+id) {
			out = append(out, p)
		}
	}
	return out
}

// overall compares the tables of all brokers: bundles and messages of each broker. The reference has none for Extensible
// clusters, and shows throughput under the header of the long-term rate.
func overall(c *harness.Cluster, theirs, ours []printed) error {
	if c.Manager() == harness.Extensible {
		return nil
	}
	const title = "Overall Broker Data"
	t, o := titled(theirs, title), titled(ours, title)
	if len(t) == 0 {
		return fmt.Errorf("the reference has not printed the table of all brokers yet")
	}
	last := t[len(t)-1]
	if !slices.Equal(last.rows[0], o[0].rows[0]) {
		return fmt.Errorf("columns are %v, want %v", o[0].rows[0], last.rows[0])
	}
	for _, row := range last.rows[1 : len(last.rows)-1] {
		want := row[:3]
		if c.Manager() == harness.Modular {
			want = []string{row[0], row[1], row[2], row[3]} // its KB/S stands under LONG/S
		}
		same := slices.ContainsFunc(o, func(x printed) bool {
			return slices.ContainsFunc(x.rows, func(r []string) bool {
				got := r[:3]
				if c.Manager() == harness.Modular {
					got = []string{r[0], r[1], r[2], r[4]}
				}
				return slices.Equal(got, want)
			})
		})
		if !same {
			return fmt.Errorf("none of %d tables has the row %v; the last one has %v", len(o), want, o[len(o)-1].rows)
		}
	}
	return nil
}

func titled(list []printed, title string) (out []printed) {
	for _, p := range list {
		if p.title == title {
			out = append(out, p)
		}
	}
	return out
}
