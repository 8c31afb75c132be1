package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar/auth"
)

// javaAuth is the package of the authentication classes of Pulsar's own clients.
const javaAuth = "org.apache.pulsar.client.impl.auth."

// pluginParams are the parameters of a plug-in as the client library reads them: a JSON object. A client.conf may have them as
// Pulsar's own clients take them besides: token:TEXT or file:PATH, USER:PASSWORD, tlsCertFile:PATH,tlsKeyFile:PATH.
// Pulsar: AuthenticationToken, AuthenticationBasic, AuthenticationTls, AuthenticationOAuth2. Errors do not show the text,
// which may be a secret.
func pluginParams(plugin, text string) (string, error) {
	params, object := map[string]string{}, strings.HasPrefix(strings.TrimSpace(text), "{")
	if object {
		if json.Unmarshal([]byte(text), &params) != nil {
			return "", errors.New("authParams is no JSON object of texts")
		}
	}
	switch plugin {
	case "token", javaAuth + "AuthenticationToken":
		kind, rest, _ := strings.Cut(text, ":")
		switch {
		case object:
		case kind == "token":
			params["token"] = rest
		case kind == "file":
			params["file"] = strings.TrimPrefix(rest, "//")
		default:
			return "", errors.New(`authParams must be token:TEXT, file:PATH or {"token": "..."}`)
		}
	case "basic", javaAuth + "AuthenticationBasic":
		user, password, ok := strings.Cut(text, ":")
		switch {
		case object:
			if id, ok := params["userId"]; ok {
				params["username"] = id
			}
		case ok:
			params["username"], params["password"] = user, password
		default:
			return "", errors.New(`authParams must be USER:PASSWORD or {"userId": "...", "password": "..."}`)
		}
	case "tls", javaAuth + "AuthenticationTls":
		if !object {
			for pair := range strings.SplitSeq(text, ",") {
				key, value, _ := strings.Cut(pair, ":")
				params[strings.TrimSpace(key)] = value
			}
		}
		for _, key := range []string{"tlsCertFile", "tlsKeyFile"} {
			if params[key] == "" {
				return "", fmt.Errorf("authParams has no %s; it must be tlsCertFile:PATH,tlsKeyFile:PATH", key)
			}
		}
	case "oauth2", javaAuth + "oauth2.AuthenticationOAuth2":
		if !object {
			return "", errors.New(`authParams must be {"issuerUrl": "...", "privateKey": "...", "audience": "..."}`)
		}
		if params[auth.ConfigParamType] == "" {
			params[auth.ConfigParamType] = auth.ConfigParamTypeClientCredentials
		}
	default:
		if text == "" {
			return "{}", nil
		}
		return text, nil
	}
	b, err := json.Marshal(params)
	return string(b), err
}
