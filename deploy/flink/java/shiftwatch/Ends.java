package shiftwatch;

import java.util.Arrays;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.python.KeyByKeySelector;
import org.apache.flink.types.Row;

/** Both ends of the job in Kafka; what lies between them is written in Python. */
public final class Ends {
    private Ends() {}

    /** Batches of records, keyed by partition. */
    public static KeyedStream<Row, Row> source(
            StreamExecutionEnvironment environment, String[] topics, Properties properties) {
        KafkaSource<RawRecord> source =
                KafkaSource.<RawRecord>builder()
                        .setTopics(Arrays.asList(topics))
                        .setProperties(properties)
                        .setStartingOffsets(new FromEarliest())
                        .setDeserializer(new RawRecord.Schema())
                        .build();
        return environment
                .fromSource(source, WatermarkStrategy.noWatermarks(), "records")
                .uid("records")
                .transform(
                        "batches",
                        Types.ROW(Types.INT, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO),
                        new RecordBatcher(topics, properties))
                .uid("batches")
                .keyBy(new KeyByKeySelector(), Types.ROW(Types.INT));
    }

    /** Every message exactly once, each in its topic. */
    public static void sink(DataStream<byte[]> messages, String prefix, Properties properties) {
        messages.sinkTo(
                        KafkaSink.<byte[]>builder()
                                .setKafkaProducerConfig(properties)
                                .setBootstrapServers(properties.getProperty("bootstrap.servers"))
                                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                                .setTransactionalIdPrefix(prefix)
                                .setRecordSerializer(new FramedMessage())
                                .build())
                .uid("messages")
                .name("messages");
    }
}
