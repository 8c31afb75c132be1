package pulsar

import (
	"net/http"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// TestCompactedPart: holes up to the horizon mean nothing, those after it do.
func TestCompactedPart(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		f.publish(false, "a=1")
		f.publish(false, "a=2")
		f.publish(false, "b=1")
		f.publish(false, "b=")
		f.horizon = position{ledger: f.ids[0], entry: 3, size: 1}
		f.publish(false, "a=")
		f.publish(false, "c=1")
		f.publish(false, "d=")
		f.mute = true
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
		// The broker hands out a=2 of the compacted part; the library has nothing of the rest but c=1.
		r := f.reader()
		go func() {
			r.out <- f.ledgers[f.ids[0]][1].records[0]
			r.out <- f.ledgers[f.ids[0]][5].records[0]
		}()
		wantEvents(t, allOf(t, s), "a=2", "a= *", "c=1", "d= *")
		if st := s.Status(); !st.CaughtUp || st.Lost != 0 || st.Uncertain != 0 {
			t.Errorf("status %+v", st)
		}
		_ = s.Close()
	})
}

// TestCompactedAway: nothing of the compacted part is delivered, and the subscription is caught up all the same; but not
// before the broker says that there is nothing.
func TestCompactedAway(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		f.publish(true, "a=1")
		f.publish(true, "a=")
		f.horizon = position{ledger: f.ids[0], entry: 1, size: 1}
		f.mute = true
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
		wantEvents(t, allOf(t, s))
		if st := s.Status(); st.CaughtUp {
			t.Errorf("caught up although the broker says there is more: %+v", st)
		}
		nothing := before
		f.change(func(r *fakeReader) { r.end = &nothing })
		wantEvents(t, allOf(t, s))
		if st := s.Status(); !st.CaughtUp || st.Lost != 0 || f.fetched != 0 {
			t.Errorf("fetched %d entries, status %+v", f.fetched, st)
		}
		_ = s.Close()
	})
}

// TestCompactedAndTrimmed: after compaction the ledgers were deleted and the topic was opened anew, as when its broker dies. What is
// compacted is still to come, so the subscription is not caught up before it has come.
func TestCompactedAndTrimmed(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		f.publish(false, "a=1")
		f.publish(false, "a=2")
		f.publish(false, "b=")
		compacted := f.ledgers[f.ids[0]][1].records[0]
		f.roll()
		f.remove(f.ids[0])
		f.horizon = position{ledger: f.ids[1], entry: -1, size: 1} // the cursor of compaction moves on with the ledgers
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
		f.change(func(r *fakeReader) { r.end = &compacted.id }) // brokers answer with the end of the compacted ledger
		if st := s.Status(); st.CaughtUp {
			t.Errorf("caught up before the compacted part was read: %+v", st)
		}
		wantEvents(t, allOf(t, s))
		if st := s.Status(); st.CaughtUp {
			t.Errorf("caught up before the compacted part was delivered: %+v", st)
		}
		go func() { f.reader().out <- compacted }()
		wantEvents(t, allOf(t, s), "a=2")
		if st := s.Status(); !st.CaughtUp || st.Lost != 0 || st.Uncertain != 0 {
			t.Errorf("status %+v", st)
		}
		f.publish(false, "c=1")
		wantEvents(t, allOf(t, s), "c=1")
		if st := s.Status(); !st.CaughtUp || st.Lost != 0 || st.Uncertain != 0 || f.fetched != 0 {
			t.Errorf("status %+v, %d entries fetched", st, f.fetched)
		}
		_ = s.Close()
	})
}

// TestNeverCompacted: there is a cursor of compaction before all messages and nothing is compacted: nothing is left out.
func TestNeverCompacted(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		f.horizon = position{ledger: f.ids[0], entry: -1, size: 1}
		f.publish(false, "a=1")
		f.publish(false, "a=")
		f.publish(true, "b=1", "b=2")
		f.publish(false, "b=")
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
		wantEvents(t, allOf(t, s), "a=1", "a= *", "b=1", "b=2", "b= *")
		if st := s.Status(); !st.CaughtUp || st.Lost != 0 || st.Uncertain != 0 {
			t.Errorf("status %+v", st)
		}
		_ = s.Close()
	})
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		f.horizon = position{ledger: f.ids[0], entry: -1, size: 1}
		f.publish(false, "a=")
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
		wantEvents(t, allOf(t, s), "a= *")
		_ = s.Close()
	})
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		f.horizon = position{ledger: f.ids[0], entry: -1, size: 1}
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
		wantEvents(t, allOf(t, s))
		if st := s.Status(); !st.CaughtUp {
			t.Errorf("an empty topic is not caught up: %+v", st)
		}
		_ = s.Close()
	})
}

// TestCompactedPartEndsMeanwhile: what came while the broker was asked for the last message does not come again.
func TestCompactedPartEndsMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		for _, e := range []string{"a=1", "b=1", "c=1", "d=1"} {
			f.publish(false, e)
		}
		f.horizon = position{ledger: f.ids[0], entry: 1, size: 1}
		f.mute = true
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
		r, hold := f.reader(), make(chan struct{})
		third := f.ledgers[f.ids[0]][2].records[0]
		f.change(func(r *fakeReader) { r.hold, r.end = hold, &third.id })
		go func() {
			r.out <- f.ledgers[f.ids[0]][0].records[0]
			time.Sleep(3 * graceLast) // meanwhile the broker is asked
			r.out <- f.ledgers[f.ids[0]][1].records[0]
			r.out <- third
			close(hold)
			time.Sleep(graceLast)
			r.out <- f.ledgers[f.ids[0]][3].records[0]
		}()
		wantEvents(t, allOf(t, s), "a=1", "b=1", "c=1", "d=1")
		if st := s.Status(); !st.CaughtUp || st.Lost != 0 || f.fetched != 0 {
			t.Errorf("status %+v, %d entries fetched", st, f.fetched)
		}
		_ = s.Close()
	})
}

// TestCompactedPartComesLate: a broker that opens what is compacted slowly is waited for, also when there is something after it.
func TestCompactedPartComesLate(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		f.publish(false, "a=1")
		f.publish(false, "b=1")
		f.horizon = position{ledger: f.ids[0], entry: 0, size: 1}
		f.mute = true
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
		r := f.reader()
		go func() {
			time.Sleep(20 * time.Second)
			r.out <- f.ledgers[f.ids[0]][0].records[0]
			r.out <- f.ledgers[f.ids[0]][1].records[0]
		}()
		wantEvents(t, allOf(t, s), "a=1", "b=1")
		if st := s.Status(); !st.CaughtUp || st.Messages != 2 || st.Lost != 0 {
			t.Errorf("status %+v", st)
		}
		_ = s.Close()
	})
}

// TestCompactedReadOfNothing: a topic that is not there yet has nothing to wait for; an empty one whose broker names no message neither.
func TestCompactedReadOfNothing(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		f.failNext(1, &adminError{Status: http.StatusNotFound, Reason: "Topic not found"})
		f.mute = true
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
		if st := s.Status(); !st.CaughtUp {
			t.Errorf("status %+v", st)
		}
		_ = s.Close()
	})
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		f.horizon = position{ledger: f.ids[0], entry: -1, size: 1}
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
		empty := position{ledger: f.ids[0] + 1, entry: -1, size: 1}
		f.change(func(r *fakeReader) { r.end = &empty })
		wantEvents(t, allOf(t, s))
		if st := s.Status(); !st.CaughtUp {
			t.Errorf("status %+v", st)
		}
		_ = s.Close()
	})
}
