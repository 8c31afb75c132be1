package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// StatusError is an answer of a broker that is not a success.
type StatusError struct {
	Method, URL string
	Code        int
	Body        string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %d %s", e.Method, e.URL, e.Code, e.Body)
}

// status is the HTTP status of an error, 0 if it is none.
func status(err error) int {
	if e := (*StatusError)(nil); errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// Admin requests are short; one that hangs is better repeated. Redirects (307) to another broker are followed.
var httpClient = &http.Client{Timeout: 30 * time.Second, Transport: authorized{&http.Transport{DisableKeepAlives: true}}}

// call sends body as JSON (nil: none) and decodes the answer into out (nil: dropped; *string: as it is).
func call(ctx context.Context, method, url string, body, out any) error {
	var reader io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s %s: encoding the request: %w", method, url, err)
		}
		reader = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s %s: reading the answer: %w", method, url, err)
	}
	if resp.StatusCode >= 300 {
		return &StatusError{Method: method, URL: url, Code: resp.StatusCode, Body: string(bytes.TrimSpace(answer))}
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *string:
		*out = string(answer)
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s: decoding %.200q: %w", method, url, answer, err)
	}
	return nil
}

// Get asks the first broker that is up for a path such as "/admin/v2/brokers/leaderBroker" and decodes the answer into out
// (a *string gets the text).
func (c *Cluster) Get(ctx context.Context, path string, out any) error {
	return call(ctx, http.MethodGet, c.AdminURL()+path, nil, out)
}

// Do sends a request with a body of JSON (nil: none) to the first broker that is up. An answer that is no success is a
// *StatusError.
func (c *Cluster) Do(ctx context.Context, method, path string, body any) error {
	return call(ctx, method, c.AdminURL()+path, body, nil)
}

// DynamicConfig is the dynamic configuration: only what has been set.
func (c *Cluster) DynamicConfig(ctx context.Context) (map[string]string, error) {
	var values map[string]string
	if err := c.Get(ctx, "/admin/v2/brokers/configuration/values", &values); err != nil {
		return nil, fmt.Errorf("reading the dynamic configuration: %w", err)
	}
	return values, nil
}

// SetDynamic sets a key of the dynamic configuration and waits until every broker has it. It is taken back after the test.
func (c *Cluster) SetDynamic(t testing.TB, key, value string) {
	t.Helper()
	if err := c.Do(t.Context(), http.MethodPost, "/admin/v2/brokers/configuration/"+key+"/"+url.PathEscape(value), nil); err != nil {
		t.Fatalf("setting %s to %q: %v", key, value, err)
	}
	for _, b := range c.Live() {
		Eventually(t, registryLimit, b.Name+" has "+key+"="+value, func(ctx context.Context) error {
			var conf map[string]string
			if err := call(ctx, http.MethodGet, b.AdminURL()+"/admin/v2/brokers/configuration/runtime", nil, &conf); err != nil {
				return err
			}
			if conf[key] != value {
				return fmt.Errorf("it has %q", conf[key])
			}
			return nil
		})
	}
}

// resetDynamic puts the dynamic configuration back to what it was when the cluster was new.
func (c *Cluster) resetDynamic(ctx context.Context) error {
	now, err := c.DynamicConfig(ctx)
	if err != nil {
		return err
	}
	if maps.Equal(now, c.dynamic) {
		return nil
	}
	var errs []error
	for key := range now {
		if _, had := c.dynamic[key]; !had {
			errs = append(errs, c.Do(ctx, http.MethodDelete, "/admin/v2/brokers/configuration/"+key, nil))
		}
	}
	for key, value := range c.dynamic {
		if now[key] != value {
			errs = append(errs, c.Do(ctx, http.MethodPost, "/admin/v2/brokers/configuration/"+key+"/"+url.PathEscape(value), nil))
		}
	}
	return errors.Join(errs...)
}
