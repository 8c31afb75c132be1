package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/access"
)

// Options say how to reach the web service of a cluster. URLs is required; every zero value has a default.
type Options struct {
	// URLs are web service addresses: http://host:8080 or https://host:8443. One may hold several hosts, separated by
	// commas, as in webServiceUrl. When one does not answer the next is tried, and kept.
	URLs []string
	// Addresses says where to connect to instead of an address that brokers name (host:port to host:port), for when
	// their own addresses cannot be reached from here. Certificates are still checked for the broker's own name.
	Addresses map[string]string

	Auth access.Auth
	TLS  access.TLS
	// Transport carries the requests instead of a transport made from Addresses, Auth and TLS.
	Transport http.RoundTripper

	ConnectTimeout time.Duration // for one TCP connection; 0 = 5 s
	ReadTimeout    time.Duration // for one attempt of a read; 0 = 15 s
	WriteTimeout   time.Duration // for an unload or split, which brokers answer when it is done; 0 = 75 s
	Retries        int           // of reads, each at every URL; 0 = 2, -1 = none
	RetryWait      time.Duration // before the first repetition, then growing; 0 = 200 ms

	Concurrent int     // requests at once when brokers or namespaces are asked one by one; 0 = 8
	BulkRate   float64 // such requests per second; 0 = 200
	MaxAnswer  int64   // bytes of one answer; 0 = 16 MiB. Statistics and metrics may take 32 times as much.

	Logger *slog.Logger     // nil = slog.Default()
	Now    func() time.Time // stamps estimates; nil = time.Now
}

func or[T comparable](v, byDefault T) T {
	var zero T
	if v == zero {
		return byDefault
	}
	return v
}

func (o Options) withDefaults() Options {
	o.ConnectTimeout = or(o.ConnectTimeout, 5*time.Second)
	o.ReadTimeout = or(o.ReadTimeout, 15*time.Second)
	o.WriteTimeout = or(o.WriteTimeout, 75*time.Second)
	o.Retries = or(o.Retries, 2)
	o.RetryWait = or(o.RetryWait, 200*time.Millisecond)
	o.Concurrent = or(o.Concurrent, 8)
	o.BulkRate = or(o.BulkRate, 200)
	o.MaxAnswer = or(o.MaxAnswer, 16<<20)
	o.Logger = or(o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// bases checks the options and gives the addresses to ask.
func (o Options) bases() ([]*url.URL, error) {
	for name, d := range map[string]time.Duration{"ConnectTimeout": o.ConnectTimeout, "ReadTimeout": o.ReadTimeout,
		"WriteTimeout": o.WriteTimeout, "RetryWait": o.RetryWait} {
		if d < 0 {
			return nil, fmt.Errorf("option %s is %v: want a positive duration, or 0 for the default", name, d)
		}
	}
	if o.Retries < -1 || o.Concurrent < 0 || !(o.BulkRate >= 0) || o.MaxAnswer < 0 {
		return nil, fmt.Errorf("option Retries is %d, Concurrent %d, BulkRate %v, MaxAnswer %d: want positive numbers, or 0 for the default",
			o.Retries, o.Concurrent, o.BulkRate, o.MaxAnswer)
	}
	if o.Transport != nil && (len(o.Addresses) > 0 || o.TLS != access.TLS{} || !o.Auth.None()) {
		return nil, errors.New("option Transport is set beside Addresses, Auth or TLS: want one or the other")
	}
	var out []*url.URL
	for _, list := range o.URLs {
		scheme, hosts, found := strings.Cut(strings.TrimSpace(list), "://")
		if !found || scheme != "http" && scheme != "https" {
			return nil, fmt.Errorf("option URLs: %q: want http://host:port or https://host:port", withoutPassword(list))
		}
		for host := range strings.SplitSeq(hosts, ",") {
			u, err := url.Parse(scheme + "://" + strings.TrimSuffix(host, "/"))
			if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
				return nil, fmt.Errorf("option URLs: %q: want %s://host:port, credentials go into Auth", withoutPassword(list), scheme)
			}
			out = append(out, u)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("option URLs is empty: want the web service address of a broker, http://host:8080")
	}
	return out, nil
}

// withoutPassword hides what may be a password in an address that could not be used.
func withoutPassword(address string) string {
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		return "...@" + address[i+1:]
	}
	return address
}
