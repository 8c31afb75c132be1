package admin

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// newTransport connects, secures and authenticates each request, also the ones that redirects lead to.
func newTransport(o Options) (http.RoundTripper, *http.Transport, error) {
	config, err := o.TLS.Config()
	if err != nil {
		return nil, nil, err
	}
	p, err := o.Auth.Provider()
	if err != nil {
		return nil, nil, err
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = config
	t.MaxIdleConnsPerHost = o.Concurrent
	t.IdleConnTimeout = 30 * time.Second
	dialer := &net.Dialer{Timeout: o.ConnectTimeout, KeepAlive: 15 * time.Second}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if instead, ok := o.Addresses[address]; ok {
			address = instead
		}
		return dialer.DialContext(ctx, network, address)
	}
	if len(o.Addresses) > 0 {
		t.Proxy = nil // a proxy would be asked for the address that cannot be reached
	}
	if p == nil {
		return t, t, nil
	}
	if err := p.WithTransport(t); err != nil {
		return nil, nil, fmt.Errorf("option Auth.%s: %w", o.Auth, err)
	}
	return p, t, nil
}

// maxRedirects is how often a request may be sent on. A healthy cluster sends it on once, to the owner or the leader.
const maxRedirects = 5

// redirectGuard keeps redirects within bounds: not for ever, and credentials never from https to http.
type redirectGuard struct{ next http.RoundTripper }

func (g redirectGuard) RoundTrip(r *http.Request) (*http.Response, error) {
	hops := 0
	for at := r; at.Response != nil; at = at.Response.Request {
		hops++
		if at.URL.Scheme == "http" && at.Response.Request.URL.Scheme == "https" {
			return nil, redirectError(r, "redirected from https to http")
		}
		if at.Method != at.Response.Request.Method {
			return nil, redirectError(r, fmt.Sprintf("redirected with %d, which makes a %s of a %s", at.Response.StatusCode, at.Method, at.Response.Request.Method))
		}
	}
	if hops > maxRedirects {
		return nil, redirectError(r, fmt.Sprintf("redirected %d times", hops))
	}
	return g.next.RoundTrip(r)
}

func redirectError(r *http.Request, reason string) *Error {
	return &Error{Method: r.Method, URL: plainURL(r.URL), Kind: Redirects, Reason: reason, Temporary: true, unsent: true}
}

// judge turns answers that are no success into errors and bounds the size of the others, for this package's requests
// and for those of the pulsaradmin library alike, which does neither.
type judge struct {
	next http.RoundTripper
	max  int64
}

type maxAnswerKey struct{}

// allowAnswer allows the answers to requests of the context to have so many bytes.
func allowAnswer(ctx context.Context, bytes int64) context.Context {
	return context.WithValue(ctx, maxAnswerKey{}, bytes)
}

func (j judge) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := j.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 400 {
		defer resp.Body.Close()
		return nil, statusError(resp)
	}
	limit := j.max
	if bytes, ok := r.Context().Value(maxAnswerKey{}).(int64); ok {
		limit = bytes
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: limit, limit: limit}
	return resp, nil
}

// boundedBody fails when an answer is longer than is allowed.
type boundedBody struct {
	io.ReadCloser
	left, limit int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, answerError("more than %d bytes", b.limit)
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, answerError("more than %d bytes", b.limit)
	}
	return n, err
}
