package pulsar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// admin is the little of the admin REST interface that an event log needs. With several addresses it moves on to the next
// one when one cannot be reached, since the broker it talks to may be the one that restarts.
type admin struct {
	bases   []string
	current atomic.Int64
	http    *http.Client
	timeout time.Duration
}

func newAdmin(adminURL string, c *http.Client, timeout time.Duration) *admin {
	scheme, hosts, _ := strings.Cut(adminURL, "://")
	a := &admin{http: c, timeout: timeout}
	for host := range strings.SplitSeq(hosts, ",") {
		a.bases = append(a.bases, scheme+"://"+strings.TrimSuffix(host, "/"))
	}
	return a
}

// adminError is an answer that is not 200.
type adminError struct {
	URL    string
	Status int
	Reason string
}

func (e *adminError) Error() string {
	return fmt.Sprintf("GET %s: %d %s: %s", e.URL, e.Status, http.StatusText(e.Status), e.Reason)
}

// statusOf is the HTTP status that an error carries, 0 if none.
func statusOf(err error) int {
	var e *adminError
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// get asks for a path below /admin/v2. The body is cut off after limit bytes.
func (a *admin) get(ctx context.Context, path string, limit int64) (http.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	var err error
	for range a.bases {
		at := a.current.Load()
		var header http.Header
		var body []byte
		header, body, err = a.getFrom(ctx, a.bases[int(at)%len(a.bases)]+"/admin/v2/"+path, limit)
		if err == nil || statusOf(err) != 0 || ctx.Err() != nil {
			return header, body, err
		}
		a.current.CompareAndSwap(at, at+1)
	}
	return nil, nil, err
}

func (a *admin) getFrom(ctx context.Context, address string, limit int64) (http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil {
		return nil, nil, fmt.Errorf("GET %s: %w", address, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, nil, &adminError{URL: address, Status: resp.StatusCode, Reason: reason(body)}
	}
	return resp.Header, body, nil
}

// reason is what the body of an error says: JSON with a reason, or a page with a title.
func reason(body []byte) string {
	var answer struct{ Reason string }
	if json.Unmarshal(body, &answer) == nil && answer.Reason != "" {
		return strings.TrimSpace(answer.Reason)
	}
	text := string(body)
	if _, after, ok := strings.Cut(text, "<title>"); ok {
		text, _, _ = strings.Cut(after, "</title>")
	}
	return strings.TrimSpace(text[:min(len(text), 200)])
}

const maxStats = 64 << 20 // bytes of statistics or of a schema that are read

// path is a topic's path below /admin/v2, with each part escaped.
func path(n topics.Name) string {
	return n.Domain() + "/" + url.PathEscape(n.Tenant) + "/" + url.PathEscape(n.Namespace) + "/" + url.PathEscape(n.Local)
}

// layout asks for the ledgers of a persistent topic.
func (a *admin) layout(ctx context.Context, n topics.Name) (layout, error) {
	_, body, err := a.get(ctx, path(n)+"/internalStats", maxStats)
	if err != nil {
		return layout{}, err
	}
	var stats struct { // encoding/json matches names whatever their case
		LastConfirmedEntry string
		Ledgers            []struct{ LedgerID, Entries int64 }
		Cursors            map[string]struct{ MarkDeletePosition string }
	}
	if err := json.Unmarshal(body, &stats); err != nil {
		return layout{}, fmt.Errorf("internal stats of %s: %w", n, err)
	}
	var l layout
	last, err := parsePosition(stats.LastConfirmedEntry)
	if err != nil {
		return layout{}, fmt.Errorf("internal stats of %s: lastConfirmedEntry: %w", n, err)
	}
	l.horizon = before
	if c, ok := stats.Cursors["__compaction"]; ok { // whether the compacted ledger is open yet or not
		if l.horizon, err = parsePosition(c.MarkDeletePosition); err != nil {
			return layout{}, fmt.Errorf("internal stats of %s: compaction: %w", n, err)
		}
	}
	for _, s := range stats.Ledgers {
		entries := s.Entries
		if s.LedgerID == last.ledger { // the open ledger is listed with 0 entries
			entries = max(entries, last.entry+1)
		}
		l.ledgers = append(l.ledgers, ledger{id: s.LedgerID, entries: entries})
	}
	return l, nil
}

// entry fetches one entry of a persistent topic.
func (a *admin) entry(ctx context.Context, n topics.Name, ledger, entry int64, limit int) ([]record, error) {
	header, body, err := a.get(ctx, fmt.Sprintf("%s/ledger/%d/entry/%d", path(n), ledger, entry), 4*int64(limit)+1<<20) // a batch may be larger than a message
	if err != nil {
		return nil, err
	}
	records, err := decodeEntry(header, body)
	if err != nil {
		return nil, fmt.Errorf("entry %d:%d of %s: %w", ledger, entry, n, err)
	}
	for i := range records {
		records[i].id = position{ledger: ledger, entry: entry, index: int32(i), size: int32(len(records))}
	}
	return records, nil
}

// registered is a schema as the registry has it.
type registered struct {
	Version    int64             `json:"version"`
	Type       string            `json:"type"`
	Data       string            `json:"data"`
	Properties map[string]string `json:"properties"`
}

// schema asks for the newest schema of a topic, nil if it has none.
func (a *admin) schema(ctx context.Context, n topics.Name) (*registered, error) {
	p := "schemas/" + url.PathEscape(n.Tenant) + "/" + url.PathEscape(n.Namespace) + "/" + url.PathEscape(n.Local) + "/schema"
	_, body, err := a.get(ctx, p, maxStats)
	if statusOf(err) == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r registered
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", n, err)
	}
	return &r, nil
}

// exists says whether a topic exists, or is loaded if it is a non-persistent one.
func (a *admin) exists(ctx context.Context, n topics.Name) (bool, error) {
	_, _, err := a.get(ctx, path(n)+"/stats", maxStats)
	if statusOf(err) == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// consumers counts the consumers of a subscription, 0 when there is no such subscription or topic.
func (a *admin) consumers(ctx context.Context, n topics.Name, subscription string) (int, error) {
	_, body, err := a.get(ctx, path(n)+"/stats", maxStats)
	if statusOf(err) == http.StatusNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var stats struct {
		Subscriptions map[string]struct{ Consumers []json.RawMessage }
	}
	if err := json.Unmarshal(body, &stats); err != nil {
		return 0, fmt.Errorf("stats of %s: %w", n, err)
	}
	return len(stats.Subscriptions[subscription].Consumers), nil
}

// parsePosition reads "ledger:entry".
func parsePosition(s string) (position, error) {
	l, e, ok := strings.Cut(s, ":")
	ledger, err1 := strconv.ParseInt(l, 10, 64)
	entry, err2 := strconv.ParseInt(e, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return position{}, fmt.Errorf("%q: want ledger:entry", s)
	}
	return position{ledger: ledger, entry: entry, size: 1}, nil
}
