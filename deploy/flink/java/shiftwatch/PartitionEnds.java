package shiftwatch;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.KafkaException;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.PartitionInfo;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.TopicPartition;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Says again and again which partitions there are, and where the last record of each stands: only of a partition from
 * which nothing waits to be read may windows be closed without it. While brokers do not answer it says nothing.
 *
 * <p>A partition may end in markers of transactions, which no reader ever sees. So where it no longer grows its end is
 * looked at, and is taken to be after the last record that a reader does see.
 */
class PartitionEnds extends Thread implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(PartitionEnds.class);
    private static final long PAUSE = 1_000;
    private static final Duration POLL = Duration.ofSeconds(5);
    private static final long LOOKED_AT = 64;

    private final String[] topics;
    private final Properties properties;
    private final Map<TopicPartition, Long> raw = new HashMap<>();
    private final Map<TopicPartition, Long> settled = new HashMap<>();
    private volatile byte[] said;
    private volatile boolean closed;

    PartitionEnds(String[] topics, Properties properties) {
        super("shiftwatch-partition-ends");
        setDaemon(true);
        this.topics = topics;
        this.properties = new Properties();
        this.properties.putAll(properties);
        for (String setting : new String[] {"group.id", "group.instance.id"}) {
            this.properties.remove(setting);
        }
        this.properties.put("auto.offset.reset", "earliest");
        this.properties.put("enable.auto.commit", "false");
        this.properties.put("max.poll.records", "500");
    }

    /** What was found since this was last asked; null if nothing was. */
    byte[] latest() {
        byte[] found = said;
        said = null;
        return found;
    }

    @Override
    public void run() {
        while (!closed) {
            try (KafkaConsumer<byte[], byte[]> consumer =
                    new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                while (!closed) {
                    said = look(consumer);
                    Thread.sleep(PAUSE);
                }
            } catch (RuntimeException | IOException error) {
                LOG.warn("Nobody says how far the partitions reach: no partition grows idle meanwhile", error);
                pause();
            } catch (InterruptedException error) {
                return;
            }
        }
    }

    @Override
    public void close() throws InterruptedException {
        closed = true;
        interrupt();
        join(5_000);
    }

    private void pause() {
        try {
            Thread.sleep(PAUSE);
        } catch (InterruptedException error) {
            closed = true;
        }
    }

    private byte[] look(KafkaConsumer<byte[], byte[]> consumer) throws IOException {
        Collection<TopicPartition> partitions = partitions(consumer);
        Map<TopicPartition, Long> begins = consumer.beginningOffsets(partitions);
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeByte(1);
        out.writeInt(partitions.size());
        for (TopicPartition partition : partitions) {
            long end = ends.get(partition);
            Long before = raw.put(partition, end);
            if (before == null || before != end) {
                settled.remove(partition);
            } else if (!settled.containsKey(partition)) {
                settled.put(partition, afterLast(consumer, partition, begins.get(partition), end));
            }
            out.writeUTF(partition.topic() + "-" + partition.partition());
            out.writeLong(settled.getOrDefault(partition, end));
        }
        return bytes.toByteArray();
    }

    private Collection<TopicPartition> partitions(KafkaConsumer<byte[], byte[]> consumer) {
        List<TopicPartition> found = new ArrayList<>();
        for (String topic : topics) {
            for (PartitionInfo each : consumer.partitionsFor(topic)) {
                found.add(new TopicPartition(topic, each.partition()));
            }
        }
        return found;
    }

    /** The offset after the last record before `end`; 0 if there is none. */
    private static long afterLast(
            KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, long begin, long end) {
        for (long back = LOOKED_AT; begin < end; back *= 8) {
            long from = Math.max(begin, end - back);
            long last = lastOf(consumer, partition, from, end);
            if (last >= 0 || from == begin) {
                return last + 1;
            }
        }
        return 0;
    }

    private static long lastOf(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, long from, long end) {
        consumer.assign(List.of(partition));
        consumer.seek(partition, from);
        long last = -1;
        while (consumer.position(partition) < end) {
            long before = consumer.position(partition);
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                last = record.offset();
            }
            if (consumer.position(partition) == before) {
                throw new KafkaException("no answer from " + partition);
            }
        }
        return last;
    }
}
