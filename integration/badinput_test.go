//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	clientlog "github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/topics"
)

// What makes no sense on the cluster's own load topics is skipped or taken for unknown, visibly, and plans are made all the same.
func TestGarbageOnLoadTopics(t *testing.T) {
	c := shared(t)
	c.SetDynamic(t, reportThreshold, "0")
	heard := listen(t, c)
	p := start(t, c, append([]string{"run", "--mode", "advise", "--set", "ballastHttpListenAddress="},
		settings("ballastLoadSource=derived", "ballastCycleInterval=2s")...)...)
	p.says(t, "msg=cycle", 3*time.Minute)
	victim := c.Brokers()[1].ID
	var honest string
	harness.Eventually(t, 3*time.Minute, "a report of "+victim, func(context.Context) error {
		if honest = heard.latest(topics.BrokerLoadData)[victim]; honest == "" {
			return fmt.Errorf("none was heard")
		}
		return nil
	})
	c.SetDynamic(t, reportThreshold, "50") // so that what is sent here stays for a while
	publish := sender(t, c)
	// A report that counts is one of now: what another producer sends again, or dates ahead, is refused, see below.
	send := func(topic, key, payload string) {
		t.Helper()
		publish(topic, key, dated(payload, time.Now()))
	}

	// The garbage is skipped, with its key and why, and what was known before stays. Of many the 1st, 2nd, 4th... is logged.
	mark := p.mark()
	for _, topic := range []string{topics.BrokerLoadData, topics.TopBundles} {
		for _, payload := range []string{"not JSON", "[1,2]", `{"cpu":`, "\x00\xff\xfe", `{"cpu":"much","topBundlesLoadData":7}`} {
			send(topic, victim, payload)
		}
	}
	p.saysAfter(t, mark, "message skipped", "topic="+topics.BrokerLoadData, "key="+victim, "skipped=4")
	p.saysAfter(t, mark, "message skipped", "topic="+topics.TopBundles, "key="+victim, "skipped=4")
	if frozen := p.goesOn(t, p.mark()); len(frozen) > 0 {
		t.Errorf("garbage froze: %v", frozen)
	}

	// Keys that are no broker of this cluster.
	mark = p.mark()
	for _, key := range []string{"nobody:8080", "", "no broker id", strings.Repeat("x", 10_000), "\xff"} {
		send(topics.BrokerLoadData, key, honest)
		send(topics.TopBundles, key, `{"topBundlesLoadData":[]}`)
	}
	if frozen := p.goesOn(t, mark); len(frozen) > 0 {
		t.Errorf("wrong keys froze: %v", frozen)
	}

	// Reports that are sent again, and ones that are dated ahead.
	for _, at := range []time.Time{time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} {
		mark = p.mark()
		for range 4 { // of many the 1st, 2nd, 4th... is logged
			publish(topics.BrokerLoadData, victim, dated(changed(t, honest, map[string]any{"msgThroughputIn": 1e12, "weightedMaxEMA": 9}), at))
		}
		p.saysAfter(t, mark, "load report refused", "broker="+victim)
	}
	if frozen := p.goesOn(t, mark); len(frozen) > 0 {
		t.Errorf("replays froze: %v", frozen)
	}

	// Huge ones, many of the same, and ones out of order: nothing of them is kept beyond the last.
	mark = p.mark()
	before := p.memory(t)
	huge := strings.Repeat("x", 4<<20) // a broker takes 5 MiB
	for range 64 {
		send(topics.TopBundles, victim, huge)
		send(topics.BrokerLoadData, victim, changed(t, honest, map[string]any{"padding": huge}))
	}
	for range 500 {
		send(topics.BrokerLoadData, victim, honest)
	}
	for i := range 20 {
		publish(topics.BrokerLoadData, victim, dated(honest, time.Now().Add(-time.Duration(i*7%20)*time.Second)))
	}
	if frozen := p.goesOn(t, mark); len(frozen) > 0 {
		t.Errorf("a flood froze: %v", frozen)
	}
	after := p.memory(t)
	harness.Figure(t, "memory before and after 512 MiB of reports, MiB", fmt.Sprint(before>>20, " ", after>>20))
	if after-before > 256<<20 {
		t.Errorf("memory grew from %d to %d bytes", before, after)
	}

	// Resources without a limit are unknown, which is noted; the others count.
	mark = p.mark()
	send(topics.BrokerLoadData, victim, changed(t, honest, map[string]any{
		"bandwidthIn": usage(50, 0), "bandwidthOut": usage(50, -1), "directMemory": usage(-1, 100), "memory": usage("NaN", 100)}))
	for _, resource := range []string{"bandwidthIn", "bandwidthOut"} {
		p.saysAfter(t, mark, "load report", "broker="+victim, "note=unknownResource", "resource="+resource)
	}
	if frozen := p.goesOn(t, p.mark()); len(frozen) > 0 {
		t.Errorf("unknown resources froze: %v", frozen)
	}

	// What is no number leaves Ballast's own averages as they were.
	nonsense := changed(t, honest, map[string]any{
		"msgThroughputIn": "NaN", "msgThroughputOut": "Infinity", "weightedMaxEMA": "NaN", "msgThroughputEMA": "-Infinity"})
	mark = p.mark()
	send(topics.BrokerLoadData, victim, nonsense)
	p.saysAfter(t, mark, "load report", "broker="+victim, "note=unknownThroughput")
	if frozen := p.goesOn(t, p.mark()); len(frozen) > 0 {
		t.Errorf("a report of nonsense froze in spite of earlier ones: %v", frozen)
	}
	p.endsWell(t)

	// Where the brokers' own averages count it is unknown how loaded that one is: nothing is decided until it reports again.
	p = start(t, c, "run", "--mode", "advise", "--set", "ballastHttpListenAddress=", "--set", "ballastCycleInterval=2s")
	p.says(t, "msg=cycle", 3*time.Minute)
	mark = p.mark()
	send(topics.BrokerLoadData, victim, nonsense)
	p.saysAfter(t, mark, "nothing can be decided", "FROZEN_UNUSABLE_LOAD", victim)
	mark = p.mark()
	send(topics.BrokerLoadData, victim, honest)
	p.goesOn(t, mark)
	p.endsWell(t)
}

func (p *program) endsWell(t *testing.T) {
	t.Helper()
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	_, stderr := p.text()
	if strings.Contains(stderr, "panic") || strings.Contains(stderr, "goroutine ") {
		t.Errorf("it panicked: %s", tail(stderr))
	}
}

// dated is a report with another time in it. What is no report stays as it is.
func dated(payload string, at time.Time) string {
	var fields map[string]any
	if json.Unmarshal([]byte(payload), &fields) != nil || fields["updatedAt"] == nil {
		return payload
	}
	fields["updatedAt"] = at.UnixMilli()
	b, err := json.Marshal(fields)
	if err != nil {
		return payload
	}
	return string(b)
}

// memory is what of the program is in memory now, in bytes.
func (p *program) memory(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var all, resident int64
	if _, err := fmt.Sscan(string(text), &all, &resident); err != nil {
		t.Fatalf("statm: %q: %v", text, err)
	}
	return resident * int64(os.Getpagesize())
}

func usage(usage, limit any) map[string]any { return map[string]any{"usage": usage, "limit": limit} }

// changed is a report with other values for some fields.
func changed(t *testing.T, report string, with map[string]any) string {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(report), &fields); err != nil {
		t.Fatal(err)
	}
	maps.Copy(fields, with)
	b, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sender publishes onto the load topics as any client could, without a schema.
func sender(t *testing.T, c *harness.Cluster) func(topic, key, payload string) {
	t.Helper()
	cl, err := client.NewClient(client.ClientOptions{URL: c.ServiceURL(), Logger: clientlog.NewLoggerWithSlog(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	producers := map[string]client.Producer{}
	for _, topic := range []string{topics.BrokerLoadData, topics.TopBundles} {
		producer, err := cl.CreateProducer(client.ProducerOptions{Topic: topic, DisableBatching: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(producer.Close)
		producers[topic] = producer
	}
	return func(topic, key, payload string) {
		t.Helper()
		if _, err := producers[topic].Send(t.Context(), &client.ProducerMessage{Key: key, Payload: []byte(payload)}); err != nil {
			t.Fatal(err)
		}
	}
}

// mark is the present end of the program's log.
func (p *program) mark() int {
	_, stderr := p.text()
	return len(stderr)
}

// goesOn waits for the first cycle after a mark that could decide and that came after the last one that could not, and gives
// the lines about those that could not.
func (p *program) goesOn(t *testing.T, mark int) (frozen []string) {
	t.Helper()
	const needed = 3 // in a row: the first one may have looked before anything happened
	harness.Eventually(t, 3*time.Minute, "planning goes on", func(context.Context) error {
		frozen = nil
		inARow, last := 0, ""
		_, stderr := p.text()
		for line := range strings.Lines(stderr[mark:]) {
			switch {
			case strings.Contains(line, `msg="nothing can be decided"`):
				frozen, inARow, last = append(frozen, line), 0, line
			case strings.Contains(line, `msg="cycle failed"`):
				inARow, last = 0, line
			case strings.Contains(line, "msg=cycle"):
				inARow++
			}
		}
		if inARow < needed {
			return fmt.Errorf("%d cycles since it said: %s", inARow, last)
		}
		return nil
	})
	return frozen
}

// saysAfter waits for one line of the log, after a mark, that has all the texts in it.
func (p *program) saysAfter(t *testing.T, mark int, texts ...string) {
	t.Helper()
	harness.Eventually(t, time.Minute, "the program says "+strings.Join(texts, " "), func(context.Context) error {
		_, stderr := p.text()
	lines:
		for line := range strings.Lines(stderr[mark:]) {
			for _, text := range texts {
				if !strings.Contains(line, text) {
					continue lines
				}
			}
			return nil
		}
		return fmt.Errorf("it said: %s", tail(stderr[mark:]))
	})
}

// Addresses of a cluster that are wrong in part give one error that names the setting.
func TestWrongAddressOfACluster(t *testing.T) {
	c := shared(t)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	host := c.Brokers()[0].IP.String()
	for _, wrong := range []struct{ setting, admin, service, url string }{
		{"webServiceUrl", "http://" + host + ":6650", c.ServiceURL(), host + ":6650"}, // the binary port
		{"serviceUrl", c.AdminURL(), "pulsar://" + host + ":1", host + ":1"},          // nobody listens
		{"serviceUrl", c.AdminURL(), "pulsar://" + host + ":8080", host + ":8080"},    // the web port, which never answers
	} {
		t.Run(wrong.url, func(t *testing.T) {
			if wrong.url == host+":8080" && !harness.Full() {
				t.Skip("waits for 40 s: only at full length (make verify)")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, path, "plan", "--admin-service-url", wrong.admin, "--service-url", wrong.service)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr, cmd.Env = &stdout, &stderr, environment()
			begun := time.Now()
			err := cmd.Run()
			exit := (*exec.ExitError)(nil)
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("it ended with %v", err)
			}
			said := stderr.String()
			if stdout.Len() > 0 || strings.Count(said, "error: ") != 1 || !strings.Contains(said, wrong.url) || !strings.Contains(said, wrong.setting) {
				t.Errorf("it printed %q and said %q: want one error with %s and %s", stdout.String(), said, wrong.setting, wrong.url)
			}
			t.Logf("after %v: %s", time.Since(begun).Round(time.Second), said)
		})
	}
}
