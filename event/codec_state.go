package event

import (
	"fmt"
	"unicode"
)

// The document of the ownership topic.

// state reads the name of a state; null and names that Pulsar does not know are "".
func (r *reader) state(to *ServiceUnitState) {
	*to = ""
	if r.null() {
		return
	}
	switch string(r.text("the name of a state")) {
	case string(Init):
		*to = Init
	case string(Free):
		*to = Free
	case string(Owned):
		*to = Owned
	case string(Assigning):
		*to = Assigning
	case string(Releasing):
		*to = Releasing
	case string(Splitting):
		*to = Splitting
	case string(Deleted):
		*to = Deleted
	}
}

// broker reads a broker id and whether it is "" instead of null.
func (r *reader) broker(to *string, empty *bool) {
	*empty = false
	if r.null() {
		*to = ""
		return
	}
	*to = string(r.text("a broker id"))
	*empty = *to == ""
}

func (w *writer) broker(name, id string, empty bool) {
	if id != "" || empty {
		w.string(name, id)
	}
}

func (r *reader) splitDestinations(to *[]SplitDestination) {
	*to = nil
	if r.null() {
		return
	}
	list := make([]SplitDestination, 0, 2)
	var seen index
	for key := range r.fields {
		d := SplitDestination{Range: string(key)}
		r.string(&d.Broker)
		if i, again := seen.place(d.Range, len(list)); again {
			list[i] = d
		} else {
			list = append(list, d)
		}
	}
	*to = list
}

func (w *writer) splitDestinations(list []SplitDestination) {
	w.open('{')
	for _, d := range list {
		w.key(d.Range)
		if d.Broker == "" {
			w.out = append(w.out, "null"...)
		} else {
			w.out = appendText(w.out, d.Broker)
		}
	}
	w.close('}')
}

func (r *reader) serviceUnitStateData(d *ServiceUnitStateData) {
	*d = ServiceUnitStateData{}
	r.peek()
	start := r.pos
	for key := range r.fields {
		switch string(key) {
		case "state":
			r.state(&d.State)
		case "dstBroker":
			r.broker(&d.DstBroker, &d.EmptyDst)
		case "sourceBroker":
			r.broker(&d.SourceBroker, &d.EmptySource)
		case "splitServiceUnitToDestBroker":
			r.splitDestinations(&d.SplitServiceUnitToDestBroker)
		case "force":
			r.bool(&d.Force)
		case "timestamp":
			r.int64(&d.Timestamp)
		case "versionId":
			r.int64(&d.VersionID)
		default:
			r.skip()
		}
	}
	if r.err == nil {
		if fault := d.fault(); fault != "" {
			r.failAt(start, "a valid record: "+fault)
		}
	}
}

func (w *writer) serviceUnitStateData(d *ServiceUnitStateData) {
	w.open('{')
	w.string("state", string(d.State))
	w.broker("dstBroker", d.DstBroker, d.EmptyDst)
	w.broker("sourceBroker", d.SourceBroker, d.EmptySource)
	if d.SplitServiceUnitToDestBroker != nil {
		w.plain("splitServiceUnitToDestBroker")
		w.splitDestinations(d.SplitServiceUnitToDestBroker)
	}
	w.bool("force", d.Force)
	w.int("timestamp", d.Timestamp)
	w.int("versionId", d.VersionID)
	w.close('}')
}

// fault is why Pulsar's constructor refuses the record, "" if it does not.
func (d *ServiceUnitStateData) fault() string {
	switch d.State {
	case Free:
		return ""
	case Init, Owned, Assigning, Releasing, Splitting, Deleted:
		if Blank(d.DstBroker) && Blank(d.SourceBroker) {
			return "dstBroker and sourceBroker are both blank, in state " + string(d.State) + " one must be named"
		}
		return ""
	}
	return "state is missing or unknown, it must be Init, Free, Owned, Assigning, Releasing, Splitting or Deleted"
}

// Validate says whether Pulsar can hold the record at all: its state must be known and, unless it is Free, one of its brokers
// must be named. It is checked by decoding and encoding, too.
func (d ServiceUnitStateData) Validate() error {
	if fault := d.fault(); fault != "" {
		return fmt.Errorf("ServiceUnitStateData: state %q, dstBroker %q, sourceBroker %q: %s", d.State, d.DstBroker, d.SourceBroker, fault)
	}
	return nil
}

// Blank says whether s is empty or white space only, as Java sees it (commons-lang: StringUtils.isBlank).
func Blank(s string) bool {
	for _, c := range s {
		if !javaSpace(c) {
			return false
		}
	}
	return true
}

// javaSpace is Character.isWhitespace: separators that allow a line break, and some control characters.
func javaSpace(c rune) bool {
	switch c {
	case '\u00a0', '\u2007', '\u202f':
		return false
	case '\t', '\n', '\v', '\f', '\r', '\x1c', '\x1d', '\x1e', '\x1f':
		return true
	}
	return unicode.In(c, unicode.Z)
}
