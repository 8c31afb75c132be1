package pulsar

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/access"
	"github.com/ballast-lb/ballast/topics"
)

func TestBadOptions(t *testing.T) {
	const service, admin = "pulsar://127.0.0.1:6650", "http://127.0.0.1:8080"
	for name, test := range map[string]struct {
		options Options
		err     string
	}{
		"nothing":          {Options{}, "ServiceURL is empty: want pulsar://host:port"},
		"no admin":         {Options{ServiceURL: service}, "AdminURL is empty: want http://host:port"},
		"web for service":  {Options{ServiceURL: admin, AdminURL: admin}, `ServiceURL is "http://127.0.0.1:8080"`},
		"service for web":  {Options{ServiceURL: service, AdminURL: service}, `AdminURL is "pulsar://127.0.0.1:6650"`},
		"no scheme":        {Options{ServiceURL: "127.0.0.1:6650", AdminURL: admin}, "ServiceURL"},
		"path":             {Options{ServiceURL: service, AdminURL: admin + "/admin/v2"}, "AdminURL"},
		"empty host":       {Options{ServiceURL: service + ",", AdminURL: admin}, `"" is no host`},
		"bad port":         {Options{ServiceURL: "pulsar://h:port", AdminURL: admin}, "ServiceURL"},
		"user":             {Options{ServiceURL: service, AdminURL: "http://me:pw@h:1"}, "AdminURL"},
		"negative time":    {Options{ServiceURL: service, AdminURL: admin, SendTimeout: -time.Second}, "SendTimeout is -1s"},
		"negative size":    {Options{ServiceURL: service, AdminURL: admin, MaxPayload: -1}, "MaxPayload is -1"},
		"two ways":         {Options{ServiceURL: service, AdminURL: admin, Auth: access.Auth{Token: "t", BasicUser: "u"}}, "Token and BasicUser: want one"},
		"no token file":    {Options{ServiceURL: service, AdminURL: admin, Auth: access.Auth{TokenFile: "/nonexistent"}}, "option Auth.TokenFile"},
		"no password":      {Options{ServiceURL: service, AdminURL: admin, Auth: access.Auth{BasicUser: "u"}}, "option Auth.BasicUser"},
		"no certificate":   {Options{ServiceURL: service, AdminURL: admin, Auth: access.Auth{CertFile: "/nonexistent", KeyFile: "/nonexistent"}}, "option Auth.CertFile"},
		"no key file":      {Options{ServiceURL: service, AdminURL: admin, Auth: access.Auth{OAuth2: access.OAuth2{IssuerURL: "http://127.0.0.1:1"}}}, "option Auth.OAuth2"},
		"no such key file": {Options{ServiceURL: service, AdminURL: admin, Auth: access.Auth{OAuth2: access.OAuth2{IssuerURL: "http://127.0.0.1:1", KeyFile: "/nonexistent"}}}, "KeyFile: open /nonexistent"},
		"unknown plugin":   {Options{ServiceURL: service, AdminURL: admin, Auth: access.Auth{Plugin: "magic"}}, "option Auth.Plugin"},
		"no trusted certs": {Options{ServiceURL: service, AdminURL: admin, TLS: access.TLS{TrustCertsFile: "/nonexistent"}}, "TLS.TrustCertsFile"},
		"no PEM":           {Options{ServiceURL: service, AdminURL: admin, TLS: access.TLS{TrustCertsFile: "options_test.go"}}, "holds no PEM certificate"},
		"half a pair":      {Options{ServiceURL: service, AdminURL: admin, TLS: access.TLS{CertFile: "options_test.go"}}, "want both or neither"},
		"no pair":          {Options{ServiceURL: service, AdminURL: admin, TLS: access.TLS{CertFile: "options_test.go", KeyFile: "options_test.go"}}, "TLS.CertFile"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Open(test.options)
			if err == nil {
				_ = l.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), test.err) || !strings.HasPrefix(err.Error(), "pulsar log: ") {
				t.Errorf("error %q, want one about %q", err, test.err)
			}
		})
	}
}

func TestGoodURLs(t *testing.T) {
	for _, urls := range [][2]string{
		{"pulsar://a:6650", "http://a:8080"},
		{"pulsar://a:6650,b:6650", "http://a:8080,b:8080/"},
		{"pulsar+ssl://a.example:6651", "https://a.example"},
		{"pulsar://[::1]:6650", "http://[::1]:8080"},
	} {
		if err := (Options{ServiceURL: urls[0], AdminURL: urls[1]}).check(); err != nil {
			t.Error(err)
		}
	}
}

func TestDefaults(t *testing.T) {
	o := Options{SendTimeout: time.Second}.withDefaults()
	if o.SendTimeout != time.Second || o.OperationTimeout <= 0 || o.Patience <= 0 || o.TailCheck <= 0 || o.Audit <= 0 ||
		o.ReceiverQueue <= 0 || o.MaxPayload <= 0 || o.Logger == nil || o.Now == nil {
		t.Errorf("defaults %+v", o)
	}
}

// fakeID is how the library's log names a message.
type fakeID struct{ ledger, entry uint64 }

func (f fakeID) GetLedgerId() uint64 { return f.ledger }
func (f fakeID) GetEntryId() uint64  { return f.entry }

// TestClientLog: the lines that matter become signals for the subscription that they are about, and no other line does.
func TestClientLog(t *testing.T) {
	var out strings.Builder
	handler := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})
	all := newTaps()
	type event struct {
		Sig           signal
		Ledger, Entry int64
	}
	var got []event
	all.add("mine", func(sig signal, ledger, entry int64) { got = append(got, event{sig, ledger, entry}) })
	root := newClientLogger(slog.New(handler), all)
	mine := root.SubLogger(log.Fields{"topic": "t"}).SubLogger(log.Fields{"subscription": "mine", "consumerID": 1})
	other := root.SubLogger(log.Fields{"subscription": "other"})
	for _, l := range []log.Logger{other, mine} {
		l.WithFields(log.Fields{"msgID": fakeID{5, 7}, "validationError": "x"}).Error(lineDiscarded)
		l.Debug(lineClosed)
		l.Debugf("%s", "noise")
		l.Debug("noise", 1)
		l.Info(lineReconnected)
		l.Warn(lineGaveUp)
		l.WithError(errors.New("x")).WithField("a", 1).WithFields(log.Fields{"b": 2}).Infof("%d", 3)
	}
	want := []event{{signalDiscarded, 5, 7}, {signalClosed, 0, 0}, {signalReconnected, 0, 0}, {signalGaveUp, 0, 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("signals (-want +got):\n%s", diff)
	}
	root.WithError(errors.New("connection refused")).Warn("Failed to connect to broker.")
	l := &Log{taps: all, options: Options{ServiceURL: "pulsar://h:1"}}
	cause := errors.New("connection error\nand more")
	if err := l.explain(cause); err.Error() != "pulsar://h:1: Failed to connect to broker: connection refused (connection error: and more)" || !errors.Is(err, cause) {
		t.Errorf("explained: %v", err)
	}
	root.Warnf("Failed to establish connection with broker: '%s'", "Unable to authenticate")
	if err := l.explain(cause); !strings.Contains(err.Error(), "Unable to authenticate") {
		t.Errorf("explained: %v", err)
	}
	if err := l.explain(cause); err.Error() != "connection error: and more" {
		t.Errorf("explained again: %v", err)
	}
	all.remove("mine")
	mine.Info(lineReconnected)
	if len(got) != len(want) {
		t.Error("a signal came after the tap was removed")
	}
	if text := out.String(); !strings.Contains(text, `msgID=5:7`) || strings.Contains(text, "noise") || strings.Contains(text, "level=ERROR") {
		t.Errorf("log:\n%s", text)
	}
}

func TestExplainPublishing(t *testing.T) {
	p := &publisher{log: &Log{taps: newTaps()}, name: topics.Name{Persistent: true, Tenant: "a", Namespace: "b", Local: "c"}}
	for text, fenced := range map[string]bool{
		"server error: ProducerFenced: Topic has an existing exclusive producer": true,
		"server error: ProducerBusy: Topic has an existing exclusive producer":   true,
		"message send timeout: TimeoutError":                                     false,
	} {
		cause := errors.New(text)
		err := p.explain(cause)
		if errors.Is(err, topics.ErrFenced) != fenced || !errors.Is(err, cause) || !strings.Contains(err.Error(), "persistent://a/b/c") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
