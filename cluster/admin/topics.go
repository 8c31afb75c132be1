package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/event"
)

// topicPath is the path of a topic, domain/tenant/ns/name.
func topicPath(topic string) (string, error) {
	domain, rest, ok := strings.Cut(topic, "://")
	parts := strings.SplitN(rest, "/", 3)
	if !ok || len(parts) < 3 || slices.Contains(parts, "") {
		return "", fmt.Errorf("%q is no topic, want persistent://tenant/ns/name", topic)
	}
	return path(append([]string{domain}, parts...)...), nil
}

// BundleOf is the bundle that a topic belongs to.
func (c *Client) BundleOf(ctx context.Context, topic string) (string, error) {
	var text string
	err := c.lookup(ctx, "find the bundle of "+topic, topic, "/bundle", func(r io.Reader) error {
		if err := intoText(&text)(r); err != nil {
			return err
		}
		if _, err := event.ParseRange(text); err != nil {
			return answerError("%v", err)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(topic, "://")
	parts := strings.SplitN(rest, "/", 3)
	return parts[0] + "/" + parts[1] + "/" + text, nil
}

// Lookup is the web address (http://host:port) of the broker that serves a topic. Like a client's look-up it makes the
// cluster assign the topic's bundle if nobody owns it.
func (c *Client) Lookup(ctx context.Context, topic string) (string, error) {
	var answer struct {
		Plain string `json:"httpUrl"`
		TLS   string `json:"httpUrlTls"`
	}
	err := c.lookup(ctx, "look up "+topic, topic, "", func(r io.Reader) error {
		err := intoJSON(&answer)(r)
		return answered(err, answer.Plain != "" || answer.TLS != "")
	})
	return or(answer.Plain, answer.TLS), err
}

func (c *Client) lookup(ctx context.Context, op, topic, what string, accept func(io.Reader) error) error {
	p, err := topicPath(topic)
	if err != nil {
		return badRequest(op, err)
	}
	return c.read(ctx, op, c.get("/lookup/v2/topic"+p+what, accept))
}

// Publishers is how many producers are connected to a topic; 0 when the topic does not exist.
func (c *Client) Publishers(ctx context.Context, topic string) (int, error) {
	op := "count the producers of " + topic
	p, err := topicPath(topic)
	if err != nil {
		return 0, badRequest(op, err)
	}
	var answer struct{ Publishers []struct{} }
	err = c.read(ctx, op, c.get("/admin/v2"+p+"/stats", func(r io.Reader) error {
		if err := intoJSON(&answer)(r); err != nil {
			return err
		}
		return answered(nil, answer.Publishers != nil)
	}))
	if errors.Is(err, NotFound) {
		return 0, nil
	}
	return len(answer.Publishers), err
}

// CreateTopic makes a non-partitioned topic where it does not exist yet.
func (c *Client) CreateTopic(ctx context.Context, topic string) error {
	op := "create " + topic
	p, err := topicPath(topic)
	if err != nil {
		return badRequest(op, err)
	}
	err = c.write(ctx, op, func(ctx context.Context, at *endpoint) error {
		return c.do(ctx, at, request{method: http.MethodPut, path: "/admin/v2" + p}, nil)
	})
	if errors.Is(err, Conflict) {
		return nil // it exists
	}
	return err
}
