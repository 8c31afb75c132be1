package pulsar

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar/log"
)

// The client library reconnects and throws messages away without telling its user: only its log says so. clientLogger is
// that log. It passes the lines on to slog as debug lines (what they complain of is expected here, and handled) and turns the
// four lines that matter into events for the subscription they are about. These lines are words of v0.19.0; nothing breaks
// if they change, it is only noticed later, by the tail check and the audit.
const (
	lineDiscarded   = "Discarding corrupted message"
	lineClosed      = "connection closed and send to connectClosedCh"
	lineReconnected = "Reconnected consumer to broker"
	lineGaveUp      = "Topic Not Found."
)

// noConnection begins the lines that say why a connection failed; the library's errors only say that it did.
var noConnection = []string{"Failed to connect to broker", "Failed to configure TLS", "Failed to load auth credentials",
	"Failed to perform initial handshake", "Failed to establish connection with broker"}

// signal is what the client library did to one subscription.
type signal int

const (
	signalDiscarded   signal = iota // threw a message away unread
	signalClosed                    // lost the connection and is going to reconnect
	signalReconnected               // has a connection again
	signalGaveUp                    // will never reconnect
)

// tap receives the signals of one subscription. It is called from the library's goroutines and must not block.
type tap func(sig signal, ledger, entry int64)

// taps finds the tap of a subscription by its name, and remembers why connecting failed last, which the library's errors
// do not say.
type taps struct {
	mu     sync.Mutex
	byName map[string]tap
	reason string
	deaf   bool // in tests: as if the library's words had changed
}

func newTaps() *taps { return &taps{byName: map[string]tap{}} }

func (t *taps) add(subscription string, f tap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byName[subscription] = f
}

func (t *taps) remove(subscription string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byName, subscription)
}

func (t *taps) failed(text, err string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reason = strings.TrimRight(text, ". ")
	if err != "" {
		t.reason += ": " + err
	}
}

// takeReason is why the last connection failed, "" if none did since it was asked.
func (t *taps) takeReason() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.reason
	t.reason = ""
	return r
}

// clientLogger implements both log.Logger and log.Entry.
type clientLogger struct {
	out          *slog.Logger
	taps         *taps
	subscription string
	ledger       int64
	entry        int64
	err          string
}

var (
	_ log.Logger = (*clientLogger)(nil)
	_ log.Entry  = (*clientLogger)(nil)
)

func newClientLogger(out *slog.Logger, taps *taps) *clientLogger {
	return &clientLogger{out: out.With("client", "pulsar"), taps: taps}
}

// messageID is how a line names a message; the library's own type for it is internal.
type messageID interface {
	GetLedgerId() uint64
	GetEntryId() uint64
}

// with is the logger with one more field.
func (l *clientLogger) with(fields log.Fields) *clientLogger {
	next := *l
	args := make([]any, 0, 2*len(fields))
	for name, value := range fields {
		switch v := value.(type) {
		case messageID:
			next.ledger, next.entry = int64(v.GetLedgerId()), int64(v.GetEntryId())
			value = fmt.Sprintf("%d:%d", next.ledger, next.entry)
		case error:
			next.err = v.Error()
		case string:
			if name == "subscription" {
				next.subscription = v
			}
		}
		args = append(args, name, value)
	}
	next.out = l.out.With(args...)
	return &next
}

// line logs one line and acts on it.
func (l *clientLogger) line(level slog.Level, text string) {
	l.out.Log(context.Background(), level, text)
	var sig signal
	switch text {
	case lineDiscarded:
		sig = signalDiscarded
	case lineClosed:
		sig = signalClosed
	case lineReconnected:
		sig = signalReconnected
	case lineGaveUp:
		sig = signalGaveUp
	default:
		if slices.ContainsFunc(noConnection, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
			l.taps.failed(text, l.err)
		}
		return
	}
	l.taps.mu.Lock()
	f := l.taps.byName[l.subscription]
	if l.taps.deaf {
		f = nil
	}
	l.taps.mu.Unlock()
	if f != nil {
		f(sig, l.ledger, l.entry)
	}
}

const levelTrace = slog.LevelDebug - 4

func (l *clientLogger) SubLogger(fields log.Fields) log.Logger { return l.with(fields) }
func (l *clientLogger) WithFields(fields log.Fields) log.Entry { return l.with(fields) }
func (l *clientLogger) WithField(name string, value any) log.Entry {
	return l.with(log.Fields{name: value})
}
func (l *clientLogger) WithError(err error) log.Entry { return l.with(log.Fields{"error": err}) }

// Debug is called for every message; it formats nothing unless someone listens.
func (l *clientLogger) Debug(args ...any) {
	if len(args) == 1 && args[0] == lineClosed {
		l.line(levelTrace, lineClosed)
	} else if l.out.Enabled(context.Background(), levelTrace) {
		l.line(levelTrace, fmt.Sprint(args...))
	}
}

func (l *clientLogger) Debugf(format string, args ...any) {
	if l.out.Enabled(context.Background(), levelTrace) {
		l.line(levelTrace, fmt.Sprintf(format, args...))
	}
}

func (l *clientLogger) Info(args ...any)  { l.line(slog.LevelDebug, fmt.Sprint(args...)) }
func (l *clientLogger) Warn(args ...any)  { l.line(slog.LevelDebug, fmt.Sprint(args...)) }
func (l *clientLogger) Error(args ...any) { l.line(slog.LevelDebug, fmt.Sprint(args...)) }
func (l *clientLogger) Infof(format string, args ...any) {
	l.line(slog.LevelDebug, fmt.Sprintf(format, args...))
}
func (l *clientLogger) Warnf(format string, args ...any) {
	l.line(slog.LevelDebug, fmt.Sprintf(format, args...))
}
func (l *clientLogger) Errorf(format string, args ...any) {
	l.line(slog.LevelDebug, fmt.Sprintf(format, args...))
}
