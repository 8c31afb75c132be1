package zookeeper

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
)

func TestServers(t *testing.T) {
	for _, test := range []struct {
		given   string
		servers []string
		root    string
		err     string
	}{
		{given: "zk1:2181,zk2:2182", servers: []string{"zk1:2181", "zk2:2182"}},
		{given: "zk:zk1, zk2:2182/pulsar/", servers: []string{"zk1:2181", "zk2:2182"}, root: "/pulsar"},
		{given: "[::1]:2181,[fe80::1],10.0.0.1,", servers: []string{"[::1]:2181", "[fe80::1]:2181", "10.0.0.1:2181"}},
		{given: "zk1/", servers: []string{"zk1:2181"}},
		{given: "", err: `ZooKeeper address "": it should be host:port,host:port`},
		{given: "/pulsar", err: `ZooKeeper address "/pulsar": it should be host:port,host:port`},
		{given: "zk1/a,zk2/a", err: `ZooKeeper address "zk1/a,zk2/a": the path /a,zk2/a should stand behind the last server`},
		{given: "zk1:0", err: `ZooKeeper address "zk1:0": it should be host or host:port`},
		{given: "zk1:port", err: `ZooKeeper address "zk1:port": it should be host or host:port`},
		{given: "::1", err: `ZooKeeper address "::1": it should be host or host:port`},
		{given: "user@zk1:2181", err: `ZooKeeper address "user@zk1:2181": it should be host or host:port`},
		{given: "http://zk1:2181", err: `ZooKeeper address "http:": it should be host or host:port`},
		{given: ":2181", err: `ZooKeeper address ":2181": it should be host or host:port`},
	} {
		servers, root, err := Options{Servers: strings.Split(test.given, ",")}.servers()
		var said string
		if err != nil {
			said = err.Error()
		}
		if diff := cmp.Diff(test.servers, servers); diff != "" || root != test.root || said != test.err {
			t.Errorf("%q: servers %v, root %q, error %q", test.given, servers, root, said)
		}
		if _, err := New(Options{Servers: strings.Split(test.given, ",")}); (err != nil) != (test.err != "") {
			t.Errorf("New with %q: %v", test.given, err)
		}
	}
}

// TestTrouble: what goes wrong with a session is tried again, on a new one; what is certain is said at once.
func TestTrouble(t *testing.T) {
	gone := zk.ErrConnectionClosed
	for _, test := range []struct {
		name    string
		answers []error
		noDial  error
		trouble string
		retries int
		dials   int
		kind    admin.Kind // "" = no error
		err     string
	}{
		{name: "works", dials: 1},
		{name: "connection lost once", answers: []error{gone}, dials: 2},
		{name: "session expired, then moved", answers: []error{zk.ErrSessionExpired, zk.ErrSessionMoved}, dials: 3},
		{name: "lost for good", answers: []error{gone, gone, gone, gone}, trouble: "zk: read tcp:\n reset", dials: 3, kind: admin.Unreachable,
			err: "leader in ZooKeeper: zk:zk1:2181,zk2:2182/loadbalance/leader: not reachable: connection closed; read tcp: reset"},
		{name: "no retries", answers: []error{gone}, retries: -1, dials: 1, kind: admin.Unreachable},
		{name: "no server", answers: []error{zk.ErrNoServer, zk.ErrNoServer, zk.ErrNoServer}, dials: 3, kind: admin.Unreachable},
		{name: "no name of a server", noDial: errors.New("lookup zk1: no such host"), dials: 3, kind: admin.Unreachable,
			err: "leader in ZooKeeper: zk:zk1:2181,zk2:2182/loadbalance/leader: not reachable: lookup zk1: no such host"},
		{name: "not allowed", answers: []error{zk.ErrNoAuth}, dials: 1, kind: admin.Unauthorized,
			err: "leader in ZooKeeper: zk:zk1:2181,zk2:2182/loadbalance/leader: not authorized: the node's access list does not let everyone read it"},
		{name: "no leader", answers: []error{zk.ErrNoNode}, dials: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := load(t, "modular")
			f.answers, f.trouble, f.noDial = test.answers, test.trouble, test.noDial
			_, err := f.client(t, Options{Retries: test.retries}).Leader(t.Context())
			if f.dials != test.dials {
				t.Errorf("%d sessions, want %d", f.dials, test.dials)
			}
			var e *admin.Error
			switch {
			case test.kind == "" && err != nil, test.kind != "" && (!errors.As(err, &e) || e.Kind != test.kind || !e.RetrySafe):
				t.Errorf("error %v, want the kind %q", err, test.kind)
			case test.err != "" && err.Error() != test.err:
				t.Errorf("error  %v\nwanted %s", err, test.err)
			}
		})
	}
}

// TestHanging: a server that does not answer is given up, tried again on a new session, and named; nothing stays behind.
func TestHanging(t *testing.T) {
	f := load(t, "modular")
	f.hang, f.reached = true, true
	c := f.client(t, Options{ReadTimeout: time.Millisecond})
	_, err := c.Leader(t.Context())
	const want = "leader in ZooKeeper: zk:zk1:2181,zk2:2182/loadbalance/leader: timed out: no answer within 1ms"
	if !errors.Is(err, admin.Timeout) || err.Error() != want || f.dials != 3 {
		t.Errorf("%d sessions, error %v", f.dials, err)
	}
	f.mu.Lock()
	f.hang = false
	f.mu.Unlock()
	c.options.ReadTimeout = time.Minute
	if leader, err := c.Leader(t.Context()); err != nil || leader != "127.0.0.1:18081" {
		t.Errorf("when it answers again: leader %q, %v", leader, err)
	}
}

func TestCallerGoesAway(t *testing.T) {
	f := load(t, "modular")
	c := f.client(t, Options{})
	if _, err := c.Leader(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.hang = true
	f.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := c.BundleData(ctx)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, admin.Canceled) || f.dials != 1 {
		t.Errorf("canceled: %v, %d sessions", err, f.dials)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := c.Leader(late); !errors.Is(err, admin.Timeout) {
		t.Errorf("the caller's time is over: %v", err)
	}
	go func() {
		_, err := c.Leader(context.Background())
		ended <- err
	}()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, admin.Canceled) {
		t.Errorf("closed while it reads: %v", err)
	}
	if _, err := c.Leader(t.Context()); !errors.Is(err, admin.Canceled) || !strings.Contains(err.Error(), "the client was closed") {
		t.Errorf("after Close: %v", err)
	}
}

// TestOtherServers: what the library itself does with servers that are none.
func TestOtherServers(t *testing.T) {
	serve := func(answer string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				io.WriteString(c, answer)
				defer c.Close()
			}
		}()
		t.Cleanup(func() {
			l.Close()
			<-ended
		})
		return l.Addr().String()
	}
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	const half = "\x00\x00\x00\x25\x00"
	for _, test := range []struct {
		name, server string
		kind         admin.Kind
		reason       string
	}{
		{"nobody listens", nobody.Addr().String(), admin.Unreachable, "connection refused"},
		{"a web server", serve("HTTP/1.1 400 Bad Request\r\n\r\n"), admin.Timeout, "does not answer as ZooKeeper does"},
		{"silence", serve(""), admin.Timeout, "no answer within"},
		{"half an answer", serve(half), admin.Timeout, "no answer within"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := New(Options{Servers: []string{test.server}, ReadTimeout: 200 * time.Millisecond, Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Leader(t.Context())
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("error %v, want %s, %s", err, test.kind, test.reason)
			}
		})
	}
}

// TestSilentConnection: a connection that is waited for in vain says for how long, whoever gave it the time.
func TestSilentConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, test := range []struct {
		name     string
		patience time.Duration
		deadline func() time.Time
	}{
		{"ours", 20 * time.Millisecond, func() time.Time { return time.Time{} }},
		{"the library's", time.Hour, func() time.Time { return time.Now().Add(20*time.Millisecond + 400*time.Microsecond) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			raw := &rawConns{patience: test.patience, most: 100}
			defer raw.closeAll()
			c, err := raw.dial("tcp", l.Addr().String(), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.SetReadDeadline(test.deadline()); err != nil {
				t.Fatal(err)
			}
			if _, err = c.Read(make([]byte, 4)); err == nil || err.Error() != "no answer within 20ms from "+l.Addr().String() {
				t.Errorf("error %v", err)
			}
		})
	}
}
