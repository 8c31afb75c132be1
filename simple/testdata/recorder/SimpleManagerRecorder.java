import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyString;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.collect.Multimap;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.ResourceUnit;
import org.apache.pulsar.broker.loadbalance.impl.BundleRangeCache;
import org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.impl.SimpleResourceAllocationPolicies;
import org.apache.pulsar.broker.loadbalance.impl.WRRPlacementStrategy;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.service.BrokerService;
import org.apache.pulsar.client.admin.Namespaces;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.policies.data.ResourceQuota;
import org.apache.pulsar.metadata.api.MetadataCache;
import org.apache.pulsar.metadata.api.coordination.CoordinationService;
import org.apache.pulsar.metadata.api.coordination.LockManager;
import org.apache.pulsar.metadata.api.coordination.ResourceLock;
import org.apache.pulsar.metadata.api.extended.MetadataStoreExtended;
import org.apache.pulsar.policies.data.loadbalancer.LoadReport;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUnitRanking;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.SystemResourceUsage;
import org.apache.pulsar.broker.cache.BundlesQuotas;

/**
 * Records what Pulsar's SimpleLoadManagerImpl answers to sequences of calls: load reports coming in, bundles placed, shedding,
 * splits, quotas, its own load report. Everything around the class is mocked. Arguments: seed, number of cases; one JSON
 * line per case on standard output.
 */
public final class SimpleManagerRecorder {
    public static void main(String[] args) throws Exception {
        long seed = Long.parseLong(args[0]);
        int count = Integer.parseInt(args[1]);
        java.io.PrintStream out = System.out;
        System.setOut(System.err);
        SimpleManagerRecorder k = new SimpleManagerRecorder();
        for (int i = 0; i < count; i++) {
            Rng r = Rng.of(seed, "simple_manager", i);
            ObjectNode line = J.obj();
            ObjectNode config = J.obj();
            ObjectNode input = J.obj();
            line.put("kind", "simple_manager");
            line.put("seed", seed);
            line.put("case", i);
            line.put("scenario", k.gen(r, i, config, input));
            line.set("config", config);
            line.set("input", input);
            line.set("output", k.run(config, input));
            out.println(J.M.writeValueAsString(line));
        }
        out.flush();
        System.exit(0);
    }

    // ---- making cases

    private static final String[] STRATEGIES = {"leastLoadedServer", "leastMsgPerSecond", "weightedRandomSelection"};

    String gen(Rng r, int index, ObjectNode config, ObjectNode input) {
        String strategy = r.p(0.03) ? "noSuchStrategy" : r.pick(STRATEGIES);
        config.put("loadBalancerPlacementStrategy", strategy);
        config.put("loadBalancerBrokerOverloadedThresholdPercentage", r.pickI(85, 85, 60, 95, 0));
        config.put("loadBalancerBrokerUnderloadedThresholdPercentage", r.pickI(50, 50, 20, 0));
        config.put("loadBalancerBrokerComfortLoadLevelPercentage", r.pickI(65, 65, 40, 80, 100));
        config.put("loadBalancerSheddingGracePeriodMinutes", r.pickI(30, 30, 0));
        config.put("loadBalancerEnabled", true);
        config.put("loadBalancerSheddingEnabled", !r.p(0.1));
        config.put("loadBalancerAutoBundleSplitEnabled", !r.p(0.1));
        config.put("loadBalancerAutoUnloadSplitBundlesEnabled", r.p(0.5));
        config.put("loadBalancerNamespaceBundleMaxTopics", r.pickI(1000, 600));
        config.put("loadBalancerNamespaceBundleMaxSessions", r.pickI(1000, 0, 700));
        config.put("loadBalancerNamespaceBundleMaxMsgRate", r.pickI(30000, 500));
        config.put("loadBalancerNamespaceBundleMaxBandwidthMbytes", r.pickI(100, 1));
        config.put("loadBalancerNamespaceMaximumBundles", r.pickI(128, 5));
        config.put("loadBalancerReportUpdateMinIntervalMillis", r.pickI(5000, 1000));
        config.put("loadBalancerReportUpdateMaxIntervalMinutes", r.pickI(15, 1));
        config.put("loadBalancerHostUsageCheckIntervalMinutes", r.pickI(1, 2));
        config.put("loadBalancerReportUpdateThresholdPercentage", r.pickI(10, 0, 30));
        int brokers = r.pickI(1, 2, 3, 3, 4, 6);
        List<String> ids = new ArrayList<>();
        for (int i = 0; i < brokers; i++) {
            ids.add("b" + i + ":" + r.pickI(8080, 8081));
        }
        int namespaces = r.n(1, 3);
        List<String> bundles = new ArrayList<>();
        for (int n = 0; n < namespaces; n++) {
            int count = r.pickI(2, 4, 8, 16);
            long step = (1L << 32) / count;
            for (int i = 0; i < count; i++) {
                long hi = i == count - 1 ? 0xffffffffL : (i + 1) * step;
                bundles.add(String.format("t/n%d/0x%08x_0x%08x", n, i * step, hi));
            }
        }
        input.set("bundles", J.strs(bundles));
        if (r.p(0.4)) {
            quota(r, input.putObject("storedDefault"));
        }
        ObjectNode stored = input.putObject("stored");
        for (String b : bundles) {
            if (r.p(0.15)) {
                quota(r, stored.putObject(b));
            }
        }
        ObjectNode isolation = input.putObject("isolation");
        for (int n = 0; n < namespaces; n++) {
            if (r.p(0.2)) {
                ObjectNode p = isolation.putObject("t/n" + n);
                ArrayNode primary = p.putArray("primary");
                ArrayNode secondary = p.putArray("secondary");
                for (int i = 0; i < brokers; i++) {
                    if (r.p(0.5)) {
                        primary.add("b" + i);
                    } else if (r.p(0.5)) {
                        secondary.add("b" + i);
                    }
                }
                p.put("minLimit", r.n(0, 2));
            }
        }
        ArrayNode np = input.putArray("nonPersistent");
        for (String b : bundles) {
            if (r.p(0.05)) {
                np.add(b);
            }
        }
        long t = 1_700_000_000_000L;
        input.put("startedAt", t);
        ArrayNode ops = input.putArray("ops");
        Map<String, List<String>> owned = new TreeMap<>();
        List<String> free = new ArrayList<>(bundles);
        r.shuffle(free);
        for (String id : ids) {
            owned.put(id, new ArrayList<>());
        }
        boolean noReports = r.p(0.04);
        if (r.p(0.5)) {
            for (int k = free.size() * 4 / 5; k > 0; k--) {
                owned.get(r.pick(ids.toArray(new String[0]))).add(free.remove(0));
            }
        }
        update(r, ops, ids, owned, t - r.pickI(0, 5000), noReports);
        int n = r.n(4, 14);
        for (int i = 0; i < n; i++) {
            double u = r.u();
            if (u < 0.45) {
                int times = r.n(1, 4);
                for (int k = 0; k < times; k++) {
                    ObjectNode op = ops.addObject();
                    op.put("op", "place");
                    op.put("bundle", r.pick(bundles.toArray(new String[0])));
                    op.put("draw", r.n(1 << 30));
                }
            } else if (u < 0.7) {
                t += r.pickI(5000, 60_000, 600_000, 1_800_000, 40_000_000, 0);
                for (int k = r.n(0, 6); k > 0 && !free.isEmpty(); k--) {
                    owned.get(r.pick(ids.toArray(new String[0]))).add(free.remove(0));
                }
                for (List<String> l : owned.values()) {
                    if (!l.isEmpty() && r.p(0.2)) {
                        free.add(l.remove(r.n(l.size())));
                    }
                }
                update(r, ops, ids, owned, t, noReports);
            } else if (u < 0.85) {
                ops.addObject().put("op", "shed");
            } else if (u < 0.9) {
                ops.addObject().put("op", "writes");
            } else if (u < 0.95) {
                ObjectNode op = ops.addObject();
                op.put("op", "candidates");
                op.put("bundle", r.pick(bundles.toArray(new String[0])));
            } else {
                ObjectNode op = ops.addObject();
                op.put("op", "split");
                op.put("bundleCount", r.pickI(4, 5, 127, 128));
                report(r, op.putObject("report"), r.pick(ids.toArray(new String[0])), bundles.subList(0, Math.min(bundles.size(), 6)), 0, true);
            }
        }
        if (r.p(0.5)) { // last, as it changes what the broker thinks of itself
                ObjectNode op = ops.addObject();
                op.put("op", "due");
                op.put("forced", r.p(0.1));
                op.put("age", r.pickI(500, 3000, 20_000, 50_000, 1_000_000));
                op.put("checkedAgo", r.pickI(10_000, 50_000, 70_000, 200_000));
                report(r, op.putObject("last"), r.pick(ids.toArray(new String[0])), bundles.subList(0, Math.min(bundles.size(), 5)), 0, false);
                ObjectNode now = op.putObject("now");
                report(r, now, op.get("last").get("name").textValue(), bundles.subList(0, Math.min(bundles.size(), r.pickI(4, 5))), 0, false);
                if (r.p(0.6)) {
                    ObjectNode u2 = op.get("last").get("systemResourceUsage").deepCopy();
                    for (String f : new String[] {"cpu", "memory", "bandwidthIn"}) {
                        double usage = u2.get(f).get("usage").doubleValue();
                        ((ObjectNode) u2.get(f)).put("usage", usage + r.pickD(0, 0.01, 0.05, 0.2) * u2.get(f).get("limit").doubleValue());
                    }
                    now.set("systemResourceUsage", u2);
                }
        }
        return strategy + "/" + brokers;
    }

    private static void quota(Rng r, ObjectNode q) {
        q.put("msgRateIn", r.pickD(40, 0, 10, Rng.round(r.range(0, 500), 2)));
        q.put("msgRateOut", r.pickD(120, 0, Rng.round(r.range(0, 500), 2)));
        q.put("bandwidthIn", r.pickD(100000, 0, Rng.round(r.range(0, 2e6), 0)));
        q.put("bandwidthOut", r.pickD(300000, 0, Rng.round(r.range(0, 2e6), 0)));
        q.put("memory", r.pickD(80, 0, Rng.round(r.range(0, 300), 1)));
        q.put("dynamic", !r.p(0.3));
    }

    private static void update(Rng r, ArrayNode ops, List<String> ids, Map<String, List<String>> owned, long t, boolean none) {
        ObjectNode op = ops.addObject();
        op.put("op", "update");
        List<String> registered = new ArrayList<>(ids);
        if (registered.size() > 1 && r.p(0.1)) {
            registered.remove(r.n(registered.size()));
        }
        op.set("registered", J.strs(registered));
        ArrayNode reports = op.putArray("reports");
        for (String id : registered) {
            if (none || r.p(0.03)) {
                continue; // a failed read
            }
            report(r, reports.addObject(), id, owned.get(id), t - r.pickI(0, 1000, 30000), r.p(0.2));
        }
    }

    private static void report(Rng r, ObjectNode o, String id, List<String> bundles, long at, boolean hot) {
        o.put("name", id);
        o.put("persistentTopicsEnabled", !r.p(0.05));
        o.put("nonPersistentTopicsEnabled", !r.p(0.3));
        o.put("timestamp", at);
        double base = r.pickD(0.05, 0.3, 0.6, 0.9, 0.97, 1.1);
        ObjectNode u = o.putObject("systemResourceUsage");
        usage(r, u.putObject("cpu"), base, 400);
        usage(r, u.putObject("memory"), r.pickD(0.2, 0.7, 0.99), r.pickD(1000, 8192, 386.6875));
        usage(r, u.putObject("directMemory"), r.pickD(0.1, base), 4096);
        usage(r, u.putObject("bandwidthIn"), r.pickD(0.1, base), 1e6);
        usage(r, u.putObject("bandwidthOut"), r.pickD(0.1, base), 1e6);
        if (r.p(0.03)) {
            return; // bundleStats stays null
        }
        ObjectNode stats = o.putObject("bundleStats");
        for (String b : bundles) {
            ObjectNode s = stats.putObject(b);
            double f = hot ? r.pickD(1, 50) : r.pickD(0.1, 1, 5);
            s.put("msgRateIn", Rng.round(r.range(0, 200) * f, 3));
            s.put("msgRateOut", Rng.round(r.range(0, 300) * f, 3));
            s.put("msgThroughputIn", Rng.round(r.range(0, 2e5) * f, 1));
            s.put("msgThroughputOut", Rng.round(r.range(0, 2e5) * f, 1));
            s.put("consumerCount", r.n(0, r.pickI(5, 900)));
            s.put("producerCount", r.n(0, r.pickI(5, 400)));
            s.put("topics", r.n(1, r.pickI(3, 20, 1500, 15000)));
            s.put("cacheSize", r.n(0, 100000));
        }
    }

    private static void usage(Rng r, ObjectNode o, double fraction, double limit) {
        if (r.p(0.04)) {
            o.put("usage", -1.0);
            o.put("limit", -1.0);
            return;
        }
        if (r.p(0.01)) {
            limit = 0;
        }
        o.put("usage", Rng.round(fraction * limit * r.range(0.9, 1.02), 4));
        o.put("limit", limit);
    }

    // ---- running them

    private static final class Fixture {
        final ServiceConfiguration conf;
        final PulsarService pulsar = mock(PulsarService.class);
        final BrokerService brokerService = mock(BrokerService.class);
        final Map<String, LoadReport> reports = new HashMap<>();
        List<String> registered = new ArrayList<>();
        final List<String> unloads = new ArrayList<>();
        final List<String> splits = new ArrayList<>();
        final Map<String, ResourceQuota> written = new TreeMap<>();
        SystemResourceUsage host;
        int bundleCount;
        int draw;
        LoadReport reported;
        SimpleLoadManagerImpl manager;

        @SuppressWarnings("unchecked")
        Fixture(JsonNode config, JsonNode input) throws Exception {
            conf = Conf.of(config);
            when(pulsar.getConfiguration()).thenReturn(conf);
            when(pulsar.getConfig()).thenReturn(conf);
            when(pulsar.getBrokerId()).thenReturn("self:8080");
            when(pulsar.getAdvertisedAddress()).thenReturn("self");
            when(pulsar.getBrokerVersion()).thenReturn("4.2.4");
            when(pulsar.getBrokerService()).thenReturn(brokerService);
            when(pulsar.getLoadManagerExecutor()).thenReturn(mock(ScheduledExecutorService.class));
            CoordinationService cs = mock(CoordinationService.class);
            LockManager<LoadReport> locks = mock(LockManager.class);
            when(pulsar.getCoordinationService()).thenReturn(cs);
            when(cs.getLockManager(LoadReport.class)).thenReturn(locks);
            when(locks.listLocks(anyString())).thenAnswer(i -> CompletableFuture.completedFuture(new ArrayList<>(registered)));
            when(locks.readLock(anyString())).thenAnswer(i -> {
                String path = i.getArgument(0);
                return CompletableFuture.completedFuture(Optional.ofNullable(reports.get(path.substring(path.lastIndexOf('/') + 1))));
            });
            MetadataStoreExtended store = mock(MetadataStoreExtended.class);
            MetadataCache<Object> cache = mock(MetadataCache.class);
            when(pulsar.getLocalMetadataStore()).thenReturn(store);
            when(store.getMetadataCache(any(com.fasterxml.jackson.core.type.TypeReference.class))).thenReturn((MetadataCache) cache);
            when(cache.get(anyString())).thenReturn(CompletableFuture.completedFuture(Optional.empty()));
            when(cache.readModifyUpdateOrCreate(anyString(), any())).thenReturn((CompletableFuture) CompletableFuture.completedFuture(null));
            BundlesQuotas quotas = mock(BundlesQuotas.class);
            when(brokerService.getBundlesQuotas()).thenReturn(quotas);
            ResourceQuota def = input.has("storedDefault") ? J.M.treeToValue(input.get("storedDefault"), ResourceQuota.class) : builtIn();
            when(quotas.getDefaultResourceQuota()).thenReturn(CompletableFuture.completedFuture(def));
            JsonNode stored = input.get("stored");
            when(quotas.getResourceQuota(anyString())).thenAnswer(i -> {
                String b = i.getArgument(0);
                return CompletableFuture.completedFuture(stored.has(b) ? J.M.treeToValue(stored.get(b), ResourceQuota.class) : def);
            });
            when(quotas.setDefaultResourceQuota(any())).thenAnswer(i -> {
                written.put("", i.getArgument(0));
                return CompletableFuture.completedFuture(null);
            });
            when(quotas.setResourceQuota(anyString(), any())).thenAnswer(i -> {
                written.put(i.getArgument(0), i.getArgument(1));
                return CompletableFuture.completedFuture(null);
            });
            PulsarAdmin admin = mock(PulsarAdmin.class);
            Namespaces ns = mock(Namespaces.class);
            when(pulsar.getAdminClient()).thenReturn(admin);
            when(admin.namespaces()).thenReturn(ns);
            org.mockito.Mockito.doAnswer(i -> {
                unloads.add(i.getArgument(0) + "/" + i.getArgument(1));
                return null;
            }).when(ns).unloadNamespaceBundle(anyString(), anyString());
            org.mockito.Mockito.doAnswer(i -> {
                splits.add(i.getArgument(0) + "/" + i.getArgument(1) + " " + i.getArgument(2));
                return null;
            }).when(ns).splitNamespaceBundle(anyString(), anyString(), anyBoolean(), any());
            NamespaceService service = mock(NamespaceService.class);
            when(pulsar.getNamespaceService()).thenReturn(service);
            when(service.getBundleCount(any())).thenAnswer(i -> bundleCount);
            manager = new SimpleLoadManagerImpl() {
                @Override
                public SystemResourceUsage getSystemResourceUsage() {
                    return host;
                }
            };
            manager.initialize(pulsar);
            JsonNode isolation = input.get("isolation");
            SimpleResourceAllocationPolicies policies = mock(SimpleResourceAllocationPolicies.class);
            when(policies.areIsolationPoliciesPresent(any())).thenAnswer(i -> isolation.has(i.getArgument(0).toString()));
            when(policies.isPrimaryBroker(any(), anyString())).thenAnswer(i -> in(isolation, i.getArgument(0).toString(), "primary", i.getArgument(1)));
            when(policies.isSecondaryBroker(any(), anyString())).thenAnswer(i -> in(isolation, i.getArgument(0).toString(), "secondary", i.getArgument(1)));
            when(policies.isSharedBroker(anyString())).thenAnswer(i -> {
                for (JsonNode p : isolation) {
                    if (J.list(p.get("primary")).contains(i.<String>getArgument(0))) {
                        return false;
                    }
                }
                return true;
            });
            when(policies.shouldFailoverToSecondaries(any(), anyInt())).thenAnswer(i ->
                    i.<Integer>getArgument(1) < isolation.get(i.getArgument(0).toString()).get("minLimit").intValue());
            J.set(manager, "policies", policies);
            WRRPlacementStrategy wrr = J.get(manager, "placementStrategy");
            J.set(wrr, "rand", new Random() {
                @Override
                public int nextInt(int n) {
                    return draw % n;
                }
            });
            ResourceLock<LoadReport> lock = mock(ResourceLock.class);
            when(lock.updateValue(any())).thenAnswer(i -> {
                reported = i.getArgument(0);
                return CompletableFuture.completedFuture(null);
            });
            J.set(manager, "brokerLock", lock);
        }
    }

    private static boolean in(JsonNode isolation, String ns, String list, String host) {
        return isolation.has(ns) && J.list(isolation.get(ns).get(list)).contains(host);
    }

    private static ResourceQuota builtIn() {
        ResourceQuota q = new ResourceQuota();
        q.setMsgRateIn(40);
        q.setMsgRateOut(120);
        q.setBandwidthIn(100000);
        q.setBandwidthOut(300000);
        q.setMemory(80);
        q.setDynamic(true);
        return q;
    }

    private static Object call(SimpleLoadManagerImpl m, String name) throws Exception {
        Method f = SimpleLoadManagerImpl.class.getDeclaredMethod(name);
        f.setAccessible(true);
        return f.invoke(m);
    }

    private static NamespaceBundle bundle(String name, boolean nonPersistent) {
        NamespaceBundle b = mock(NamespaceBundle.class);
        NamespaceName ns = NamespaceName.get(name.substring(0, name.lastIndexOf('/')));
        when(b.toString()).thenReturn(name);
        when(b.getNamespaceObject()).thenReturn(ns);
        when(b.hasNonPersistentTopic()).thenReturn(nonPersistent);
        return b;
    }

    ObjectNode run(JsonNode config, JsonNode input) throws Exception {
        Fixture f = new Fixture(config, input);
        ObjectNode out = J.obj();
        ArrayNode results = out.putArray("ops");
        Set<String> np = new HashSet<>(J.list(input.get("nonPersistent")));
        boolean started = false;
        for (JsonNode op : input.get("ops")) {
            ObjectNode res = results.addObject();
            try {
                switch (op.get("op").textValue()) {
                    case "update" -> {
                        update(f, op, res);
                        if (!started) { // the end of start()
                            started = true;
                            J.set(f.manager, "realtimeAvgResourceQuota", f.brokerService.getBundlesQuotas().getDefaultResourceQuota().join());
                            J.set(f.manager, "lastResourceQuotaUpdateTimestamp", input.get("startedAt").longValue());
                        }
                        dump(f, res, input);
                    }
                    case "place" -> {
                        f.draw = op.get("draw").intValue();
                        String b = op.get("bundle").textValue();
                        ResourceUnit u = null;
                        try {
                            u = f.manager.getLeastLoaded(bundle(b, np.contains(b))).orElse(null);
                        } catch (NullPointerException e) {
                            res.put("exception", "NullPointerException");
                        }
                        res.put("broker", u == null ? null : u.getResourceId());
                        res.put("cursor", (Long) J.get(f.manager, "brokerRotationCursor"));
                    }
                    case "candidates" -> {
                        String b = op.get("bundle").textValue();
                        ArrayNode list = res.putArray("candidates");
                        Multimap<Long, ResourceUnit> m = f.manager.getResourceAvailabilityFor(bundle(b, np.contains(b)));
                        for (Map.Entry<Long, ResourceUnit> e : m.entries()) {
                            list.addArray().add(e.getKey()).add(e.getValue().getResourceId());
                        }
                    }
                    case "shed" -> {
                        f.unloads.clear();
                        try {
                            f.manager.doLoadShedding();
                        } catch (NullPointerException e) {
                            res.put("exception", "NullPointerException");
                        }
                        res.set("unloads", J.sorted(f.unloads));
                        com.google.common.cache.LoadingCache<String, Long> c = J.get(f.manager, "unloadedHotNamespaceCache");
                        res.set("recent", J.sorted(c.asMap().keySet()));
                    }
                    case "writes" -> {
                        f.written.clear();
                        f.manager.writeResourceQuotasToZooKeeper();
                        res.set("written", J.sorted(f.written.keySet()));
                    }
                    case "split" -> {
                        f.splits.clear();
                        f.bundleCount = op.get("bundleCount").intValue();
                        J.set(f.manager, "lastLoadReport", J.M.treeToValue(op.get("report"), LoadReport.class));
                        J.set(f.manager, "forceLoadReportUpdate", false);
                        f.manager.doNamespaceBundleSplit();
                        res.set("splits", J.sorted(f.splits));
                        res.put("forced", (Boolean) J.get(f.manager, "forceLoadReportUpdate"));
                    }
                    case "due" -> due(f, op, res);
                    default -> throw new IllegalArgumentException(op.toString());
                }
            } catch (RuntimeException e) {
                res.put("failed", e.toString());
            }
        }
        return out;
    }

    private static void update(Fixture f, JsonNode op, ObjectNode res) throws Exception {
        f.reports.clear();
        f.registered = J.list(op.get("registered"));
        for (JsonNode n : op.get("reports")) {
            LoadReport rep = J.M.treeToValue(n, LoadReport.class);
            f.reports.put(rep.getName(), rep);
        }
        call(f.manager, "updateRanking");
        Map<ResourceUnit, LoadReport> current = J.get(f.manager, "currentLoadReports");
        ObjectNode order = res.putObject("order"); // brokers and bundles as Pulsar's maps iterate them
        for (Map.Entry<ResourceUnit, LoadReport> e : current.entrySet()) {
            order.set(e.getKey().getResourceId(), e.getValue().getBundleStats() == null ? J.arr()
                    : J.strs(e.getValue().getBundleStats().keySet()));
        }
    }

    private static void dump(Fixture f, ObjectNode res, JsonNode input) throws Exception {
        SimpleLoadManagerImpl m = f.manager;
        res.put("cpuFactor", (Double) J.get(m, "realtimeCpuLoadFactor"));
        res.put("memoryFactor", (Double) J.get(m, "realtimeMemoryLoadFactor"));
        res.put("updated", (Long) J.get(m, "lastResourceQuotaUpdateTimestamp"));
        res.set("average", J.M.valueToTree(J.get(m, "realtimeAvgResourceQuota")));
        AtomicReference<Map<String, ResourceQuota>> q = J.get(m, "realtimeResourceQuotas");
        ObjectNode qs = res.putObject("quotas");
        new TreeMap<>(q.get()).forEach((k, v) -> qs.set(k, J.M.valueToTree(v)));
        ObjectNode rankings = res.putObject("rankings");
        Map<ResourceUnit, ResourceUnitRanking> rs = J.get(m, "resourceUnitRankings");
        AtomicReference<Map<Long, Set<ResourceUnit>>> sorted = J.get(m, "sortedRankings");
        Map<String, Long> ranks = new HashMap<>();
        sorted.get().forEach((k, v) -> v.forEach(u -> ranks.put(u.getResourceId(), k)));
        BundleRangeCache cache = J.get(m, "brokerToNamespaceToBundleRange");
        Set<String> namespaces = new TreeSet<>();
        J.list(input.get("bundles")).forEach(b -> namespaces.add(b.substring(0, b.lastIndexOf('/'))));
        rs.forEach((u, k) -> {
            ObjectNode o = rankings.putObject(u.getResourceId());
            o.set("loaded", J.sorted(k.getLoadedBundles()));
            o.set("preallocated", J.sorted(k.getPreAllocatedBundles()));
            o.put("rank", ranks.get(u.getResourceId()));
            o.set("allocated", J.M.valueToTree(J.get(k, "allocatedQuota")));
            o.set("preallocatedQuota", J.M.valueToTree(J.get(k, "preAllocatedQuota")));
            for (String s : new String[] {"CPU", "Memory", "DirectMemory", "BandwidthIn", "BandwidthOut", ""}) {
                o.put("load" + s, (Double) J.get(k, "estimatedLoadPercentage" + s));
            }
            o.put("msgRate", k.getEstimatedMessageRate());
            o.put("capacity", k.estimateMaxCapacity(f.brokerService.getBundlesQuotas().getDefaultResourceQuota().join()));
            ObjectNode served = o.putObject("served");
            namespaces.forEach(ns -> served.put(ns, cache.getBundleRangeCount(u.getResourceId(), ns)));
        });
    }

    private static void due(Fixture f, JsonNode op, ObjectNode res) throws Exception {
        long now = System.currentTimeMillis();
        LoadReport last = J.M.treeToValue(op.get("last"), LoadReport.class);
        LoadReport next = J.M.treeToValue(op.get("now"), LoadReport.class);
        last.setTimestamp(now - op.get("age").longValue());
        when(f.pulsar.getBrokerId()).thenReturn(last.getName());
        f.conf.setEnablePersistentTopics(true);
        Map<String, NamespaceBundleStats> stats = next.getBundleStats() == null ? new HashMap<>() : next.getBundleStats();
        when(f.brokerService.getBundleStats()).thenReturn(stats);
        when(f.brokerService.getNumberOfNamespaceBundles()).thenReturn((long) stats.size());
        f.host = next.getSystemResourceUsage();
        f.bundleCount = 1 << 20; // no split
        f.reported = null;
        J.set(f.manager, "lastLoadReport", last);
        J.set(f.manager, "lastResourceUsageTimestamp", now - op.get("checkedAgo").longValue());
        J.set(f.manager, "forceLoadReportUpdate", op.get("forced").booleanValue());
        f.manager.writeLoadReportOnZookeeper();
        res.put("written", f.reported != null);
        res.put("checked", (Long) J.get(f.manager, "lastResourceUsageTimestamp") >= now);
        if (f.reported != null) {
            ObjectNode r = J.M.valueToTree(f.reported);
            ObjectNode o = res.putObject("report");
            for (String k : new String[] {"overLoaded", "underLoaded", "bundleGains", "bundleLosses", "allocatedCPU", "allocatedMemory",
                "allocatedBandwidthIn", "allocatedBandwidthOut", "allocatedMsgRateIn", "allocatedMsgRateOut", "preAllocatedCPU",
                "preAllocatedMemory", "preAllocatedBandwidthIn", "preAllocatedBandwidthOut", "preAllocatedMsgRateIn", "preAllocatedMsgRateOut"}) {
                o.set(k, r.get(k));
            }
        }
    }

    /** JSON and reflection. */
    private static final class J {
        static final ObjectMapper M = new ObjectMapper();

        static ObjectNode obj() {
            return M.createObjectNode();
        }

        static ArrayNode arr() {
            return M.createArrayNode();
        }

        static ArrayNode strs(Collection<String> c) {
            ArrayNode a = arr();
            c.forEach(a::add);
            return a;
        }

        static ArrayNode sorted(Collection<String> c) {
            return strs(new TreeSet<>(c));
        }

        /** Non-finite doubles travel as the strings NaN, Infinity, -Infinity. */
        static double d(JsonNode n) {
            if (n == null || n.isNull() || n.isMissingNode()) {
                return 0;
            }
            return n.isTextual() ? Double.parseDouble(n.textValue()) : n.doubleValue();
        }

        static List<String> list(JsonNode n) {
            List<String> l = new ArrayList<>();
            if (n != null) {
                n.forEach(x -> l.add(x.isNull() ? null : x.textValue()));
            }
            return l;
        }

        static Map<String, JsonNode> fields(JsonNode n) {
            Map<String, JsonNode> m = new LinkedHashMap<>();
            if (n != null) {
                n.fields().forEachRemaining(e -> m.put(e.getKey(), e.getValue()));
            }
            return m;
        }

        static Field field(Class<?> c, String name) {
            for (Class<?> k = c; k != null; k = k.getSuperclass()) {
                try {
                    Field f = k.getDeclaredField(name);
                    f.setAccessible(true);
                    return f;
                } catch (NoSuchFieldException e) {
                    // look further up
                }
            }
            throw new IllegalArgumentException(c + "." + name);
        }

        @SuppressWarnings("unchecked")
        static <T> T get(Object o, String name) {
            try {
                return (T) field(o.getClass(), name).get(o);
            } catch (IllegalAccessException e) {
                throw new RuntimeException(e);
            }
        }

        static void set(Object o, String name, Object v) {
            try {
                field(o.getClass(), name).set(o, v);
            } catch (IllegalAccessException e) {
                throw new RuntimeException(e);
            }
        }
    }

    /** SplitMix64. */
    private static final class Rng {
        private long s;

        Rng(long seed) {
            s = seed;
        }

        /** Independent stream for (seed, kind, case). */
        static Rng of(long seed, String kind, long index) {
            long h = 1469598103934665603L;
            for (int i = 0; i < kind.length(); i++) {
                h = (h ^ kind.charAt(i)) * 1099511628211L;
            }
            Rng r = new Rng(seed * 0x9E3779B97F4A7C15L ^ h ^ (index * 0xD1B54A32D192ED03L));
            r.next();
            return r;
        }

        long next() {
            s += 0x9E3779B97F4A7C15L;
            long z = s;
            z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
            z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
            return z ^ (z >>> 31);
        }

        /** Uniform in [0,1), 53 bits. */
        double u() {
            return (next() >>> 11) * 0x1.0p-53;
        }

        double range(double a, double b) {
            return a + (b - a) * u();
        }

        int n(int bound) {
            return (int) Long.remainderUnsigned(next(), bound);
        }

        int n(int lo, int hiInclusive) {
            return lo + n(hiInclusive - lo + 1);
        }

        boolean p(double prob) {
            return u() < prob;
        }

        @SafeVarargs
        final <T> T pick(T... xs) {
            return xs[n(xs.length)];
        }

        double pickD(double... xs) {
            return xs[n(xs.length)];
        }

        int pickI(int... xs) {
            return xs[n(xs.length)];
        }

        <T> void shuffle(List<T> l) {
            for (int i = l.size() - 1; i > 0; i--) {
                int j = n(i + 1);
                T t = l.get(i);
                l.set(i, l.get(j));
                l.set(j, t);
            }
        }

        static double round(double v, int digits) {
            double m = Math.pow(10, digits);
            return Math.round(v * m) / m;
        }
    }

    /** ServiceConfiguration from JSON. */
    private static final class Conf {
        static ServiceConfiguration of(JsonNode config) {
            ServiceConfiguration c = new ServiceConfiguration();
            for (Map.Entry<String, JsonNode> e : J.fields(config).entrySet()) {
                Field f;
                try {
                    f = ServiceConfiguration.class.getDeclaredField(e.getKey());
                } catch (NoSuchFieldException x) {
                    continue; // oracle-only switches, such as storageType
                }
                f.setAccessible(true);
                JsonNode v = e.getValue();
                try {
                    Class<?> t = f.getType();
                    if (t == int.class) {
                        f.setInt(c, v.intValue());
                    } else if (t == long.class) {
                        f.setLong(c, v.longValue());
                    } else if (t == double.class) {
                        f.setDouble(c, J.d(v));
                    } else if (t == boolean.class) {
                        f.setBoolean(c, v.booleanValue());
                    } else if (t == String.class) {
                        f.set(c, v.textValue());
                    } else if (t == Set.class) {
                        f.set(c, new LinkedHashSet<>(J.list(v)));
                    } else if (t == List.class) {
                        f.set(c, new ArrayList<>(J.list(v)));
                    } else {
                        throw new IllegalArgumentException(f.toString());
                    }
                } catch (IllegalAccessException x) {
                    throw new RuntimeException(x);
                }
            }
            return c;
        }
    }
}
