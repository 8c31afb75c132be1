package pulsar

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/auth"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ballast-lb/ballast/access"
)

// Options say how to reach a cluster. ServiceURL and AdminURL are required; every zero value has a default.
type Options struct {
	// ServiceURL is the brokers' binary address: pulsar://host:6650[,host:6650...] or pulsar+ssl://...
	ServiceURL string
	// AdminURL is the brokers' web address: http://host:8080[,host:8080...] or https://... What the client library drops
	// is fetched there, and schemas are compared there.
	AdminURL string
	// AdminClient talks to AdminURL; nil = one made from Auth and TLS. It must follow redirects and authenticate each hop.
	AdminClient *http.Client

	Auth access.Auth
	TLS  access.TLS
	// ListenerName chooses among the brokers' advertised listeners.
	ListenerName string

	ConnectTimeout   time.Duration // for one TCP connection; 0 = 5 s
	OperationTimeout time.Duration // for a lookup, subscribe, create producer, or admin request; 0 = 15 s
	SendTimeout      time.Duration // until an unacknowledged event fails; 0 = 5 s. A lock wants it short.
	KeepAlive        time.Duration // ping interval that finds dead connections; 0 = 10 s
	MaxBackoff       time.Duration // longest pause between attempts to reconnect; 0 = 3 s

	// TailCheck is how often an idle persistent subscription asks for the last entry of its topic; 0 = 15 s. It finds a
	// dropped message at the end of the topic that nothing else announced.
	TailCheck time.Duration
	// Patience is how long a missing entry is asked for before it is given up as lost; 0 = 30 s.
	Patience time.Duration
	// Audit is how often a non-persistent subscription asks the broker whether it still exists; 0 = 30 s.
	Audit time.Duration

	ReceiverQueue int // messages that wait in the client for one subscription; 0 = 1000
	MaxPayload    int // bytes; larger messages are left out and counted in Status.Skipped; 0 = 5 MiB

	Logger  *slog.Logger          // nil = slog.Default()
	Metrics prometheus.Registerer // for the client library's own metrics; nil = not published
	Now     func() time.Time      // stamps messages and measures blindness; nil = time.Now
}

func or[T comparable](v, zero T) T {
	var none T
	if v == none {
		return zero
	}
	return v
}

// withDefaults fills in the zero values.
func (o Options) withDefaults() Options {
	o.ConnectTimeout = or(o.ConnectTimeout, 5*time.Second)
	o.OperationTimeout = or(o.OperationTimeout, 15*time.Second)
	o.SendTimeout = or(o.SendTimeout, 5*time.Second)
	o.KeepAlive = or(o.KeepAlive, 10*time.Second)
	o.MaxBackoff = or(o.MaxBackoff, 3*time.Second)
	o.TailCheck = or(o.TailCheck, 15*time.Second)
	o.Patience = or(o.Patience, 30*time.Second)
	o.Audit = or(o.Audit, 30*time.Second)
	o.ReceiverQueue = or(o.ReceiverQueue, 1000)
	o.MaxPayload = or(o.MaxPayload, 5<<20)
	o.Logger = or(o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// check refuses what cannot work, naming the field.
func (o Options) check() error {
	if err := checkURL("ServiceURL", o.ServiceURL, "pulsar", "pulsar+ssl"); err != nil {
		return err
	}
	if err := checkURL("AdminURL", o.AdminURL, "http", "https"); err != nil {
		return err
	}
	for name, d := range map[string]time.Duration{"ConnectTimeout": o.ConnectTimeout, "OperationTimeout": o.OperationTimeout,
		"SendTimeout": o.SendTimeout, "KeepAlive": o.KeepAlive, "MaxBackoff": o.MaxBackoff, "TailCheck": o.TailCheck,
		"Patience": o.Patience, "Audit": o.Audit} {
		if d < 0 {
			return fmt.Errorf("%s is %v: want a positive duration, or 0 for the default", name, d)
		}
	}
	if o.ReceiverQueue < 0 || o.MaxPayload < 0 {
		return fmt.Errorf("ReceiverQueue is %d, MaxPayload is %d: want positive numbers, or 0 for the default", o.ReceiverQueue, o.MaxPayload)
	}
	return nil
}

// checkURL checks scheme://host:port[,host:port...].
func checkURL(field, value string, schemes ...string) error {
	want := fmt.Sprintf("want %s://host:port or %s://host:port", schemes[0], schemes[1])
	if value == "" {
		return fmt.Errorf("%s is empty: %s", field, want)
	}
	scheme, hosts, ok := strings.Cut(value, "://")
	if !ok || (scheme != schemes[0] && scheme != schemes[1]) {
		return fmt.Errorf("%s is %q: %s", field, value, want)
	}
	for host := range strings.SplitSeq(hosts, ",") {
		u, err := url.Parse(scheme + "://" + host)
		if err != nil || u.Hostname() == "" || u.User != nil || (u.Path != "" && u.Path != "/") {
			return fmt.Errorf("%s is %q: %q is no host: %s", field, value, host, want)
		}
	}
	return nil
}

// clientOptions are the client library's options. ValidateHostname stays off: the library verifies host names anyway, and
// with it would expect every broker's certificate to carry the first host of the service URL.
func (o Options) clientOptions(p auth.Provider, logger *clientLogger) client.ClientOptions {
	c := client.ClientOptions{
		URL: o.ServiceURL, ConnectionTimeout: o.ConnectTimeout, OperationTimeout: o.OperationTimeout, KeepAliveInterval: o.KeepAlive,
		TLSTrustCertsFilePath: o.TLS.TrustCertsFile, TLSAllowInsecureConnection: o.TLS.AllowInsecure,
		TLSCertificateFile: o.TLS.CertFile, TLSKeyFilePath: o.TLS.KeyFile,
		ListenerName: o.ListenerName, Logger: logger, MetricsRegisterer: o.Metrics, Description: "ballast",
	}
	if c.MetricsRegisterer == nil {
		c.MetricsRegisterer = prometheus.NewRegistry()
	}
	if p != nil {
		c.Authentication = p
	}
	return c
}

// adminClient makes an HTTP client with the same trust and authentication, and the means to close its connections.
func (o Options) adminClient(p auth.Provider) (c *http.Client, closeIdle func(), err error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if transport.TLSClientConfig, err = o.TLS.Config(); err != nil {
		return nil, nil, err
	}
	if p == nil {
		return &http.Client{Transport: transport}, transport.CloseIdleConnections, nil
	}
	if err := p.WithTransport(transport); err != nil {
		return nil, nil, fmt.Errorf("authenticate to AdminURL: %w", err)
	}
	return &http.Client{Transport: p}, transport.CloseIdleConnections, nil
}
