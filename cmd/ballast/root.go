package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/settings/load"
)

// configVariable names the configuration file in the environment.
const configVariable = "BALLAST_CONFIG"

// app is what the commands share: where to write, and the settings as flags, environment and file give them.
type app struct {
	environ        []string
	stdout, stderr io.Writer
	configFile     string
	set            []string // --set key=value
	flags          *pflag.FlagSet
}

// flagKeys are the flags that stand for one setting, named as in pulsarctl where it has them.
var flagKeys = []struct{ flag, short, key, usage string }{
	{"admin-service-url", "s", "webServiceUrl", "admin REST address of the cluster"},
	{"service-url", "", "serviceUrl", "binary address of the cluster"},
	{"listener-name", "", "listenerName", "advertised listener of the brokers to use"},
	{"auth-plugin", "", "authPlugin", "authentication plug-in"},
	{"auth-params", "", "authParams", "parameters of the plug-in"},
	{"token", "", "token", "token to authenticate with; visible in the process list, prefer --token-file"},
	{"token-file", "", "tokenFile", "file with the token"},
	{"tls-trust-cert-path", "", "tlsTrustCertsFilePath", "certificates of the authorities to trust"},
	{"tls-cert-file", "", "tlsCertFile", "client certificate"},
	{"tls-key-file", "", "tlsKeyFile", "key of the client certificate"},
	{"tls-allow-insecure", "", "tlsAllowInsecureConnection", "accept any certificate"},
	{"tls-enable-hostname-verification", "", "tlsEnableHostnameVerification", "known for the sake of client.conf: host names are always checked"},
	{"issuer-endpoint", "", "issuerEndpoint", "OAuth 2.0: issuer"},
	{"client-id", "", "clientId", "OAuth 2.0: client id"},
	{"audience", "", "audience", "OAuth 2.0: audience"},
	{"scope", "", "scope", "OAuth 2.0: scope"},
	{"key-file", "", "keyFile", "OAuth 2.0: file with the client's key"},
	{"log-level", "", "ballastLogLevel", "least level that is logged"},
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "ballast",
		Short: "Keep the brokers of an Apache Pulsar cluster evenly loaded, and say why",
		Long: `Ballast follows a Pulsar cluster through its own system topics, decides as Pulsar's load managers decide or better,
explains every decision with its numbers, and moves bundles when told to govern.
SIGTERM or Ctrl-C ends a command in order, a second Ctrl-C at once.

Settings are broker.conf keys. Later sources win: defaults, the cluster's runtime configuration, a file (--config),
the environment (BALLAST_...), flags. "ballast config" shows every setting and where it comes from.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return noNegatives(cmd.Flags()) },
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q: ballast --help lists the commands", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := root.PersistentFlags()
	f.StringVarP(&a.configFile, "config", "c", "", "file of settings: .conf, .properties, .yaml, .yml or .json ($"+configVariable+")")
	f.StringArrayVar(&a.set, "set", nil, "a setting as key=value; may be repeated")
	for _, k := range flagKeys {
		setting, _ := settings.Lookup(k.key)
		if setting.Type == settings.TypeBoolean {
			f.BoolP(k.flag, k.short, false, k.usage)
			continue
		}
		f.StringP(k.flag, k.short, "", k.usage)
	}
	a.flags = f
	root.AddCommand(newRun(a), newPlan(a), newMonitor(a), newTail(a), newConfig(a), newRelease(a), newPlace(a), newDemo(a), newConformance(a), newVersion(a))
	root.AddCommand(newManager(a), newMigrate(a), newReport(a), newBrokers(a), newBundles(a))
	root.AddCommand(newLog(a), newExplain(a), newPause(a), newResume(a), newApprove(a), newDiscard(a))
	root.AddCommand(newDoctor(a), newMove(a), newUnload(a), newSplit(a), newDrain(a), newUndrain(a), newRestartGate(a), newWhatif(a))
	return root
}

// layers are the settings that this program was given, without the cluster's.
func (a *app) layers() ([]settings.Layer, error) {
	layers, err := settings.Environment(a.environ, configVariable)
	if err != nil {
		return nil, err
	}
	if file := a.configPath(); file != "" {
		layer, err := load.File(file)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	flags, err := a.flagLayer()
	if err != nil {
		return nil, err
	}
	return append(layers, flags), nil
}

func (a *app) configPath() string {
	if a.configFile != "" {
		return a.configFile
	}
	for _, e := range a.environ {
		if v, ok := strings.CutPrefix(e, configVariable+"="); ok {
			return v
		}
	}
	return ""
}

func (a *app) flagLayer() (settings.Layer, error) {
	layer := settings.Layer{Origin: settings.OriginFlag}
	for _, k := range flagKeys {
		if flag := a.flags.Lookup(k.flag); flag.Changed {
			layer.Entries = append(layer.Entries, settings.Entry{Key: k.key, Text: flag.Value.String(), Where: "--" + k.flag})
		}
	}
	for _, s := range a.set {
		key, text, ok := strings.Cut(s, "=")
		if !ok {
			return layer, fmt.Errorf("--set %q: it must be key=value", s)
		}
		layer.Entries = append(layer.Entries, settings.Entry{Key: strings.TrimSpace(key), Text: text, Where: "--set"})
	}
	return layer, nil
}

// resolve lays the given layers and extra ones over the defaults of a Pulsar version, and refuses what makes no sense.
func (a *app) resolve(version string, extra ...settings.Layer) (*settings.Layered, error) {
	layers, err := a.layers()
	if err != nil {
		return nil, err
	}
	l, err := settings.Resolve(version, slices.Concat(extra, layers)...)
	if err != nil {
		return nil, err
	}
	for _, p := range l.Check() {
		if p.Severity == settings.Error {
			return nil, fmt.Errorf("configuration: %s", p.Text)
		}
	}
	return l, nil
}

// logger writes to stderr as the settings say.
func (a *app) logger(b *settings.Ballast) *slog.Logger {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(b.BallastLogLevel)) // checked when it was set
	o := &slog.HandlerOptions{Level: level}
	if b.BallastLogFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.stderr, o))
	}
	return slog.New(slog.NewTextHandler(a.stderr, o))
}

// noNegatives refuses negative numbers and durations: no flag takes them.
func noNegatives(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if slices.Contains([]string{"int", "int64", "duration"}, f.Value.Type()) && strings.HasPrefix(f.Value.String(), "-") {
			err = errors.Join(err, fmt.Errorf("--%s is %s: it must not be negative", f.Name, f.Value))
		}
	})
	return err
}
