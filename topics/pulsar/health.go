package pulsar

import (
	"sync"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// health keeps the status of a subscription. It may be used from any goroutine.
type health struct {
	now func() time.Time

	mu     sync.Mutex
	blind  time.Duration // completed times of blindness
	status topics.Status
}

// connected ends a time of blindness. again tells that the subscription was made anew.
func (h *health) connected(again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.status.Connected && !h.status.BlindSince.IsZero() {
		h.blind += h.now().Sub(h.status.BlindSince)
	}
	h.status.Connected, h.status.BlindSince = true, time.Time{}
	if again {
		h.status.Resubscribe++
	}
}

// disconnected begins a time of blindness, at since if that is known.
func (h *health) disconnected(why string, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.LastError = why
	if h.status.Connected {
		if since.IsZero() {
			since = h.now()
		}
		h.status.Connected, h.status.BlindSince = false, since
	}
}

func (h *health) trouble(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.LastError = err.Error()
}

// change edits the counters.
func (h *health) change(f func(*topics.Status)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(&h.status)
}

// delivered counts a message that is handed out.
func (h *health) delivered(m topics.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Messages++
	if m.Tombstone() {
		h.status.Tombstones++
	}
	if m.Recovered {
		h.status.Recovered++
	}
	h.status.Last, h.status.LastHeard = m.ID, m.Received
}

// Status is a copy, with the present blindness included in Blind.
func (h *health) Status() topics.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.status
	s.Blind = h.blind
	if !s.Connected && !s.BlindSince.IsZero() {
		s.Blind += h.now().Sub(s.BlindSince)
	}
	s.CaughtUp = s.CaughtUp && s.Connected
	return s
}
