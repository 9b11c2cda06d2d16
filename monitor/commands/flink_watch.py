"""`shiftwatch flink watch`: status page, metrics and API of a job, from what it publishes."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from connectors.flink.published import PublishedTopics
from monitor.commands.flink_plan import JobPlan
from monitor.commands.run import Stop, attended, server_now, tell_all
from monitor.errors import ConfigurationError
from monitor.service import FollowedStates, Observer, Opened, RecordsRejected, Turned, Watched

POLL_SECONDS = 0.5
_TURNED = Turned((), frozenset(), frozenset(), 0)


def watch(path: Path) -> int:
    """Follow the job of a configuration until a signal comes."""
    plan = JobPlan(path)
    config = plan.config
    problems = []
    if plan.sink.states is None:
        problems.append("sink.states: page and metrics of a job come from this topic: name one, compacted")
    if config.server is None and config.otlp is None:
        problems.append("server: name a [server] or an [otlp], be it empty")
    if problems:
        raise ConfigurationError(problems)
    published, states = PublishedTopics(plan.source, plan.sink), FollowedStates()

    def follow(watched: Mapping[str, Watched], observers: Sequence[Observer], stop: Stop) -> None:
        tell_all(observers, Opened(published, None, watched))
        states.begin({stream: each.concerns for stream, each in watched.items()})
        with published:
            while not stop():
                news = published.poll(POLL_SECONDS)
                states.take(news.states)
                if news.rejected:
                    tell_all(observers, RecordsRejected(news.rejected))
                for happening in states.news() if published.caught_up else ():
                    tell_all(observers, happening)
                tell_all(observers, _TURNED)

    files = [stream.reference for stream in config.streams.values()]
    ends = (published, None)
    attended(config, path.parent, plan.watched, ends, follow, files=files, again=partial(server_now, path))
    return 0
