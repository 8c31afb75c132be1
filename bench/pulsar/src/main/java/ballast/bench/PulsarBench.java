package ballast.bench;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.pulsar.PulsarVersion;

/**
 * Times one of Pulsar's own decision classes. Prints two lines of JSON: what the first call decided and, after the warm-up,
 * the times per call in nanoseconds with what the last call decided.
 *
 * <p>Arguments: kind brokers bundles hotEvery seed warmMillis rounds roundMillis. With 0 rounds it ends after the first line.
 */
public final class PulsarBench {
    private PulsarBench() {
    }

    public static void main(String[] args) throws Exception {
        Cluster cluster = new Cluster(Long.parseLong(args[4]), Integer.parseInt(args[1]), Integer.parseInt(args[2]),
                Integer.parseInt(args[3]));
        long warm = Long.parseLong(args[5]) * 1_000_000;
        int rounds = Integer.parseInt(args[6]);
        long roundNanos = Long.parseLong(args[7]) * 1_000_000;
        Decider decider = Decider.of(args[0], cluster);
        System.out.printf("{\"java\":\"%s\",\"pulsar\":\"%s\",\"state\":\"%s\",%s}%n", System.getProperty("java.version"),
                PulsarVersion.getVersion(), cluster.digest(), check(decider.decided(decider.decide())));
        System.out.flush();
        if (rounds == 0) {
            return;
        }

        // Warm-up and rounds go by the CPU time of this thread, so that a busy machine does not shorten them.
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long calls = 0;
        long spent = 0;
        int perRound = 1;
        while (spent < warm || calls == 0) {
            long c = threads.getCurrentThreadCpuTime();
            for (int j = 0; j < perRound; j++) {
                decider.decide();
            }
            long took = threads.getCurrentThreadCpuTime() - c;
            calls += perRound;
            spent += took;
            if (took < roundNanos && perRound < 1 << 20) {
                perRound *= 2;
            }
        }
        double[] wall = new double[rounds];
        double[] cpu = new double[rounds];
        Object last = null;
        for (int i = 0; i < rounds; i++) {
            long w = System.nanoTime();
            long c = threads.getCurrentThreadCpuTime();
            for (int j = 0; j < perRound; j++) {
                last = decider.decide();
            }
            cpu[i] = (threads.getCurrentThreadCpuTime() - c) / (double) perRound;
            wall[i] = (System.nanoTime() - w) / (double) perRound;
        }
        Arrays.sort(wall);
        Arrays.sort(cpu);
        System.out.printf("{\"warmupCalls\":%d,\"perRound\":%d,\"wallMedian\":%s,\"wallMin\":%s,\"cpuMedian\":%s,"
                + "\"cpuMin\":%s,%s}%n", calls, perRound, wall[rounds / 2], wall[0], cpu[rounds / 2], cpu[0],
                check(decider.decided(last)));
    }

    private static String check(List<String> decided) {
        Collections.sort(decided);
        Digest digest = new Digest();
        decided.forEach(digest::add);
        return String.format("\"check\":{\"decided\":%d,\"digest\":\"%s\"}", decided.size(), digest);
    }
}
