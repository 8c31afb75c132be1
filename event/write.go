package event

import (
	"math"
	"strconv"
)

// writer builds one JSON document.
type writer struct {
	out   []byte
	comma bool // the next member or element needs a comma before it
}

// newWriter has room for the documents that travel most, so that they take one allocation.
func newWriter() *writer { return &writer{out: make([]byte, 0, 640)} }

// open begins an object or array.
func (w *writer) open(bracket byte) {
	w.out = append(w.out, bracket)
	w.comma = false
}

// close ends an object or array.
func (w *writer) close(bracket byte) {
	w.out = append(w.out, bracket)
	w.comma = true
}

// element separates an element from the one before.
func (w *writer) element() {
	if w.comma {
		w.out = append(w.out, ',')
	}
	w.comma = true
}

// plain begins a member whose name needs no escapes.
func (w *writer) plain(name string) {
	w.element()
	w.out = append(w.out, '"')
	w.out = append(w.out, name...)
	w.out = append(w.out, '"', ':')
}

// key begins a member with any name.
func (w *writer) key(name string) {
	w.element()
	w.out = append(appendText(w.out, name), ':')
}

func (w *writer) float(name string, x float64) {
	w.plain(name)
	switch {
	case math.IsNaN(x):
		w.out = append(w.out, `"NaN"`...)
	case math.IsInf(x, 1):
		w.out = append(w.out, `"Infinity"`...)
	case math.IsInf(x, -1):
		w.out = append(w.out, `"-Infinity"`...)
	default:
		w.out = appendFloat(w.out, x)
	}
}

// appendFloat writes a finite number so that it reads back as the same double, and as a double: with a point.
func appendFloat(out []byte, x float64) []byte {
	if size := math.Abs(x); size != 0 && (size < 1e-3 || size >= 1e7) {
		return strconv.AppendFloat(out, x, 'E', -1, 64)
	}
	start := len(out)
	out = strconv.AppendFloat(out, x, 'f', -1, 64)
	for _, c := range out[start:] {
		if c == '.' {
			return out
		}
	}
	return append(out, '.', '0')
}

func (w *writer) int(name string, n int64) {
	w.plain(name)
	w.out = strconv.AppendInt(w.out, n, 10)
}

func (w *writer) bool(name string, b bool) {
	w.plain(name)
	w.out = strconv.AppendBool(w.out, b)
}

func (w *writer) string(name, s string) {
	w.plain(name)
	w.out = appendText(w.out, s)
}

// text writes a string that is null when it is "", and is then left out.
func (w *writer) text(name, s string) {
	if s != "" {
		w.string(name, s)
	}
}
