package shiftwatch;

import java.io.IOException;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.flink.util.Collector;

/** A record as it stands in a topic: nothing here looks into it. Fields are public and mutable as Flink's POJOs are. */
public class RawRecord {
    public String topic;
    public int partition;
    public long offset;
    /** Milliseconds since the epoch. */
    public long timestamp;
    /** Null for a tombstone. */
    public byte[] value;

    /** Hands on all of a record that the monitor needs, the value undecoded. */
    public static class Schema implements KafkaRecordDeserializationSchema<RawRecord> {
        private static final long serialVersionUID = 1L;

        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<RawRecord> out) throws IOException {
            RawRecord raw = new RawRecord();
            raw.topic = record.topic();
            raw.partition = record.partition();
            raw.offset = record.offset();
            raw.timestamp = record.timestamp();
            raw.value = record.value();
            out.collect(raw);
        }

        @Override
        public TypeInformation<RawRecord> getProducedType() {
            return TypeInformation.of(RawRecord.class);
        }
    }
}
