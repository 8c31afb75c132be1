package main

import (
	"testing"

	"github.com/ballast-lb/ballast/settings"
)

// A client certificate authenticates when nothing else does; beside a token it is the transport's.
func TestClientCertificate(t *testing.T) {
	for _, c := range []struct {
		token                string
		authCert, transports string
	}{{"", "cert.pem", ""}, {"secret", "", "cert.pem"}} {
		b := settings.DefaultBallast()
		b.Token, b.TLSCertFile, b.TLSKeyFile = c.token, "cert.pem", "key.pem"
		p := pulsarOptions(b, nil)
		a, err := adminOptions(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []struct{ where, auth, transport string }{
			{"topics", p.Auth.CertFile, p.TLS.CertFile}, {"admin", a.Auth.CertFile, a.TLS.CertFile}} {
			if got.auth != c.authCert || got.transport != c.transports {
				t.Errorf("%s with token %q: the certificate authenticates as %q and is the transport's as %q, want %q and %q",
					got.where, c.token, got.auth, got.transport, c.authCert, c.transports)
			}
		}
	}
}

func TestNegativeCounts(t *testing.T) {
	for _, command := range []string{"tail", "monitor"} {
		fails(t, nil, []string{command, "--count", "-3", "--admin-service-url", unreachable}, "--count", "-3")
	}
	fails(t, nil, []string{"config", "-o", "xml", "--admin-service-url", unreachable}, "--output", "xml") // before the cluster is asked
}
