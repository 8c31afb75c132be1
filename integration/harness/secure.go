package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Super is the role that may do everything in a secure cluster; the brokers and the harness act as it.
const Super = "super"

// BasicUser and BasicPassword are a super-user's name and password in a secure cluster.
const (
	BasicUser     = "operator"
	BasicPassword = "correct-horse"
)

// basicUsers is the file of users that brokers read: BasicUser with the salted MD5 of BasicPassword (openssl passwd -apr1).
const basicUsers = BasicUser + ":$apr1$ballast0$uTIKidGinybYa4e6ktlzy.\n"

const tlsFolder = "/pulsar/conf/tls/"

// Secure makes a cluster authenticate (tokens, client certificates, names with passwords) and authorize, and opens TLS ports
// beside the plain ones: 8443 and 6651.
type Secure struct {
	secret    []byte // of the tokens
	authority *x509.Certificate
	key       *ecdsa.PrivateKey
	dir       string // of the files for clients
}

// NewSecure makes the keys of a secure cluster. Their files are kept until the test ends.
func NewSecure(t testing.TB) *Secure {
	t.Helper()
	s := &Secure{secret: make([]byte, 32), dir: t.TempDir()}
	rand.Read(s.secret) // never fails
	var err error
	if s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &s.key.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	if s.authority, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return s
}

// Token is a token of a role that never ends.
func (s *Secure) Token(role string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256"}`)) + "." + encode(fmt.Appendf(nil, `{"sub":%q}`, role))
	mac := hmac.New(sha256.New, s.secret)
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

// Trust is the file of the authority that signed the brokers' certificates.
func (s *Secure) Trust(t testing.TB) string {
	t.Helper()
	return s.file(t, "authority.pem", encodePEM("CERTIFICATE", s.authority.Raw))
}

// Certificate is the files of a client certificate of a role.
func (s *Secure) Certificate(t testing.TB, role string) (cert, key string) {
	t.Helper()
	c, k, err := s.sign(role, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.file(t, role+".pem", c), s.file(t, role+"-key.pem", k)
}

// File writes a file for a client, such as one with a token.
func (s *Secure) File(t testing.TB, name, text string) string {
	t.Helper()
	return s.file(t, name, []byte(text))
}

func (s *Secure) file(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *Secure) sign(name string, ip net.IP) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	if ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.authority, &private.PublicKey, s.key)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return encodePEM("CERTIFICATE", der), encodePEM("PRIVATE KEY", pkcs8), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// files are what a broker needs in its container, by path.
func (s *Secure) files(ip netip.Addr) (map[string][]byte, error) {
	cert, key, err := s.sign(ip.String(), net.IP(ip.AsSlice()))
	if err != nil {
		return nil, fmt.Errorf("certificate of %v: %w", ip, err)
	}
	return map[string][]byte{tlsFolder + "broker.pem": cert, tlsFolder + "broker-key.pem": key,
		tlsFolder + "authority.pem": encodePEM("CERTIFICATE", s.authority.Raw)}, nil
}

// conf is what it takes in broker.conf.
func (s *Secure) conf() map[string]string {
	const provider, plugin = "org.apache.pulsar.broker.authentication.AuthenticationProvider", "org.apache.pulsar.client.impl.auth.AuthenticationToken"
	data := func(b []byte) string { return "data:;base64," + base64.StdEncoding.EncodeToString(b) }
	return map[string]string{
		"authenticationEnabled":                "true",
		"authenticationProviders":              provider + "Token," + provider + "Tls," + provider + "Basic",
		"authorizationEnabled":                 "true",
		"superUserRoles":                       Super + "," + BasicUser,
		"tokenSecretKey":                       data(s.secret),
		"basicAuthConf":                        data([]byte(basicUsers)),
		"brokerClientAuthenticationPlugin":     plugin,
		"brokerClientAuthenticationParameters": "token:" + s.Token(Super),
		"brokerServicePortTls":                 "6651",
		"webServicePortTls":                    "8443",
		"tlsCertificateFilePath":               tlsFolder + "broker.pem",
		"tlsKeyFilePath":                       tlsFolder + "broker-key.pem",
		"tlsTrustCertsFilePath":                tlsFolder + "authority.pem",
	}
}

// tokens are what the harness authenticates with, by address; none for clusters that are not secure.
var tokens sync.Map

// authorized adds the token of the host that a request goes to, also after a redirect to another broker.
type authorized struct{ http.RoundTripper }

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	if token, ok := tokens.Load(r.URL.Hostname()); ok {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token.(string))
	}
	return a.RoundTripper.RoundTrip(r)
}
