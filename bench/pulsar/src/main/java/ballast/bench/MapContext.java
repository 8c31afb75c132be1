package ballast.bench;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.extensions.BrokerRegistry;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.data.TopBundlesLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.store.LoadDataStore;
import org.apache.pulsar.metadata.api.NotificationType;

/** What the extensible classes look things up in, over plain hash maps, which cost less than a broker's table views. */
record MapContext(ServiceConfiguration brokerConfiguration, Store<BrokerLoadData> brokerLoadDataStore,
                  Store<TopBundlesLoadData> topBundleLoadDataStore, Registry brokerRegistry) implements LoadManagerContext {

    MapContext(ServiceConfiguration conf) {
        this(conf, new Store<>(new HashMap<>()), new Store<>(new HashMap<>()), new Registry(new HashMap<>()));
    }

    record Store<T>(Map<String, T> map) implements LoadDataStore<T> {
        @Override
        public CompletableFuture<Void> pushAsync(String key, T value) {
            map.put(key, value);
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public CompletableFuture<Void> removeAsync(String key) {
            map.remove(key);
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public Optional<T> get(String key) {
            return Optional.ofNullable(map.get(key));
        }

        @Override
        public void forEach(BiConsumer<String, T> action) {
            map.forEach(action);
        }

        @Override
        public Set<Map.Entry<String, T>> entrySet() {
            return map.entrySet();
        }

        @Override
        public int size() {
            return map.size();
        }

        @Override
        public void closeTableView() {
        }

        @Override
        public void start() {
        }

        @Override
        public void init() {
        }

        @Override
        public void startTableView() {
        }

        @Override
        public void startProducer() {
        }

        @Override
        public void close() {
        }
    }

    record Registry(Map<String, BrokerLookupData> brokers) implements BrokerRegistry {
        @Override
        public CompletableFuture<List<String>> getAvailableBrokersAsync() {
            return CompletableFuture.completedFuture(List.copyOf(brokers.keySet()));
        }

        @Override
        public CompletableFuture<Optional<BrokerLookupData>> lookupAsync(String broker) {
            return CompletableFuture.completedFuture(Optional.ofNullable(brokers.get(broker)));
        }

        @Override
        public CompletableFuture<Map<String, BrokerLookupData>> getAvailableBrokerLookupDataAsync() {
            return CompletableFuture.completedFuture(brokers);
        }

        @Override
        public String getBrokerId() {
            return "self:8080";
        }

        @Override
        public boolean isStarted() {
            return true;
        }

        @Override
        public boolean isRegistered() {
            return true;
        }

        @Override
        public CompletableFuture<Void> registerAsync() {
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public void addListener(BiConsumer<String, NotificationType> listener) {
        }

        @Override
        public void start() {
        }

        @Override
        public void unregister() {
        }

        @Override
        public void close() {
        }
    }
}
