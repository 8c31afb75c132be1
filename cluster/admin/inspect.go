package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// TopicProducer is a producer that is connected to a topic.
type TopicProducer struct {
	Name    string
	Address string // host of its connection, "" if it is not told
	Own     bool   // it says that it is Ballast's: its property "application" is "ballast"
}

// TopicState is who writes to a topic and how far it goes.
type TopicState struct {
	Producers   []TopicProducer // ordered by name
	Ledger      int64           // of the last entry
	Entry       int64           // the last entry; -1 = none in this ledger
	Subscribers int
}

// TopicState asks for the statistics of a persistent topic.
func (c *Client) TopicState(ctx context.Context, topic string) (TopicState, error) {
	op := "statistics of " + topic
	p, err := topicPath(topic)
	if err != nil {
		return TopicState{}, badRequest(op, err)
	}
	var stats struct {
		Publishers []struct {
			ProducerName, Address string
			Metadata              map[string]string
		}
		Subscriptions map[string]struct{}
	}
	if err := c.read(ctx, op, c.get("/admin/v2"+p+"/stats", intoJSON(&stats))); err != nil {
		return TopicState{}, err
	}
	var internal struct{ LastConfirmedEntry string }
	if err := c.read(ctx, op, c.get("/admin/v2"+p+"/internalStats", intoJSON(&internal))); err != nil {
		return TopicState{}, err
	}
	out := TopicState{Subscribers: len(stats.Subscriptions)}
	if _, err := fmt.Sscanf(internal.LastConfirmedEntry, "%d:%d", &out.Ledger, &out.Entry); err != nil {
		return TopicState{}, &Error{Op: op, Kind: BadAnswer, RetrySafe: true, Reason: fmt.Sprintf("lastConfirmedEntry is %q, want ledger:entry", oneLine(internal.LastConfirmedEntry))}
	}
	for _, p := range stats.Publishers {
		out.Producers = append(out.Producers, TopicProducer{Name: p.ProducerName, Address: hostOf(p.Address), Own: p.Metadata["application"] == "ballast"})
	}
	slices.SortFunc(out.Producers, func(a, b TopicProducer) int {
		return or(strings.Compare(a.Name, b.Name), strings.Compare(a.Address, b.Address))
	})
	return out, nil
}

// hostOf is the host in an address as Java prints one: "/10.0.0.1:5566" or "name/10.0.0.1:5566".
func hostOf(address string) string {
	_, at, ok := strings.Cut(address, "/")
	if !ok {
		at = address
	}
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return ""
	}
	return host
}

// ReplicationClusters are the clusters that a namespace is replicated to, its own among them, ordered.
func (c *Client) ReplicationClusters(ctx context.Context, namespace string) (clusters []string, err error) {
	err = c.read(ctx, "replication of "+namespace, c.get(namespacePath(namespace)+"/replication", intoJSON(&clusters)))
	slices.Sort(clusters)
	return clusters, err
}

// SchemaVersion is one version of a topic's schema.
type SchemaVersion struct {
	Version    int64
	Type       string // JSON, AVRO, STRING, ...
	Definition string
}

// Schemas are all versions of a topic's schema, oldest first; none if it has no schema.
func (c *Client) Schemas(ctx context.Context, topic string) ([]SchemaVersion, error) {
	op := "schemas of " + topic
	p, err := topicPath(topic)
	if err != nil {
		return nil, badRequest(op, err)
	}
	_, p, _ = strings.Cut(p[1:], "/") // schemas belong to a name in both domains
	var answer struct {
		GetSchemaResponses []struct {
			Version    int64
			Type, Data string
		}
	}
	err = c.read(ctx, op, c.get("/admin/v2/schemas/"+p+"/schemas", intoJSON(&answer)))
	if errors.Is(err, NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []SchemaVersion
	for _, s := range answer.GetSchemaResponses {
		out = append(out, SchemaVersion{Version: s.Version, Type: s.Type, Definition: s.Data})
	}
	return out, nil
}

// Clock is how far a broker's clock is ahead of ours (negative: behind), and how far that may be off: the clock is told in
// whole seconds, and the answer takes its time.
func (c *Client) Clock(ctx context.Context, broker string) (ahead, uncertain time.Duration, err error) {
	op := "clock of " + broker
	err = c.readAt(ctx, op, broker, func(ctx context.Context, at *endpoint) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(at.base.String(), "/")+"/admin/v2/brokers/version", http.NoBody)
		if err != nil {
			return err
		}
		begun := time.Now()
		resp, err := c.http.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		took := time.Since(begun)
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		told, err := http.ParseTime(resp.Header.Get("Date"))
		if err != nil {
			return answerError("the Date header is %q", oneLine(resp.Header.Get("Date")))
		}
		// The broker cut its time off to a second at some moment of the request.
		ahead = told.Add(time.Second / 2).Sub(begun.Add(took / 2))
		uncertain = time.Second/2 + took/2
		return nil
	})
	return ahead, uncertain, err
}

// Permission is something that credentials may or may not do. It is found out by a request that changes nothing.
type Permission string

// The permissions of what Ballast changes.
const (
	MayUnload      Permission = "unload bundles"
	MaySplit       Permission = "split bundles"
	MayConfigure   Permission = "set the dynamic configuration"
	probeNamespace            = "pulsar/ballast-probe-of-permissions" // no such namespace
	probeKey                  = "ballastProbeOfPermissions"           // no such key
)

// Probe says whether the credentials have a permission: nil = yes, errors.Is(err, Unauthorized) = no, another error = it could
// not be found out. The request names a namespace, or a key, that does not exist: brokers judge the permission first.
func (c *Client) Probe(ctx context.Context, p Permission) error {
	const bundle = probeNamespace + "/0x00000000_0xffffffff"
	var err error
	switch p {
	case MayUnload:
		err = c.Unload(ctx, bundle, "")
	case MaySplit:
		err = c.change(ctx, "split "+bundle, bundle, "/split", url.Values{"unload": {"false"}}, nil)
	case MayConfigure:
		err = c.SetDynamicConfig(ctx, probeKey, "1")
	default:
		return badRequest("probe", fmt.Errorf("permission %q is not known", p))
	}
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && (e.Kind == NotFound || e.Kind == Precondition || e.Kind == Conflict || e.Kind == BadRequest && e.Status != 0):
		return nil // it was refused for what it names
	}
	return err
}
