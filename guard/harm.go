package guard

import (
	"fmt"
	"maps"
	"slices"
)

// Harm is what clients see of the brokers, as the brokers' metrics tell it.
type Harm struct {
	At      int64     `json:"at"` // Unix ms of the reading
	Brokers []Clients `json:"brokers"`
}

// Clients is what the clients of one broker see.
type Clients struct {
	Broker     string  `json:"broker,omitempty"`
	Latency    float64 `json:"latency"`    // 99th percentile of publish latency, ms; below 0 = not known
	Reconnects float64 `json:"reconnects"` // connections opened per second; below 0 = not known
}

const (
	harmWindow = 5 * 60_000 // ms after a move during which it may be what hurts
	harmFactor = 2.0        // how many times the usual counts as hurt
	harmWeight = 0.2        // of a new reading in what is usual
)

// WatchesHarm says whether anything follows from what clients see.
func (l Limits) WatchesHarm() bool {
	return l.MovesAtOnce > 0 && (l.MaxLatency > 0 || l.MaxReconnects > 0)
}

// Suspects are the brokers that took part in a move so lately that it may be what hurts their clients, ordered.
func Suspects(st State, now int64) (ids []string) {
	for id := range st.Swings {
		if st.suspect(id, now) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (st *State) suspect(id string, now int64) bool {
	moved := st.lastMove(id)
	return moved > 0 && now-moved < harmWindow
}

// lastMove is when a broker took part in a move last, Unix ms; 0 = never.
func (st *State) lastMove(id string) int64 {
	swings := st.Swings[id]
	if len(swings) == 0 {
		return 0
	}
	return swings[len(swings)-1].At
}

// suffer slows down when clients of brokers that took part in a move of the last minutes see more than the limit, and more than
// twice what they see when nothing moves. One reading slows once, however many brokers it is about; and what was slowed down
// for is not counted again in the next readings, which are over minutes, until something has moved since.
func (st *State) suffer(h *Harm, lim Limits) {
	if h == nil {
		return
	}
	usual := maps.Clone(st.Clients)
	if usual == nil {
		usual = map[string]Clients{}
	}
	why := ""
	for _, c := range h.Brokers {
		if c.Broker == "" {
			continue
		}
		u, known := usual[c.Broker]
		if st.suspect(c.Broker, h.At) {
			if w := c.hurt(u, lim); w != "" && why == "" && st.lastMove(c.Broker) > st.Pace.At {
				why = w
			}
			continue
		}
		if !known {
			u = Clients{Latency: -1, Reconnects: -1}
		}
		usual[c.Broker] = Clients{Latency: blend(u.Latency, c.Latency), Reconnects: blend(u.Reconnects, c.Reconnects)}
	}
	st.Clients = usual
	if why != "" && lim.MovesAtOnce > 0 {
		st.Pace = st.Pace.bad(why, h.At, h.At)
	}
}

// hurt says how clients are hurt, "" if they are not.
func (c Clients) hurt(usual Clients, lim Limits) string {
	if limit := max(lim.MaxLatency, harmFactor*usual.Latency); lim.MaxLatency > 0 && measured(c.Latency) && c.Latency > limit {
		return fmt.Sprintf("publish latency of %s rose to %.0f ms, more than %.0f", c.Broker, c.Latency, limit)
	}
	if limit := max(lim.MaxReconnects, harmFactor*usual.Reconnects); lim.MaxReconnects > 0 && measured(c.Reconnects) && c.Reconnects > limit {
		return fmt.Sprintf("clients open %.1f connections a second to %s, more than %.1f", c.Reconnects, c.Broker, limit)
	}
	return ""
}

// blend is what is usual after one reading more.
func blend(usual, reading float64) float64 {
	switch {
	case !measured(reading):
		return usual
	case !measured(usual):
		return reading
	}
	return usual + harmWeight*(reading-usual)
}
