package control

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// The commands that every leader knows. Others come with Options.Handlers.
const (
	CommandPause   = "pause"
	CommandResume  = "resume"
	CommandApprove = "approve"
	CommandDiscard = "discard"
)

// CommandSwitchManager is in the decision log only: ballast manager switch carries it out itself. Its Args are a ManagerSwitch.
const CommandSwitchManager = "switch-manager"

// ManagerSwitch is what becomes of a cluster's load manager.
type ManagerSwitch struct {
	From  []string `json:"from"`  // what the brokers run before: simple, modular
	To    string   `json:"to"`    // simple or modular
	Class string   `json:"class"` // the value of loadManagerClassName
}

// Command is what an operator asks of the leader: JSON on topics.Commands under its id. The leader answers in the decision
// log.
type Command struct {
	Version int             `json:"version"`
	ID      string          `json:"id"`
	What    string          `json:"what"` // pause, resume, approve, discard, drain, undrain, switch-manager, or one that a handler knows
	At      int64           `json:"at"`   // Unix ms by the sender's clock
	By      string          `json:"by,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Wait    int64           `json:"wait"`           // ms for which the sender waits: it is not carried out later
	For     int64           `json:"for,omitempty"`  // pause: ms until it ends by itself
	Plan    string          `json:"plan,omitempty"` // approve, discard: which plan
	Args    json.RawMessage `json:"args,omitempty"` // of other commands
}

// Answer is what became of a command.
type Answer struct {
	Done  bool   `json:"done"`
	Begun bool   `json:"begun,omitempty"` // it is being done; another answer comes
	Text  string `json:"text"`            // what was done, or why nothing
}

// Handler carries out a command that the leader does not know by itself. It may change the standing orders, which every
// later leader knows, too; it returns a sentence about what it did, or why it refuses.
type Handler func(ctx context.Context, c Command, orders map[string]json.RawMessage) (string, error)

// CommandVersion is the version of the commands' schema.
const CommandVersion = 1

// NewCommand makes a command with an id of its own.
func NewCommand(what, by string, at time.Time, wait time.Duration) Command {
	var id [6]byte
	_, _ = rand.Read(id[:]) // it never fails
	return Command{Version: CommandVersion, ID: hex.EncodeToString(id[:]), What: what, At: at.UnixMilli(), By: by, Wait: wait.Milliseconds()}
}

// DecodeCommand reads a command.
func DecodeCommand(b []byte) (Command, error) {
	var c Command
	if len(b) > maxCommand {
		return Command{}, fmt.Errorf("command: it has %d bytes, at most %d are read", len(b), maxCommand)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return Command{}, fmt.Errorf("command: %w", err)
	}
	switch {
	case c.Version < 1 || c.Version > CommandVersion:
		return Command{}, fmt.Errorf("command: version is %d, this program reads 1 to %d", c.Version, CommandVersion)
	case c.ID == "" || c.What == "":
		return Command{}, fmt.Errorf("command: id is %q, what is %q: neither may be empty", c.ID, c.What)
	}
	return c, nil
}

// ErrNoLeader is returned by Send when no process leads.
var ErrNoLeader = errors.New("no Ballast process governs this cluster: start one with ballast run --mode govern")

// ErrNoAnswer is returned by Send when the leader has not answered in time: whether it has carried the command out is not
// known then.
var ErrNoAnswer = errors.New("the leader did not answer")

// Send sends a command and waits for the leader's answer, for as long as the command says.
func Send(ctx context.Context, log topics.Log, cluster Cluster, c Command) (Record, error) {
	n, err := cluster.Publishers(ctx, topics.Leader)
	if err != nil {
		return Record{}, fmt.Errorf("ask for the leader: %w", err)
	}
	if n == 0 {
		return Record{}, ErrNoLeader
	}
	wait := time.Duration(c.Wait) * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	sub, err := log.Subscribe(ctx, topics.Decisions, topics.SubscribeOptions{From: topics.Latest})
	if err != nil {
		return Record{}, fmt.Errorf("read %s: %w", topics.Decisions, err)
	}
	defer sub.Close()
	if err := post(ctx, log, c); err != nil {
		return Record{}, err
	}
	for {
		m, err := sub.Receive(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return Record{}, fmt.Errorf("%w within %v: %s is carried out or not, ballast log --kind command tells", ErrNoAnswer, wait, c.What)
		}
		if err != nil {
			return Record{}, fmt.Errorf("read %s: %w", topics.Decisions, err)
		}
		if r, err := DecodeRecord(m.Payload); err == nil && r.Kind == KindCommand && r.Command != nil && r.Command.ID == c.ID && r.Answer != nil {
			return r, nil
		}
	}
}

func post(ctx context.Context, log topics.Log, c Command) error {
	payload, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if len(payload) > maxCommand {
		return fmt.Errorf("%s: the command has %d bytes, it may have %d: shorten the reason", c.What, len(payload), maxCommand)
	}
	pub, err := log.Publisher(ctx, topics.Commands, topics.PublishOptions{})
	if err != nil {
		return fmt.Errorf("write %s: %w", topics.Commands, err)
	}
	defer pub.Close()
	if _, err := pub.Publish(ctx, c.ID, payload); err != nil {
		return fmt.Errorf("write %s: %w", topics.Commands, err)
	}
	return nil
}
