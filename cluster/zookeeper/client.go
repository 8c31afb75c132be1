// Package zookeeper reads the load data that the brokers of a Simple or Modular cluster keep in ZooKeeper, below /loadbalance:
// for clusters whose load reports the admin REST does not give. Nothing else needs it, and it writes nothing.
//
// It does not authenticate: the nodes must be readable by everyone, as Pulsar makes them unless told otherwise. Errors of
// reads are of type *admin.Error, so that they are told apart as those of the admin REST are.
package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/ballast-lb/ballast/cluster/admin"
)

// Client reads from one ZooKeeper. It is safe for concurrent use. It connects with the first read, keeps its session, and
// begins another one when that is lost or does not answer.
type Client struct {
	options Options
	servers []string
	root    string

	mu      sync.Mutex
	current *session // nil = none yet
	closed  bool
	calls   sync.WaitGroup // calls and closings of connections that run
}

// session is a connection with the calls on it.
type session struct {
	conn
	once sync.Once
}

// New makes a client. It connects to nobody yet.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	servers, root, err := o.servers()
	if err != nil {
		return nil, err
	}
	return &Client{options: o, servers: servers, root: root}, nil
}

// Close ends the session and every read. When it returns nothing of the client runs any more.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	s := c.current
	c.current = nil
	c.mu.Unlock()
	if s != nil {
		s.once.Do(s.Close)
	}
	c.calls.Wait()
	return nil
}

// errClosed ends reads on a client that was closed.
var errClosed = errors.New("the client was closed")

// start runs a call on the current session, or on a new one.
func (c *Client) start(call func(*session)) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if c.current == nil {
		conn, err := c.options.dial(c.servers, c.options)
		if err != nil {
			return nil, err
		}
		c.current = &session{conn: conn}
	}
	s := c.current
	c.calls.Go(func() { call(s) })
	return s, nil
}

// drop ends a session that does not answer. The next read begins another, with another server first as chance has it.
func (c *Client) drop(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != s {
		return
	}
	c.current = nil
	c.calls.Go(func() { s.once.Do(s.Close) })
}

// get reads a node.
func (c *Client) get(ctx context.Context, op, path string) ([]byte, error) {
	return read(ctx, c, op, path, func(s conn, path string) ([]byte, error) {
		data, _, err := s.Get(path)
		return data, err
	})
}

// children are the names of the nodes below a node, in no order.
func (c *Client) children(ctx context.Context, op, path string) ([]string, error) {
	return read(ctx, c, op, path, func(s conn, path string) ([]string, error) {
		names, _, err := s.Children(path)
		return names, err
	})
}

// read runs a call, and again when that may help.
func read[T any](ctx context.Context, c *Client, op, path string, call func(s conn, path string) (T, error)) (answer T, err error) {
	waits := backoff.NewExponentialBackOff(backoff.WithInitialInterval(c.options.RetryWait), backoff.WithMaxElapsedTime(0))
	policy := backoff.WithContext(backoff.WithMaxRetries(waits, uint64(max(0, c.options.Retries))), ctx)
	var last *admin.Error
	err = backoff.Retry(func() error {
		if answer, last = once(ctx, c, op, path, call); last == nil {
			return nil
		}
		if !last.Temporary {
			return backoff.Permanent(last)
		}
		c.options.Logger.LogAttrs(ctx, slog.LevelDebug, "asking ZooKeeper again", slog.Any("error", last))
		return last
	}, policy)
	if err != nil && last != nil {
		err = last
	}
	return answer, err
}

// once runs a call within its time. A call that is given up ends with its session.
func once[T any](ctx context.Context, c *Client, op, path string, call func(s conn, path string) (T, error)) (T, *admin.Error) {
	var none T
	if ctx.Err() != nil {
		return none, c.failure(ctx, op, path, nil, ctx.Err())
	}
	limited, cancel := context.WithTimeout(ctx, c.options.ReadTimeout)
	defer cancel()
	type result struct {
		answer T
		err    error
	}
	done := make(chan result, 1)
	s, err := c.start(func(s *session) {
		answer, err := call(s, c.root+path)
		done <- result{answer, err}
	})
	if err != nil {
		return none, c.failure(ctx, op, path, nil, err)
	}
	var r result
	select {
	case r = <-done:
	case <-limited.Done():
		r.err = limited.Err()
	}
	if r.err == nil {
		return r.answer, nil
	}
	e := c.failure(ctx, op, path, s, r.err)
	if broken(r.err) || errors.Is(r.err, context.DeadlineExceeded) && e.Temporary {
		c.drop(s)
	}
	return none, e
}

// broken says whether a session is not worth another try. The library begins a new one by itself, too, but keeps what it
// learned of servers that fail; a fresh one asks them anew.
func broken(err error) bool {
	return errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved) || errors.Is(err, zk.ErrConnectionClosed) ||
		errors.Is(err, zk.ErrClosing) || errors.Is(err, zk.ErrNoServer)
}

// failure makes an *admin.Error of what a read ended with.
func (c *Client) failure(ctx context.Context, op, path string, s *session, err error) *admin.Error {
	e := &admin.Error{Op: op, URL: "zk:" + strings.Join(c.servers, ",") + c.root + path, RetrySafe: true, Err: err, Reason: short(err.Error())}
	switch {
	case errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, context.Canceled) || errors.Is(err, errClosed):
		e.Kind = admin.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		e.Kind, e.Temporary, e.Reason = admin.Timeout, ctx.Err() == nil, fmt.Sprintf("no answer within %v", c.options.ReadTimeout)
		if ctx.Err() != nil {
			e.Reason = ""
		}
	case errors.Is(err, zk.ErrNoNode):
		e.Kind, e.Reason = admin.NotFound, "there is no such node"
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed):
		e.Kind, e.Reason = admin.Unauthorized, "the node's access list does not let everyone read it"
	case errors.Is(err, zk.ErrInvalidPath):
		e.Kind, e.Reason = admin.BadRequest, "this makes no path of a node"
	default:
		e.Kind, e.Temporary = admin.Unreachable, true
	}
	if s != nil && e.Temporary {
		trouble, reached := s.Trouble()
		if trouble != "" {
			e.Reason += "; " + short(trouble)
		}
		// Whether the library gives up first or its caller does is chance: what counts is whether somebody is there.
		if errors.Is(err, zk.ErrNoServer) || errors.Is(err, context.DeadlineExceeded) {
			e.Kind = admin.Unreachable
			if reached {
				e.Kind = admin.Timeout
			}
		}
	}
	return e
}

// short makes foreign text fit into an error.
func short(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "..."
	}
	return strings.TrimPrefix(text, "zk: ")
}

// badAnswer is a node whose content is not what should be there.
func (c *Client) badAnswer(op, path string, err error) *admin.Error {
	return &admin.Error{Op: op, URL: "zk:" + strings.Join(c.servers, ",") + c.root + path, Kind: admin.BadAnswer, RetrySafe: true,
		Reason: short(err.Error()), Err: err}
}
