package simple

import (
	"github.com/ballast-lb/ballast/plan"
)

// Why leastLoadedServer and leastMsgPerSecond chose a broker.
var (
	// LeastLoaded: the broker has the least estimated load.
	LeastLoaded = plan.Code{ID: "LEAST_LOADED", Template: "estimated load {load} % is the least of {candidates} candidates"}
	// LeastMessages: the broker has the lowest estimated message rate.
	LeastMessages = plan.Code{ID: "LEAST_MESSAGES", Template: "estimated {rate} msg/s is the least of {candidates} candidates"}
	// IdleBroker: the least loaded broker is above the underload threshold, or there is none, so an idle one is used.
	IdleBroker = plan.Code{ID: "IDLE_BROKER", Template: "no broker with bundles is at or below the underload threshold {threshold} %, the broker is idle"}
	// AllFull: all brokers are full, so one is picked in turn.
	AllFull = plan.Code{ID: "ALL_FULL", Template: "the least loaded broker is estimated at {load} %: picked in turn among {candidates} candidates"}
	// MostRoom: the least loaded broker is overloaded, so the one with the most room left is used.
	MostRoom = plan.Code{ID: "MOST_ROOM", Template: "the least loaded broker is estimated at {load} % > overload threshold {threshold} %: this one has room for the most bundles, {room}"}
	// NotLeast: the broker is more loaded than the best seen before it.
	NotLeast = plan.Code{ID: "NOT_LEAST", Template: "estimated load {load} %, {rate} msg/s; {best} is better"}
)

// cursorEnd is where the rotation cursor begins again.
const cursorEnd = 1_000_000

// pick is what a walk over the candidates found; places in State.Rankings, -1 for none.
type pick struct {
	best, idle, turn, roomiest int
	least                      float64 // estimated load of the best, 101 without one
	room                       int64
}

// least chooses by load or by message rate and pre-allocates the bundle. The result depends on the order of the candidates,
// as "less loaded" is not transitive; theirs is by rank and id. Pulsar: findBrokerForPlacement.
func (s *search) least(candidates []candidate, byRate bool) (string, plan.Reason) {
	st := s.st
	p := s.walk(candidates, byRate)
	at, why := p.choose(s, byRate, len(candidates))
	if at < 0 {
		return "", why
	}
	st.Cursor = (st.Cursor + 1) % cursorEnd
	if _, given := st.index.given[at][s.bundle]; !given {
		st.give(at, s.bundle)
	}
	return st.Rankings[at].Broker, why
}

func (s *search) walk(candidates []candidate, byRate bool) pick {
	st := s.st
	p := pick{best: -1, idle: -1, turn: -1, roomiest: -1, least: 101, room: -1}
	quota := st.Quotas.Stored.OfDefault()
	turn := st.Cursor % int64(len(candidates))
	for _, c := range candidates {
		turn--
		if c.ranking < 0 {
			continue
		}
		r := &st.Rankings[c.ranking]
		if _, has := st.index.loaded[c.ranking][s.bundle]; has {
			st.take(c.ranking, s.bundle)
		}
		if turn < 0 && p.turn < 0 {
			p.turn = c.ranking
		}
		load := r.estimate.Load
		room := toLong(float64(capacity(&r.Usage, quota, float64(st.Factor), s.m.Options)) * max(0, (100-load)/100))
		if room > p.room {
			p.room, p.roomiest = room, c.ranking
		}
		switch {
		case r.Idle():
			if p.idle < 0 {
				p.idle = c.ranking
			}
		case p.best < 0 || better(r, &st.Rankings[p.best], byRate):
			s.passOver(p.best, c.ranking)
			p.best, p.least = c.ranking, load
		default:
			s.passOver(c.ranking, p.best)
		}
	}
	return p
}

func better(r, best *Ranking, byRate bool) bool {
	if byRate {
		return less(r.estimate.MsgRate, best.estimate.MsgRate)
	}
	return r.estimate.lighter(&best.estimate)
}

// passOver records that a broker is not the least loaded one.
func (s *search) passOver(at, best int) {
	if s.trace == nil || at < 0 {
		return
	}
	r := &s.st.Rankings[at]
	s.trace.Skip(s.bundle, r.Broker, s.st.Rankings[best].Broker,
		NotLeast.Because(plan.N("load", r.estimate.Load), plan.N("rate", r.estimate.MsgRate), plan.S("best", s.st.Rankings[best].Broker)))
}

// choose decides what counts: an idle broker before one above the underload threshold, anything else only as a way out.
func (p *pick) choose(s *search, byRate bool, candidates int) (int, plan.Reason) {
	set, n, load := s.snap.Settings, plan.N("candidates", candidates), plan.N("load", p.least)
	under, over := set.LoadBalancerBrokerUnderloadedThresholdPercentage, set.LoadBalancerBrokerOverloadedThresholdPercentage
	switch {
	case p.best < 0 && p.idle < 0:
		return -1, NotRanked.Because(n)
	case p.best < 0 || p.least > float64(under) && p.idle >= 0:
		return p.idle, IdleBroker.Because(plan.N("threshold", under))
	case p.least >= 100 && p.turn >= 0 && !byRate:
		return p.turn, AllFull.Because(load, n)
	case p.least > float64(over) && !byRate:
		return p.roomiest, MostRoom.Because(load, plan.N("threshold", over), plan.N("room", p.room))
	case byRate:
		return p.best, LeastMessages.Because(plan.N("rate", s.st.Rankings[p.best].estimate.MsgRate), n)
	}
	return p.best, LeastLoaded.Because(load, n)
}
