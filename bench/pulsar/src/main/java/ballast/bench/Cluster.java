package ballast.bench;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * The synthetic cluster of the benchmarks, the one that internal/benchstate makes from the same seed: numbers are drawn from
 * SplitMix64 in the same order, so that both sides decide on the same state. {@link #digest()} proves it.
 */
final class Cluster {
    /** Bytes/s, in and out. */
    static final class Bundle {
        String name;
        double in;
        double out;

        double throughput() {
            return in + out;
        }
    }

    /** Usages are in the unit of their limits; load is the fraction of the CPU that is used. */
    static final class Broker {
        String name;
        boolean hot;
        double load;
        double cpu;
        double memory;
        double directMemory;
        double bandwidthIn;
        double bandwidthOut;
        double in;
        double out;
        final List<Bundle> bundles = new ArrayList<>();

        /** The n bundles of most throughput, lightest first. */
        List<Bundle> heaviest(int n) {
            List<Bundle> sorted = new ArrayList<>(bundles);
            sorted.sort(Comparator.comparingDouble(Bundle::throughput));
            return sorted.subList(Math.max(0, sorted.size() - n), sorted.size());
        }
    }

    static final double CPU_LIMIT = 800;
    static final double MEMORY_LIMIT = 16384;
    static final double DIRECT_MEMORY_LIMIT = 32768;
    static final double BANDWIDTH_LIMIT = 10485760;
    static final int TOPICS = 10;

    final List<Broker> brokers = new ArrayList<>();
    final List<Bundle> bundles = new ArrayList<>();
    private long state;

    /** Every hotEvery-th broker is hot, none if it is 0; bundles are dealt out in turn. */
    Cluster(long seed, int brokerCount, int bundleCount, int hotEvery) {
        state = seed;
        for (int i = 0; i < brokerCount; i++) {
            Broker b = new Broker();
            b.name = String.format("broker-%05d:8080", i);
            b.hot = hotEvery > 0 && i % hotEvery == 0;
            b.load = b.hot ? 0.80 + 0.15 * uniform() : 0.40 + 0.20 * uniform();
            b.cpu = b.load * CPU_LIMIT;
            b.memory = b.load * uniform() * MEMORY_LIMIT;
            b.directMemory = b.load * uniform() * DIRECT_MEMORY_LIMIT;
            b.bandwidthIn = b.load * uniform() * BANDWIDTH_LIMIT;
            b.bandwidthOut = b.load * uniform() * BANDWIDTH_LIMIT;
            brokers.add(b);
        }
        for (int j = 0; j < bundleCount; j++) {
            Broker owner = brokers.get(j % brokerCount);
            long lower = j % 64 * 0x4000000L;
            long upper = j % 64 == 63 ? 0xffffffffL : lower + 0x4000000L;
            Bundle b = new Bundle();
            b.in = 2e6 * uniform() * (owner.hot ? 2 : 1);
            b.out = 2e6 * uniform() * (owner.hot ? 2 : 1);
            b.name = String.format("bench/ns%06d/0x%08x_0x%08x", j / 64, lower, upper);
            owner.in += b.in;
            owner.out += b.out;
            owner.bundles.add(b);
            bundles.add(b);
        }
    }

    /** Uniform in [0, 1), 53 bits of SplitMix64. */
    private double uniform() {
        state += 0x9E3779B97F4A7C15L;
        long z = state;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return ((z ^ (z >>> 31)) >>> 11) * 0x1.0p-53;
    }

    /** Every name and every number, bit for bit. */
    String digest() {
        Digest d = new Digest();
        for (Broker b : brokers) {
            d.add(b.name).add(b.load).add(b.cpu).add(b.memory).add(b.directMemory).add(b.bandwidthIn).add(b.bandwidthOut)
                    .add(b.in).add(b.out);
        }
        for (Bundle b : bundles) {
            d.add(b.name).add(b.in).add(b.out);
        }
        return d.toString();
    }
}
