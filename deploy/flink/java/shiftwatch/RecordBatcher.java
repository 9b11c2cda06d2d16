package shiftwatch;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.flink.api.common.operators.ProcessingTimeService.ProcessingTimeCallback;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.types.Row;

/**
 * Gathers records by partition: PyFlink passes them one by one and tells no partition, at 8,000 a second.
 *
 * <p>A row is a key and a payload. What is gathered goes on when it is much, after {@link #MILLISECONDS}, and before
 * each checkpoint barrier: so nothing of it is state. The first subtask also says how far the partitions reach.
 *
 * <p>A payload is big-endian: a byte, 0 for records; the partition's name; the number of records; their offsets, their
 * times in milliseconds, their lengths (-1: none); the values, a line feed after each. Or 1; the number of partitions;
 * of each its name, and the offset after its last record.
 */
public class RecordBatcher extends AbstractStreamOperator<Row>
        implements OneInputStreamOperator<RawRecord, Row>, ProcessingTimeCallback {
    private static final long serialVersionUID = 1L;
    /** Enough that what a batch costs is nothing beside its records; few enough to stay in a processor's cache. */
    private static final int RECORDS = 5_000;
    private static final int BYTES = 1 << 20;
    private static final long MILLISECONDS = 200;
    private static final long ENDS_EVERY = 1_000;

    private final String[] topics;
    private final Properties properties;
    private transient Map<String, Batch> batches;
    private transient PartitionEnds ends;
    private transient long endsDue;
    private transient int highest;

    public RecordBatcher(String[] topics, Properties properties) {
        this.topics = topics;
        this.properties = properties;
    }

    @Override
    public void open() throws Exception {
        super.open();
        batches = new HashMap<>();
        highest = getRuntimeContext().getTaskInfo().getMaxNumberOfParallelSubtasks();
        if (getRuntimeContext().getTaskInfo().getIndexOfThisSubtask() == 0) {
            ends = new PartitionEnds(topics, properties);
            ends.start();
        }
        tick();
    }

    @Override
    public void processElement(StreamRecord<RawRecord> element) throws Exception {
        RawRecord record = element.getValue();
        String name = record.topic + "-" + record.partition;
        Batch batch = batches.get(name);
        if (batch == null) {
            batch = new Batch(name, key(record.topic, record.partition));
            batches.put(name, batch);
        }
        batch.add(record);
        if (batch.count == RECORDS || batch.values.size() >= BYTES) {
            flush(batch);
        }
    }

    @Override
    public void onProcessingTime(long now) throws Exception {
        flush();
        if (ends != null && now >= endsDue) {
            byte[] said = ends.latest();
            if (said != null) {
                output.collect(new StreamRecord<>(Row.of(key(topics[0], 0), said)));
            }
            endsDue = now + ENDS_EVERY;
        }
        tick();
    }

    @Override
    public void prepareSnapshotPreBarrier(long checkpoint) throws Exception {
        flush();
    }

    @Override
    public void finish() throws Exception {
        flush();
        super.finish();
    }

    @Override
    public void close() throws Exception {
        if (ends != null) {
            ends.close();
        }
        super.close();
    }

    private void tick() {
        long next = getProcessingTimeService().getCurrentProcessingTime() + MILLISECONDS;
        getProcessingTimeService().registerTimer(next, this);
    }

    private void flush() throws IOException {
        for (Batch batch : batches.values()) {
            if (batch.count > 0) {
                flush(batch);
            }
        }
    }

    private void flush(Batch batch) throws IOException {
        output.collect(new StreamRecord<>(Row.of(batch.key, batch.payload())));
    }

    /** One for each partition, so that neighbours go to tasks that are far apart: hashes would crowd some of them. */
    private int key(String topic, int partition) {
        int place = 0;
        while (!topics[place].equals(topic)) {
            place++;
        }
        int number = partition * topics.length + place;
        long mirrored = Integer.toUnsignedLong(Integer.reverse(number));
        int wanted = (int) (mirrored * highest >>> 32);
        int key = number << 16;
        while (KeyGroupRangeAssignment.assignToKeyGroup(Row.of(key), highest) != wanted) {
            key++;
        }
        return key;
    }

    private static final class Batch {
        private final String name;
        private final int key;
        private final long[] offsets = new long[RECORDS];
        private final long[] timestamps = new long[RECORDS];
        private final int[] lengths = new int[RECORDS];
        private final ByteArrayOutputStream values = new ByteArrayOutputStream();
        private int count;

        private Batch(String name, int key) {
            this.name = name;
            this.key = key;
        }

        private void add(RawRecord record) throws IOException {
            offsets[count] = record.offset;
            timestamps[count] = record.timestamp;
            lengths[count] = record.value == null ? -1 : record.value.length;
            if (record.value != null) {
                values.write(record.value);
            }
            values.write('\n');
            count++;
        }

        private byte[] payload() throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream(values.size() + 20 * count + 64);
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeByte(0);
            out.writeUTF(name);
            out.writeInt(count);
            for (int i = 0; i < count; i++) {
                out.writeLong(offsets[i]);
            }
            for (int i = 0; i < count; i++) {
                out.writeLong(timestamps[i]);
            }
            for (int i = 0; i < count; i++) {
                out.writeInt(lengths[i]);
            }
            values.writeTo(out);
            values.reset();
            count = 0;
            return bytes.toByteArray();
        }
    }
}
