package traffic

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var epoch = time.Unix(1_700_000_000, 0)

// Each case is a script of one topic's events: "s" sends, "a" the broker has the message, "r" it arrives. A second passes
// between two events.
func TestTally(t *testing.T) {
	type want struct {
		Received, Duplicates, OutOfOrder int64
		Missing                          []int64
		Gap                              time.Duration
	}
	for name, c := range map[string]struct {
		script string
		want   want
		err    string
	}{
		"all well":                      {"s0 a0 r0 s1 a1 r1", want{Received: 2, Gap: 3 * time.Second}, ""},
		"received before acknowledged":  {"s0 r0 a0", want{Received: 1, Gap: 2 * time.Second}, ""},
		"lost in the middle":            {"s0 a0 s1 a1 s2 a2 r0 r2", want{Received: 2, Missing: []int64{1}, Gap: 7 * time.Second}, "1 of 3 messages lost, the first is number 1"},
		"lost at the end":               {"s0 a0 r0 s1 a1", want{Received: 1, Missing: []int64{1}, Gap: 3 * time.Second}, "lost"},
		"sent but never acknowledged":   {"s0 a0 r0 s1", want{Received: 1, Gap: 3 * time.Second}, ""},
		"delivered again":               {"s0 a0 s1 a1 r0 r1 r0 r1", want{Received: 2, Duplicates: 2, Gap: 5 * time.Second}, ""},
		"out of order":                  {"s0 a0 s1 a1 r1 r0", want{Received: 2, OutOfOrder: 1, Gap: 5 * time.Second}, "1 messages out of order, first number 0"},
		"a repetition is not disorder":  {"s0 a0 s1 a1 r0 r1 r0", want{Received: 2, Duplicates: 1, Gap: 5 * time.Second}, ""},
		"nothing arrives":               {"s0", want{}, "no message was received"},
		"the first message is late too": {"s0 a0 s1 s2 s3 r0", want{Received: 1, Gap: 6 * time.Second}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			y := newTally(Topic{Name: "persistent://test/ns/t", Rate: 0.5}, epoch)
			now := epoch
			for word := range strings.FieldsSeq(c.script) {
				now = now.Add(time.Second)
				seq := int64(word[1] - '0')
				switch word[0] {
				case 's':
					y.sent = seq + 1
				case 'a':
					y.ack(seq, time.Second, nil)
				case 'r':
					y.receive(seq, now)
				}
			}
			r := y.report()
			if diff := cmp.Diff(c.want, want{r.Received, r.Duplicates, r.OutOfOrder, r.Missing, r.LongestGap}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// At half a message per second two seconds between messages are natural.
			if wantStall := max(0, r.LongestGap-2*time.Second); r.Stall != wantStall {
				t.Errorf("stall %v, want %v", r.Stall, wantStall)
			}
			err := Report{Topics: []TopicReport{r}}.Err()
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}

func TestReportCountsFailedSends(t *testing.T) {
	y := newTally(Topic{Name: "t"}, epoch)
	y.sent = 2
	y.ack(0, time.Second, nil)
	y.ack(1, 0, errors.New("no luck"))
	y.receive(0, epoch)
	r := Report{Topics: []TopicReport{y.report()}, Duration: time.Minute}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "1 sends failed, first: no luck") {
		t.Errorf("error %v", err)
	}
	const want = "1 topics, 1m0s: sent 2, received 1, lost 0, failed 1, out of order 0, duplicates 0, slowest send 1s"
	if got := r.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSumNamesTheWorstTopic(t *testing.T) {
	r := Report{Topics: []TopicReport{
		{Topic: Topic{Name: "a"}, Sent: 1, Stall: time.Second},
		{Topic: Topic{Name: "b"}, Sent: 2, Stall: 3 * time.Second, Missing: []int64{4}},
		{Topic: Topic{Name: "c"}, Sent: 3, Stall: 2 * time.Second, SlowestAck: time.Minute, Missing: []int64{5}},
	}}
	sum := r.Sum()
	if sum.Topic.Name != "b" || sum.Sent != 6 || sum.Stall != 3*time.Second || sum.SlowestAck != time.Minute || len(sum.Missing) != 2 {
		t.Errorf("sum %+v", sum)
	}
}
