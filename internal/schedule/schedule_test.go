package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the same zones wherever the test runs

	"pgregory.net/rapid"
)

func windows(t testing.TB, texts ...string) Windows {
	t.Helper()
	ws, err := ParseAll(texts, time.LoadLocation)
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	x, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestOpen(t *testing.T) {
	for _, tc := range []struct {
		windows string // "; " between them
		at      string // 2026-11-30 is a Monday
		want    bool
	}{
		{"", "2026-11-30T12:00:00Z", true},
		{"Mon-Fri 22:00-06:00 UTC", "2026-11-30T21:59:59Z", false},
		{"Mon-Fri 22:00-06:00 UTC", "2026-11-30T22:00:00Z", true},
		{"Mon-Fri 22:00-06:00 UTC", "2026-12-01T05:59:59Z", true},
		{"Mon-Fri 22:00-06:00 UTC", "2026-12-01T06:00:00Z", false},
		{"Mon-Fri 22:00-06:00 UTC", "2026-11-30T05:00:00Z", false}, // belongs to Sunday
		{"Mon-Fri 22:00-06:00 UTC", "2026-12-05T05:00:00Z", true},  // Saturday morning belongs to Friday
		{"Fri-Mon 10:00-12:00 UTC", "2026-12-06T11:00:00Z", true},  // Sunday
		{"Fri-Mon 10:00-12:00 UTC", "2026-12-01T11:00:00Z", false}, // Tuesday
		{"Sat+Sun 00:00-24:00 UTC", "2026-12-06T23:59:59Z", true},
		{"Sat+Sun 00:00-24:00 UTC", "2026-12-07T00:00:00Z", false},
		{"daily 12:00-12:00 UTC", "2026-12-02T03:00:00Z", true}, // a whole day
		{"Mon 22:00-06:00 Europe/Berlin", "2026-11-30T21:00:00Z", true},
		{"Mon 22:00-06:00 Europe/Berlin", "2026-11-30T20:59:59Z", false},
		{"not Mon 09:00-17:00 UTC", "2026-11-30T12:00:00Z", false},
		{"not Mon 09:00-17:00 UTC", "2026-11-30T17:00:00Z", true},
		{"daily 00:00-24:00 UTC; not Mon 09:00-17:00 UTC", "2026-11-30T12:00:00Z", false},
		{"Sat 00:00-24:00 UTC; Mon 12:00-13:00 UTC", "2026-11-30T12:30:00Z", true},
		// The clocks go forward at 02:00 on 2026-03-29: 02:30 is not there, 03:00 follows 01:59.
		{"Sun 02:00-03:00 Europe/Berlin", "2026-03-29T00:59:59Z", false},
		{"Sun 02:00-03:00 Europe/Berlin", "2026-03-29T01:00:00Z", false},
		{"Sun 02:30-04:00 Europe/Berlin", "2026-03-29T01:00:00Z", true},
		{"Sat 22:00-06:00 Europe/Berlin", "2026-03-29T03:59:59Z", true}, // an hour shorter
		{"Sat 22:00-06:00 Europe/Berlin", "2026-03-29T04:00:00Z", false},
		// They go back at 03:00 on 2026-10-25: 02:30 is there twice.
		{"Sun 02:00-03:00 Europe/Berlin", "2026-10-25T00:30:00Z", true},
		{"Sun 02:00-03:00 Europe/Berlin", "2026-10-25T01:30:00Z", true},
		{"Sun 02:00-03:00 Europe/Berlin", "2026-10-25T02:00:00Z", false},
		{"Sat 22:00-06:00 Europe/Berlin", "2026-10-25T04:59:59Z", true}, // an hour longer
		{"Sat 22:00-06:00 Europe/Berlin", "2026-10-25T05:00:00Z", false},
	} {
		var texts []string
		if tc.windows != "" {
			texts = strings.Split(tc.windows, "; ")
		}
		if got := windows(t, texts...).Open(at(t, tc.at)); got != tc.want {
			t.Errorf("%q at %s: open is %v, want %v", tc.windows, tc.at, got, tc.want)
		}
	}
}

func TestNext(t *testing.T) {
	for _, tc := range []struct{ window, at, want string }{
		{"Mon 22:00-23:00 UTC", "2026-11-30T12:00:30Z", "2026-11-30T22:00:00Z"},
		{"Mon 22:00-23:00 UTC", "2026-11-30T22:10:30Z", "2026-11-30T22:10:30Z"},
		{"Mon 22:00-23:00 UTC", "2026-11-30T23:00:00Z", "2026-12-07T22:00:00Z"},
		{"Sun 02:30-04:00 Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"}, // begins in the hour that is not there
		{"Sun 02:10-02:50 Europe/Berlin", "2026-03-28T12:00:00Z", "2026-04-05T00:10:00Z"}, // lies in it
		{"not daily 00:00-24:00 UTC", "2026-11-30T12:00:00Z", ""},
	} {
		got, ok := windows(t, tc.window).Next(at(t, tc.at))
		switch {
		case tc.want == "" && ok, tc.want != "" && !ok, ok && !got.Equal(at(t, tc.want)):
			t.Errorf("%q after %s: next is %v, %v, want %s", tc.window, tc.at, got.UTC(), ok, tc.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", `window "" has 0 parts`},
		{"22:00-06:00 UTC", "has 2 parts"},
		{"Mon, 22:00-06:00 UTC", `"Mon," is no day of the week`},
		{"Mo 22:00-06:00 UTC", `"Mo" is no day of the week`},
		{"Mon 22:00 UTC", `"22:00" is no time`},
		{"Mon 9:00-17:00 UTC", `"9:00-17:00" is no time`},
		{"Mon 22:00-25:00 UTC", `"22:00-25:00" is no time`},
		{"Mon 24:00-06:00 UTC", `"24:00-06:00" is no time`},
		{"Mon 22:60-23:00 UTC", `"22:60-23:00" is no time`},
		{"Mon 22:00-23:00 Berlin", `time zone "Berlin"`},
	} {
		if _, err := Parse(tc.text, time.LoadLocation); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: error is %v, want %q in it", tc.text, err, tc.want)
		}
	}
}

// TestNextProperty: what Next names is open, and every minute before it is closed.
func TestNextProperty(t *testing.T) {
	days := rapid.SampledFrom([]string{"daily", "Mon", "Fri-Mon", "Sat+Sun", "Wed+Fri-Sat"})
	zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"})
	rapid.Check(t, func(r *rapid.T) {
		var texts []string
		for range rapid.IntRange(0, 3).Draw(r, "windows") {
			not := rapid.SampledFrom([]string{"", "not "}).Draw(r, "not")
			from, to := rapid.IntRange(0, 1439).Draw(r, "from"), rapid.IntRange(0, 1440).Draw(r, "to")
			texts = append(texts, fmt.Sprintf("%s%s %02d:%02d-%02d:%02d %s", not, days.Draw(r, "days"), from/60, from%60, to/60, to%60, zone.Draw(r, "zone")))
		}
		ws := windows(t, texts...)
		// The days around the changes of the clocks in 2026 are drawn, too.
		start := time.Unix(rapid.Int64Range(1_767_225_600, 1_798_761_600).Draw(r, "at"), 0)
		next, ok := ws.Next(start)
		for m := start; ok && m.Before(next); m = m.Add(time.Minute) {
			if ws.Open(m) {
				r.Fatalf("%v: open at %v, but next after %v is %v", texts, m.UTC(), start.UTC(), next.UTC())
			}
		}
		if ok && !ws.Open(next) {
			r.Fatalf("%v: closed at %v", texts, next.UTC())
		}
	})
}
