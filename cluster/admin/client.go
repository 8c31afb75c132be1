// Package admin talks to the web service of a Pulsar cluster: it reads brokers, configuration, namespaces, policies,
// statistics and load reports, and unloads and splits bundles. A Client is what the control package calls a Cluster.
//
// Reads are repeated when that may help; nothing that changes the cluster is repeated unless it certainly reached no
// broker. All errors of requests are of type *Error.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pulsar "github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin"
	adminauth "github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin/auth"
	adminconfig "github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin/config"
	"github.com/cenkalti/backoff/v4"
	"golang.org/x/time/rate"
)

// Client asks one cluster. It is safe for concurrent use.
type Client struct {
	options   Options
	transport http.RoundTripper // connects and authenticates
	own       *http.Transport   // below transport, nil if the caller gave one
	http      *http.Client      // also judges answers
	endpoints []*endpoint
	current   atomic.Int64 // index of the endpoint that answered last
	bulk      *rate.Limiter

	mu      sync.Mutex
	brokers map[string]*endpoint // by broker id
	self    *identity            // of the cluster, once it was heard
	silent  map[string]bool      // brokers that did not answer when they were asked last
}

// endpoint is one address that is asked.
type endpoint struct {
	base   *url.URL
	pulsar pulsar.Client
}

// New makes a client. It connects to the issuer of tokens when Auth is OAuth2, and otherwise to nobody.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	bases, err := o.bases()
	if err != nil {
		return nil, err
	}
	c := &Client{options: o, transport: o.Transport, brokers: map[string]*endpoint{}, silent: map[string]bool{}}
	c.bulk = rate.NewLimiter(rate.Limit(o.BulkRate), max(1, o.Concurrent))
	if c.transport == nil {
		if c.transport, c.own, err = newTransport(o); err != nil {
			return nil, err
		}
	}
	c.transport = redirectGuard{c.transport}
	c.http = &http.Client{Transport: judge{c.transport, o.MaxAnswer}}
	for _, b := range bases {
		e, err := c.newEndpoint(b)
		if err != nil {
			return nil, err
		}
		c.endpoints = append(c.endpoints, e)
	}
	return c, nil
}

// HTTPClient authenticates and follows redirects as this client does, for others that ask the same cluster.
func (c *Client) HTTPClient() *http.Client { return &http.Client{Transport: c.transport} }

// Close closes idle connections.
func (c *Client) Close() error {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

func (c *Client) newEndpoint(base *url.URL) (*endpoint, error) {
	p, err := pulsar.NewPulsarClientWithAuthProvider(
		&adminconfig.Config{WebServiceURL: base.String()}, adminauth.NewDefaultProvider(c.http.Transport))
	return &endpoint{base: base, pulsar: p}, err
}

// attempt is what is done at one endpoint.
type attempt func(ctx context.Context, at *endpoint) error

// read runs an attempt that changes nothing, at one endpoint after the other, and again when all of them failed.
func (c *Client) read(ctx context.Context, op string, f attempt) error {
	retries := backoff.NewExponentialBackOff(backoff.WithInitialInterval(c.options.RetryWait), backoff.WithMaxElapsedTime(0))
	policy := backoff.WithContext(backoff.WithMaxRetries(retries, uint64(max(0, c.options.Retries))), ctx)
	var last error
	err := backoff.Retry(func() error {
		var again bool
		if last, again = c.everywhere(ctx, op, true, f); !again {
			return permanent(last)
		}
		c.options.Logger.LogAttrs(ctx, slog.LevelDebug, "asking again", slog.Any("error", last))
		return last
	}, policy)
	if err != nil && last != nil {
		return last
	}
	return err
}

func permanent(err error) error {
	if err == nil {
		return nil
	}
	return backoff.Permanent(err)
}

// write runs an attempt that changes something: once, except at endpoints that could not be reached at all.
func (c *Client) write(ctx context.Context, op string, f attempt) error {
	err, _ := c.everywhere(ctx, op, false, f)
	return err
}

// everywhere runs an attempt at the endpoints until one of them answers. It says whether trying again may help.
func (c *Client) everywhere(ctx context.Context, op string, read bool, f attempt) (err error, again bool) {
	timeout := c.options.WriteTimeout
	if read {
		timeout = c.options.ReadTimeout
	}
	for range c.endpoints {
		i := c.current.Load()
		failed := c.once(ctx, op, read, timeout, c.endpoints[int(i)%len(c.endpoints)], f)
		switch {
		case failed == nil:
			return nil, false
		case ctx.Err() != nil || !failed.unsent && !(read && (failed.Temporary || failed.Kind == BadAnswer)):
			return failed, false
		}
		err, again = failed, read && failed.Temporary
		c.current.CompareAndSwap(i, i+1)
	}
	return err, again
}

// once runs an attempt at one endpoint within its time.
func (c *Client) once(ctx context.Context, op string, read bool, timeout time.Duration, at *endpoint, f attempt) *Error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := f(limited, at)
	if err == nil {
		return nil
	}
	e := failure(ctx, limited, op, read, err)
	if e.URL == "" {
		e.URL = plainURL(at.base)
	}
	return e
}

// readAt runs an attempt that changes nothing at one broker.
func (c *Client) readAt(ctx context.Context, op, broker string, f attempt) error {
	return c.askAt(ctx, op, broker, c.options.ReadTimeout, f)
}

func (c *Client) askAt(ctx context.Context, op, broker string, timeout time.Duration, f attempt) error {
	at, err := c.brokerEndpoint(ctx, broker)
	if err != nil {
		return err
	}
	failed := c.once(ctx, op, true, timeout, at, f)
	if failed == nil {
		return nil
	}
	return failed
}

// request is one HTTP request of this package's own.
type request struct {
	method string
	path   string // below the base address, escaped
	query  url.Values
	body   any // written as JSON; nil = none
}

// do sends a request and hands its answer to accept.
func (c *Client) do(ctx context.Context, at *endpoint, r request, accept func(io.Reader) error) error {
	target, err := url.Parse(strings.TrimSuffix(at.base.String(), "/") + r.path)
	if err != nil {
		return &Error{Method: r.method, URL: plainURL(at.base) + r.path, Kind: BadRequest, Reason: "this makes no address", Err: err, unsent: true}
	}
	target.RawQuery = r.query.Encode()
	var body io.Reader = http.NoBody
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return err
		}
		body = strings.NewReader(string(text))
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target.String(), body)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json, text/plain")
	req.Header.Set("User-Agent", "ballast")
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return statusError(resp)
	}
	if accept == nil {
		return nil
	}
	if err := accept(resp.Body); err != nil {
		e := &Error{Method: r.method, URL: plainURL(resp.Request.URL), Reason: reasonOf(err), Err: err}
		if e.Kind, _ = kindOf(err); e.Kind == BadAnswer {
			e.Status = resp.StatusCode
		}
		e.Temporary = e.Kind != BadAnswer || errors.Is(err, io.ErrUnexpectedEOF)
		return e
	}
	return nil
}

// get sends a GET request.
func (c *Client) get(path string, accept func(io.Reader) error) attempt {
	return func(ctx context.Context, at *endpoint) error {
		return c.do(ctx, at, request{method: http.MethodGet, path: path}, accept)
	}
}

// intoJSON decodes an answer that is one JSON value.
func intoJSON(v any) func(io.Reader) error {
	return func(r io.Reader) error {
		d := json.NewDecoder(r)
		if err := d.Decode(v); err != nil {
			if errors.Is(err, io.EOF) {
				return answerError("empty")
			}
			return err
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return answerError("something after the JSON value")
		}
		return nil
	}
}

// intoText takes an answer that is a short text, written as JSON or plainly.
func intoText(text *string) func(io.Reader) error {
	return func(r io.Reader) error {
		b, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		*text = strings.TrimSpace(string(b))
		if strings.HasPrefix(*text, `"`) {
			return json.Unmarshal([]byte(*text), text)
		}
		return nil
	}
}

// path joins the parts of a path and escapes each.
func path(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + url.PathEscape(p))
	}
	return b.String()
}
