package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/rest"

	"github.com/ballast-lb/ballast/event"
)

// Kind is what went wrong with a request. Every *Error has one, and errors.Is(err, admin.NotFound) asks for it.
type Kind string

// The kinds.
const (
	NotFound     Kind = "not found"           // 404, said by Pulsar
	Conflict     Kind = "conflict"            // 409
	Precondition Kind = "precondition failed" // 412
	Unauthorized Kind = "not authorized"      // 401, 403
	BadRequest   Kind = "refused"             // another 4xx, or a request that cannot be expressed
	Server       Kind = "server error"        // 5xx, 429
	Unsupported  Kind = "not supported"       // the broker's load manager does not know the call
	Redirects    Kind = "redirected for ever" // more redirects than a healthy cluster needs, or one that may not be followed
	Unreachable  Kind = "not reachable"       // no connection, or it broke before an answer
	Timeout      Kind = "timed out"           // no answer in time
	Canceled     Kind = "canceled"            // the caller's context ended
	BadAnswer    Kind = "not a Pulsar answer" // garbage, half an answer, too long an answer, or something that is not Pulsar
)

// Error is the kind itself as an error, for errors.Is.
func (k Kind) Error() string { return string(k) }

// Error is a request that failed.
type Error struct {
	Op        string // what was asked for: "unload t/ns/0x00000000_0x80000000"
	Method    string
	URL       string // where, without credentials; the broker that answered, after redirects
	Status    int    // HTTP status; 0 = none
	Kind      Kind
	Reason    string // the cluster's own words, shortened, or what was wrong with its answer
	Temporary bool   // a later attempt may succeed
	RetrySafe bool   // repeating it can do no harm: it changes nothing, or certainly was not carried out
	Err       error  // the cause, if there is one

	unsent bool // certainly did not reach a broker
}

// Error is one line: what, where, which kind, why.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	if e.URL != "" {
		b.WriteString(strings.TrimSpace(e.Method+" "+e.URL) + ": ")
	}
	b.WriteString(string(e.Kind))
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	}
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	return b.String()
}

// badRequest is a request that is not sent since it cannot be right.
func badRequest(op string, err error) *Error {
	return &Error{Op: op, Kind: BadRequest, Reason: oneLine(err.Error()), Err: err, RetrySafe: true, unsent: true}
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is says whether the target is the kind of the error.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// Refused says whether the cluster said no before anything happened, or was never asked.
func (e *Error) Refused() bool {
	return e.unsent || e.Status >= 400 && e.Status < 500 && e.Status != http.StatusRequestTimeout || e.Kind == BadRequest
}

// NotFound says whether Pulsar answered that there is no such thing.
func (e *Error) NotFound() bool { return e.Kind == NotFound }

// statusError is the error of an answer with a status that is no success. Pulsar's own answers carry their reason as
// JSON; a 404 without one comes from something that is not Pulsar, and must not be taken for "there is none".
func statusError(resp *http.Response) *Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	reason, isPulsar := reasonIn(body)
	e := &Error{Status: resp.StatusCode, Kind: BadAnswer, Reason: reason, Method: resp.Request.Method, URL: plainURL(resp.Request.URL)}
	if reason == "" {
		e.Reason = http.StatusText(resp.StatusCode)
	}
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound && isPulsar:
		e.Kind = NotFound
	case code == http.StatusNotFound:
		e.Reason += "; is this the web service address of a broker?"
	case code == http.StatusConflict:
		e.Kind = Conflict
	case code == http.StatusPreconditionFailed:
		e.Kind = Precondition
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		e.Kind = Unauthorized
	case code >= 500 && strings.Contains(string(body), "UnsupportedOperationException"):
		e.Kind = Unsupported
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		e.Kind, e.Temporary = Server, true
	case code >= 400:
		e.Kind = BadRequest
	}
	e.RetrySafe = e.Refused()
	return e
}

var (
	htmlTitle = regexp.MustCompile(`(?is)<title>\s*(.*?)\s*</title>`)
	javaTrace = regexp.MustCompile(`(?s)Message: ?(.*?)\s*Stacktrace:\s*([\w.$]+)`)
)

// reasonIn is the reason that an answer's body gives, and whether it is in the form that Pulsar uses.
func reasonIn(body []byte) (string, bool) {
	var answer struct {
		Reason *string `json:"reason"`
	}
	text, isPulsar := string(body), false
	if json.Unmarshal(body, &answer) == nil && answer.Reason != nil {
		text, isPulsar = *answer.Reason, true
	} else if m := htmlTitle.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	if m := javaTrace.FindStringSubmatch(text); m != nil {
		text = m[2]
		if m[1] != "" && m[1] != "null" {
			text += ": " + m[1]
		}
	}
	return oneLine(text), isPulsar
}

// oneLine makes foreign text fit into an error: one line of at most 300 bytes, without control characters.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
	}), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "..."
	}
	return text
}

// plainURL is a URL without user and password.
func plainURL(u *url.URL) string {
	v := *u
	v.User = nil
	return v.String()
}

// failure makes an *Error of whatever a request ended with. ctx is the caller's, attempt the one of this attempt.
func failure(ctx, attempt context.Context, op string, read bool, err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Err: err, Reason: reasonOf(withoutURL(err))}
		e.Kind, e.unsent = kindOf(err)
		e.Temporary = e.Kind == Unreachable && !badCertificate(err)
		e.locate(err)
	}
	switch {
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Kind, e.Err, e.Temporary = Canceled, ctx.Err(), false
	case ctx.Err() != nil || attempt.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		if e.Status == 0 {
			e.Kind, e.Err, e.Temporary, e.Reason = Timeout, context.DeadlineExceeded, true, ""
		}
	}
	e.Op = op
	e.RetrySafe = read || e.Refused()
	return e
}

// locate takes method and address from the HTTP client's error.
func (e *Error) locate(err error) {
	var u *url.Error
	if errors.As(err, &u) {
		e.Method = strings.ToUpper(u.Op)
		if at, err := url.Parse(u.URL); err == nil {
			e.URL = plainURL(at)
		}
	}
}

func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// kindOf is the kind of an error that is not an answer, and whether the request certainly reached no broker.
func kindOf(err error) (kind Kind, unsent bool) {
	var op *net.OpError
	var dns *net.DNSError
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	var document *event.Error
	var library rest.Error // of an answer that is neither success nor error, such as a redirect to nowhere
	switch {
	case errors.As(err, &op) && op.Op == "dial", errors.As(err, &dns), badCertificate(err):
		return Unreachable, true
	case errors.As(err, &syntax), errors.As(err, &mismatch), errors.As(err, &document), errors.As(err, &library),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errAnswer):
		return BadAnswer, false
	case strings.Contains(err.Error(), "malformed HTTP"): // the HTTP client has no type for it
		return BadAnswer, false
	}
	return Unreachable, false
}

// badCertificate says whether no secure connection can be made, now or later.
func badCertificate(err error) bool {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &authority) ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// errAnswer marks an answer that is not what was asked for.
var errAnswer = errors.New("unexpected answer")

// reasonOf is an error as a reason; that the answer was unexpected is said by its kind.
func reasonOf(err error) string {
	return oneLine(strings.ReplaceAll(err.Error(), errAnswer.Error()+": ", ""))
}

func answerError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errAnswer, fmt.Sprintf(format, args...))
}
