"""Kafka as a source and as a sink. The rest of the product imports this file only.

A Kafka sink that is fed by a Kafka source commits that source's positions: the two are opened as a pair.
"""

import os
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from connectors.kafka.driver import Driver, Fetched, Partition, PositionLostError, Writer
from connectors.kafka.settings import (
    Connection,
    SinkSettings,
    SourceSettings,
    sink_settings,
    source_settings,
)
from connectors.kafka.statistics import PartitionStatistics, SinkStatistics, SourceStatistics
from connectors.kafka.topic_sink import KafkaSink, OwnGroup, SourceGroup, warn_where_not_compacted
from connectors.kafka.topic_source import KafkaSource
from connectors.kafka.watchdog import Guard
from monitor.errors import ConfigurationError

__all__ = [
    "Connection",
    "Fetched",
    "KafkaSink",
    "KafkaSource",
    "Partition",
    "PartitionStatistics",
    "PositionLostError",
    "SinkSettings",
    "SinkStatistics",
    "SourceSettings",
    "SourceStatistics",
    "open_pair",
    "open_sink",
    "open_source",
    "pair",
    "sink",
    "sink_settings",
    "source",
    "source_settings",
    "warn_where_not_compacted",
]


def source(rest: str, options: Mapping[str, Any], base: Path) -> KafkaSource:
    """`kafka://host:9092,other:9092/topic,topic`, for sinks that are not Kafka: it reads every partition."""
    return open_source(_source_settings(rest, options, base))


def sink(rest: str, options: Mapping[str, Any], base: Path) -> KafkaSink:
    """`kafka://host:9092/results`, for sources that are not Kafka."""
    return open_sink(_sink_settings(rest, options, base))


def pair(
    source: tuple[str, Mapping[str, Any]], sink: tuple[str, Mapping[str, Any]], base: Path
) -> tuple[KafkaSource, KafkaSink]:
    """Both ends in Kafka: a member of a group. Each end is the rest of its URL and its options."""
    problems: list[str] = []
    for parse, end in ((_source_settings, source), (_sink_settings, sink)):
        try:
            parse(*end, base)
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(problems)
    return open_pair(_source_settings(*source, base), _sink_settings(*sink, base))


def open_source(settings: SourceSettings) -> KafkaSource:
    """A source for sinks that are not Kafka: it reads every partition, and the sink keeps the positions."""
    if settings.group is not None:
        raise ConfigurationError(["group: the group keeps positions only where the sink is Kafka too; leave it out"])
    return KafkaSource(settings, _driver(settings.connection).reader, Guard())


def open_sink(settings: SinkSettings) -> KafkaSink:
    """A sink for sources that are not Kafka: it keeps their positions under a group of its own."""
    if settings.group is None:
        raise ConfigurationError(["group: name one, under which the source's positions are kept"])
    look = partial(_driver(settings.connection).group_reader, settings.connection, settings.group)
    positions = OwnGroup(look, settings.results)
    return KafkaSink(settings, _writer(_transactional_id(settings, settings.group, "single")), positions, Guard())


def open_pair(source: SourceSettings, sink: SinkSettings) -> tuple[KafkaSource, KafkaSink]:
    """A member of a group and its sink: results and the group's offsets in one transaction."""
    problems = []
    if source.group is None:
        problems.append("source.group: a Kafka source that feeds a Kafka sink needs a consumer group")
    if set(source.connection.bootstrap) != set(sink.connection.bootstrap):
        problems.append("sink.bootstrap: a transaction cannot span two clusters: name the source's brokers")
    if source.connection.driver != sink.connection.driver:
        problems.append("sink.driver: source and sink share one client library: name the same driver")
    if source.isolation != "read_committed" and sink.delivery == "exactly-once":
        problems.append("source.isolation: exactly-once reads offsets that are settled: it needs read_committed")
    if problems or source.group is None:
        raise ConfigurationError(problems)
    reading = KafkaSource(source, _driver(source.connection).reader, Guard())
    pinned = "-".join(map(str, sorted(source.partitions)))
    writer = _writer(_transactional_id(sink, source.group, source.instance or pinned or None))
    return reading, KafkaSink(sink, writer, SourceGroup(reading), Guard())


def _source_settings(rest: str, options: Mapping[str, Any], base: Path) -> SourceSettings:
    return source_settings(_with_url(rest, options, "topics"), base)


def _sink_settings(rest: str, options: Mapping[str, Any], base: Path) -> SinkSettings:
    return sink_settings(_with_url(rest, options, "results"), base)


def _with_url(rest: str, options: Mapping[str, Any], path: str) -> dict[str, Any]:
    """What the URL says and what the options say; the options win."""
    bootstrap, _, topics = rest.removeprefix("//").partition("/")
    said = {key: value for key, value in (("bootstrap", bootstrap), (path, topics)) if value}
    return said | dict(options)


def _writer(transactional_id: str | None) -> Callable[[SinkSettings], Writer]:
    return lambda settings: _driver(settings.connection).writer(settings, transactional_id)


def _driver(connection: Connection) -> Driver:
    """The modules are imported when they are wanted: each client library takes its time."""
    if connection.driver == "fast":
        try:
            from connectors.kafka import fast_driver  # noqa: PLC0415 - optional extra
        except ImportError as error:
            raise ConfigurationError(['driver: "fast" needs confluent-kafka: pip install confluent-kafka']) from error
        return fast_driver
    from connectors.kafka import python_driver  # noqa: PLC0415 - slow to import

    return python_driver


def _transactional_id(settings: SinkSettings, group: str, instance: str | None) -> str | None:
    """Stable where the member has a name: its restart then ends at once what the killed process left open."""
    if settings.delivery == "at-least-once":
        return None
    return settings.transactional_id or f"{group}-{instance or f'{os.getpid()}-{secrets.token_hex(4)}'}"
