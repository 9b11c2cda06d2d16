"""What a job on Apache Flink does with the streams of a configuration, or every reason why none can do it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

from connectors.flink import clients
from connectors.kafka import KafkaSink, KafkaSource
from monitor.commands.run import configured
from monitor.commands.streams import decoder_of, opened
from monitor.errors import ConfigurationError
from monitor.limits import SHORTEST_PATIENCE
from monitor.ports import Channel
from monitor.ports.options import duration, duration_text
from monitor.service import PartMaker, PartMerger, Watched
from monitor.settings import Config
from monitor.windows import TimePlan


class JobPlan:
    """What a job does, or every reason why none can do it."""

    def __init__(self, path: Path) -> None:
        self.config = configured(path)
        source, sink, watched = opened(self.config, path.parent)
        # Workers are on other machines: what processes of one machine share is copied for them.
        self.watched = dict(watched)
        if not isinstance(source, KafkaSource) or not isinstance(sink, KafkaSink):
            raise ConfigurationError(["source and sink: a job on Flink wants both in Kafka"])
        self.source, self.sink = source.settings, sink.settings
        problems = [*clients.problems(self.source, self.sink), *_problems(self.config, self.watched)]
        timeout, commit = clients.TRANSACTION_TIMEOUT, self.config.pace.commit
        if "transaction_timeout" in self.config.sink:
            timeout = duration(self.config.sink["transaction_timeout"], "sink.transaction_timeout")
        if timeout <= commit:
            problems.append(
                "sink.transaction_timeout: a transaction is open from one checkpoint to the next: want more than "
                f"[pace] commit ({duration_text(commit)}), got {duration_text(timeout)}"
            )
        if problems:
            raise ConfigurationError(problems)
        self.reading, self.writing = clients.reading(self.source), clients.writing(self.sink, timeout)
        topics = {channel: self.sink.topic(channel) for channel in get_args(Channel)}
        self.topics = {channel: topic for channel, topic in topics.items() if topic is not None}
        self.name = f"shiftwatch-{self.source.group}"
        # Workers need no addresses and no passwords: those are the operators' at both ends.
        inner = replace(self.config, source={}, sink={}, server=None, otlp=None)
        self.maker = PartMaker(self.watched, partial(decoder_of, inner, self.watched), self.config.dead_letters)
        self.merger = PartMerger(self.watched, self.config.pace.idle / 1e6)


def _problems(config: Config, watched: Mapping[str, Watched]) -> Iterator[str]:
    """What a job cannot have, in words."""
    if 0 < config.pace.idle < SHORTEST_PATIENCE:
        shortest = duration_text(SHORTEST_PATIENCE)
        yield f'pace.idle: a job looks once a second: want {shortest} or more, or "0s" for never'
    if config.join is not None:
        yield "source.join: what waits for its partner is in the memory of one process"
    for name, stream in watched.items():
        if not isinstance(stream.plan, TimePlan):
            yield f"streams.{name}.window: windows by `count` follow the order of arrival, which Flink has none of"
        elif stream.plan.evidence is not None:
            yield f"streams.{name}: regressors are judged by labels of earlier windows, which parts do not carry yet"
        if stream.awaited is not None:
            yield f"streams.{name}.labels: late labels wait on the disk of one process: events may carry their label"
        if stream.corrected == "live":
            yield f'streams.{name}.corrected: "live" would need results in front of the events: want "window"'
        if config.streams[name].dead_letter_late:
            yield f"streams.{name}.dead_letter_late: a job counts late events and does not keep them"
