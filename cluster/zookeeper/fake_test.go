package zookeeper

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a ZooKeeper of nodes in memory. Answers are errors that the next calls get instead of what is there; a nil one is no
// error. Calls hang while hang is set, until their session is closed.
type fake struct {
	mu      sync.Mutex
	nodes   map[string]string
	answers []error
	hang    bool
	trouble string
	reached bool
	dials   int
	noDial  error
	open    int
	paths   []string // asked for
}

// load takes the nodes of a file in testdata, one JSON object a line with path and data.
func load(t *testing.T, name string) *fake {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{nodes: make(map[string]string)}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var node struct {
			Path string
			Data json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &node); err != nil {
			t.Fatal(err)
		}
		f.nodes[node.Path] = string(node.Data)
	}
	return f
}

func (f *fake) client(t *testing.T, o Options) *Client {
	t.Helper()
	o.Servers = []string{"zk1,zk2:2182"}
	set(&o.ReadTimeout, time.Minute)
	set(&o.RetryWait, time.Microsecond)
	o.dial = func(servers []string, _ Options) (conn, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.dials++
		if f.noDial != nil {
			return nil, f.noDial
		}
		f.open++
		if !slices.Equal(servers, []string{"zk1:2181", "zk2:2182"}) {
			t.Errorf("connecting to %v", servers)
		}
		return &fakeConn{f: f, closed: make(chan struct{})}, nil
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if f.open != 0 {
			t.Errorf("%d sessions are left open", f.open)
		}
	})
	return c
}

type fakeConn struct {
	f      *fake
	closed chan struct{}
}

func (c *fakeConn) ask(path string) error {
	c.f.mu.Lock()
	c.f.paths = append(c.f.paths, path)
	hang, err := c.f.hang, error(nil)
	if len(c.f.answers) > 0 {
		err, c.f.answers = c.f.answers[0], c.f.answers[1:]
	}
	c.f.mu.Unlock()
	if hang {
		<-c.closed
		return zk.ErrConnectionClosed
	}
	return err
}

func (c *fakeConn) Get(path string) ([]byte, *zk.Stat, error) {
	if err := c.ask(path); err != nil {
		return nil, nil, err
	}
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	data, found := c.f.nodes[path]
	if !found {
		return nil, nil, zk.ErrNoNode
	}
	return []byte(data), &zk.Stat{}, nil
}

func (c *fakeConn) Children(parent string) (names []string, _ *zk.Stat, err error) {
	if err := c.ask(parent); err != nil {
		return nil, nil, err
	}
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if _, found := c.f.nodes[parent]; !found {
		return nil, nil, zk.ErrNoNode
	}
	for p := range c.f.nodes {
		if path.Dir(p) == parent {
			names = append(names, strings.TrimPrefix(p, parent+"/"))
		}
	}
	return names, &zk.Stat{}, nil
}

func (c *fakeConn) Close() {
	close(c.closed)
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.open--
}

func (c *fakeConn) Trouble() (what string, reached bool) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	return c.f.trouble, c.f.reached
}
