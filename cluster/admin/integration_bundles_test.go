//go:build integration

package admin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
)

func TestRealUnload(t *testing.T) {
	r := newReal(t)
	ns := r.namespace("unload", 4)
	bundle := r.topic("persistent://" + ns + "/topic")
	owner := r.owner(bundle)
	config, err := r.client.RuntimeConfig(r.ctx())
	must(t, err)
	// Extensible load managers obey; for Modular ones a destination is a hint, which a repetition makes good; Simple ones ignore it.
	attempts := map[bool]int{true: 1, false: 20}[strings.Contains(config["loadManagerClassName"], "Extensible")]
	if strings.Contains(config["loadManagerClassName"], "Simple") {
		attempts = 0
	}
	for range 3 {
		to := r.other(owner)
		for n := 0; n < attempts && owner != to; n++ {
			must(t, r.client.Unload(r.ctx(), bundle, to))
			r.lookup("persistent://" + ns + "/topic")
			owner = r.owner(bundle)
		}
		if attempts > 0 && owner != to {
			t.Errorf("the bundle is on %s, not on %s", owner, to)
		}
	}
	must(t, r.client.Unload(r.ctx(), bundle, ""))
	r.lookup("persistent://" + ns + "/topic")
	owner = r.owner(bundle)

	err = r.client.Unload(r.ctx(), bundle, "127.0.0.9:9")
	r.isKind(err, admin.Conflict)
	if e := new(admin.Error); !errors.As(err, &e) || !e.Refused() || e.Temporary {
		t.Errorf("%#v", e)
	}
	if again := r.owner(bundle); again != owner {
		t.Errorf("a refused unload moved the bundle from %s to %s", owner, again)
	}
	r.isKind(r.client.Unload(r.ctx(), ns+"/0x00000000_0x12345678", ""), admin.Precondition)
	r.isKind(r.client.Unload(r.ctx(), r.tenant+"/none/0x00000000_0xffffffff", ""), admin.NotFound)
}

func TestRealSplit(t *testing.T) {
	r := newReal(t)
	ns := r.namespace("split", 1)
	bundle := r.topic("persistent://" + ns + "/a")
	r.topic("persistent://" + ns + "/b")
	r.isKind(r.client.Split(r.ctx(), bundle, "no_such_algorithm", nil, false), admin.Precondition)
	must(t, r.client.Split(r.ctx(), bundle, "range_equally_divide", nil, false))
	want := []string{ns + "/0x00000000_0x7fffffff", ns + "/0x7fffffff_0xffffffff"}
	got, err := r.client.Bundles(r.ctx(), ns)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	r.isKind(r.client.Split(r.ctx(), bundle, "", nil, false), admin.Precondition)
}

func TestRealSplitAtPositions(t *testing.T) {
	r := newReal(t)
	ns := r.namespace("positions", 1)
	bundle := r.topic("persistent://" + ns + "/a")
	r.topic("persistent://" + ns + "/b")
	must(t, r.client.Split(r.ctx(), bundle, "specified_positions_divide", []string{"0x20000000"}, false))
	got, err := r.client.Bundles(r.ctx(), ns)
	must(t, err)
	if diff := cmp.Diff([]string{ns + "/0x00000000_0x20000000", ns + "/0x20000000_0xffffffff"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRealNamespaces(t *testing.T) {
	r := newReal(t)
	ns := r.namespace("listed", 4)
	all, err := r.client.Namespaces(r.ctx())
	must(t, err)
	if !slices.Contains(all, ns) || !slices.Contains(all, "pulsar/system") {
		t.Errorf("%v", all)
	}
	bundles, err := r.client.Bundles(r.ctx(), ns)
	must(t, err)
	if want := []string{ns + "/0x00000000_0x40000000", ns + "/0x40000000_0x80000000", ns + "/0x80000000_0xc0000000", ns + "/0xc0000000_0xffffffff"}; !slices.Equal(want, bundles) {
		t.Errorf("%v", bundles)
	}
	_, err = r.client.Bundles(r.ctx(), r.tenant+"/none")
	r.isKind(err, admin.NotFound)
	if owner, err := r.client.OwnerOf(r.ctx(), bundles[0]); err != nil || owner != "" {
		t.Errorf("a bundle that nobody asked for: %q, %v", owner, err)
	}
	bundle := r.topic("persistent://" + ns + "/topic")
	owner := r.owner(bundle)
	owned, err := r.client.Owned(r.ctx(), owner)
	must(t, err)
	if !slices.Contains(owned, bundle) || !slices.IsSorted(owned) {
		t.Errorf("%v", owned)
	}
}
