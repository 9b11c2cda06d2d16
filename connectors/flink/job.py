"""The job: records from Kafka, by partition into parts of windows, by stream into results, to Kafka again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyflink
from pyflink.common import Configuration, Types
from pyflink.datastream import DataStream, KeyedStream, StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway

from connectors.flink.functions import BYTES, DEAD_LETTERS, MADE, MakeParts, MergeParts
from connectors.flink.stages import Stages

# Key groups: a savepoint may be taken up with any parallelism up to this one.
_MOST_PARALLEL = 128
# A batch of records is one element here, so that few make a bundle; the other limit is what bounds the delay.
_BUNDLE, _BUNDLE_MILLISECONDS = 100, 200


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a job runs, and how."""

    jobmanager: str = ""
    """The REST address, as host:port. Empty: as Flink's own configuration says, such as under `flink run`."""
    parallelism: int = 0
    """0: as Flink's own configuration says."""
    jars: Path | None = None
    """A folder with the connector and our operators, unless the cluster has them in its `lib`."""
    python: str = ""
    """The interpreter on the workers."""
    savepoint: str = ""
    """What to begin with."""


def submit(
    stages: Stages, topics: Sequence[str], reading: Mapping[str, str], writing: Mapping[str, str], *,
    name: str, checkpoint: int, cluster: Cluster = Cluster(),
) -> str:  # fmt: skip
    """Submit a job that takes a checkpoint every so many microseconds: its id."""
    environment = _environment(cluster)
    environment.set_max_parallelism(_MOST_PARALLEL)
    environment.enable_checkpointing(max(checkpoint // 1_000, 10))
    if cluster.parallelism:
        environment.set_parallelism(cluster.parallelism)
    ends = get_gateway().jvm.shiftwatch.Ends
    records = ends.source(environment._j_stream_execution_environment, _array(topics), _properties(reading))  # noqa: SLF001 - the one door to operators in Java
    parts = KeyedStream(records, BYTES, DataStream(records)).process(MakeParts(stages), MADE).name("parts").uid("parts")
    by_stream = parts.key_by(_stream, Types.STRING())
    results = by_stream.process(MergeParts(stages), BYTES).name("results").uid("results")
    messages = results.union(parts.get_side_output(DEAD_LETTERS))
    ends.sink(messages._j_data_stream, name, _properties(writing))  # noqa: SLF001 - the same
    return str(environment.execute_async(name).get_job_id())


def _stream(made: Any) -> Any:
    return made[0]


def _environment(cluster: Cluster) -> StreamExecutionEnvironment:
    """Of the cluster that is named, or in which `flink run` has put us."""
    configuration = _configuration(cluster)
    if not cluster.jobmanager:
        return StreamExecutionEnvironment.get_execution_environment(configuration)
    java = get_gateway().jvm.org.apache.flink.streaming.api.environment.StreamExecutionEnvironment
    return StreamExecutionEnvironment(java(configuration._j_configuration))  # noqa: SLF001 - PyFlink makes local ones only


def _configuration(cluster: Cluster) -> Configuration:
    settings = {
        "pipeline.object-reuse": "true",
        "python.fn-execution.bundle.size": str(_BUNDLE),
        "python.fn-execution.bundle.time": str(_BUNDLE_MILLISECONDS),
    }
    if cluster.jobmanager:
        host, _, port = cluster.jobmanager.rpartition(":")
        settings |= {"execution.target": "remote", "rest.address": host, "rest.port": port}
    if cluster.jars is not None:
        # Where jars are named, those that PyFlink would name by itself have to be among them.
        own = Path(pyflink.__file__).parent / "opt"
        jars = [*sorted(cluster.jars.resolve().glob("*.jar")), *own.glob("flink-python-*.jar")]
        settings["pipeline.jars"] = ";".join(path.as_uri() for path in jars)
    if cluster.python:
        settings["python.executable"] = cluster.python
    if cluster.savepoint:
        settings["execution.state-recovery.path"] = cluster.savepoint
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    return configuration


def _properties(said: Mapping[str, str]) -> Any:
    properties = get_gateway().jvm.java.util.Properties()
    for key, value in said.items():
        properties.setProperty(key, value)
    return properties


def _array(texts: Sequence[str]) -> Any:
    gateway = get_gateway()
    array = gateway.new_array(gateway.jvm.java.lang.String, len(texts))
    for place, text in enumerate(texts):
        array[place] = text
    return array
