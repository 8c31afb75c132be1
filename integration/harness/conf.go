package harness

import (
	"fmt"
	"maps"
	"strings"
)

// Manager is a load manager of Pulsar.
type Manager int

// The load managers.
const (
	Extensible Manager = iota
	Modular
	Simple
)

func (m Manager) String() string {
	switch m {
	case Extensible:
		return "Extensible"
	case Modular:
		return "Modular"
	case Simple:
		return "Simple"
	}
	return fmt.Sprintf("Manager(%d)", int(m))
}

const loadbalance = "org.apache.pulsar.broker.loadbalance."

func (m Manager) conf() map[string]string {
	switch m {
	case Modular:
		return map[string]string{"loadManagerClassName": loadbalance + "impl.ModularLoadManagerImpl"}
	case Simple:
		return map[string]string{"loadManagerClassName": loadbalance + "impl.SimpleLoadManagerImpl"}
	}
	return map[string]string{
		"loadManagerClassName":             loadbalance + "extensions.ExtensibleLoadManagerImpl",
		"loadBalancerLoadSheddingStrategy": loadbalance + "extensions.scheduler.TransferShedder",
	}
}

// clusterName is the name of every cluster that the harness starts.
const clusterName = "test"

// smallJVM keeps a broker at about 220 MiB.
const (
	smallHeap = "-Xms64m -Xmx256m -XX:MaxDirectMemorySize=256m"
	smallGC   = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
)

// brokerConf is the broker.conf of a broker: what a small cluster of one bookie needs, the load manager, then what the test
// asked for.
func brokerConf(meta, advertised string, layers ...map[string]string) map[string]string {
	conf := map[string]string{
		"clusterName":                       clusterName,
		"metadataStoreUrl":                  "zk:" + meta + ":2181",
		"configurationMetadataStoreUrl":     "zk:" + meta + ":2181",
		"advertisedAddress":                 advertised,
		"managedLedgerDefaultEnsembleSize":  "1",
		"managedLedgerDefaultWriteQuorum":   "1",
		"managedLedgerDefaultAckQuorum":     "1",
		"managedLedgerCacheSizeMB":          "16",
		"allowAutoTopicCreation":            "true",
		"brokerDeleteInactiveTopicsEnabled": "false",
		"forceDeleteNamespaceAllowed":       "true",
		"brokerShutdownTimeoutMs":           "10000",
		// A broker that was killed leaves the registry in 6 s instead of 30.
		"metadataStoreSessionTimeoutMillis": "6000",
		// Brokers publish their load at least every minute instead of every 15.
		"loadBalancerReportUpdateMaxIntervalMinutes": "1",
		// And they measure every 15 s instead of every minute: what a test changed shows soon.
		"statsUpdateFrequencyInSecs":      "15",
		"statsUpdateInitialDelayInSecs":   "15",
		"defaultNumberOfNamespaceBundles": "4",
		// Few threads: three brokers share the machine with the tests.
		"numHttpServerThreads":                  "8",
		"numIOThreads":                          "2",
		"numOrderedExecutorThreads":             "2",
		"numWorkerThreadsForNonPersistentTopic": "2",
		"bookkeeperClientNumWorkerThreads":      "2",
		"bookkeeperClientNumIoThreads":          "2",
	}
	if strings.HasPrefix(Version(), "3.") {
		// Such a broker does not start when it cannot find out how fast its interface is, which depends on the machine; this is
		// what containers' interfaces say where they say it.
		conf["loadBalancerOverrideBrokerNicSpeedGbps"] = "10"
	}
	for _, layer := range layers {
		maps.Copy(conf, layer)
	}
	return conf
}

// brokerEnv hands a configuration to the images' apply-config-from-env.py.
func brokerEnv(conf map[string]string) map[string]string {
	env := map[string]string{"PULSAR_MEM": smallHeap, "PULSAR_GC": smallGC}
	for key, value := range conf {
		env["PULSAR_PREFIX_"+key] = value
	}
	return env
}

const brokerScript = `bin/apply-config-from-env.py conf/broker.conf && exec bin/pulsar broker`

// metaScript runs ZooKeeper, writes the metadata of the cluster and becomes the bookie. WEB and BINARY in
// its environment are the first broker's URLs. nc may hang in spite of -w when it comes just before ZooKeeper listens.
const metaScript = `
bin/apply-config-from-env.py conf/zookeeper.conf conf/bookkeeper.conf || exit 1
mkdir -p data/zookeeper
PULSAR_MEM="-Xms32m -Xmx96m -XX:MaxDirectMemorySize=64m" bin/pulsar zookeeper &
until [ "$(echo ruok | timeout 3 nc -w 1 127.0.0.1 2181 2>/dev/null)" = imok ]; do sleep 0.1; done
bin/pulsar initialize-cluster-metadata --cluster ` + clusterName + ` --metadata-store zk:127.0.0.1:2181 \
  --configuration-metadata-store zk:127.0.0.1:2181 --web-service-url "$WEB" --broker-service-url "$BINARY" || exit 1
exec bin/pulsar bookie
`

func metaEnv(meta, firstBroker string) map[string]string {
	const memory = "-Xms32m -Xmx160m -XX:MaxDirectMemorySize=192m"
	return map[string]string{
		"WEB":                             "http://" + firstBroker + ":8080",
		"BINARY":                          "pulsar://" + firstBroker + ":6650",
		"PULSAR_MEM":                      memory,
		"BOOKIE_MEM":                      memory,
		"PULSAR_GC":                       smallGC,
		"BOOKIE_GC":                       smallGC,
		"metadataServiceUri":              "metadata-store:zk:127.0.0.1:2181",
		"PULSAR_PREFIX_advertisedAddress": meta,
	}
}
