package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/topics"
)

// bubble runs a test on a clock of its own, with a fresh topic, and checks that no goroutine is left.
func bubble(t *testing.T, run func(t *testing.T, f *fakeTopic, work *group)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var work group
		run(t, newFakeTopic(), &work)
		work.Wait()
	})
}

func mustSubscribe(t *testing.T, f *fakeTopic, work *group, o topics.SubscribeOptions) *persistent {
	t.Helper()
	s, err := f.subscribe(work, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// allOf receives until nothing comes for a minute.
func allOf(t *testing.T, s topics.Subscription) []string {
	t.Helper()
	var got []string
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		m, err := s.Receive(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, eventOf(m))
	}
}

func wantEvents(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestRecoversTombstones(t *testing.T) {
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprint("silent ", silent), func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
				f.silent = silent
				for _, e := range []string{"a=", "b=1", "b=", "c=", "d=2", "d="} {
					f.publish(false, e)
				}
				f.publish(true, "e=", "e=3", "f=")
				f.publish(true, "g=")
				f.publish(false, "h=")
				s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest})
				if s.Status().CaughtUp {
					t.Error("caught up before anything was received")
				}
				wantEvents(t, allOf(t, s), "a= *", "b=1", "b= *", "c= *", "d=2", "d= *", "e=", "e=3", "f=", "g=", "h= *")
				f.publish(false, "i=")
				wantEvents(t, allOf(t, s), "i= *")
				f.roll()
				f.publish(false, "j=")
				wantEvents(t, allOf(t, s), "j= *")
				st := s.Status()
				if !st.CaughtUp || st.Recovered != 7 || st.Tombstones != 10 || st.Lost != 0 || st.Uncertain != 0 || st.Resubscribe != 0 {
					t.Errorf("status %+v", st)
				}
				_ = s.Close()
			})
		})
	}
}

// TestLatestIsExact: a subscription that begins at the end delivers what comes after that moment, be it only a tombstone.
func TestLatestIsExact(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		f.publish(false, "a=1")
		f.publish(false, "b=")
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{})
		if !s.Status().CaughtUp {
			t.Errorf("status %+v", s.Status())
		}
		f.publish(false, "c=")
		wantEvents(t, allOf(t, s), "c= *")
		_ = s.Close()
	})
}

// TestReaderLosesWaiting: what the library loses when it reconnects, also in the middle of a batch, comes over REST; what
// it delivers again is delivered once.
func TestReaderLosesWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{})
		f.publish(false, "a=1")
		wantEvents(t, allOf(t, s), "a=1")
		f.change(func(r *fakeReader) { r.skip = 2 })
		f.publish(true, "b=1", "c=1", "d=1")
		f.publish(false, "e=1")
		wantEvents(t, allOf(t, s), "b=1 *", "c=1 *", "d=1", "e=1")
		f.publish(true, "f=1", "g=1", "h=1")
		synctest.Wait()
		f.change(func(r *fakeReader) { r.skip = 1 })
		f.publish(false, "i=1")
		wantEvents(t, allOf(t, s), "f=1", "g=1 *", "h=1", "i=1")
		f.change(func(r *fakeReader) { r.back = 3 })
		f.publish(false, "j=1")
		wantEvents(t, allOf(t, s), "j=1")
		if st := s.Status(); st.Lost != 0 || st.Messages != 10 || st.Recovered != 3 {
			t.Errorf("status %+v", st)
		}
		_ = s.Close()
	})
}

// TestDeadReader: a reader that looks connected and delivers nothing is replaced, and nothing is missing.
func TestDeadReader(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{})
		f.change(func(r *fakeReader) { r.dead = true })
		f.publish(false, "a=1")
		f.publish(false, "b=")
		wantEvents(t, allOf(t, s), "a=1 *", "b= *")
		f.publish(false, "c=1")
		wantEvents(t, allOf(t, s), "c=1")
		if st := s.Status(); st.Resubscribe != 1 || !st.Connected || st.Lost != 0 {
			t.Errorf("status %+v", st)
		}
		_ = s.Close()
	})
}

func TestSilenceResubscribes(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{Silence: 50 * time.Second})
		wantEvents(t, allOf(t, s))
		if st := s.Status(); st.Resubscribe != 1 || !st.Connected || !st.CaughtUp {
			t.Errorf("status %+v", st)
		}
		f.publish(false, "a=1")
		wantEvents(t, allOf(t, s), "a=1")
		_ = s.Close()
	})
}

func TestBlindness(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{})
		f.reader().tap(signalClosed, 0, 0)
		time.Sleep(3 * time.Second)
		if st := s.Status(); st.Connected || st.CaughtUp || st.Blind != 3*time.Second || st.BlindSince.IsZero() || st.LastError == "" {
			t.Errorf("status %+v", st)
		}
		f.reader().tap(signalReconnected, 0, 0)
		time.Sleep(3 * time.Second)
		if st := s.Status(); !st.Connected || !st.CaughtUp || st.Blind != 3*time.Second || !st.BlindSince.IsZero() || st.Resubscribe != 1 {
			t.Errorf("status %+v", st)
		}
		first := f.reader()
		first.tap(signalGaveUp, 0, 0)
		wantEvents(t, allOf(t, s))
		if f.reader() == first {
			t.Error("no new reader although the library gave up")
		}
		first.tap(signalClosed, 0, 0)
		if st := s.Status(); !st.Connected {
			t.Errorf("an old reader changed the status: %+v", st)
		}
		_ = s.Close()
	})
}

// TestAdminFails: entries are asked for again as long as patience lasts, and then counted as lost; delivery goes on.
func TestAdminFails(t *testing.T) {
	unavailable := &adminError{Status: http.StatusServiceUnavailable, Reason: "not now"}
	for name, test := range map[string]struct {
		fail int
		with error
		want []string
		lost int64
	}{
		"for a moment": {5, unavailable, []string{"a= *", "b=1", "c= *"}, 0},
		"for ever":     {1 << 30, unavailable, []string{"b=1"}, 1},
		"forbidden":    {1 << 30, &adminError{Status: http.StatusForbidden, Reason: "no"}, []string{"b=1"}, 1},
		"gone":         {1, &adminError{Status: http.StatusNotFound, Reason: "Message id not found"}, []string{"b=1", "c= *"}, 1},
		"unreachable":  {3, errors.New("connection refused"), []string{"a= *", "b=1", "c= *"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
				f.publish(false, "x=1")
				s := mustSubscribe(t, f, work, topics.SubscribeOptions{})
				f.failNext(test.fail, test.with)
				f.publish(false, "a=")
				f.publish(false, "b=1")
				got := allOf(t, s)
				if test.fail < 1<<20 {
					f.publish(false, "c=")
					got = append(got, allOf(t, s)...)
				}
				wantEvents(t, got, test.want...)
				if st := s.Status(); st.Lost != test.lost || st.LastError == "" {
					t.Errorf("status %+v", st)
				}
				_ = s.Close()
			})
		})
	}
}

// TestLayoutFails: when the ledgers cannot be asked for, what lies before the present one is given up as uncertain.
func TestLayoutFails(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		f.publish(false, "a=1")
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{})
		f.publish(false, "b=")
		f.roll()
		s.tracker.learn(mustLayout(t, f))
		f.failNext(1<<30, errors.New("down"))
		f.publish(false, "c=1")
		wantEvents(t, allOf(t, s), "c=1")
		if st := s.Status(); st.Lost != 0 || st.Uncertain != 1 {
			t.Errorf("status %+v", st)
		}
		_ = s.Close()
	})
}

// TestDeletedLedgers: what was deleted before it was read is counted where its number is known, and reported as uncertain
// where it is not; delivery goes on in either case.
func TestDeletedLedgers(t *testing.T) {
	t.Run("size known", func(t *testing.T) {
		bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
			f.publish(false, "a=1")
			s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest})
			wantEvents(t, allOf(t, s), "a=1")
			f.change(func(r *fakeReader) { r.dead = true })
			f.publish(false, "b=1")
			f.publish(false, "c=1")
			first := f.ids[0]
			f.roll()
			s.tracker.learn(mustLayout(t, f)) // as the tail check does
			f.remove(first)
			f.change(func(r *fakeReader) { r.dead = false })
			f.publish(false, "d=1")
			wantEvents(t, allOf(t, s), "d=1")
			if st := s.Status(); st.Lost != 2 || st.Uncertain != 0 || !st.CaughtUp {
				t.Errorf("status %+v", st)
			}
			_ = s.Close()
		})
	})
	t.Run("size unknown", func(t *testing.T) {
		bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
			f.publish(false, "a=1")
			s := mustSubscribe(t, f, work, topics.SubscribeOptions{From: topics.Earliest})
			wantEvents(t, allOf(t, s), "a=1")
			first := f.ids[0]
			f.roll()
			f.remove(first)
			f.publish(false, "d=1")
			wantEvents(t, allOf(t, s), "d=1")
			if st := s.Status(); st.Lost != 0 || st.Uncertain != 1 || !st.CaughtUp {
				t.Errorf("status %+v", st)
			}
			_ = s.Close()
		})
	})
}

func mustLayout(t *testing.T, f *fakeTopic) layout {
	t.Helper()
	l, err := f.layout(context.Background(), f.name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTooLarge(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{})
		s.options.MaxPayload = 10
		f.publish(false, "a="+strings.Repeat("x", 11))
		f.publish(false, "b="+strings.Repeat("x", 10))
		wantEvents(t, allOf(t, s), "b=xxxxxxxxxx")
		if st := s.Status(); st.Skipped != 1 || st.Messages != 1 || !st.CaughtUp {
			t.Errorf("status %+v", st)
		}
		_ = s.Close()
	})
}

func TestNoTopic(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		f.failNext(1, &adminError{Status: http.StatusNotFound, Reason: "Topic not found"})
		s, err := f.subscribe(work, topics.SubscribeOptions{Existing: true})
		if !errors.Is(err, topics.ErrNoTopic) {
			t.Errorf("subscribe: %v, want ErrNoTopic", err)
		}
		_ = s.Close()
		f.failNext(1, &adminError{Status: http.StatusUnauthorized, Reason: "who are you?"})
		s, err = f.subscribe(work, topics.SubscribeOptions{})
		if statusOf(err) != http.StatusUnauthorized {
			t.Errorf("subscribe: %v, want the broker's answer", err)
		}
		_ = s.Close()
	})
}

func TestCloseInTheMiddle(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeTopic, work *group) {
		s := mustSubscribe(t, f, work, topics.SubscribeOptions{})
		done := make(chan error, 1)
		go func() {
			_, err := s.Receive(context.Background())
			done <- err
		}()
		synctest.Wait()
		f.failNext(1<<30, errors.New("down"))
		f.publish(false, "a=") // an operation is under way from now on
		time.Sleep(time.Second)
		_ = s.Close()
		if err := <-done; !errors.Is(err, topics.ErrClosed) {
			t.Errorf("receive: %v, want ErrClosed", err)
		}
		_ = s.Close()
	})
}

// bubbled hides testing.T's Deadline, which must not be asked for in a bubble.
type bubbled struct{ rapid.TB }

// TestNothingIsLost publishes at random, alone and in batches, while ledgers roll, readers lose, repeat and die, and the
// admin interface fails for moments: every message arrives once and in order.
func TestNothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(bubbled{t}, func(rt *rapid.T) {
			f, work := newFakeTopic(), &group{}
			f.silent = rapid.Bool().Draw(rt, "silent")
			var want, got []string
			publish := func() {
				n := rapid.IntRange(1, 4).Draw(rt, "batch")
				var events []string
				for range n {
					e := fmt.Sprintf("%s=%d", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key"), len(want))
					if rapid.Bool().Draw(rt, "tombstone") {
						e = e[:2]
					}
					events, want = append(events, e), append(want, e)
				}
				f.publish(n > 1 || rapid.Bool().Draw(rt, "batched"), events...)
			}
			for range rapid.IntRange(0, 10).Draw(rt, "history") {
				publish()
			}
			s, err := f.subscribe(work, topics.SubscribeOptions{From: topics.Earliest, Silence: 20 * time.Second})
			if err != nil {
				rt.Fatal(err)
			}
			defer work.Wait()
			defer s.Close()
			receive := func(n int) {
				for range n {
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					if m, err := s.Receive(ctx); err == nil {
						got = append(got, strings.TrimSuffix(eventOf(m), " *"))
					}
					cancel()
				}
			}
			for range rapid.IntRange(0, 30).Draw(rt, "steps") {
				switch rapid.IntRange(0, 8).Draw(rt, "step") {
				case 0:
					f.roll()
				case 1:
					f.change(func(r *fakeReader) { r.skip = rapid.IntRange(1, 4).Draw(rt, "skip") })
				case 2:
					f.change(func(r *fakeReader) { r.back = rapid.IntRange(1, 3).Draw(rt, "back") })
				case 3:
					f.change(func(r *fakeReader) { r.dead = true })
				case 4:
					f.failNext(rapid.IntRange(1, 6).Draw(rt, "fail"), errors.New("not now"))
				case 5:
					receive(rapid.IntRange(1, 5).Draw(rt, "receive"))
				default:
					publish()
				}
			}
			for range 300 { // seconds
				if receive(1); len(got) >= len(want) && s.Status().CaughtUp {
					break
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("events (-published +received):\n%s\nstatus %+v", diff, s.Status())
			}
			if st := s.Status(); st.Lost != 0 || st.Uncertain != 0 || !st.CaughtUp {
				rt.Fatalf("status %+v", st)
			}
		})
	})
}

// TestDeletionIsNoticed: while ledgers are deleted at random, what arrives is in order and arrives once, delivery never
// stalls, and whenever something is missing the status says so.
func TestDeletionIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(bubbled{t}, func(rt *rapid.T) {
			f, work := newFakeTopic(), &group{}
			f.silent = rapid.Bool().Draw(rt, "silent")
			published := 0
			var got []int
			publish := func() {
				published++
				f.publish(rapid.Bool().Draw(rt, "batched"), fmt.Sprintf("k=%d", published))
			}
			for range rapid.IntRange(0, 5).Draw(rt, "history") {
				if publish(); rapid.Bool().Draw(rt, "roll") {
					f.roll()
				}
			}
			s, err := f.subscribe(work, topics.SubscribeOptions{From: topics.Earliest, Silence: 20 * time.Second})
			if err != nil {
				rt.Fatal(err)
			}
			defer work.Wait()
			defer s.Close()
			receive := func(seconds int) {
				for range seconds {
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					if m, err := s.Receive(ctx); err == nil {
						n, err := strconv.Atoi(string(m.Payload))
						if err != nil {
							rt.Fatal(err)
						}
						got = append(got, n)
					}
					cancel()
				}
			}
			for range rapid.IntRange(0, 30).Draw(rt, "steps") {
				switch rapid.IntRange(0, 6).Draw(rt, "step") {
				case 0:
					f.roll()
				case 1:
					f.removeOldest()
				case 2:
					f.change(func(r *fakeReader) { r.dead = true })
				case 3:
					receive(rapid.IntRange(1, 8).Draw(rt, "receive"))
				default:
					publish()
				}
			}
			f.roll()
			publish() // what is published last is never deleted
			for range 300 {
				if receive(1); len(got) > 0 && got[len(got)-1] == published && s.Status().CaughtUp {
					break
				}
			}
			if len(got) == 0 || got[len(got)-1] != published || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
				rt.Fatalf("received %v of %d; status %+v", got, published, s.Status())
			}
			st := s.Status()
			if missing := int64(published - len(got)); missing > 0 && st.Lost+st.Uncertain == 0 || st.Lost > missing || !st.CaughtUp {
				rt.Fatalf("%d messages are missing: received %v of %d; status %+v", missing, got, published, st)
			}
		})
	})
}
