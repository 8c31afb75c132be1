package pulsar

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/oauth2"
	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/auth"
	"github.com/prometheus/client_golang/prometheus"
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

	Auth Auth
	TLS  TLS
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

// Auth is at most one way to authenticate.
type Auth struct {
	Token         string
	TokenFile     string // read anew for every connection and request
	CertFile      string // mutual TLS, with KeyFile
	KeyFile       string
	BasicUser     string
	BasicPassword string
	OAuth2        OAuth2
	// Plugin and Params name any other provider of the client library as Pulsar's tools do, Params as a JSON object.
	Plugin string
	Params string
}

// OAuth2 is the client-credentials flow.
type OAuth2 struct {
	IssuerURL string
	ClientID  string
	Audience  string
	Scope     string
	KeyFile   string // path or data: URL of the private key, as Pulsar's tools take it
}

// TLS says what to trust. Host names are always verified unless AllowInsecure.
type TLS struct {
	TrustCertsFile string // PEM; "" = the system's
	CertFile       string // client certificate of the transport, for when Auth is something else than mutual TLS
	KeyFile        string
	AllowInsecure  bool // accept any certificate
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

// provider makes the client library's authentication, nil for none.
func (a Auth) provider() (auth.Provider, error) {
	var ways []string
	var build func() (auth.Provider, error)
	way := func(name string, set bool, f func() (auth.Provider, error)) {
		if set {
			ways, build = append(ways, name), f
		}
	}
	way("Token", a.Token != "", func() (auth.Provider, error) { return auth.NewAuthenticationToken(a.Token), nil })
	way("TokenFile", a.TokenFile != "", func() (auth.Provider, error) { return auth.NewAuthenticationTokenFromFile(a.TokenFile), nil })
	way("CertFile", a.CertFile != "" || a.KeyFile != "", func() (auth.Provider, error) {
		return auth.NewAuthenticationTLS(a.CertFile, a.KeyFile), nil
	})
	way("BasicUser", a.BasicUser != "" || a.BasicPassword != "", func() (auth.Provider, error) {
		return auth.NewAuthenticationBasic(a.BasicUser, a.BasicPassword)
	})
	way("OAuth2", a.OAuth2 != OAuth2{}, a.OAuth2.provider)
	way("Plugin", a.Plugin != "", func() (auth.Provider, error) { return auth.NewProvider(a.Plugin, or(a.Params, "{}")) })
	if len(ways) > 1 {
		return nil, fmt.Errorf("more than one way in Auth: %s: want one of them", strings.Join(ways, " and "))
	}
	if build == nil {
		return nil, nil
	}
	p, err := build()
	if err == nil {
		err = p.Init()
	}
	if err != nil {
		return nil, fmt.Errorf("authentication by %s: %w", ways[0], err)
	}
	return p, nil
}

// provider checks what the library would find out only when it connects.
func (o OAuth2) provider() (auth.Provider, error) {
	if o.IssuerURL == "" || o.KeyFile == "" {
		return nil, errors.New("want an IssuerURL and a KeyFile")
	}
	if _, err := oauth2.NewClientCredentialsProviderFromKeyFile(o.KeyFile).GetClientCredentials(); err != nil {
		return nil, fmt.Errorf("KeyFile: %w", err)
	}
	return auth.NewAuthenticationOAuth2WithParams(map[string]string{
		auth.ConfigParamType: auth.ConfigParamTypeClientCredentials, auth.ConfigParamIssuerURL: o.IssuerURL,
		auth.ConfigParamClientID: o.ClientID, auth.ConfigParamAudience: o.Audience,
		auth.ConfigParamScope: o.Scope, auth.ConfigParamKeyFile: o.KeyFile})
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
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: o.TLS.AllowInsecure}
	if f := o.TLS.TrustCertsFile; f != "" {
		pem, err := os.ReadFile(f)
		if err != nil {
			return nil, nil, fmt.Errorf("TLS.TrustCertsFile: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, nil, fmt.Errorf("TLS.TrustCertsFile %s holds no PEM certificate", f)
		}
	}
	if (o.TLS.CertFile == "") != (o.TLS.KeyFile == "") {
		return nil, nil, errors.New("TLS.CertFile and TLS.KeyFile: want both or neither")
	}
	if o.TLS.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(o.TLS.CertFile, o.TLS.KeyFile)
		if err != nil {
			return nil, nil, fmt.Errorf("TLS.CertFile: %w", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{cert}
	}
	if p == nil {
		return &http.Client{Transport: transport}, transport.CloseIdleConnections, nil
	}
	if err := p.WithTransport(transport); err != nil {
		return nil, nil, fmt.Errorf("authenticate to AdminURL: %w", err)
	}
	return &http.Client{Transport: p}, transport.CloseIdleConnections, nil
}
