package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/integration/traffic"
)

// tenant holds every namespace that the tests make.
const tenant = "test"

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// CreateNamespace makes a namespace with n bundles, named after the test, and gives its name, tenant/namespace. It is
// deleted with everything in it when the cluster is restored after the test.
func (c *Cluster) CreateNamespace(t testing.TB, n int) string {
	t.Helper()
	c.mu.Lock()
	number := len(c.namespaces) + 1
	stem := strings.Trim(notInName.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-"), "-")
	ns := fmt.Sprintf("%s/%s-%d", tenant, stem, number)
	c.namespaces = append(c.namespaces, ns)
	c.mu.Unlock()
	err := poll(t.Context(), time.Minute, func(ctx context.Context) error {
		// 409: it is there already, from an attempt whose answer was lost.
		err := c.Do(ctx, http.MethodPut, "/admin/v2/tenants/"+tenant, map[string]any{"allowedClusters": []string{clusterName}, "adminRoles": []string{}})
		if err != nil && status(err) != http.StatusConflict {
			return err
		}
		err = c.Do(ctx, http.MethodPut, "/admin/v2/namespaces/"+ns, map[string]any{"bundles": map[string]any{"numBundles": n}})
		if err != nil && status(err) != http.StatusConflict {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatalf("creating the namespace %s with %d bundles: %v", ns, n, err)
	}
	return ns
}

// deleteNamespaces removes what CreateNamespace made.
func (c *Cluster) deleteNamespaces(ctx context.Context) error {
	c.mu.Lock()
	namespaces := c.namespaces
	c.namespaces = nil
	c.mu.Unlock()
	var errs []error
	for _, ns := range namespaces {
		err := poll(ctx, time.Minute, func(ctx context.Context) error {
			err := c.Do(ctx, http.MethodDelete, "/admin/v2/namespaces/"+ns+"?force=true", nil)
			if status(err) == http.StatusNotFound {
				return nil
			}
			return err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("deleting %s: %w", ns, err))
		}
	}
	return errors.Join(errs...)
}

// Bundles are the bundles of a namespace in the order of their ranges, as tenant/namespace/0x........_0x.........
func (c *Cluster) Bundles(t testing.TB, ns string) []string {
	t.Helper()
	var data struct {
		Boundaries []string `json:"boundaries"`
	}
	if err := c.Get(t.Context(), "/admin/v2/namespaces/"+ns+"/bundles", &data); err != nil {
		t.Fatalf("reading the bundles of %s: %v", ns, err)
	}
	var bundles []string
	for i := range len(data.Boundaries) - 1 {
		bundles = append(bundles, fmt.Sprintf("%s/%s_%s", ns, data.Boundaries[i], data.Boundaries[i+1]))
	}
	return bundles
}

// Owner is the id of the broker that serves a bundle. A bundle that nobody serves is assigned by the question.
func (c *Cluster) Owner(ctx context.Context, bundle string) (string, error) {
	topic, err := traffic.TopicIn(bundle)
	if err != nil {
		return "", err
	}
	var lookup struct {
		HTTPURL string `json:"httpUrl"`
	}
	if err := c.Get(ctx, "/lookup/v2/topic/"+strings.Replace(topic, "://", "/", 1), &lookup); err != nil {
		return "", fmt.Errorf("looking up the owner of %s: %w", bundle, err)
	}
	return strings.TrimPrefix(lookup.HTTPURL, "http://"), nil
}

// Owners are the ids of the brokers that serve the bundles of a namespace, by bundle.
func (c *Cluster) Owners(t testing.TB, ns string) map[string]string {
	t.Helper()
	owners := map[string]string{}
	for _, bundle := range c.Bundles(t, ns) {
		Eventually(t, time.Minute, "an owner of "+bundle, func(ctx context.Context) (err error) {
			owners[bundle], err = c.Owner(ctx, bundle)
			return err
		})
	}
	return owners
}

// Unload asks for a bundle to be unloaded, to a broker unless that is nil. It does not wait for a new owner.
func (c *Cluster) Unload(ctx context.Context, bundle string, to *Broker) error {
	path := "/admin/v2/namespaces/" + bundle + "/unload"
	if to != nil {
		path += "?destinationBroker=" + to.ID
	}
	if err := c.Do(ctx, http.MethodPut, path, nil); err != nil {
		return fmt.Errorf("unloading %s: %w", bundle, err)
	}
	return nil
}

// Move brings a bundle to a broker and waits until a lookup says so. Where the load manager does not bind itself to the
// destination it is asked again: Modular takes it as a hint, Simple ignores it, so that there it is luck.
func (c *Cluster) Move(t testing.TB, bundle string, to *Broker) {
	t.Helper()
	Eventually(t, 2*time.Minute, bundle+" is on "+to.Name, func(ctx context.Context) error {
		return c.move(ctx, bundle, to)
	})
}

func (c *Cluster) move(ctx context.Context, bundle string, to *Broker) error {
	owner, err := c.Owner(ctx, bundle)
	if err != nil || owner == to.ID {
		return err
	}
	if err := c.Unload(ctx, bundle, to); err != nil {
		return err
	}
	if owner, err = c.Owner(ctx, bundle); err == nil && owner != to.ID {
		err = fmt.Errorf("it went to %s", owner)
	}
	return err
}

// Place brings the bundles of a namespace to brokers in turn: one broker gets them all, three get a third each.
func (c *Cluster) Place(t testing.TB, ns string, brokers ...*Broker) {
	t.Helper()
	for i, bundle := range c.Bundles(t, ns) {
		c.Move(t, bundle, brokers[i%len(brokers)])
	}
}
