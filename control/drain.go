package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
)

// The commands that begin and end a standing drain; their Args are DrainArgs.
const (
	CommandDrain   = "drain"
	CommandUndrain = "undrain"
)

// DrainStrategy is the strategy of a plan that empties a broker.
const DrainStrategy = "drain"

// DrainArgs say what is drained.
type DrainArgs struct {
	Broker string   `json:"broker"`
	Also   []string `json:"also,omitempty"` // other brokers that receive nothing of it
}

// DrainOrder is a standing order to keep a broker empty, until it is ended.
type DrainOrder struct {
	Since  int64    `json:"since"` // Unix ms
	By     string   `json:"by,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Also   []string `json:"also,omitempty"`
}

// How a round of a drain ends, and what each cycle says of a broker that is drained.
var (
	DrainGoesOn  = plan.Code{ID: "DRAIN_GOES_ON", Template: "{broker} is drained: {leave} bundles leave, {waiting} wait, {stay} stay"}
	DrainedEmpty = plan.Code{ID: "DRAIN_EMPTY", Template: "{broker} is drained and nothing is left on it that may leave; {stay} bundles stay"}
	DrainStands  = plan.Code{ID: "DRAIN_STANDS", Template: "{broker} is drained since {since} by {by}, until ballast undrain: {reason}"}
)

const (
	drainPause = time.Second     // between two rounds that move nothing
	drainWatch = 2 * time.Second // between two looks while all that is drained rests
	drainBlind = 5 * time.Second // after a look that failed
	drainSlow  = time.Minute     // most between two rounds that try and move nothing; it doubles until then
)

// draining is what a leader remembers of its drains beside the orders.
type draining struct {
	next   time.Time         // of the next round
	told   map[string]string // broker -> what the last record said
	failed map[string]bool   // bundles whose last move failed
	vain   int               // rounds in a row that tried and moved nothing
	waits  bool              // nothing can be decided now, and that was said
	plans  *drainer
}

// Drains are the standing drains in a leader's orders, by broker id.
func Drains(orders map[string]json.RawMessage) (map[string]DrainOrder, error) {
	out := map[string]DrainOrder{}
	raw, ok := orders[DrainStrategy]
	if !ok {
		return out, nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("standing drains: %w", err)
	}
	return out, nil
}

// drains are the standing drains. Orders that this version cannot read are left as they are.
func (c *Controller) drains() map[string]DrainOrder {
	out, err := Drains(c.orders)
	if err != nil {
		c.o.Logger.Error("the standing drains are not carried out", "error", err)
		return nil
	}
	return out
}

// urgent says of commands, asked in the order in which they came, whether they cannot wait: a pause, its end, and the end of a drain
// that stands, unless another order to drain the broker comes before it.
func (c *Controller) urgent() func(Command) bool {
	drains := map[string]bool{}
	return func(k Command) bool {
		var args DrainArgs
		switch k.What {
		case CommandPause, CommandResume:
			return true
		case CommandDrain, CommandUndrain:
			if json.Unmarshal(k.Args, &args) != nil || drains[args.Broker] {
				return false
			}
			drains[args.Broker] = k.What == CommandDrain
			return k.What == CommandUndrain && c.stands(args.Broker)
		}
		return false
	}
}

// stands says whether a broker is drained.
func (c *Controller) stands(broker string) bool {
	_, ok := c.drains()[broker]
	return ok
}

// drainEnded is why what is left of a round of a drain is not begun.
const drainEnded = "not begun: the drain of %s was ended"

// orderDrain begins or ends a drain.
func (c *Controller) orderDrain(ctx context.Context, k Command) (string, error) {
	var args DrainArgs
	if err := json.Unmarshal(k.Args, &args); err != nil {
		return "", fmt.Errorf("%s: args are %q: %w", k.What, k.Args, err)
	}
	orders, err := Drains(c.orders)
	if err != nil {
		return "", err
	}
	before, drained := orders[args.Broker]
	text := ""
	switch {
	case k.What == CommandUndrain && !drained:
		return "", fmt.Errorf("%s is not drained", args.Broker)
	case k.What == CommandUndrain:
		delete(orders, args.Broker)
		c.guard = guard.Undrain(c.guard, args.Broker)
		text = fmt.Sprintf("%s was drained since %s and takes bundles again", args.Broker, clockTime(before.Since))
	default:
		if err := c.mayDrain(ctx, args, orders); err != nil {
			return "", err
		}
		order := DrainOrder{Since: c.o.Clock.Now().UnixMilli(), By: k.By, Reason: k.Reason, Also: args.Also}
		if drained {
			order.Since = before.Since
		}
		orders[args.Broker] = order
		c.guard = guard.Drain(c.guard, args.Broker, order.Since)
		text = fmt.Sprintf("%s is drained from now on, until ballast undrain %s", args.Broker, args.Broker)
	}
	raw, err := json.Marshal(orders)
	if err != nil {
		return "", err
	}
	c.orders = maps.Clone(c.orders)
	c.orders[DrainStrategy] = raw
	delete(c.drain.told, args.Broker) // whoever asked waits to be told
	c.drain.plans.awake(args.Broker)
	c.drain.next = time.Time{}
	return text, nil
}

// mayDrain checks that the brokers are there, and that one is left to serve.
func (c *Controller) mayDrain(ctx context.Context, args DrainArgs, orders map[string]DrainOrder) error {
	look, err := c.look(ctx, c.o.Clock.Now())
	if err != nil {
		return fmt.Errorf("the cluster cannot be looked at: %w", err)
	}
	ids := brokerIDs(look.Snapshot)
	for _, id := range append([]string{args.Broker}, args.Also...) {
		if !slices.Contains(ids, id) {
			return fmt.Errorf("broker is %q: it must be a registered one, one of %s", id, strings.Join(ids, ", "))
		}
	}
	left := slices.DeleteFunc(ids, func(id string) bool {
		_, drained := orders[id]
		return drained || id == args.Broker || slices.Contains(args.Also, id)
	})
	if len(left) == 0 {
		return fmt.Errorf("broker is %q: no other would be left that is not drained", args.Broker)
	}
	return nil
}

// heedDrains tells the guard who receives nothing, whatever it remembers itself.
func (c *Controller) heedDrains() {
	for id, order := range c.drains() {
		c.guard = guard.Drain(c.guard, id, order.Since)
	}
}

// undrained is the snapshot that a strategy plans from: a broker that is drained is none to it, or it would be the favourite of
// every move. Its own bundles leave by the drain. It also says that the drains stand.
func (c *Controller) undrained(snap *cluster.Snapshot) (*cluster.Snapshot, []plan.LeftOut) {
	orders := c.drains()
	if len(orders) == 0 {
		return snap, nil
	}
	var told []plan.LeftOut
	for _, id := range slices.Sorted(maps.Keys(orders)) {
		o := orders[id]
		told = append(told, plan.LeftOut{Broker: id, Why: DrainStands.Because(plan.S("broker", id), plan.S("since", clockTime(o.Since)),
			plan.S("by", named(o.By, "an operator")), plan.S("reason", named(o.Reason, "no reason given")))})
	}
	out := *snap
	out.Brokers = slices.DeleteFunc(slices.Clone(snap.Brokers), func(b cluster.Broker) bool { _, ok := orders[b.ID]; return ok })
	out.Load = slices.DeleteFunc(slices.Clone(snap.Load), func(l cluster.BrokerLoad) bool { _, ok := orders[l.Broker]; return ok })
	return out.Index(), told
}

func named(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
