package access

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPluginParams(t *testing.T) {
	const token, basic, tls, oauth2 = javaAuth + "AuthenticationToken", javaAuth + "AuthenticationBasic", javaAuth + "AuthenticationTls", javaAuth + "oauth2.AuthenticationOAuth2"
	for _, c := range []struct {
		plugin, text string
		want         map[string]string
		fault        string
	}{
		{token, "token:abc", map[string]string{"token": "abc"}, ""},
		{token, "file:///etc/token", map[string]string{"file": "/etc/token"}, ""},
		{token, "file:/etc/token", map[string]string{"file": "/etc/token"}, ""},
		{"token", `{"token":"abc"}`, map[string]string{"token": "abc"}, ""},
		{token, "hunter2", nil, "token:TEXT"},
		{token, `{"token":7}`, nil, "JSON object"},
		{basic, "me:pass:word", map[string]string{"username": "me", "password": "pass:word"}, ""},
		{basic, `{"userId":"me","password":"hunter2"}`, map[string]string{"userId": "me", "username": "me", "password": "hunter2"}, ""},
		{"basic", `{"username":"me","password":"x"}`, map[string]string{"username": "me", "password": "x"}, ""},
		{basic, "hunter2", nil, "USER:PASSWORD"},
		{tls, "tlsCertFile:/a.pem,tlsKeyFile:/b.pem", map[string]string{"tlsCertFile": "/a.pem", "tlsKeyFile": "/b.pem"}, ""},
		{tls, "tlsCertFile:/a.pem", nil, "no tlsKeyFile"},
		{oauth2, `{"issuerUrl":"http://i","privateKey":"file:///k"}`, map[string]string{"issuerUrl": "http://i", "privateKey": "file:///k", "type": "client_credentials"}, ""},
		{oauth2, "hunter2", nil, "issuerUrl"},
		{"athenz", `{"a":"b"}`, map[string]string{"a": "b"}, ""},
		{"athenz", "", map[string]string{}, ""},
	} {
		text, err := pluginParams(c.plugin, c.text)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s %q: error %v, want one about %q without the text", c.plugin, c.text, err, c.fault)
			}
			continue
		}
		got := map[string]string{}
		if err == nil {
			err = json.Unmarshal([]byte(text), &got)
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s %q: %v\n%s", c.plugin, c.text, err, diff)
		}
	}
}

func TestAuthShowsNoSecret(t *testing.T) {
	a := Auth{Token: "hunter2", Plugin: "token", Params: "token:hunter2", BasicPassword: "hunter2"}
	_, err := a.Provider()
	if err == nil || !strings.Contains(err.Error(), "more than one way in Auth: Token and BasicUser and Plugin") {
		t.Errorf("three ways at once: %v", err)
	}
	for _, text := range []string{fmt.Sprint(a), fmt.Sprintf("%+v %#v", a, a), a.LogValue().String(), fmt.Sprint(err)} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("it shows a secret: %s", text)
		}
	}
	if p, err := (Auth{}).Provider(); p != nil || err != nil {
		t.Errorf("no authentication: %v, %v", p, err)
	}
}

func TestTLSConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "no.pem")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]TLS{
		"no PEM certificate":   {TrustCertsFile: file},
		"TLS.TrustCertsFile":   {TrustCertsFile: file + ".none"},
		"want both or neither": {CertFile: file},
		"TLS.CertFile":         {CertFile: file, KeyFile: file},
	} {
		if _, err := c.Config(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error about %q", c, err, want)
		}
	}
	if c, err := (TLS{AllowInsecure: true}).Config(); err != nil || !c.InsecureSkipVerify {
		t.Errorf("any certificate: %+v, %v", c, err)
	}
}
