package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestLeftover(t *testing.T) {
	own := owner(os.Getpid())
	if own == "" {
		t.Skip("this system has no /proc: nobody is known to be dead")
	}
	dead := exec.Command(os.Args[0], "-test.run=^$")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]bool{
		own: false,
		fmt.Sprintf("%d-1-%s", os.Getpid(), pidNamespace()):       true, // an earlier process of the same id
		fmt.Sprintf("%d-77-%s", dead.Process.Pid, pidNamespace()): true,
		fmt.Sprintf("%d-77-1", dead.Process.Pid):                  false, // of another container
		fmt.Sprintf("%d-77", dead.Process.Pid):                    false,
		"":                                                        false, // not ours
		"someone-1-" + pidNamespace():                             false,
	} {
		if got := leftover(label); got != want {
			t.Errorf("leftover(%q) = %v, want %v", label, got, want)
		}
	}
}

func TestOptionsEqual(t *testing.T) {
	base := Options{Conf: map[string]string{"a": "1"}}
	for _, c := range []struct {
		other Options
		want  bool
	}{
		{Options{Conf: map[string]string{"a": "1"}}, true},
		{Options{Brokers: 3, Conf: map[string]string{"a": "1"}}, true},
		{Options{Brokers: 2, Conf: map[string]string{"a": "1"}}, false},
		{Options{Conf: map[string]string{"a": "2"}}, false},
		{Options{}, false},
		{Options{Manager: Modular, Conf: map[string]string{"a": "1"}}, false},
	} {
		if got := base.equal(c.other); got != c.want {
			t.Errorf("%+v equal to %+v: %v", base, c.other, got)
		}
	}
	if !(Options{}).equal(Options{Conf: map[string]string{}}) {
		t.Error("no configuration and an empty one differ")
	}
}

func TestBrokerConfIsLayered(t *testing.T) {
	conf := brokerConf("10.0.0.2", "10.0.0.11", Extensible.conf(), map[string]string{"numIOThreads": "4", "mine": "1"}, map[string]string{"mine": "2"})
	for key, want := range map[string]string{
		"advertisedAddress":    "10.0.0.11",
		"metadataStoreUrl":     "zk:10.0.0.2:2181",
		"loadManagerClassName": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl",
		"numIOThreads":         "4",
		"mine":                 "2",
	} {
		if conf[key] != want {
			t.Errorf("%s = %q, want %q", key, conf[key], want)
		}
	}
	if env := brokerEnv(conf); env["PULSAR_PREFIX_mine"] != "2" {
		t.Errorf("environment %v", env)
	}
}

// A broker of Pulsar 3 is told the speed of its interface, unless the test says another.
func TestInterfaceSpeed(t *testing.T) {
	const key = "loadBalancerOverrideBrokerNicSpeedGbps"
	for _, c := range []struct{ version, asked, want string }{{"3.0.7", "", "10"}, {"3.0.7", "0.1", "0.1"}, {"4.2.4", "", ""}} {
		t.Setenv("BALLAST_PULSAR_IMAGE", "")
		t.Setenv("BALLAST_PULSAR_VERSION", c.version)
		layer := map[string]string{}
		if c.asked != "" {
			layer[key] = c.asked
		}
		if got := brokerConf("10.0.0.2", "10.0.0.11", layer)[key]; got != c.want {
			t.Errorf("Pulsar %s, asked for %q: %q, want %q", c.version, c.asked, got, c.want)
		}
	}
}

func TestAddress(t *testing.T) {
	subnet := netip.MustParsePrefix("198.18.7.0/24")
	if got := address(subnet, brokerAddress); got != netip.MustParseAddr("198.18.7.11") {
		t.Errorf("the first broker is %v", got)
	}
}

func TestCall(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/json":
			fmt.Fprint(w, `["b","a"]`)
		case "/there":
			http.Redirect(w, r, "/echo", http.StatusTemporaryRedirect)
		case "/echo":
			body := make([]byte, 64)
			n, _ := r.Body.Read(body)
			fmt.Fprintf(w, "%s %s", r.Method, body[:n])
		default:
			http.Error(w, "no such thing", http.StatusNotFound)
		}
	}))
	defer server.Close()
	var ids []string
	if err := call(t.Context(), "GET", server.URL+"/json", nil, &ids); err != nil || len(ids) != 2 {
		t.Errorf("JSON: %v, %v", ids, err)
	}
	var text string
	if err := call(t.Context(), "PUT", server.URL+"/there", map[string]int{"n": 8}, &text); err != nil || text != `PUT {"n":8}` {
		t.Errorf("a redirect of a PUT: %q, %v", text, err)
	}
	err := call(t.Context(), "GET", server.URL+"/gone", nil, nil)
	if status(err) != http.StatusNotFound || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("an error: %v", err)
	}
	if err := call(t.Context(), "GET", server.URL+"/echo", nil, &ids); err == nil || status(err) != 0 {
		t.Errorf("an answer that is no JSON: %v", err)
	}
}

func TestPoll(t *testing.T) {
	calls := 0
	err := poll(t.Context(), time.Minute, func(context.Context) error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("third time lucky: %v after %d calls", err, calls)
	}
	last := errors.New("the last word")
	if err := poll(t.Context(), time.Millisecond, func(context.Context) error { return last }); !errors.Is(err, last) {
		t.Errorf("at the limit: %v", err)
	}
	calls = 0
	if err := poll(t.Context(), time.Minute, func(context.Context) error { calls++; return permanent{last} }); !errors.Is(err, last) || calls != 1 {
		t.Errorf("a permanent error: %v after %d calls", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := poll(ctx, time.Minute, func(context.Context) error { return last }); !errors.Is(err, last) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestVersion(t *testing.T) {
	for _, c := range []struct{ image, version, want string }{
		{"", "", DefaultVersion},
		{"", "5.0.1", "5.0.1"},
		{"apachepulsar/pulsar:4.0.7", "5.0.1", "4.0.7"},
	} {
		t.Setenv("BALLAST_PULSAR_IMAGE", c.image)
		t.Setenv("BALLAST_PULSAR_VERSION", c.version)
		if got := Version(); got != c.want {
			t.Errorf("image %q, version %q: %s, want %s", c.image, c.version, got, c.want)
		}
	}
}

func TestComplaintsAndTail(t *testing.T) {
	log := "12:00 [main] INFO  A - fine\n12:01 [main] WARN  A - hm\n12:02 [main] ERROR A - oh\n"
	if got := complaints(log); strings.Contains(got, "fine") || !strings.Contains(got, "hm") || !strings.Contains(got, "oh") {
		t.Errorf("complaints %q", got)
	}
	if got := tail(log, 1); got != "12:02 [main] ERROR A - oh" {
		t.Errorf("tail %q", got)
	}
	if got := tail("", 5); got != "" {
		t.Errorf("tail of nothing %q", got)
	}
}
