package admin

import (
	"context"
	"errors"
	"io"

	"github.com/ballast-lb/ballast/event"
)

// LoadReportDocument is a broker's load report as it answers it: the JSON of a LocalBrokerData (Modular) or of a LoadReport
// (Simple). An Extensible broker has none: errors.Is(err, Unsupported).
func (c *Client) LoadReportDocument(ctx context.Context, broker string) (document []byte, err error) {
	err = c.readAt(ctx, "load report of "+broker, broker, c.get("/admin/v2/broker-stats/load-report", func(r io.Reader) error {
		if document, err = io.ReadAll(r); err != nil {
			return err
		}
		_, err = event.DecodeReport(document) // half a report is none
		return err
	}))
	return document, err
}

// NamespaceInfo is what a namespace's policies say, as far as a load manager's topics depend on it.
type NamespaceInfo struct {
	Clusters      []string // that it is replicated to
	TTL           int64    // of messages, seconds; 0 = none
	PublishRate   int64    // messages/s for a topic on this cluster; 0 = no limit
	SchemasClosed bool     // new schemas are refused
}

// NamespaceInfo reads the policies of a namespace (tenant/ns); errors.Is(err, NotFound) when there is none.
func (c *Client) NamespaceInfo(ctx context.Context, namespace string) (NamespaceInfo, error) {
	var answer struct {
		Clusters []string `json:"replication_clusters"`
		TTL      *int64   `json:"message_ttl_in_seconds"`
		Schemas  *bool    `json:"is_allow_auto_update_schema"`
		Rates    map[string]struct {
			Messages int64 `json:"publishThrottlingRateInMsg"`
		} `json:"publishMaxMessageRate"`
	}
	if err := c.read(ctx, "policies of "+namespace, c.get(namespacePath(namespace), intoJSON(&answer))); err != nil {
		return NamespaceInfo{}, err
	}
	name, err := c.Name(ctx)
	if err != nil {
		return NamespaceInfo{}, err
	}
	out := NamespaceInfo{Clusters: answer.Clusters, SchemasClosed: answer.Schemas != nil && !*answer.Schemas}
	if answer.TTL != nil {
		out.TTL = max(0, *answer.TTL)
	}
	out.PublishRate = max(0, answer.Rates[name].Messages)
	return out, nil
}

// TopicInfo says whether a topic stands, and what it holds.
type TopicInfo struct {
	Exists     bool
	Partitions int   // 0 = not partitioned
	Entries    int64 // of a persistent topic
}

// TopicInfo looks whether a topic exists. A non-persistent one exists while a broker serves it.
func (c *Client) TopicInfo(ctx context.Context, topic string) (info TopicInfo, err error) {
	op := "look for " + topic
	p, err := topicPath(topic)
	if err != nil {
		return info, badRequest(op, err)
	}
	var meta struct{ Partitions int }
	if err := c.read(ctx, op, c.get("/admin/v2"+p+"/partitions", intoJSON(&meta))); err != nil && !errors.Is(err, NotFound) {
		return info, err
	}
	if meta.Partitions > 0 {
		return TopicInfo{Exists: true, Partitions: meta.Partitions}, nil
	}
	var stats struct {
		Entries int64 `json:"numberOfEntries"`
	}
	err = c.read(ctx, op, c.get("/admin/v2"+p+"/internalStats", intoJSON(&stats)))
	if errors.Is(err, NotFound) {
		return info, nil
	}
	return TopicInfo{Exists: err == nil, Entries: stats.Entries}, err
}
