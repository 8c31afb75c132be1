package ballast.bench;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.data.TopBundlesLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadCounter;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadDecision;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.LeastResourceUsageWithWeight;
import org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate;
import org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData;

/** One of Pulsar's own classes with a cluster to decide on. */
interface Decider {
    int SHORT_SAMPLES = 10;
    int LONG_SAMPLES = 1000;
    int PREALLOCATED = 10;
    int TOP_BUNDLES = 10;

    /** The call that is timed. */
    Object decide();

    /** What the last call decided, a line for each thing, in any order. Placement: the brokers that it drew among. */
    List<String> decided(Object last);

    static Decider of(String kind, Cluster c) throws ReflectiveOperationException {
        return switch (kind) {
            case "LeastLongTermMessageRate" -> leastLongTermMessageRate(c);
            case "LeastResourceUsageWithWeight" -> leastResourceUsageWithWeight(c);
            case "TransferShedder" -> transferShedder(c);
            case "ThresholdShedder" -> thresholdShedder(c);
            default -> throw new IllegalArgumentException("unknown kind " + kind);
        };
    }

    private static Decider leastLongTermMessageRate(Cluster c) throws ReflectiveOperationException {
        ServiceConfiguration conf = new ServiceConfiguration();
        LeastLongTermMessageRate strategy = new LeastLongTermMessageRate();
        LoadData load = modular(c, true);
        Set<String> candidates = names(c);
        BundleData bundle = new BundleData(SHORT_SAMPLES, LONG_SAMPLES);
        Field best = open(LeastLongTermMessageRate.class, "bestBrokers");
        return new Decider() {
            @Override
            public Object decide() {
                return strategy.selectBroker(candidates, bundle, load, conf);
            }

            @Override
            public List<String> decided(Object last) {
                return drawn(read(best, strategy), last);
            }
        };
    }

    private static Decider leastResourceUsageWithWeight(Cluster c) throws ReflectiveOperationException {
        MapContext context = extensible(c);
        LeastResourceUsageWithWeight strategy = new LeastResourceUsageWithWeight();
        Set<String> candidates = names(c);
        Field best = open(LeastResourceUsageWithWeight.class, "bestBrokers");
        return new Decider() {
            @Override
            public Object decide() {
                return strategy.select(candidates, null, context);
            }

            @Override
            public List<String> decided(Object last) {
                return drawn(((ThreadLocal<?>) read(best, strategy)).get(), last);
            }
        };
    }

    private static Decider transferShedder(Cluster c) throws ReflectiveOperationException {
        MapContext context = extensible(c);
        TransferShedder strategy = new TransferShedder(new UnloadCounter());
        Map<String, Long> bundles = new HashMap<>();
        Map<String, Long> brokers = new HashMap<>();
        return new Decider() {
            @Override
            public Object decide() {
                return strategy.findBundlesForUnloading(context, bundles, brokers);
            }

            @Override
            public List<String> decided(Object last) {
                List<String> lines = new ArrayList<>();
                for (Object x : (Set<?>) last) {
                    UnloadDecision d = (UnloadDecision) x;
                    lines.add(String.join(" ", d.getUnload().sourceBroker(), d.getUnload().serviceUnit(),
                            d.getUnload().destBroker().orElse("-"), d.getReason().toString()));
                }
                return lines;
            }
        };
    }

    private static Decider thresholdShedder(Cluster c) {
        ServiceConfiguration conf = new ServiceConfiguration();
        ThresholdShedder strategy = new ThresholdShedder();
        LoadData load = modular(c, false);
        return new Decider() {
            @Override
            public Object decide() {
                return strategy.findBundlesForUnloading(load, conf);
            }

            @Override
            public List<String> decided(Object last) {
                List<String> lines = new ArrayList<>();
                ((com.google.common.collect.Multimap<?, ?>) last).forEach((broker, bundle) -> lines.add(broker + " " + bundle));
                return lines;
            }
        };
    }

    /** The brokers that were drawn among; the one that was drawn must be one of them. */
    private static List<String> drawn(Object best, Object last) {
        List<String> lines = new ArrayList<>();
        ((Collection<?>) best).forEach(b -> lines.add((String) b));
        Object broker = ((Optional<?>) last).orElseThrow();
        if (!lines.contains(broker)) {
            throw new IllegalStateException(broker + " was drawn, but is not among the best");
        }
        return lines;
    }

    private static Set<String> names(Cluster c) {
        Set<String> names = new HashSet<>();
        c.brokers.forEach(b -> names.add(b.name));
        return names;
    }

    /** The state as the leader of a Modular cluster keeps it. */
    private static LoadData modular(Cluster c, boolean preallocated) {
        LoadData load = new LoadData();
        for (Cluster.Broker b : c.brokers) {
            LocalBrokerData local = new LocalBrokerData("http://" + b.name, null, null, null);
            local.setCpu(new ResourceUsage(b.cpu, Cluster.CPU_LIMIT));
            local.setMemory(new ResourceUsage(b.memory, Cluster.MEMORY_LIMIT));
            local.setDirectMemory(new ResourceUsage(b.directMemory, Cluster.DIRECT_MEMORY_LIMIT));
            local.setBandwidthIn(new ResourceUsage(b.bandwidthIn, Cluster.BANDWIDTH_LIMIT));
            local.setBandwidthOut(new ResourceUsage(b.bandwidthOut, Cluster.BANDWIDTH_LIMIT));
            local.setMsgThroughputIn(b.in);
            local.setMsgThroughputOut(b.out);
            local.setMsgRateIn(b.in / 1000);
            local.setMsgRateOut(b.out / 1000);
            Set<String> served = new HashSet<>();
            b.bundles.forEach(x -> served.add(x.name));
            local.setBundles(served);
            BrokerData data = new BrokerData(local);
            TimeAverageBrokerData average = new TimeAverageBrokerData();
            average.setLongTermMsgRateIn(b.in / 1000);
            average.setLongTermMsgRateOut(b.out / 1000);
            data.setTimeAverageData(average);
            if (preallocated) {
                b.bundles.stream().limit(PREALLOCATED).forEach(x -> data.getPreallocatedBundleData().put(x.name, data(x)));
            }
            load.getBrokerData().put(b.name, data);
        }
        c.bundles.forEach(x -> load.getBundleData().put(x.name, data(x)));
        return load;
    }

    private static BundleData data(Cluster.Bundle b) {
        BundleData d = new BundleData(SHORT_SAMPLES, LONG_SAMPLES);
        for (TimeAverageMessageData t : List.of(d.getShortTermData(), d.getLongTermData())) {
            t.setMsgThroughputIn(b.in);
            t.setMsgThroughputOut(b.out);
            t.setMsgRateIn(b.in / 1000);
            t.setMsgRateOut(b.out / 1000);
        }
        d.setTopics(Cluster.TOPICS);
        return d;
    }

    /** The state as the leader of an Extensible cluster sees it; no hits are needed to act. */
    private static MapContext extensible(Cluster c) throws ReflectiveOperationException {
        ServiceConfiguration conf = new ServiceConfiguration();
        conf.setLoadBalancerSheddingConditionHitCountThreshold(0);
        MapContext context = new MapContext(conf);
        long now = System.currentTimeMillis();
        for (Cluster.Broker b : c.brokers) {
            BrokerLoadData d = new BrokerLoadData();
            Map<String, Object> derived = Map.of("weightedMaxEMA", b.load, "msgThroughputEMA", b.in + b.out,
                    "msgThroughputIn", b.in, "msgThroughputOut", b.out, "updatedAt", now);
            for (Map.Entry<String, Object> e : derived.entrySet()) {
                open(BrokerLoadData.class, e.getKey()).set(d, e.getValue());
            }
            TopBundlesLoadData top = new TopBundlesLoadData();
            for (Cluster.Bundle x : b.heaviest(TOP_BUNDLES)) {
                NamespaceBundleStats stats = new NamespaceBundleStats();
                stats.msgThroughputIn = x.in;
                stats.msgThroughputOut = x.out;
                top.getTopBundlesLoadData().add(new TopBundlesLoadData.BundleLoadData(x.name, stats));
            }
            context.brokerLoadDataStore().map().put(b.name, d);
            context.topBundleLoadDataStore().map().put(b.name, top);
            context.brokerRegistry().brokers().put(b.name, new BrokerLookupData("http://" + b.name, null, "pulsar://" + b.name,
                    null, Map.of(), Map.of(), true, true, null, 0L, "4.2.4", Map.of()));
        }
        return context;
    }

    private static Field open(Class<?> type, String name) throws ReflectiveOperationException {
        Field f = type.getDeclaredField(name);
        f.setAccessible(true);
        return f;
    }

    private static Object read(Field f, Object o) {
        try {
            return f.get(o);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }
}
