package control

import (
	"math/bits"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/tableview"
)

// maxBrokers bounds what is kept of the load topics, whose keys anybody who may publish there chooses.
const maxBrokers = 10_000

// otherTime is how much further from ours the time in a replayed report is than that of the report before.
const otherTime = 2 * time.Minute

// replayed is the conflict rule of load data: a report by another producer than the last one is refused when its time is further
// from ours than that one's was. A broker's own clock, right or wrong, keeps its distance; a report that somebody sends again, or
// dates ahead, does not. A broker that was restarted with its clock put right comes nearer, and counts.
func replayed(_ string, old, new *tableview.Entry[event.BrokerLoadData]) bool {
	if old == nil || new == nil || old.Producer == new.Producer {
		return false
	}
	return distance(new)-otherTime > distance(old)
}

// refused tells of reports that were sent again, the 1st, 2nd, 4th, 8th, ...: a flood of them must not fill the log.
func (v *Views) refused(c tableview.Change[event.BrokerLoadData]) {
	if c.Kind != tableview.Rejected {
		return
	}
	if n := v.replays.Add(1); bits.OnesCount64(uint64(n)) == 1 {
		v.o.Logger.Warn("load report refused: it was sent again, or is dated ahead", "broker", c.Key, "producer", c.New.Producer, "its time", c.New.Value.UpdatedAt,
			"producer before", c.Old.Producer, "refused", n)
	}
}

// distance is how far a report's own time is from when it was heard: updatedAt is when the broker measured. (reportedAt is when it
// reported the time before, and 0 in its first report.)
func distance(e *tableview.Entry[event.BrokerLoadData]) time.Duration {
	return max(e.Received.Sub(time.UnixMilli(e.Value.UpdatedAt)), time.UnixMilli(e.Value.UpdatedAt).Sub(e.Received))
}

// withdrawn is the last values that brokers took back by tombstones. A broker does so right after each ownership record that
// concerns it, so what it had published before is needed to tell what a move was decided from.
type withdrawn[T any] struct {
	mu     sync.Mutex
	values map[string]tableview.Entry[T]
}

func (w *withdrawn[T]) listen(c tableview.Change[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch c.Kind {
	case tableview.Removed:
		if c.Old == nil {
			return // a second tombstone: what was withdrawn first still counts
		}
		if len(w.values) >= maxBrokers {
			clear(w.values) // keys that nobody ever registered
		}
		if w.values == nil {
			w.values = map[string]tableview.Entry[T]{}
		}
		w.values[c.Key] = *c.Old
	case tableview.Put:
		delete(w.values, c.Key) // there is a newer one
	default:
	}
}

// get is the value that a key had before it was taken back; false if it was not, or has a value again.
func (w *withdrawn[T]) get(key string) (tableview.Entry[T], bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, ok := w.values[key]
	return e, ok
}
