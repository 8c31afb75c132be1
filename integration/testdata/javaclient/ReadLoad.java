import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionMode;
import org.apache.pulsar.client.api.schema.GenericRecord;

/**
 * Reads a load topic as applications of Pulsar do: with a table view of the brokers' own class, and with a consumer that takes
 * the schema from the topic. Prints one line for each event, "view KEY JSON" or "consumer KEY JSON", and ends with "done" when
 * both have heard of that many brokers, or with "missing ..." when the time is over.
 */
public class ReadLoad {
    public static void main(String[] args) throws Exception {
        if (args.length != 5) {
            System.err.println("usage: ReadLoad SERVICE_URL TOPIC CLASS BROKERS SECONDS");
            System.exit(2);
        }
        Class<?> type = Class.forName(args[2]);
        int brokers = Integer.parseInt(args[3]);
        long end = System.nanoTime() + Long.parseLong(args[4]) * 1_000_000_000L;
        Set<String> viewed = ConcurrentHashMap.newKeySet();
        Set<String> consumed = ConcurrentHashMap.newKeySet();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build();
                var consumer = client.newConsumer(Schema.AUTO_CONSUME()).topic(args[1]).subscriptionName("java-consumer")
                        .subscriptionMode(SubscriptionMode.NonDurable).subscribe();
                AutoCloseable view = follow(client, args[1], type, viewed)) {
            print("ready");
            while (viewed.size() < brokers || consumed.size() < brokers) {
                if (System.nanoTime() > end) {
                    print("missing: heard of " + viewed.size() + " and " + consumed.size() + " brokers of " + brokers);
                    System.exit(1);
                }
                Message<GenericRecord> m = consumer.receive(100, java.util.concurrent.TimeUnit.MILLISECONDS);
                if (m == null) {
                    continue;
                }
                consumer.acknowledge(m);
                if (m.size() > 0) {
                    print("consumer " + m.getKey() + " " + m.getValue().getNativeObject());
                    consumed.add(m.getKey());
                }
            }
            print("done");
        }
        System.exit(0); // threads of the client's libraries may live on
    }

    private static <T> AutoCloseable follow(PulsarClient client, String topic, Class<T> type, Set<String> heard) throws Exception {
        Schema<T> schema = Schema.JSON(type);
        var view = client.newTableView(schema).topic(topic).create();
        view.forEachAndListen((key, value) -> {
            if (value != null) {
                print("view " + key + " " + new String(schema.encode(value), StandardCharsets.UTF_8));
                heard.add(key);
            }
        });
        return view;
    }

    private static synchronized void print(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
