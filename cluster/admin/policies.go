package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"

	"github.com/ballast-lb/ballast/policy"
)

// Policies are the isolation policies, anti-affinity groups and failure domains. What cannot be read is frozen inside
// the set: all namespaces without the isolation policies, one namespace without its group, those with a group without
// the failure domains. The error is for when nothing could be asked at all. It asks for the group of every namespace of
// the instance, at the rate of bulk requests that was set.
func (c *Client) Policies(ctx context.Context) (*policy.Set, error) {
	name, err := c.Name(ctx)
	if err != nil {
		return nil, err
	}
	unread := map[string]string{}
	isolation, isolationErr := c.Isolation(ctx, name)
	if isolationErr != nil {
		unread[""] = isolationErr.Error()
	}
	namespaces, err := c.Namespaces(ctx)
	switch {
	case ctx.Err() != nil || err != nil && isolationErr != nil:
		return nil, failure(ctx, ctx, "read the policies", true, errors.Join(isolationErr, err, ctx.Err()))
	case err != nil:
		unread[""] = err.Error()
	}
	groups := c.groups(ctx, namespaces, unread)
	domains, err := c.FailureDomains(ctx, name)
	if err != nil {
		for ns := range groups {
			unread[ns] = err.Error()
		}
	}
	if ctx.Err() != nil {
		return nil, failure(ctx, ctx, "read the policies", true, ctx.Err())
	}
	return policy.New(isolation, groups, domains, unread, policy.WithPorts(c.ports(ctx, isolation))), nil
}

// groups asks for the anti-affinity group of each namespace; what cannot be read goes into unread.
func (c *Client) groups(ctx context.Context, namespaces []string, unread map[string]string) map[string]string {
	groups, failed := make([]string, len(namespaces)), make([]error, len(namespaces))
	c.each(len(namespaces), func(i int) {
		if failed[i] = c.bulk.Wait(ctx); failed[i] == nil {
			groups[i], failed[i] = c.AntiAffinityGroup(ctx, namespaces[i])
		}
	})
	out := map[string]string{}
	for i, ns := range namespaces {
		switch {
		case failed[i] == nil && groups[i] != "":
			out[ns] = groups[i]
		case failed[i] != nil && !errors.Is(failed[i], NotFound): // not found: deleted meanwhile
			unread[ns] = failed[i].Error()
		}
	}
	return out
}

// AntiAffinityGroup is the anti-affinity group of a namespace, "" for none.
func (c *Client) AntiAffinityGroup(ctx context.Context, namespace string) (group string, err error) {
	err = c.read(ctx, "anti-affinity group of "+namespace, c.get(namespacePath(namespace)+"/antiAffinity", intoText(&group)))
	return strings.TrimSpace(group), err
}

// FailureDomains are the failure domains of a cluster, ordered by name.
func (c *Client) FailureDomains(ctx context.Context, clusterName string) (domains []policy.Domain, err error) {
	var answer utils.FailureDomainMap
	err = c.read(ctx, "list the failure domains", func(ctx context.Context, at *endpoint) (err error) {
		answer, err = at.pulsar.Clusters().ListFailureDomainsWithContext(ctx, clusterName)
		return answered(err, answer != nil)
	})
	for _, name := range slices.Sorted(maps.Keys(answer)) {
		brokers := slices.Clone(answer[name].BrokerList)
		slices.Sort(brokers)
		domains = append(domains, policy.Domain{Name: name, Brokers: brokers})
	}
	return domains, err
}

// Isolation are the namespace isolation policies of a cluster in the order in which it stores them, which is the order
// in which its brokers look for the one that a namespace has.
func (c *Client) Isolation(ctx context.Context, clusterName string) (policies []policy.Isolation, err error) {
	err = c.read(ctx, "list the isolation policies", c.get("/admin/v2/clusters"+path(clusterName)+"/namespaceIsolationPolicies", func(r io.Reader) error {
		policies, err = readIsolation(r)
		return err
	}))
	if errors.Is(err, NotFound) {
		return nil, nil // the cluster, which the brokers name themselves, has none
	}
	return policies, err
}

// readIsolation reads a map of policies in the order in which it is written.
func readIsolation(r io.Reader) (out []policy.Isolation, err error) {
	d := json.NewDecoder(r)
	if err := delimiter(d, '{'); err != nil {
		return nil, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var answer *utils.NamespaceIsolationData
		if err := d.Decode(&answer); err != nil {
			return nil, fmt.Errorf("isolation policy %v: %w", name, err)
		}
		p, err := isolationOf(fmt.Sprint(name), answer)
		if err != nil {
			return nil, answerError("isolation policy %v: %v", name, err)
		}
		out = append(out, p)
	}
	if err := delimiter(d, '}'); err != nil {
		return nil, err
	}
	return out, nil
}

func delimiter(d *json.Decoder, want json.Delim) error {
	token, err := d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if token != want {
		return answerError("%v, want %v", token, want)
	}
	return nil
}

// isolationOf reads one policy. What brokers could not use is an error: without it they would see no policy at all.
func isolationOf(name string, answer *utils.NamespaceIsolationData) (policy.Isolation, error) {
	if answer == nil {
		return policy.Isolation{}, errors.New("null")
	}
	p := policy.Isolation{Name: name, Namespaces: answer.Namespaces, Primary: answer.Primary, Secondary: answer.Secondary}
	failover := answer.AutoFailoverPolicy
	if failover.PolicyType != utils.MinAvailable {
		return p, fmt.Errorf("auto_failover_policy is %q, want %s", failover.PolicyType, utils.MinAvailable)
	}
	for key, to := range map[string]*int{"min_limit": &p.AutoFailover.MinLimit, "usage_threshold": &p.AutoFailover.UsageThreshold} {
		n, err := strconv.ParseInt(failover.Parameters[key], 10, 32)
		if err != nil {
			return p, fmt.Errorf("%s is %q, want a number", key, failover.Parameters[key])
		}
		*to = int(n)
	}
	return p, nil
}

// ports says how the brokers match patterns with a colon, which depends on their version. It asks them only if there
// is such a pattern.
func (c *Client) ports(ctx context.Context, isolation []policy.Isolation) policy.PortPatterns {
	colon := func(pattern string) bool { return strings.Contains(pattern, ":") }
	if !slices.ContainsFunc(isolation, func(p policy.Isolation) bool {
		return slices.ContainsFunc(p.Primary, colon) || slices.ContainsFunc(p.Secondary, colon)
	}) {
		return policy.HostOnly
	}
	ids, err := c.BrokerIDs(ctx)
	if err != nil || len(ids) == 0 {
		return policy.HostPortUnknown
	}
	old, unknown := make([]bool, len(ids)), make([]bool, len(ids))
	c.each(len(ids), func(i int) {
		v, err := c.Version(ctx, ids[i])
		major, _, _ := strings.Cut(v, ".")
		n, bad := strconv.Atoi(major)
		old[i], unknown[i] = n < 5, err != nil || bad != nil
	})
	switch {
	case slices.Contains(unknown, true) || slices.Contains(old, true) && slices.Contains(old, false):
		return policy.HostPortUnknown
	case old[0]:
		return policy.HostOnly
	}
	return policy.HostAndPort
}
