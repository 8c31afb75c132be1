package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// faults is what does not work at present.
type faults struct {
	garbage map[garbageKey][]byte
	silent  map[string]int64 // topic -> Unix ms until when
	held    []Event          // of silent persistent topics
	admin   AdminFaults
}

type garbageKey struct{ broker, topic string }

// AdminFaults are the chances (0 to 1) that an unload or split that was asked for over admin REST goes wrong. What Ignore leaves over
// may hang, and what that leaves over may fail.
type AdminFaults struct {
	Ignore float64 // it is answered with success and nothing happens
	Hang   float64 // it is never answered and nothing happens
	Fail   float64 // it is answered with an error and nothing happens
	Stray  float64 // of unloads that are carried out: the destination is forgotten, as Modular and Simple brokers may
	Down   bool    // no admin request is answered at all
}

// SetAdminFaults makes unloads go wrong from now on.
func (c *Cluster) SetAdminFaults(f AdminFaults) { c.faults.admin = f }

// Mute stops a broker's reports, or lets them go on. The broker is alive.
func (c *Cluster) Mute(id string, mute bool) error {
	b, err := c.known(id)
	if err == nil {
		b.mute = mute
	}
	return err
}

// Skew sets how far a broker's clock is ahead (or, negative, behind).
func (c *Cluster) Skew(id string, by time.Duration) error {
	b, err := c.known(id)
	if err == nil {
		b.skew = by
	}
	return err
}

// Corrupt makes a broker publish a payload of your choice instead of its reports on a load topic; nil ends that.
func (c *Cluster) Corrupt(id, topic string, payload []byte) error {
	if topic != topics.BrokerLoadData && topic != topics.TopBundles {
		return fmt.Errorf("topic is %q: it must be %s or %s", topic, topics.BrokerLoadData, topics.TopBundles)
	}
	if _, err := c.known(id); err != nil {
		return err
	}
	c.faults.garbage[garbageKey{id, topic}] = payload
	return nil
}

// Silence stops the delivery of a system topic for a time. What is published on a non-persistent topic meanwhile is lost;
// a persistent one delivers it afterwards, and until then no broker acts on it.
func (c *Cluster) Silence(topic string, d time.Duration) {
	c.faults.silent[topic] = max(c.faults.silent[topic], c.now+d.Milliseconds())
	c.after(d, func() {
		if c.faults.silence(c.now, topic) > 0 {
			return
		}
		kept := c.faults.held[:0]
		for _, e := range c.faults.held {
			if e.Topic == topic {
				c.events = append(c.events, e)
			} else {
				kept = append(kept, e)
			}
		}
		c.faults.held = kept
	})
}

// silence is how much longer a topic is silent.
func (f *faults) silence(now int64, topic string) time.Duration {
	return time.Duration(max(f.silent[topic]-now, 0)) * time.Millisecond
}

// holds says whether a message of a persistent topic has to wait: the topic is silent, or earlier ones still wait.
func (f *faults) holds(now int64, topic string) bool {
	return f.silence(now, topic) > 0 || slices.ContainsFunc(f.held, func(e Event) bool { return e.Topic == topic })
}

// outcome draws what becomes of an admin request.
func (c *Cluster) outcome() adminOutcome {
	x, f := c.luck.Float64(), c.faults.admin
	switch {
	case x < f.Ignore:
		return ignored
	case x < f.Ignore+f.Hang:
		return hung
	case x < f.Ignore+f.Hang+f.Fail:
		return failed
	}
	return carriedOut
}

type adminOutcome int

const (
	carriedOut adminOutcome = iota
	ignored
	hung
	failed
)
