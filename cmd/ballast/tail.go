package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/topics"
)

// tailTopic is a topic that tail knows: its short name, and what decodes an event of it.
type tailTopic struct {
	short, topic string
	decode       func([]byte) error
}

// as decodes an event as one of Pulsar's.
func as[T any, P interface {
	*T
	json.Unmarshaler
}](b []byte) error {
	_, err := event.Decode[T, P](b)
	return err
}

// tailTopics are the topics that tail knows, in the order of its help.
var tailTopics = []tailTopic{
	{"load", topics.BrokerLoadData, as[event.BrokerLoadData]},
	{"top", topics.TopBundles, as[event.TopBundlesLoadData]},
	{"ownership", topics.ServiceUnitState, as[event.ServiceUnitStateData]},
	{"decisions", topics.Decisions, func(b []byte) error { _, err := control.DecodeRecord(b); return err }},
	{"commands", topics.Commands, func(b []byte) error { _, err := control.DecodeCommand(b); return err }},
	{"takeover", topics.Takeover, func(b []byte) error { return json.Unmarshal(b, new(control.TakeOver)) }},
	{"leader", topics.Leader, isJSON},
	{"reports", topics.LocalBrokerData, func(b []byte) error { _, err := event.DecodeReport(b); return err }},
	{"stats", topics.BundleStats, isJSON},
	{"bundles", topics.BundleData, as[event.BundleData]},
	{"averages", topics.BrokerAverages, as[event.TimeAverageBrokerData]},
	{"reported", topics.Reported, isJSON},
	{"reporter", topics.Reporter, isJSON},
}

// isJSON is for topics whose events nobody reads by their members.
func isJSON(b []byte) error {
	if !json.Valid(b) {
		return errors.New("the payload is not JSON")
	}
	return nil
}

// tailShort are the short names as a sentence has them.
func tailShort() string {
	var names []string
	for _, t := range tailTopics {
		names = append(names, t.short)
	}
	return strings.Join(names, ", ")
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
		Long: `Prints events as they come, decoded, one JSON object a line. TOPIC is one of
` + tailShort() + `,
or a full topic name; without any: load, top and ownership. An event that is not what belongs on its topic is shown as it
is, with why. A topic that does not exist yet is named and left out. Tombstones that the client library drops on the ownership
topic are fetched and marked as recovered.`,
		RunE: func(cmd *cobra.Command, args []string) error {
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
		name := ""
		i := slices.IndexFunc(tailTopics, func(t tailTopic) bool { return t.short == arg })
		switch {
		case i >= 0:
			name = tailTopics[i].topic
		case strings.Contains(arg, "://"):
			name = arg
		default:
			return nil, fmt.Errorf("topic is %q: it must be one of %s, or a full name like persistent://tenant/namespace/topic", arg, tailShort())
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
	messages, stop, err := merge(cmd.Context(), s.log, names, from, func(topic string) {
		fmt.Fprintf(a.stderr, "%s does not exist: nobody has written it yet, and it is not followed\n", topic)
	})
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
	check := isJSON
	if i := slices.IndexFunc(tailTopics, func(t tailTopic) bool { return t.topic == m.Topic }); i >= 0 {
		check = tailTopics[i].decode
	}
	err := check(m.Payload)
	if err != nil {
		t.Error, t.Payload = err.Error(), string(m.Payload)
		return t
	}
	t.Value = m.Payload
	return t
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
