package settings

import "time"

// Ballast are Ballast's own keys, described by the same tags as Settings. Durations are written with a unit ("30s", "5m").
type Ballast struct {
	// Connection. The names are those of Pulsar's client.conf; brokerServiceURL and adminUrl are read too.

	ServiceURL                    string   `key:"serviceUrl" alias:"brokerServiceUrl" type:"string" default:"pulsar://localhost:6650" group:"Connection" doc:"binary address of the cluster, pulsar:// or pulsar+ssl://; several hosts with commas"`
	WebServiceURL                 string   `key:"webServiceUrl" alias:"adminUrl" type:"string" default:"http://localhost:8080" group:"Connection" doc:"admin REST address of the cluster, http:// or https://; several hosts with commas"`
	ListenerName                  string   `key:"listenerName" type:"string" default:"" group:"Connection" doc:"advertised listener of the brokers to use; empty = the internal one"`
	BallastBrokerAddresses        []string `key:"ballastBrokerAddresses" type:"list" default:"" group:"Connection" doc:"brokerId=host:port pairs: where to reach the admin REST of brokers whose own address cannot be reached from here"`
	BallastZooKeeper              []string `key:"ballastZooKeeper" type:"list" default:"" group:"Connection" doc:"ZooKeeper of a Simple or Modular cluster, host:port, the last one with the path below which its metadata is; where brokers' load reports are read when they themselves do not give them; empty = not used"`
	AuthPlugin                    string   `key:"authPlugin" type:"string" default:"" group:"Connection" doc:"authentication plug-in: a name or a Java class that Pulsar's clients know"`
	AuthParams                    string   `key:"authParams" type:"string" default:"" secret:"true" group:"Connection" doc:"parameters of the plug-in"`
	Token                         string   `key:"token" type:"string" default:"" secret:"true" group:"Connection" doc:"token to authenticate with"`
	TokenFile                     string   `key:"tokenFile" type:"string" default:"" group:"Connection" doc:"file with the token, read again when it changes"`
	TLSCertFile                   string   `key:"tlsCertFile" alias:"tlsCertificateFilePath" type:"string" default:"" group:"Connection" doc:"client certificate (PEM)"`
	TLSKeyFile                    string   `key:"tlsKeyFile" alias:"tlsKeyFilePath" type:"string" default:"" group:"Connection" doc:"key of the client certificate (PEM)"`
	TLSTrustCertsFilePath         string   `key:"tlsTrustCertsFilePath" type:"string" default:"" group:"Connection" doc:"certificates of the authorities to trust (PEM); empty = the system's"`
	TLSAllowInsecureConnection    bool     `key:"tlsAllowInsecureConnection" type:"boolean" default:"false" group:"Connection" doc:"accept any certificate"`
	TLSEnableHostnameVerification bool     `key:"tlsEnableHostnameVerification" type:"boolean" default:"false" group:"Connection" doc:"known for the sake of client.conf: host names are always checked, unless any certificate is accepted"`
	IssuerEndpoint                string   `key:"issuerEndpoint" type:"string" default:"" group:"Connection" doc:"OAuth 2.0: issuer"`
	ClientID                      string   `key:"clientId" type:"string" default:"" group:"Connection" doc:"OAuth 2.0: client id"`
	Audience                      string   `key:"audience" type:"string" default:"" group:"Connection" doc:"OAuth 2.0: audience"`
	Scope                         string   `key:"scope" type:"string" default:"" group:"Connection" doc:"OAuth 2.0: scope"`
	KeyFile                       string   `key:"keyFile" type:"string" default:"" group:"Connection" doc:"OAuth 2.0: file with the client's key"`

	// Running.

	BallastMode          string        `key:"ballastMode" type:"string" default:"advise" oneof:"observe|advise|govern" group:"Running" doc:"observe: watch and compare; advise: plan and explain, move nothing and change no setting; govern: plan and act"`
	BallastTakeOver      bool          `key:"ballastTakeOver" type:"boolean" default:"false" group:"Running" doc:"govern: switch the built-in shedder off while Ballast acts, and put everything back afterwards"`
	BallastVia           string        `key:"ballastVia" type:"string" default:"admin" oneof:"admin|channel" group:"Running" doc:"how govern moves bundles: admin: by admin REST; channel: by records on the ownership topic"`
	BallastPrePlace      bool          `key:"ballastPrePlace" type:"boolean" default:"false" group:"Running" doc:"govern by ballastVia=channel: give bundles that lost their owner the next one before clients look them up"`
	BallastSplit         string        `key:"ballastSplit" type:"string" default:"off" oneof:"auto|on|off" group:"Running" doc:"whether Ballast splits bundles above the limits of loadBalancerNamespaceBundleMax...; never while the cluster splits by itself (loadBalancerAutoBundleSplitEnabled=true); auto: on Modular and Simple clusters; on: on Extensible ones, too; off: nowhere"`
	BallastCure          bool          `key:"ballastCure" type:"boolean" default:"true" group:"Running" doc:"govern: unload bundles that are stuck on their way and that the cluster's own leader has not mended, with back-off"`
	BallastCycleInterval time.Duration `key:"ballastCycleInterval" type:"duration" default:"1m" range:"1s.." group:"Running" doc:"pause between cycles"`
	BallastRepairs       []string      `key:"ballastRepairs" type:"list" default:"" group:"Running" doc:"faults of Pulsar's strategies to repair, by name"`

	// Reporting: what brokers do not publish themselves.

	BallastReport              string        `key:"ballastReport" type:"string" default:"auto" oneof:"auto|never|always" group:"Reporting" doc:"whether Ballast publishes the load reports of Modular and Simple brokers, and the bundles of Extensible ones, on system topics; auto: in advise and govern, not in observe"`
	BallastReportInterval      time.Duration `key:"ballastReportInterval" type:"duration" default:"0s" range:"0s.." group:"Reporting" doc:"pause between two readings of the load reports; 0s = loadBalancerReportUpdateMinIntervalMillis"`
	BallastBundleStatsInterval time.Duration `key:"ballastBundleStatsInterval" type:"duration" default:"1m" range:"0s.." group:"Reporting" doc:"pause between two readings of the topics of an Extensible broker, from which come the bundles that it does not publish; 0s = never"`

	// Decision log.

	BallastReview            bool          `key:"ballastReview" type:"boolean" default:"false" group:"Decision log" doc:"govern: a plan waits in the decision log and is carried out only after ballast approve"`
	BallastDecisionRetention time.Duration `key:"ballastDecisionRetention" type:"duration" default:"168h" range:"0s.." group:"Decision log" doc:"how long the decision log keeps its records; 0s = for ever. It holds 100000 of them and 64 MiB at most in any case"`

	// Limits on what is moved.

	BallastMaxBundlesPerCycle int64         `key:"ballastMaxBundlesPerCycle" type:"int" default:"10" unit:"bundles" range:"0.." group:"Limits" doc:"most bundles that one cycle moves; 0 = no limit"`
	BallastMaxTopicsPerSecond float64       `key:"ballastMaxTopicsPerSecond" type:"double" default:"500" unit:"topics/s" range:"0.." group:"Limits" doc:"most topics moved per second, on average over a cycle; 0 = no limit"`
	BallastBundleCoolDown     time.Duration `key:"ballastBundleCoolDown" type:"duration" default:"10m" range:"0s.." group:"Limits" doc:"a bundle is not moved again within this time"`
	BallastBrokerCoolDown     time.Duration `key:"ballastBrokerCoolDown" type:"duration" default:"0s" range:"0s.." group:"Limits" doc:"a broker is neither source nor destination again within this time after a move; 0s = the strategy's own delay alone"`
	BallastChannelConcurrent  int64         `key:"ballastChannelConcurrent" type:"int" default:"50" unit:"bundles" range:"1..1000" group:"Limits" doc:"by ballastVia=channel: most bundles under way together, also of ballast place"`
	BallastUnloadTimeout      time.Duration `key:"ballastUnloadTimeout" type:"duration" default:"70s" range:"1s.." group:"Limits" doc:"limit of one unload request; of a process that governs, and of commands with --execute, it ends with the lease of the lock in any case, 15 s after this was confirmed"`
	BallastUnloadAttempts     int64         `key:"ballastUnloadAttempts" type:"int" default:"3" range:"1..10" group:"Limits" doc:"Modular and Simple clusters: how often one bundle is unloaded until it is where it should be; destinations are hints there, or ignored"`
	BallastVerifyTimeout      time.Duration `key:"ballastVerifyTimeout" type:"duration" default:"30s" range:"1s.." group:"Limits" doc:"how long to wait for a moved bundle to show up at its new owner"`

	// Of these, what the guard watches besides.

	BallastMaxBundlesPerSource      int64         `key:"ballastMaxBundlesPerSource" type:"int" default:"0" unit:"bundles" range:"0.." group:"Limits" doc:"most bundles that one cycle moves away from one broker; 0 = no limit"`
	BallastMaxBundlesPerDestination int64         `key:"ballastMaxBundlesPerDestination" type:"int" default:"0" unit:"bundles" range:"0.." group:"Limits" doc:"most bundles that one cycle moves to one broker; 0 = no limit"`
	BallastMaxThroughputPerCycle    float64       `key:"ballastMaxThroughputPerCycle" type:"double" default:"0" unit:"bytes/s" range:"0.." group:"Limits" doc:"most throughput, in and out, of the bundles that one cycle moves; a bundle above it moves alone; 0 = no limit"`
	BallastGainBy                   string        `key:"ballastGainBy" type:"string" default:"strategy" oneof:"strategy|usage|throughput|traffic|off" group:"Limits" doc:"a move runs only if it makes the higher of two brokers lower, by this figure; strategy: the one that the shedding strategy compares brokers by; traffic: messages or bytes, whichever falls"`
	BallastNewBrokerTime            time.Duration `key:"ballastNewBrokerTime" type:"duration" default:"10m" range:"0s.." group:"Limits" doc:"how long a broker counts as new: it receives little at a time, and gives nothing while it is below the average; 0s = never"`
	BallastNewBrokerPercent         float64       `key:"ballastNewBrokerPercent" type:"double" default:"10" unit:"percent" range:"0..100" group:"Limits" doc:"part of all bundles, and of all topics, that one cycle moves to a new broker at most; 0 = no limit"`
	BallastDrainPoints              float64       `key:"ballastDrainPoints" type:"double" default:"5" unit:"percent points" range:"0..100" group:"Limits" doc:"while a broker is drained no move brings another one above an even part of all topics, among the brokers that serve, and this; 0 = no limit"`
	BallastMaxSilentBrokersPercent  float64       `key:"ballastMaxSilentBrokersPercent" type:"double" default:"25" unit:"percent" range:"0..100" group:"Limits" doc:"when more of the brokers, and at least two, have no fresh load data, nothing moves; 0 = no limit"`
	BallastOscillationWindow        time.Duration `key:"ballastOscillationWindow" type:"duration" default:"1h" range:"0s.." group:"Limits" doc:"moves to and fro that are no further apart than this belong together; also how long the first hold lasts; 0s = not watched"`
	BallastOscillationTurns         int64         `key:"ballastOscillationTurns" type:"int" default:"4" range:"0..15" group:"Limits" doc:"turns after which a bundle or a broker is held; from half of them on its cool-down doubles with each; 0 = not watched"`
	BallastMaxMovesAtOnce           int64         `key:"ballastMaxMovesAtOnce" type:"int" default:"4" unit:"moves" range:"0.." group:"Limits" doc:"most moves under way together: one more for every round that ends well, half as many after a move that fails, is slow or hurts clients; 0 = one at a time, not watched"`
	BallastSlowMove                 time.Duration `key:"ballastSlowMove" type:"duration" default:"20s" range:"0s.." group:"Limits" doc:"a move that takes longer counts as slow; 0s = none does"`
	BallastMaxPublishLatency        time.Duration `key:"ballastMaxPublishLatency" type:"duration" default:"500ms" range:"0s.." group:"Limits" doc:"clients of a broker count as hurt by moves when the 99th percentile of their publish latency is above this and twice what is usual; 0s = not watched"`
	BallastMaxReconnectRate         float64       `key:"ballastMaxReconnectRate" type:"double" default:"50" unit:"connections/s" range:"0.." group:"Limits" doc:"clients of a broker count as hurt by moves when they open more connections than this and twice what is usual; 0 = not watched"`
	BallastMaintenanceWindows       []string      `key:"ballastMaintenanceWindows" type:"list" default:"" group:"Limits" doc:"when moves for balance are allowed, such as Mon-Fri 22:00-06:00 Europe/Berlin; with not before it: when they are not; empty = always"`

	// Load.

	BallastLoadSource            string        `key:"ballastLoadSource" type:"string" default:"published" oneof:"published|derived" group:"Load" doc:"published: the averages in the brokers' own events; derived: Ballast's own, from the raw usage in the events"`
	BallastLoadHalfLife          time.Duration `key:"ballastLoadHalfLife" type:"duration" default:"5m" range:"0s.." group:"Load" doc:"derived load: after this time an old value counts half; 0s = the latest value alone"`
	BallastCPUWeight             float64       `key:"ballastCPUWeight" type:"double" default:"1.0" range:"0.." group:"Load" doc:"derived load: weight of CPU usage"`
	BallastMemoryWeight          float64       `key:"ballastMemoryWeight" type:"double" default:"0" range:"0.." group:"Load" doc:"derived load: weight of heap usage"`
	BallastDirectMemoryWeight    float64       `key:"ballastDirectMemoryWeight" type:"double" default:"0" range:"0.." group:"Load" doc:"derived load: weight of direct memory usage"`
	BallastBandwidthInWeight     float64       `key:"ballastBandwidthInWeight" type:"double" default:"1.0" range:"0.." group:"Load" doc:"derived load: weight of inbound bandwidth usage"`
	BallastBandwidthOutWeight    float64       `key:"ballastBandwidthOutWeight" type:"double" default:"1.0" range:"0.." group:"Load" doc:"derived load: weight of outbound bandwidth usage"`
	BallastCapacityOverridesFile string        `key:"ballastCapacityOverridesFile" type:"string" default:"" group:"Load" doc:"file with limits per broker that count instead of the reported ones"`

	// Sight.

	BallastHTTPListenAddress string `key:"ballastHttpListenAddress" type:"string" default:"127.0.0.1:8484" group:"Sight" doc:"where metrics are served (/metrics); empty = nowhere"`
	BallastLogLevel          string `key:"ballastLogLevel" type:"string" default:"info" oneof:"debug|info|warn|error" group:"Sight" doc:"least level that is logged"`
	BallastLogFormat         string `key:"ballastLogFormat" type:"string" default:"text" oneof:"text|json" group:"Sight" doc:"form of log lines"`
}

// DefaultBallast returns the defaults of Ballast's own keys.
func DefaultBallast() *Ballast {
	b := new(Ballast)
	setDefaults(b, ballastKeys, 0)
	return b
}
