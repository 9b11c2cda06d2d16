"""`shiftwatch flink`: the same streams on Apache Flink, where one process cannot hold them."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

from monitor.commands.run import configured
from monitor.commands.streams import decoder_of, opened
from monitor.errors import ConfigurationError, ShiftwatchError
from monitor.limits import SHORTEST_PATIENCE
from monitor.ports import Channel
from monitor.ports.options import duration, duration_text
from monitor.service import PartMaker, PartMerger, Watched
from monitor.settings import Config
from monitor.windows import TimePlan


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`shiftwatch flink check` and `shiftwatch flink submit`."""
    parser = commands.add_parser("flink", help="run the streams of a configuration on Apache Flink")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    checking = actions.add_parser("check", help="whether a job can do what a configuration says; needs no Flink")
    checking.add_argument("config", type=Path, help="a TOML file")
    checking.set_defaults(run=_check)
    submitting = actions.add_parser("submit", help="submit the job; wants PyFlink (deploy/flink)")
    submitting.add_argument("config", type=Path, help="a TOML file")
    submitting.add_argument("--jobmanager", default="", help="its REST address, as host:port (default: Flink's own)")
    submitting.add_argument("--parallelism", type=int, default=0, help="tasks side by side (default: Flink's own)")
    submitting.add_argument("--jars", type=Path, help="what deploy/flink/build has built, if not in Flink's `lib`")
    submitting.add_argument("--python", default="", help="the interpreter on the workers (default: python)")
    submitting.add_argument("--savepoint", default="", help="go on from a savepoint or a checkpoint")
    submitting.set_defaults(run=_submit)


def _check(given: argparse.Namespace) -> int:
    plan = _Plan(given.config)
    print(f"{given.config}: fine. A job would read {', '.join(plan.source.topics)} and write to {plan.sink.results}")
    return 0


def _submit(given: argparse.Namespace) -> int:
    plan = _Plan(given.config)
    try:
        from connectors.flink.job import Cluster, submit
    except ImportError as error:
        raise ShiftwatchError(
            f"{error}: submit from an environment of its own (pip install 'shiftwatch[flink]')"
        ) from error
    from connectors.flink.stages import Stages

    cluster = Cluster(given.jobmanager, given.parallelism, given.jars, given.python, given.savepoint)
    stages = Stages(plan.maker, plan.merger, sorted(plan.watched), plan.topics, plan.sink.max_message_bytes)
    job = submit(
        stages,
        plan.source.topics,
        plan.reading,
        plan.writing,
        name=plan.name,
        checkpoint=plan.config.pace.commit,
        cluster=cluster,
    )
    print(f"{given.config}: submitted as job {job}")
    return 0


class _Plan:
    """What a job does, or every reason why none can do it."""

    def __init__(self, path: Path) -> None:
        from connectors.flink import clients
        from connectors.kafka import KafkaSink, KafkaSource

        self.config = replace(configured(path), server=None)
        source, sink, watched = opened(self.config, path.parent)
        # Workers are on other machines: what processes of one machine share is copied for them.
        self.watched = dict(watched)
        if not isinstance(source, KafkaSource) or not isinstance(sink, KafkaSink):
            raise ConfigurationError(["source and sink: a job on Flink wants both in Kafka"])
        self.source, self.sink = source.settings, sink.settings
        problems = [*clients.problems(self.source, self.sink), *_problems(self.config, self.watched)]
        timeout = clients.TRANSACTION_TIMEOUT
        if "transaction_timeout" in self.config.sink:
            timeout = duration(self.config.sink["transaction_timeout"], "sink.transaction_timeout")
        if problems:
            raise ConfigurationError(problems)
        self.reading, self.writing = clients.reading(self.source), clients.writing(self.sink, timeout)
        topics = {channel: self.sink.topic(channel) for channel in get_args(Channel)}
        self.topics = {channel: topic for channel, topic in topics.items() if topic is not None}
        self.name = f"shiftwatch-{self.source.group}"
        # Workers need no addresses and no passwords: those are the operators' at both ends.
        inner = replace(self.config, source={}, sink={})
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
