package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/topics"
)

// tailTopics are the short names of the topics that tail knows.
var tailTopics = map[string]string{
	"load":      topics.BrokerLoadData,
	"top":       topics.TopBundles,
	"ownership": topics.ServiceUnitState,
	"decisions": topics.Decisions,
	"takeover":  topics.Takeover,
	"leader":    topics.Leader,
}

// tailed is one event as tail prints it.
type tailed struct {
	Topic     string          `json:"topic"`
	Key       string          `json:"key"`
	ID        string          `json:"id"`
	Published string          `json:"published"`
	Received  string          `json:"received"`
	Producer  string          `json:"producer,omitempty"`
	Tombstone bool            `json:"tombstone,omitempty"`
	Recovered bool            `json:"recovered,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
	Error     string          `json:"error,omitempty"`   // the payload could not be decoded
	Payload   string          `json:"payload,omitempty"` // then: the payload as it is
}

func newTail(a *app) *cobra.Command {
	var from string
	var count int
	cmd := &cobra.Command{
		Use:   "tail [TOPIC...]",
		Short: "Print the events of system topics as JSON lines",
		Long: `Prints events as they come, decoded, one JSON object a line. TOPIC is load, top, ownership, decisions, takeover, leader or a full
topic name; without any: load, top and ownership. Tombstones that the client library drops on the ownership topic are
fetched and marked as recovered.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if count < 0 {
				return fmt.Errorf("--count is %d: it must be 0 or more", count)
			}
			names, err := tailNames(args)
			if err != nil {
				return err
			}
			position := topics.Latest
			switch from {
			case "latest":
			case "earliest":
				position = topics.Earliest
			default:
				return fmt.Errorf("--from is %q: it must be earliest or latest", from)
			}
			return a.tail(cmd, names, position, count)
		},
	}
	cmd.Flags().StringVar(&from, "from", "latest", "where to begin: earliest or latest (load topics have no history)")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "stop after this many events; 0 = never")
	return cmd
}

func tailNames(args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{"load", "top", "ownership"}
	}
	var names []string
	for _, arg := range args {
		name, known := tailTopics[arg]
		switch {
		case known:
		case strings.Contains(arg, "://"):
			name = arg
		default:
			return nil, fmt.Errorf("topic is %q: it must be load, top, ownership, decisions, takeover, leader or a full name like persistent://tenant/namespace/topic", arg)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

func (a *app) tail(cmd *cobra.Command, names []string, from topics.Position, count int) error {
	s, err := a.connect(cmd.Context())
	if err != nil {
		return err
	}
	defer s.close()
	messages, stop, err := merge(cmd.Context(), s.log, names, from)
	if err != nil {
		return err
	}
	defer stop()
	out := json.NewEncoder(a.stdout)
	for n := 0; count == 0 || n < count; n++ {
		select {
		case m := <-messages:
			if m.err != nil {
				return m.err
			}
			if err := out.Encode(decode(m.Message)); err != nil {
				return err
			}
		case <-cmd.Context().Done():
			return nil
		}
	}
	return nil
}

// decode makes the printed form of a message. A payload that does not decode is shown as it is, with why.
func decode(m topics.Message) tailed {
	t := tailed{Topic: m.Topic, Key: m.Key, ID: m.ID.String(), Published: stamp(m.PublishTime), Received: stamp(m.Received),
		Producer: m.Producer, Tombstone: m.Tombstone(), Recovered: m.Recovered}
	if m.Tombstone() {
		return t
	}
	var err error
	switch m.Topic {
	case topics.BrokerLoadData:
		_, err = event.Decode[event.BrokerLoadData](m.Payload)
	case topics.TopBundles:
		_, err = event.Decode[event.TopBundlesLoadData](m.Payload)
	case topics.ServiceUnitState:
		_, err = event.Decode[event.ServiceUnitStateData](m.Payload)
	default:
		if !json.Valid(m.Payload) {
			err = fmt.Errorf("the payload is not JSON")
		}
	}
	if err != nil {
		t.Error, t.Payload = err.Error(), string(m.Payload)
		return t
	}
	t.Value = m.Payload
	return t
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
