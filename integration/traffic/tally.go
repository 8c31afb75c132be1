package traffic

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// tally keeps the books of one topic: numbers sent, acknowledged and received. Sequence numbers count from 0.
type tally struct {
	topic     Topic
	sent      int64
	acked     []bool // by sequence number: the broker has it
	failed    int64  // sends that ended in an error
	firstFail error
	seen      []bool // by sequence number
	highest   int64  // of the numbers received, -1 before the first
	received  int64  // first occurrences
	doubled   int64
	misplaced []int64   // first occurrences behind a higher number, the first few
	disorder  int64     // how many of them
	last      time.Time // when a message came last, at first when the first was due
	gap       time.Duration
	gapAt     time.Time // when the longest gap ended
	slowest   time.Duration
}

func newTally(t Topic, begin time.Time) *tally { return &tally{topic: t, highest: -1, last: begin} }

func mark(marks []bool, seq int64) []bool {
	for int64(len(marks)) <= seq {
		marks = append(marks, false)
	}
	marks[seq] = true
	return marks
}

func marked(marks []bool, seq int64) bool { return seq < int64(len(marks)) && marks[seq] }

// ack notes the end of a send.
func (y *tally) ack(seq int64, took time.Duration, err error) {
	if err != nil {
		y.fail(err)
		return
	}
	y.acked = mark(y.acked, seq)
	y.slowest = max(y.slowest, took)
}

func (y *tally) fail(err error) {
	y.failed++
	if y.firstFail == nil {
		y.firstFail = err
	}
}

// receive notes a message.
func (y *tally) receive(seq int64, at time.Time) {
	if at.Sub(y.last) > y.gap {
		y.gap, y.gapAt = at.Sub(y.last), at
	}
	y.last = at
	if marked(y.seen, seq) {
		y.doubled++
		return
	}
	y.seen = mark(y.seen, seq)
	y.received++
	if seq < y.highest {
		y.disorder++
		if len(y.misplaced) < 5 {
			y.misplaced = append(y.misplaced, seq)
		}
		return
	}
	y.highest = seq
}

// missing are the acknowledged messages that have not come.
func (y *tally) missing() []int64 {
	var missing []int64
	for seq, ok := range y.acked {
		if ok && !marked(y.seen, int64(seq)) {
			missing = append(missing, int64(seq))
		}
	}
	return missing
}

func (y *tally) report() TopicReport {
	r := TopicReport{Topic: y.topic, Sent: y.sent, Failed: y.failed, FirstFailure: y.firstFail, Received: y.received, Duplicates: y.doubled,
		OutOfOrder: y.disorder, Misplaced: slices.Clone(y.misplaced), Missing: y.missing(), LongestGap: y.gap, GapEnd: y.gapAt, SlowestAck: y.slowest}
	if y.topic.Rate > 0 {
		interval := time.Duration(min(float64(time.Second)/y.topic.Rate, math.MaxInt64/2))
		r.Stall = max(0, y.gap-interval)
	}
	return r
}

// TopicReport is what happened to the messages of one topic.
type TopicReport struct {
	Topic        Topic
	Sent         int64
	Failed       int64 // sends that ended in an error; such a message may have arrived or not
	FirstFailure error
	Received     int64         // different messages
	Duplicates   int64         // messages that came again
	OutOfOrder   int64         // messages that came for the first time after a later one
	Misplaced    []int64       // sequence numbers of the first few of those
	Missing      []int64       // acknowledged messages that never came
	LongestGap   time.Duration // between two messages
	GapEnd       time.Time
	Stall        time.Duration // the longest gap less the interval that the topic's rate makes natural
	SlowestAck   time.Duration // the longest wait of a producer: what of a stall is not the consumer's side
}

// Report is what happened to the messages of a run.
type Report struct {
	Topics   []TopicReport
	Duration time.Duration // from the start of the producers to their end
}

// Sum adds the counts of all topics up; the times are the longest of any topic.
func (r Report) Sum() TopicReport {
	var sum TopicReport
	for _, t := range r.Topics {
		sum.Topic.Rate += t.Topic.Rate
		sum.Sent += t.Sent
		sum.Failed += t.Failed
		sum.Received += t.Received
		sum.Duplicates += t.Duplicates
		sum.OutOfOrder += t.OutOfOrder
		sum.Missing = append(sum.Missing, t.Missing...)
		if sum.FirstFailure == nil {
			sum.FirstFailure = t.FirstFailure
		}
		if t.Stall > sum.Stall {
			sum.Topic.Name, sum.Topic.Bundle, sum.LongestGap, sum.GapEnd, sum.Stall = t.Topic.Name, t.Topic.Bundle, t.LongestGap, t.GapEnd, t.Stall
		}
		sum.SlowestAck = max(sum.SlowestAck, t.SlowestAck)
	}
	return sum
}

// Err is nil when every topic's messages arrived completely and in order, no send failed, and there were any. Duplicates
// are no error: Pulsar delivers at least once.
func (r Report) Err() error {
	var errs []error
	for _, t := range r.Topics {
		if len(t.Missing) > 0 {
			errs = append(errs, fmt.Errorf("%s: %d of %d messages lost, the first is number %d", t.Topic.Name, len(t.Missing), t.Sent, t.Missing[0]))
		}
		if t.OutOfOrder > 0 {
			errs = append(errs, fmt.Errorf("%s: %d messages out of order, first number %d", t.Topic.Name, t.OutOfOrder, t.Misplaced[0]))
		}
		if t.Failed > 0 {
			errs = append(errs, fmt.Errorf("%s: %d sends failed, first: %w", t.Topic.Name, t.Failed, t.FirstFailure))
		}
	}
	if r.Sum().Received == 0 {
		errs = append(errs, errors.New("no message was received at all"))
	}
	return errors.Join(errs...)
}

// String is the report in one line.
func (r Report) String() string {
	s := r.Sum()
	var b strings.Builder
	fmt.Fprintf(&b, "%d topics, %v: sent %d, received %d, lost %d, failed %d, out of order %d, duplicates %d, slowest send %v",
		len(r.Topics), r.Duration.Round(time.Second), s.Sent, s.Received, len(s.Missing), s.Failed, s.OutOfOrder, s.Duplicates, s.SlowestAck.Round(time.Millisecond))
	if s.Stall > 0 {
		fmt.Fprintf(&b, ", longest stall %v on %s", s.Stall.Round(time.Millisecond), s.Topic.Name)
	}
	return b.String()
}
