"""The jars of a job hold all that Kafka's Java client may need. No cluster runs for it."""

import subprocess
from pathlib import Path

import pytest

from tests.flink.cluster import HOME, distribution, unavailable

PROGRAM = """
import java.nio.ByteBuffer;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.compress.Compression;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.record.CompressionType;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.utils.BufferSupplier;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.utils.ByteBufferOutputStream;

public class Compressed {
    public static void main(String[] arguments) throws Exception {
        for (CompressionType type : CompressionType.values()) {
            Compression compression = Compression.of(type).build();
            ByteBufferOutputStream bytes = new ByteBufferOutputStream(1024);
            try (var out = compression.wrapForOutput(bytes, (byte) 2)) {
                out.write(new byte[100]);
            }
            ByteBuffer written = bytes.buffer();
            written.flip();
            try (var in = compression.wrapForInput(written, (byte) 2, BufferSupplier.NO_CACHING)) {
                System.out.println(type + " " + in.readAllBytes().length);
            }
        }
    }
}
"""


@pytest.mark.chaos
def test_a_job_reads_and_writes_records_however_they_are_compressed(tmp_path: Path) -> None:
    why = unavailable()
    if why is not None:
        pytest.skip(why)
    program = tmp_path / "Compressed.java"
    program.write_text(PROGRAM)
    command = ["java", "-cp", f"{HOME}/jars/*:{distribution()}/lib/*", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lengths = dict(line.split() for line in done.stdout.splitlines() if not line.startswith("SLF4J"))
    assert lengths == dict.fromkeys(("none", "gzip", "snappy", "lz4", "zstd"), "100"), done.stderr
