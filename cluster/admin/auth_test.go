package admin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/access"
	"github.com/ballast-lb/ballast/cluster/admin"
)

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func TestOAuth2(t *testing.T) {
	issuer := newFake(t)
	issuer.on("GET /.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		text(200, fmt.Sprintf(`{"token_endpoint":%q}`, issuer.URL+"/token"))(w, r)
	})
	issuer.on("POST /token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text(200, `{"access_token":"a.b.c","token_type":"Bearer","expires_in":3600}`)(w, r)
	})
	key := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(key, fmt.Appendf(nil, `{"type":"client_credentials","client_id":"me","client_secret":"hunter2","issuer_url":%q}`, issuer.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	var got atomic.Value
	f := newFake(t).on("GET /admin/v2/brokers", func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		text(200, `["b:1"]`)(w, r)
	})
	o := admin.Options{Auth: access.Auth{OAuth2: access.OAuth2{IssuerURL: issuer.URL, ClientID: "me", Audience: "urn:pulsar", Scope: "all", KeyFile: key}}}
	client := newClient(t, o, f.URL)
	if ids, err := client.BrokerIDs(t.Context()); err != nil || len(ids) != 1 || got.Load() != "Bearer a.b.c" {
		t.Errorf("%v, %v, %v", ids, err, got.Load())
	}
	if asked := strings.Join(issuer.requests(), "\n"); !strings.Contains(asked, "audience=urn%3Apulsar") || !strings.Contains(asked, "scope=all") {
		t.Errorf("the issuer was asked:\n%s", asked)
	}
	http.DefaultClient.CloseIdleConnections() // the library's own
	issuer.on("POST /token", text(401, `{"error":"invalid_client"}`))
	o.URLs = []string{f.URL}
	refused, err := admin.New(o)
	if err == nil {
		_, err = refused.BrokerIDs(t.Context())
		_ = refused.Close()
	}
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a client that the issuer refuses: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestMutualTLS(t *testing.T) {
	cert, key := certificate(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text(200, fmt.Sprintf("[%q]", r.TLS.PeerCertificates[0].Subject.CommonName+":1"))(w, r)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	s.StartTLS()
	t.Cleanup(s.Close)
	files := map[string][]byte{"cert": cert, "key": key, "ca": pemOf(s)}
	for name, b := range files {
		files[name] = []byte(filepath.Join(t.TempDir(), name))
		if err := os.WriteFile(string(files[name]), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trust := access.TLS{TrustCertsFile: string(files["ca"])}
	for name, o := range map[string]admin.Options{
		"authentication": {TLS: trust, Auth: access.Auth{CertFile: string(files["cert"]), KeyFile: string(files["key"])}},
		"transport":      {TLS: access.TLS{TrustCertsFile: trust.TrustCertsFile, CertFile: string(files["cert"]), KeyFile: string(files["key"])}, Auth: access.Auth{Token: "x"}},
	} {
		if ids, err := newClient(t, o, s.URL).BrokerIDs(t.Context()); err != nil || len(ids) != 1 || ids[0] != "ballast:1" {
			t.Errorf("%s: %v, %v", name, ids, err)
		}
	}
	_, err := newClient(t, admin.Options{TLS: trust, Retries: -1}, s.URL).BrokerIDs(t.Context())
	checkError(t, err, admin.Unreachable, true, true)
}

// certificate makes a self-signed client certificate.
func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ballast"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}
