// Package schedule reads weekly windows of time ("Mon-Fri 22:00-06:00 Europe/Berlin") and says whether a moment is in one.
// It has no clock: moments and time zones come in as arguments.
package schedule

import (
	"fmt"
	"strings"
	"time"
)

// Window is one weekly window. The zero value is never.
type Window struct {
	text     string
	closed   bool    // "not ...": closed while it lasts, instead of open
	days     [7]bool // by time.Weekday: the days on which it begins
	from, to int     // minutes of the day; to may be up to 24:00, and is the next day's if it is not after from
	zone     *time.Location
}

const right = `it must be like "Mon-Fri 22:00-06:00 Europe/Berlin", with "not" before it for a time that is closed`

// Parse reads "[not] DAYS HH:MM-HH:MM ZONE". DAYS is a day (Mon), a range (Fri-Mon) or several with + between them (Sat+Sun);
// "daily" is every day. A window whose end is not after its begin reaches into the next day. locate finds a time zone by its
// IANA name, as time.LoadLocation does.
func Parse(text string, locate func(string) (*time.Location, error)) (Window, error) {
	w := Window{text: strings.Join(strings.Fields(text), " ")}
	words := strings.Fields(text)
	if len(words) > 0 && strings.EqualFold(words[0], "not") {
		w.closed, words = true, words[1:]
	}
	if len(words) != 3 {
		return Window{}, fmt.Errorf("window %q has %d parts: %s", text, len(words), right)
	}
	var err error
	if w.days, err = parseDays(words[0]); err != nil {
		return Window{}, fmt.Errorf("window %q: %w: %s", text, err, right)
	}
	begin, end, _ := strings.Cut(words[1], "-")
	var okFrom, okTo bool
	w.from, okFrom = minutes(begin)
	w.to, okTo = minutes(end)
	if !okFrom || !okTo || w.from == 24*60 {
		return Window{}, fmt.Errorf("window %q: %q is no time from 00:00 to 24:00: %s", text, words[1], right)
	}
	if w.zone, err = locate(words[2]); err != nil {
		return Window{}, fmt.Errorf("window %q: time zone %q: %w", text, words[2], err)
	}
	return w, nil
}

var weekdays = [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func parseDays(text string) (days [7]bool, err error) {
	if strings.EqualFold(text, "daily") {
		return [7]bool{true, true, true, true, true, true, true}, nil
	}
	for part := range strings.SplitSeq(text, "+") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, b := weekday(first), weekday(last)
		if a < 0 || b < 0 {
			return days, fmt.Errorf("%q is no day of the week", part)
		}
		for d := a; ; d = (d + 1) % 7 {
			days[d] = true
			if d == b {
				break
			}
		}
	}
	return days, nil
}

func weekday(text string) int {
	for i, name := range weekdays {
		if strings.EqualFold(text, name) {
			return i
		}
	}
	return -1
}

// minutes reads HH:MM.
func minutes(text string) (int, bool) {
	if len(text) != 5 || text[2] != ':' {
		return 0, false
	}
	for _, i := range []int{0, 1, 3, 4} {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	h, m := int(text[0]-'0')*10+int(text[1]-'0'), int(text[3]-'0')*10+int(text[4]-'0')
	return h*60 + m, m < 60 && h*60+m <= 24*60
}

// String is the window as it was written.
func (w Window) String() string { return w.text }

// within says whether the local time at t is in the window. Local time is what the clock on the wall shows: an hour that a
// change of the clocks repeats counts both times, one that it leaves out not at all.
func (w Window) within(t time.Time) bool {
	if w.zone == nil {
		return false
	}
	local := t.In(w.zone)
	minute, today := local.Hour()*60+local.Minute(), local.Weekday()
	if w.to > w.from {
		return w.days[today] && minute >= w.from && minute < w.to
	}
	return w.days[today] && minute >= w.from || w.days[(today+6)%7] && minute < w.to
}

// Windows are the windows of a schedule.
type Windows []Window

// ParseAll reads several windows.
func ParseAll(texts []string, locate func(string) (*time.Location, error)) (Windows, error) {
	var out Windows
	for _, text := range texts {
		w, err := Parse(text, locate)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

// Open says whether t is open: in no window that is closed, and in one of the others if there are any. Without windows it is
// always open.
func (ws Windows) Open(t time.Time) bool {
	open, any := false, false
	for _, w := range ws {
		in := w.within(t)
		if w.closed {
			if in {
				return false
			}
			continue
		}
		any, open = true, open || in
	}
	return open || !any
}

// horizon is how far Next looks: whatever repeats weekly has shown itself by then, also around a change of the clocks.
const horizon = 8 * 24 * time.Hour

// Next is the next whole minute, from t on, at which it is open; false if there is none.
func (ws Windows) Next(t time.Time) (time.Time, bool) {
	if ws.Open(t) {
		return t, true
	}
	for at := t.Truncate(time.Minute).Add(time.Minute); at.Sub(t) <= horizon; at = at.Add(time.Minute) {
		if ws.Open(at) {
			return at, true
		}
	}
	return time.Time{}, false
}

// Texts are the windows as they were written.
func (ws Windows) Texts() []string {
	var out []string
	for _, w := range ws {
		out = append(out, w.text)
	}
	return out
}
