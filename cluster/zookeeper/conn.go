package zookeeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// conn is what is used of a connection to ZooKeeper. Its calls cannot be interrupted but by Close.
type conn interface {
	Get(path string) ([]byte, *zk.Stat, error)
	Children(path string) ([]string, *zk.Stat, error)
	Close() // returns when nothing of the connection runs any more
	// Trouble is what went wrong with the connection last, "" if nothing did, and whether the last server that was tried was there.
	Trouble() (what string, reached bool)
}

type dialer func(servers []string, o Options) (conn, error)

// connection is a session of the client library, which connects in the background, again and again.
type connection struct {
	*zk.Conn
	events <-chan zk.Event
	log    *lastLine
	raw    *rawConns
}

// connect begins a session. It fails only if no server's name is known.
func connect(servers []string, o Options) (conn, error) {
	c := &connection{log: new(lastLine), raw: &rawConns{patience: o.ReadTimeout, most: o.MaxAnswer}}
	var err error
	c.Conn, c.events, err = zk.Connect(servers, o.SessionTimeout, zk.WithDialer(c.raw.dial), zk.WithLogger(c.log),
		zk.WithLogInfo(false), zk.WithMaxBufferSize(o.MaxAnswer))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends the session and waits for the library's goroutine, which closes its channel of events when it ends.
func (c *connection) Close() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Conn.Close()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Second): // a server that hangs would be waited for
	}
	c.raw.closeAll()
	<-done
	for range c.events {
	}
}

func (c *connection) Trouble() (what string, reached bool) { return c.log.get(), c.raw.reached() }

// lastLine keeps what the library logged last: it tells its callers only that a connection was closed, not why.
type lastLine struct {
	mu   sync.Mutex
	line string
}

func (l *lastLine) Printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = fmt.Sprintf(format, args...)
}

func (l *lastLine) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line
}

// rawConns are the TCP connections of a session, so that they can be ended whatever the library waits for.
type rawConns struct {
	patience time.Duration
	most     int

	mu     sync.Mutex
	closed bool
	made   bool // the last one that was tried
	open   map[*rawConn]bool
}

func (r *rawConns) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := net.DialTimeout(network, address, timeout)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made = err == nil; err != nil {
		return nil, err
	}
	if r.closed {
		c.Close()
		return nil, net.ErrClosed
	}
	if r.open == nil {
		r.open = make(map[*rawConn]bool)
	}
	raw := &rawConn{Conn: c, of: r}
	r.open[raw] = true
	return raw, nil
}

func (r *rawConns) reached() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.made
}

func (r *rawConns) closeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for c := range r.open {
		c.Conn.Close()
	}
	r.open = nil
}

// rawConn is a connection on which nothing is waited for without end, and whose first answer has a length that makes sense:
// the library reads the rest of the first answer without a limit of time or size.
type rawConn struct {
	net.Conn
	of    *rawConns
	heard bool          // only the goroutine that reads uses it, and waits
	waits time.Duration // for the next bytes
}

func (c *rawConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if waited, ok := errors.AsType[net.Error](err); ok && waited.Timeout() {
		err = fmt.Errorf("no answer within %v from %s", c.waits, c.RemoteAddr())
	}
	if !c.heard && err == nil {
		c.heard = true
		if n == 4 && int64(binary.BigEndian.Uint32(b)) > int64(c.of.most) {
			return 0, fmt.Errorf("%s does not answer as ZooKeeper does", c.RemoteAddr())
		}
	}
	return n, err
}

func (c *rawConn) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		t = time.Now().Add(c.of.patience)
	}
	c.waits = time.Until(t).Round(time.Millisecond)
	return c.Conn.SetReadDeadline(t)
}

func (c *rawConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
