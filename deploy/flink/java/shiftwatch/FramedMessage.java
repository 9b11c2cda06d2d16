package shiftwatch;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.producer.ProducerRecord;

/**
 * A message to publish, as the monitor writes it, big-endian: the topic; the key and the value, each after its length;
 * the number of headers; of each its name and its value after its length.
 */
public class FramedMessage implements KafkaRecordSerializationSchema<byte[]> {
    private static final long serialVersionUID = 1L;

    @Override
    public ProducerRecord<byte[], byte[]> serialize(byte[] frame, KafkaSinkContext context, Long timestamp) {
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(frame))) {
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(in.readUTF(), bytes(in), bytes(in));
            for (int left = in.readInt(); left > 0; left--) {
                record.headers().add(in.readUTF(), bytes(in));
            }
            return record;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static byte[] bytes(DataInputStream in) throws IOException {
        return in.readNBytes(in.readInt());
    }
}
