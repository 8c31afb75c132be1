// Package watch finds in the ownership log what should not be there: bundles that stay in flight, owners that are gone,
// parents beside their children, versions that jump or run backwards, records that no broker wrote, a channel that says
// nothing. It is pure: events, pictures and the time go in, anomalies come out; its memory is bounded.
package watch

import (
	"cmp"
	"slices"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
)

// The codes of anomalies. They are stable; docs/doctor.md says what each means and what to do.
var (
	InFlight       = plan.Code{ID: "BUNDLE_IN_FLIGHT", Template: "the bundle is {state} since {seconds} s (source {source}, destination {destination}), brokers override it after {limit} s"}
	OwnerGone      = plan.Code{ID: "OWNER_NOT_REGISTERED", Template: "{broker} owns {count} bundles and is not registered since {seconds} s"}
	Beside         = plan.Code{ID: "PARENT_BESIDE_CHILDREN", Template: "the bundle overlaps {other}, and both are owned: {state} by {owner} and {otherState} by {otherOwner}"}
	ParentLeft     = plan.Code{ID: "PARENT_NOT_REMOVED", Template: "the bundle was split and its record is Deleted since {seconds} s, it should be gone after {limit} s"}
	VersionGap     = plan.Code{ID: "VERSION_GAP", Template: "version {version} followed {before}: brokers obey such a record without checking it"}
	VersionBack    = plan.Code{ID: "VERSION_BACKWARDS", Template: "versions begin again at {version} below {before} and go on: a tombstone may have been missed, the owner is not certain"}
	ForeignRecord  = plan.Code{ID: "FOREIGN_RECORD", Template: "{count} records are by producer {producer}{address}, which is no registered broker's (heuristic: its name is matched to the topic's statistics)"}
	ForeignWriter  = plan.Code{ID: "FOREIGN_PRODUCER", Template: "producer {producer}{address} is connected to the ownership topic and is no registered broker's (heuristic: its address is matched to the brokers')"}
	NoProducer     = plan.Code{ID: "CHANNEL_WITHOUT_BROKER", Template: "{broker} is registered and has no producer on the ownership topic since {seconds} s: it may run without its channel"}
	ChannelBlind   = plan.Code{ID: "CHANNEL_BLIND", Template: "the ownership topic cannot be read since {seconds} s: {error}"}
	ChannelBehind  = plan.Code{ID: "CHANNEL_BEHIND", Template: "the ownership topic holds entry {last} and nothing after {read} was delivered for {seconds} s"}
	ChannelLost    = plan.Code{ID: "CHANNEL_LOST_EVENTS", Template: "{count} events of the ownership topic are lost or may be: who owns what is not certain"}
	ChannelSilent  = plan.Code{ID: "CHANNEL_SILENT", Template: "{broker} reports load of {count} bundles that the ownership log does not know, since {seconds} s"}
	UnreadableUnit = plan.Code{ID: "RECORD_UNREADABLE", Template: "the newest record of the bundle cannot be read: {why}"}
	TooMany        = plan.Code{ID: "MORE_ANOMALIES", Template: "{count} more anomalies are not listed"}
)

// Severity says how bad an anomaly is.
type Severity string

// The severities.
const (
	Warning Severity = "warning" // it may mend itself, or is a heuristic
	Error   Severity = "error"   // the cluster did not mend it in the time that it should take
)

// Event is one message of the ownership topic and what it did.
type Event struct {
	ownership.Outcome
	Data       *event.ServiceUnitStateData // the message itself; nil is a tombstone, or what could not be read
	ID         ownership.ID
	At         int64 // Unix ms by our clock
	Producer   string
	Continuous bool // nothing can be missing between it and the one before: not of the backlog, not after a break
}

// Evidence is a record as it is shown with an anomaly.
type Evidence struct {
	ID          string `json:"id,omitempty"` // ledger:entry:batch
	At          int64  `json:"at"`           // Unix ms when it was received
	Producer    string `json:"producer,omitempty"`
	State       string `json:"state"` // "tombstone" for one
	Version     int64  `json:"version,omitempty"`
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
	Force       bool   `json:"force,omitempty"`
	Timestamp   int64  `json:"timestamp,omitempty"` // Unix ms by the writer's clock
	Rule        string `json:"rule,omitempty"`      // of the conflict rules, which decided about it
	Ignored     bool   `json:"ignored,omitempty"`
}

// Anomaly is something that should not be there. Bundle, Broker and Producer say what it is about.
type Anomaly struct {
	Severity Severity    `json:"severity"`
	Bundle   string      `json:"bundle,omitempty"`
	Broker   string      `json:"broker,omitempty"`
	Producer string      `json:"producer,omitempty"`
	Since    int64       `json:"since"` // Unix ms
	Why      plan.Reason `json:"why"`
	Advice   string      `json:"advice"`
	Evidence []Evidence  `json:"evidence,omitempty"` // oldest first

	state event.ServiceUnitState // of a bundle in flight
}

// key tells an anomaly from others while it lasts.
func (a *Anomaly) key() string {
	return a.Why.Code + " " + a.Bundle + " " + a.Broker + " " + a.Producer
}

// Limits say when something counts as an anomaly, and how much is remembered. Times are in ms.
type Limits struct {
	InFlight  int64 // a bundle may be in flight (loadBalancerInFlightServiceUnitStateWaitingTimeInMillis)
	Monitor   int64 // between two looks of the leader, which mends things (loadBalancerServiceUnitStateMonitorIntervalInSeconds)
	Tombstone int64 // a record of a bundle that is gone may stay (loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds)
	Gone      int64 // a broker may be out of the registry while it owns bundles, or without its producer
	Overlap   int64 // two bundles that overlap may both be owned
	Silence   int64 // the channel may say nothing where there is something to say
	Told      int64 // what happened at one moment is told for so long
	Events    int   // events that are kept as evidence
	Shown     int   // events that are shown with an anomaly
	Most      int   // anomalies of one look
}

// DefaultLimits are the limits for a cluster with Pulsar's defaults.
var DefaultLimits = Limits{InFlight: 30_000, Monitor: 60_000, Tombstone: 3_600_000, Gone: 30_000, Overlap: 30_000, Silence: 60_000,
	Told: 600_000, Events: 4096, Shown: 8, Most: 200}

// Channel is the health of the subscription to the ownership topic.
type Channel struct {
	Connected  bool
	CaughtUp   bool
	BlindSince int64 // Unix ms; 0 = it is not
	Error      string
	Last       ownership.ID // of the last message that was delivered
	Lost       int64        // messages that are missing, or may be
}

// Producer is a producer that is connected to the ownership topic.
type Producer struct {
	Name    string
	Address string // host, without port; "" = unknown
	Own     bool   // it says that it is Ballast's
}

// Topic is what the ownership topic's statistics say.
type Topic struct {
	Producers []Producer
	Hosts     map[string][]string // broker id -> addresses of its host; none = unknown
	Last      ownership.ID        // the last entry of the topic
}

// Picture is what is seen of the cluster at one moment.
type Picture struct {
	Now     int64    // Unix ms
	Brokers []string // ids of the registered brokers; none = unknown
	Owners  *ownership.Snapshot
	Backlog int64    // Unix ms: what was received until then had been on the topic before; its own timestamps count
	Loaded  []Loaded // in the order of broker ids
	Channel *Channel // nil = unknown
	Topic   *Topic   // nil = unknown
}

// Loaded is a broker's list of the bundles that it reports load of.
type Loaded struct {
	Broker  string
	Heard   int64 // Unix ms
	Bundles []string
}

// Watcher remembers what it needs to tell what lasts from what passes. It is used by one goroutine at a time.
type Watcher struct {
	lim     Limits
	events  []Event // a ring
	next    int     // where the next event goes
	since   map[string]int64
	told    map[string]told // what happened at one moment, by key
	back    map[string]int  // records in a row that run backwards, by bundle
	writers writers
	seen    ownership.ID // the last entry of the topic when it was first read to its end
	caught  bool
}

// told is an anomaly of one moment and when it was last seen.
type told struct {
	a    Anomaly
	last int64
}

// New makes a watcher. Limits that are 0 are those of DefaultLimits.
func New(l Limits) *Watcher {
	d := DefaultLimits
	l = Limits{InFlight: cmp.Or(l.InFlight, d.InFlight), Monitor: cmp.Or(l.Monitor, d.Monitor), Tombstone: cmp.Or(l.Tombstone, d.Tombstone),
		Gone: cmp.Or(l.Gone, d.Gone), Overlap: cmp.Or(l.Overlap, d.Overlap), Silence: cmp.Or(l.Silence, d.Silence), Told: cmp.Or(l.Told, d.Told),
		Events: cmp.Or(l.Events, d.Events), Shown: cmp.Or(l.Shown, d.Shown), Most: cmp.Or(l.Most, d.Most)}
	return &Watcher{lim: l, since: map[string]int64{}, told: map[string]told{}, back: map[string]int{}, writers: newWriters()}
}

// Look is what is wrong in a picture, the worst first, then in a fixed order.
func (w *Watcher) Look(p Picture) []Anomaly {
	l := look{w: w, p: p, holds: map[string]int64{}}
	l.inFlight()
	l.owners()
	l.parents()
	l.unreadable()
	l.channel()
	l.producers()
	w.since = l.holds // what holds no more is forgotten
	for key, t := range w.told {
		if p.Now-t.last > w.lim.Told {
			delete(w.told, key)
			continue
		}
		l.out = append(l.out, t.a)
	}
	slices.SortFunc(l.out, func(a, b Anomaly) int {
		if a.Severity != b.Severity {
			if a.Severity == Error {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.key(), b.key())
	})
	if more := len(l.out) - w.lim.Most; more > 0 {
		l.out = append(l.out[:w.lim.Most], Anomaly{Severity: Warning, Since: p.Now, Why: TooMany.Because(plan.N("count", more)),
			Advice: "mend what is listed first"})
	}
	w.evidence(l.out)
	return l.out
}

// look is one look at a picture.
type look struct {
	w     *Watcher
	p     Picture
	holds map[string]int64
	out   []Anomaly
}

// lasts is since when a condition holds, by what earlier looks saw.
func (l *look) lasts(code plan.Code, subject string) int64 {
	key := code.ID + " " + subject
	since, ok := l.w.since[key]
	if !ok {
		since = l.p.Now
	}
	l.holds[key] = since
	return since
}

func (l *look) add(a Anomaly) { l.out = append(l.out, a) }

// severity is Error once the cluster's own leader must have looked twice since the limit, and has not mended it.
func (l *look) severity(age, limit int64) Severity {
	if age > limit+2*l.w.lim.Monitor {
		return Error
	}
	return Warning
}

func (l *look) registered(broker string) bool {
	_, ok := slices.BinarySearch(l.p.Brokers, broker)
	return ok
}
