package settings

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/internal/schedule"
)

// CheckBallast finds values of Ballast's own settings that make no sense, alone or together.
func CheckBallast(b *Ballast) []Problem {
	c := &ballastChecker{Ballast: b}
	c.addresses()
	c.authentication()
	c.running()
	c.reporting()
	c.channel()
	c.load()
	return c.problems
}

type ballastChecker struct {
	*Ballast
	problems []Problem
}

func (c *ballastChecker) report(bad bool, severity Severity, code string, keys []string, format string, args ...any) {
	if bad {
		c.problems = append(c.problems, Problem{Severity: severity, Code: code, Keys: keys, Text: fmt.Sprintf(format, args...)})
	}
}

func (c *ballastChecker) addresses() {
	c.address("serviceUrl", c.ServiceURL, "pulsar", "pulsar+ssl")
	c.address("webServiceUrl", c.WebServiceURL, "http", "https")
	if c.BallastHTTPListenAddress != "" {
		_, _, err := net.SplitHostPort(c.BallastHTTPListenAddress)
		c.report(err != nil, Error, "LISTEN_ADDRESS", []string{"ballastHttpListenAddress"},
			"ballastHttpListenAddress is %q: it must be host:port, or empty for none", c.BallastHTTPListenAddress)
	}
	seen := map[string]bool{}
	for _, pair := range c.BallastBrokerAddresses {
		broker, address, _ := strings.Cut(pair, "=")
		_, _, err := net.SplitHostPort(address)
		c.report(broker == "" || err != nil, Error, "BROKER_ADDRESS", []string{"ballastBrokerAddresses"},
			"ballastBrokerAddresses has %q: it must be brokerId=host:port", pair)
		c.report(seen[broker], Error, "BROKER_ADDRESS_TWICE", []string{"ballastBrokerAddresses"}, "ballastBrokerAddresses names broker %q twice", broker)
		seen[broker] = true
	}
}

// address checks a service URL, which may list several hosts ("pulsar://a:6650,b:6650"). User information is not shown.
func (c *ballastChecker) address(key, text string, schemes ...string) {
	scheme, hosts, ok := strings.Cut(text, "://")
	right := strings.Join(schemes, "://host:port or ") + "://host:port"
	if !ok || !slices.Contains(schemes, scheme) {
		c.report(true, Error, "ADDRESS", []string{key}, "%s is %q: it must be %s", key, withoutUser(text), right)
		return
	}
	for host := range strings.SplitSeq(strings.TrimRight(hosts, "/"), ",") {
		u, err := url.Parse(scheme + "://" + host)
		c.report(err != nil || u.Hostname() == "", Error, "ADDRESS", []string{key}, "%s is %q: it must be %s", key, withoutUser(text), right)
	}
}

func withoutUser(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		return scheme + "://" + masked + rest[i:]
	}
	return text
}

func (c *ballastChecker) authentication() {
	c.report(c.Token != "" && c.TokenFile != "", Error, "TOKEN_TWICE", []string{"token", "tokenFile"}, "token and tokenFile are both set: set one")
	c.report((c.Token != "" || c.TokenFile != "") && c.AuthPlugin != "", Error, "TWO_AUTHENTICATIONS", []string{"authPlugin", "token", "tokenFile"},
		"authPlugin=%s and a token are both set: set one", c.AuthPlugin)
	c.report(c.AuthParams != "" && c.AuthPlugin == "", Error, "AUTH_PARAMS_ALONE", []string{"authParams", "authPlugin"},
		"authParams is set without authPlugin: name the plug-in too")
	c.report((c.TLSCertFile == "") != (c.TLSKeyFile == ""), Error, "CERTIFICATE_WITHOUT_KEY", []string{"tlsCertFile", "tlsKeyFile"},
		"tlsCertFile=%q and tlsKeyFile=%q: set both or neither", c.TLSCertFile, c.TLSKeyFile)
	c.report((c.IssuerEndpoint == "") != (c.KeyFile == ""), Error, "OAUTH_INCOMPLETE", []string{"issuerEndpoint", "keyFile"},
		"issuerEndpoint=%q and keyFile=%q: OAuth 2.0 needs both", c.IssuerEndpoint, c.KeyFile)
	secure := strings.HasPrefix(c.ServiceURL, "pulsar+ssl:") || strings.HasPrefix(c.WebServiceURL, "https:")
	c.report(!secure && (c.TLSTrustCertsFilePath != "" || c.TLSEnableHostnameVerification), Warning, "TLS_UNUSED",
		[]string{"serviceUrl", "webServiceUrl", "tlsTrustCertsFilePath", "tlsEnableHostnameVerification"},
		"TLS is set up, but neither serviceUrl nor webServiceUrl uses it: write pulsar+ssl:// and https://")
	c.report(c.TLSAllowInsecureConnection && c.TLSEnableHostnameVerification, Error, "TLS_CONTRADICTION",
		[]string{"tlsAllowInsecureConnection", "tlsEnableHostnameVerification"},
		"tlsAllowInsecureConnection=true accepts any certificate, so tlsEnableHostnameVerification=true cannot hold: set one to false")
}

func (c *ballastChecker) running() {
	c.report(c.BallastTakeOver && c.BallastMode != "govern", Error, "TAKE_OVER_WITHOUT_GOVERN", []string{"ballastTakeOver", "ballastMode"},
		"ballastTakeOver=true with ballastMode=%s: only govern acts; set ballastMode=govern or leave ballastTakeOver out", c.BallastMode)
	c.report(c.BallastBundleCoolDown < c.BallastCycleInterval, Warning, "COOL_DOWN_BELOW_CYCLE", []string{"ballastBundleCoolDown", "ballastCycleInterval"},
		"ballastBundleCoolDown=%s is shorter than ballastCycleInterval=%s: a bundle may move in every cycle", c.BallastBundleCoolDown, c.BallastCycleInterval)
	c.report(c.BallastOscillationWindow > 0 && c.BallastOscillationTurns > 0 && c.BallastBundleCoolDown >= c.BallastOscillationWindow, Warning, "COOL_DOWN_HIDES_OSCILLATION",
		[]string{"ballastBundleCoolDown", "ballastOscillationWindow"},
		"ballastBundleCoolDown=%s is not shorter than ballastOscillationWindow=%s: no bundle can be seen going to and fro", c.BallastBundleCoolDown, c.BallastOscillationWindow)
	for _, text := range c.BallastMaintenanceWindows {
		_, err := schedule.Parse(text, func(string) (*time.Location, error) { return time.UTC, nil })
		c.report(err != nil, Error, "MAINTENANCE_WINDOW", []string{"ballastMaintenanceWindows"}, "ballastMaintenanceWindows: %v", err)
	}
}

func (c *ballastChecker) reporting() {
	c.report(c.BallastReportInterval > 0 && c.BallastReportInterval < time.Second, Error, "REPORT_INTERVAL", []string{"ballastReportInterval"},
		"ballastReportInterval is %s: it must be 1s or more, or 0s for the cluster's own interval", c.BallastReportInterval)
	c.report(c.BallastBundleStatsInterval > 0 && c.BallastBundleStatsInterval < 10*time.Second, Error, "BUNDLE_STATS_INTERVAL", []string{"ballastBundleStatsInterval"},
		"ballastBundleStatsInterval is %s: brokers make long answers, so it must be 10s or more, or 0s for never", c.BallastBundleStatsInterval)
}

func (c *ballastChecker) channel() {
	c.report(c.BallastPrePlace && c.BallastVia != "channel", Error, "PRE_PLACE_WITHOUT_CHANNEL", []string{"ballastPrePlace", "ballastVia"},
		"ballastPrePlace=true with ballastVia=%s: placements are written onto the ownership topic; set ballastVia=channel or leave ballastPrePlace out", c.BallastVia)
}

func (c *ballastChecker) load() {
	none := c.BallastCPUWeight == 0 && c.BallastMemoryWeight == 0 && c.BallastDirectMemoryWeight == 0 &&
		c.BallastBandwidthInWeight == 0 && c.BallastBandwidthOutWeight == 0
	c.report(none && c.BallastLoadSource == "derived", Error, "NO_WEIGHT",
		[]string{"ballastCPUWeight", "ballastMemoryWeight", "ballastDirectMemoryWeight", "ballastBandwidthInWeight", "ballastBandwidthOutWeight"},
		"all of Ballast's own weights are 0: every broker would count as idle; give at least one resource a weight")
}
