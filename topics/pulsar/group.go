package pulsar

import "sync"

// group counts goroutines, like sync.WaitGroup, but more may be started while someone waits.
type group struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n falls to 0; nil when nobody waits
}

// Go runs f in a goroutine that the group waits for.
func (g *group) Go(f func()) {
	g.mu.Lock()
	g.n++
	g.mu.Unlock()
	go func() {
		defer g.done()
		f()
	}()
}

func (g *group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Wait returns when no goroutine of the group runs.
func (g *group) Wait() {
	g.mu.Lock()
	if g.n == 0 {
		g.mu.Unlock()
		return
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	<-idle
}
