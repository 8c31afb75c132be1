package simulate

import (
	"errors"
	"fmt"
	"net/http"
)

// Error is what the simulated cluster answers instead of doing something.
type Error struct {
	Status int // the HTTP status that a broker would answer; 0 = there was no answer
	Err    error
	no     bool
}

func (e *Error) Error() string {
	if e.Status == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v (HTTP %d)", e.Err, e.Status)
}

func (e *Error) Unwrap() error { return e.Err }

// Refused says whether the cluster said no before anything happened.
func (e *Error) Refused() bool { return e.no }

// NotFound says whether there is no such thing.
func (e *Error) NotFound() bool { return e.Status == http.StatusNotFound }

func refused(status int, format string, args ...any) error {
	return &Error{Status: status, Err: fmt.Errorf(format, args...), no: true}
}

func unreachable() error { return &Error{Err: errUnreachable, no: true} }

var (
	errTimedOut    = errors.New("not done in time")
	errBroken      = errors.New("the broker failed")
	errUnreachable = errors.New("connection refused")
	errUnsupported = errors.New("the load manager does not support load reports")
)
