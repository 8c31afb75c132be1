package pulsar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/ballast-lb/ballast/topics"
)

// hole is a stretch of the topic that the reader did not deliver and that is being fetched.
type hole struct {
	end       position // the message after it, or the last one in it
	inclusive bool
	found     *absence // nil until it is known what is missing
	giveUp    time.Time
	retryDue  time.Time
	retry     backoff.BackOff
}

func (s *persistent) newHole(end position, inclusive bool) *hole {
	return &hole{end: end, inclusive: inclusive, giveUp: time.Now().Add(s.options.Patience), retry: newBackoff(s.options.MaxBackoff)}
}

// fill finds out what the hole is made of, fetches a part of it, or closes it.
func (s *persistent) fill() {
	h := s.hole
	switch {
	case h.found == nil && s.tracker.crosses(h.end):
		s.start(func(ctx context.Context) (apply, dispose func()) {
			l, err := s.admin.layout(ctx, s.name)
			return func() {
				if s.hole != h {
					return
				}
				if err != nil {
					if s.patient(h, err) {
						return
					}
					s.uncertain(s.tracker.pos, "the ledgers of the topic cannot be asked for", err)
					s.tracker.skip(h.end)
				}
				s.survey(h, l)
			}, nil
		})
	case h.found == nil:
		s.survey(h, layout{})
		s.fill()
	case len(h.found.spans) == 0:
		s.closeHole(h)
	default:
		part, rest := take(h.found.spans, chunk)
		s.start(func(ctx context.Context) (apply, dispose func()) {
			answers := s.fetch(ctx, part)
			return func() {
				if s.hole == h {
					s.fetched(h, answers, rest)
				}
			}, nil
		})
	}
}

// survey computes what the hole is made of and accounts for what is known to be deleted.
func (s *persistent) survey(h *hole, l layout) {
	s.tracker.learn(l)
	after := s.tracker.pos
	found := s.tracker.missing(h.end, h.inclusive, l)
	h.found = &found
	if found.lost > 0 {
		s.lost(after, found.lost, "their ledger was deleted", nil)
	}
	if found.uncertain {
		s.uncertain(after, "the ledger was deleted before its end was known", nil)
	}
}

func (s *persistent) closeHole(h *hole) {
	s.hole = nil
	if s.held != nil {
		s.push(*s.held, false)
		s.held = nil
	} else if s.tracker.pos.less(h.end) {
		s.tracker.pos = h.end
	}
	s.hinted = s.hinted && s.behind()
	s.active = time.Now()
	s.settle()
}

// answer is what became of the request for one entry.
type answer struct {
	ledger, entry int64
	records       []record
	err           error
}

func (s *persistent) fetch(ctx context.Context, spans []span) []answer {
	var answers []answer
	for _, sp := range spans {
		for e := sp.first; e <= sp.last; e++ {
			answers = append(answers, answer{ledger: sp.ledger, entry: e})
		}
	}
	var group errgroup.Group
	group.SetLimit(fetchers)
	for i := range answers {
		group.Go(func() error {
			a := &answers[i]
			a.records, a.err = s.admin.entry(ctx, s.name, a.ledger, a.entry, s.options.MaxPayload)
			return nil
		})
	}
	_ = group.Wait() // errors are in the answers
	return answers
}

// fetched accounts for fetched entries in order, up to the first one that has to be asked for again.
func (s *persistent) fetched(h *hole, answers []answer, rest []span) {
	values := false
	for i, a := range answers {
		entry := position{ledger: a.ledger, entry: a.entry, size: 1}
		if s.tracker.covers(entry) {
			continue // came from the reader meanwhile
		}
		switch {
		case a.err == nil:
			for _, r := range a.records {
				if s.tracker.pos.less(r.id) && (h.inclusive || r.id.less(h.end)) {
					s.push(r, true)
					values = values || len(r.payload) > 0
				}
			}
			h.giveUp = time.Now().Add(s.options.Patience)
			h.retry.Reset()
		case statusOf(a.err) == http.StatusNotFound:
			s.lost(s.tracker.pos, 1, "the entry is gone", a.err)
			if s.tracker.pos = s.tracker.pos.whole(); s.tracker.pos.less(entry) {
				s.tracker.pos = entry
			}
		default:
			remaining := append([]span{{a.ledger, a.entry, a.entry}}, remainder(answers[i+1:])...)
			h.found.spans = append(remaining, rest...)
			if !s.patient(h, a.err) {
				s.lost(s.tracker.pos, count(h.found.spans), "they cannot be fetched", a.err)
				h.found.spans = nil
			}
			return
		}
	}
	h.found.spans = rest
	if values && s.held == nil && !s.hinted && s.Status().Connected {
		// The reader should have brought these: the library drops tombstones, but never values.
		s.resubscribe("the reader does not deliver", time.Time{})
	}
}

func remainder(answers []answer) []span {
	spans := make([]span, len(answers))
	for i, a := range answers {
		spans[i] = span{a.ledger, a.entry, a.entry}
	}
	return spans
}

// patient plans another attempt, unless the error is final or it has taken too long.
func (s *persistent) patient(h *hole, err error) bool {
	s.trouble(err)
	now := time.Now()
	switch status := statusOf(err); {
	case errors.Is(err, context.Canceled):
		return true // closing
	case status == http.StatusUnauthorized, status == http.StatusForbidden, !now.Before(h.giveUp):
		return false
	}
	h.retryDue = now.Add(h.retry.NextBackOff())
	return true
}

func (s *persistent) lost(after position, n int64, why string, err error) {
	s.logger.Error("messages lost", "count", n, "reason", why, "after", after.id(), cause(err))
	s.change(func(st *topics.Status) {
		st.Lost += n
		st.LastError = fmt.Sprintf("%d messages lost after %v: %s", n, after.id(), why)
	})
}

func (s *persistent) uncertain(after position, why string, err error) {
	s.logger.Warn("messages may be missing", "reason", why, "after", after.id(), cause(err))
	s.change(func(st *topics.Status) {
		st.Uncertain++
		st.LastError = fmt.Sprintf("messages may be missing after %v: %s", after.id(), why)
	})
}

// cause is an error as an attribute of a log line; none without one, which handlers leave out.
func cause(err error) slog.Attr {
	if err == nil {
		return slog.Attr{}
	}
	return slog.Any("error", err)
}
