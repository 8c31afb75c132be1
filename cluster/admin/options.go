package admin

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

	"github.com/apache/pulsar-client-go/pulsar/auth"
)

// Options say how to reach the web service of a cluster. URLs is required; every zero value has a default.
type Options struct {
	// URLs are web service addresses: http://host:8080 or https://host:8443. One may hold several hosts, separated by
	// commas, as in webServiceUrl. When one does not answer the next is tried, and kept.
	URLs []string
	// Addresses says where to connect to instead of an address that brokers name (host:port to host:port), for when
	// their own addresses cannot be reached from here. Certificates are still checked for the broker's own name.
	Addresses map[string]string

	Auth Auth
	TLS  TLS
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

// Auth is at most one way to authenticate.
type Auth struct {
	Token         string
	TokenFile     string // read anew for every request
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
	CertFile       string // client certificate, for when Auth is something else than mutual TLS
	KeyFile        string
	AllowInsecure  bool // accept any certificate
}

// String names the way without its secrets.
func (a Auth) String() string {
	if ways := a.ways(); len(ways) > 0 {
		return strings.Join(ways, "+")
	}
	return "none"
}

// GoString keeps secrets out of %#v.
func (a Auth) GoString() string { return "admin.Auth{" + a.String() + "}" }

// LogValue keeps secrets out of logs.
func (a Auth) LogValue() slog.Value { return slog.StringValue(a.String()) }

func (a Auth) ways() (out []string) {
	for _, w := range []struct {
		name string
		set  bool
	}{
		{"Token", a.Token != ""},
		{"TokenFile", a.TokenFile != ""},
		{"CertFile", a.CertFile != "" || a.KeyFile != ""},
		{"BasicUser", a.BasicUser != "" || a.BasicPassword != ""},
		{"OAuth2", a.OAuth2 != OAuth2{}},
		{"Plugin", a.Plugin != ""},
	} {
		if w.set {
			out = append(out, w.name)
		}
	}
	return out
}

// provider makes the client library's authentication, nil for none.
func (a Auth) provider() (auth.Provider, error) {
	ways := a.ways()
	switch len(ways) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, fmt.Errorf("more than one way in Auth: %s: want one of them", strings.Join(ways, " and "))
	}
	p, err := a.build(ways[0])
	if err == nil {
		err = p.Init()
	}
	if err != nil {
		return nil, fmt.Errorf("option Auth.%s: %w", ways[0], err)
	}
	return p, nil
}

func (a Auth) build(way string) (auth.Provider, error) {
	switch way {
	case "Token":
		return auth.NewAuthenticationToken(a.Token), nil
	case "TokenFile":
		return auth.NewAuthenticationTokenFromFile(a.TokenFile), nil
	case "CertFile":
		if a.CertFile == "" || a.KeyFile == "" {
			return nil, errors.New("want both CertFile and KeyFile")
		}
		return auth.NewAuthenticationTLS(a.CertFile, a.KeyFile), nil
	case "BasicUser":
		return auth.NewAuthenticationBasic(a.BasicUser, a.BasicPassword)
	case "OAuth2":
		o := a.OAuth2
		return auth.NewAuthenticationOAuth2WithParams(map[string]string{
			auth.ConfigParamType: auth.ConfigParamTypeClientCredentials, auth.ConfigParamIssuerURL: o.IssuerURL,
			auth.ConfigParamClientID: o.ClientID, auth.ConfigParamAudience: o.Audience,
			auth.ConfigParamScope: o.Scope, auth.ConfigParamKeyFile: o.KeyFile})
	}
	params := a.Params
	if params == "" {
		params = "{}"
	}
	return auth.NewProvider(a.Plugin, params)
}

func (t TLS) config() (*tls.Config, error) {
	out := &tls.Config{InsecureSkipVerify: t.AllowInsecure}
	if t.TrustCertsFile != "" {
		pem, err := os.ReadFile(t.TrustCertsFile)
		if err != nil {
			return nil, fmt.Errorf("option TLS.TrustCertsFile: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("option TLS.TrustCertsFile %s holds no PEM certificate", t.TrustCertsFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("option TLS.CertFile and TLS.KeyFile: want both or neither")
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("option TLS.CertFile: %w", err)
		}
		out.Certificates = []tls.Certificate{cert}
	}
	return out, nil
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
	if o.Transport != nil && (len(o.Addresses) > 0 || o.TLS != TLS{} || len(o.Auth.ways()) > 0) {
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
