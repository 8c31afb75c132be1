package reporter_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/settings"
)

// TestDialogues: a broker's reports, one after the other, and what is published of them. Times are seconds.
//
//	hear at=S [update=S] [started=S] [cpu=percent of 2 cores] [in=bytes/s] [bundles=name:bytes/s,...] [from=address] [simple] [policy=error]
//	sample at=S file=NAME      a report as it was captured, below testdata
//	fail at=S [error=text]     its report could not be read
//	withdraw                   what takes everything back
func TestDialogues(t *testing.T) {
	datadriven.Walk(t, "testdata/dialogues", func(t *testing.T, path string) {
		rules := reporter.RulesOf(settings.Defaults(), 5e9)
		br := reporter.NewBroker(a)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var now int64
			if d.HasArg("at") {
				d.ScanArgs(t, "at", &now)
			}
			const epoch = 1_700_000_000_000
			now = epoch + 1000*now
			var out []reporter.Event
			var err error
			switch d.Cmd {
			case "rules":
				for _, arg := range d.CmdArgs {
					if arg.Key == "unwritten" {
						rules.Unwritten = true
					}
				}
				return ""
			case "hear":
				in := reading(t, d, now, epoch)
				out, err = br.Hear(in, &rules)
			case "sample":
				var file string
				d.ScanArgs(t, "file", &file)
				b, readErr := os.ReadFile(filepath.Join("testdata", file))
				if readErr != nil {
					t.Fatal(readErr)
				}
				r, readErr := event.DecodeReport(b)
				if readErr != nil {
					return readErr.Error() + "\n"
				}
				out, err = br.Hear(reporter.Reading{Report: r, Now: now}, &rules)
			case "fail":
				out = br.Fail(now, &rules, func(seconds int64) plan.Reason {
					return reporter.NotRead.Because(plan.N("seconds", seconds), plan.S("error", "connection refused"))
				})
			case "withdraw":
				out = br.Withdraw()
			default:
				t.Fatalf("no command %q", d.Cmd)
			}
			var text strings.Builder
			for _, e := range out {
				text.WriteString(line(e))
				br.Published(e, now)
			}
			if err != nil {
				fmt.Fprintf(&text, "no top bundles: %v\n", err)
			}
			if why, stale := br.Stale(); stale {
				fmt.Fprintf(&text, "stale: %s: %s\n", why.Code, why)
			}
			if text.Len() == 0 {
				return "nothing\n"
			}
			return text.String()
		})
	})
}

func line(e reporter.Event) string {
	name := e.Topic[strings.LastIndexByte(e.Topic, '/')+1:]
	switch v := e.Value.(type) {
	case nil:
		return name + ": tombstone\n"
	case event.BrokerLoadData:
		return fmt.Sprintf("%s: max %.4g ema %.4g throughput %.4g ema %.4g bundles %d, due by %s (%.4g, limit %.4g)\n", name,
			v.MaxResourceUsage, v.WeightedMaxEMA, v.MsgThroughputIn+v.MsgThroughputOut, v.MsgThroughputEMA, v.BundleCount, e.Need.Cause, e.Need.Change, e.Need.Limit)
	case event.TopBundlesLoadData:
		var list []string
		for _, b := range v.TopBundlesLoadData {
			list = append(list, fmt.Sprintf("%s %.4g", b.BundleName[strings.LastIndexByte(b.BundleName, '/')+1:], b.Stats.MsgThroughputIn+b.Stats.MsgThroughputOut))
		}
		return fmt.Sprintf("%s: [%s]\n", name, strings.Join(list, ", "))
	case event.BrokerReport:
		return fmt.Sprintf("%s: %s, %d bundles\n", name, v.Kind(), len(v.Stats()))
	}
	return fmt.Sprintf("%s: %T\n", name, e.Value)
}

func reading(t *testing.T, d *datadriven.TestData, now, epoch int64) reporter.Reading {
	t.Helper()
	number := func(key string, byDefault float64) float64 {
		if !d.HasArg(key) {
			return byDefault
		}
		var text string
		d.ScanArgs(t, key, &text)
		var v float64
		if _, err := fmt.Sscan(text, &v); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return v
	}
	update := epoch + int64(1000*number("update", float64(now-epoch)/1000))
	cpu := event.ResourceUsage{Usage: number("cpu", 50), Limit: number("limit", 200)}
	stats := []event.NamedBundleStats{}
	if d.HasArg("bundles") {
		var list string
		d.ScanArgs(t, "bundles", &list)
		for item := range strings.SplitSeq(list, ";") {
			name, text, _ := strings.Cut(item, ":")
			var v float64
			if _, err := fmt.Sscan(text, &v); err != nil {
				t.Fatal(err)
			}
			stats = append(stats, event.NamedBundleStats{Bundle: ns + "/" + name, Stats: event.NamespaceBundleStats{MsgThroughputIn: v, MsgRateIn: v / 1000, Topics: 1}})
		}
	}
	address := "http://" + a
	if d.HasArg("from") {
		d.ScanArgs(t, "from", &address)
	}
	in := reporter.Reading{Now: now, Registered: func(id string) bool { return id == b || id == c }}
	if d.HasArg("policy") {
		in.HasPolicy = func(string) (bool, error) { return false, errors.New("the web service is down") }
	}
	if d.HasArg("simple") {
		r := event.NewLoadReport()
		r.Name, r.WebServiceURL, r.Timestamp, r.BundleStats = a, address, update, stats
		u := event.NewSystemResourceUsage()
		u.CPU = cpu
		r.SystemResourceUsage = &u
		in.Report.Simple = &r
		return in
	}
	l := event.NewLocalBrokerData(update)
	l.WebServiceURL, l.CPU, l.LastStats = address, cpu, stats
	l.StartTimestamp = epoch + int64(1000*number("started", -100))
	for _, s := range stats {
		l.MsgThroughputIn += s.Stats.MsgThroughputIn
		l.MsgRateIn += s.Stats.MsgRateIn
		l.NumTopics++
		l.NumBundles++
		l.Bundles = append(l.Bundles, s.Bundle)
	}
	if d.HasArg("throughput") {
		l.MsgThroughputIn = number("throughput", math.NaN())
	}
	in.Report.Local = &l
	return in
}
