// Package access says how to authenticate to a cluster and whom to trust. The topics and admin REST use the same.
package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/apache/pulsar-client-go/oauth2"
	"github.com/apache/pulsar-client-go/pulsar/auth"
)

// Auth is at most one way to authenticate. It never shows its secrets when it is printed or logged.
type Auth struct {
	Token         string
	TokenFile     string // read anew for every connection and request
	CertFile      string // mutual TLS, with KeyFile
	KeyFile       string
	BasicUser     string
	BasicPassword string
	OAuth2        OAuth2
	// Plugin and Params name any other provider of the client library as Pulsar's client.conf does.
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

// String names the way without its secrets.
func (a Auth) String() string {
	if ways := a.ways(); len(ways) > 0 {
		return strings.Join(ways, "+")
	}
	return "none"
}

// GoString keeps secrets out of %#v.
func (a Auth) GoString() string { return "access.Auth{" + a.String() + "}" }

// LogValue keeps secrets out of logs.
func (a Auth) LogValue() slog.Value { return slog.StringValue(a.String()) }

// None says whether there is no way to authenticate.
func (a Auth) None() bool { return len(a.ways()) == 0 }

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

// Provider makes the client library's authentication, nil for none. Its errors name the field.
func (a Auth) Provider() (auth.Provider, error) {
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
		return a.OAuth2.provider()
	}
	params, err := pluginParams(a.Plugin, a.Params)
	if err != nil {
		return nil, err
	}
	return auth.NewProvider(a.Plugin, params)
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

// Config is the TLS configuration of a client. Its errors name the field.
func (t TLS) Config() (*tls.Config, error) {
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
