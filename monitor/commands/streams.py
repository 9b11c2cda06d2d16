"""From a configuration to what it watches: the ends of events, and each stream with what it is compared with."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from monitor.commands.connectors import open_both
from monitor.errors import ConfigurationError, ShiftwatchError
from monitor.events import Decoder, TimeReading
from monitor.kinds import KINDS, Declared, kind_of, load_reference
from monitor.performance import PREDICTION_ERRORS, Decisions
from monitor.ports import ReadBack, Sink, Source
from monitor.ports.schema import StreamSchema
from monitor.reference import FiledReference
from monitor.service import Shared, Watched
from monitor.settings import Config, PerformanceSettings, StreamSettings
from monitor.shifts import Outline
from monitor.state import StatePlan

_Made = TypeVar("_Made")


def opened(config: Config, base: Path) -> tuple[Source, Sink, Mapping[str, Watched]]:
    """Source, sink and references, or every problem with them at once. Nothing is connected yet."""
    problems: list[str] = []
    both = attempt(problems, lambda: ends(config, base))
    streams = _watched(config, problems)
    if both is not None:
        problems.extend(_forgotten(config, both[1]))
    if both is None or problems:
        raise ConfigurationError(problems)
    return *both, Shared.of(streams)


def watched_now(config: Config) -> Mapping[str, Watched]:
    """What its streams are compared with, by the references as they are on disk now."""
    problems: list[str] = []
    streams = _watched(config, problems)
    if problems:
        raise ConfigurationError(problems)
    return Shared.of(streams)


def _watched(config: Config, problems: list[str]) -> dict[str, Watched]:
    streams = {}
    for name, stream in config.streams.items():
        reference = attempt(problems, partial(load_reference, stream.reference))
        if reference is not None:
            problems.extend(f"streams.{name}: {problem}" for problem in _misplaced(stream, reference))
            problems.extend(f"streams.{name}: {problem}" for problem in _other_scores(stream, reference.schema))
            schema = replace(reference.schema, stream=name)
            reference = replace(reference.ignoring(stream.ignore), schema=schema)
            streams[name] = Watched(
                reference=reference,
                plan=kind_of(reference).plan(stream.window.plan, reference, stream.evidence),
                most_segments=stream.max_segments,
                dead_letter_late=stream.dead_letter_late,
                spread=stream.spread,
                awaited=None if stream.labels is None else stream.labels.awaited,
                corrected=stream.corrected,
                declared=Declared(
                    None if stream.outline is None else attempt(problems, partial(_outline, stream.outline, schema)),
                    {feature: said.may for feature, said in stream.features.items() if said.may is not None},
                    stream.alarm.mix_rule,
                    stream.adapt or "bic",
                    Decisions() if stream.performance is None else stream.performance.decisions,
                    only_mix=stream.may == "change-mix",
                    sketches=stream.sketches,
                ),
                states=_states(name, config),
                written=_written(stream.reference),
            )
            problems.extend(f"streams.{name}.{problem}" for problem in _strangers(stream, schema))
            problems.extend(f"source.event: {gap}" for gap in config.event.gaps(schema, stream.segments))
    return streams


def _written(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:  # it was moved away since it was read
        return None


def _states(name: str, config: Config) -> StatePlan:
    """What is to be known over the stream's windows."""
    stream = config.streams[name]
    return StatePlan(
        windows=stream.alarm.windows,
        of=stream.alarm.of,
        changes=stream.changes,
        budget=config.budget(name),
        target=stream.target,
        limits={} if stream.performance is None else stream.performance.limits,
        remembered=config.remembered,
    )


def _misplaced(stream: StreamSettings, reference: FiledReference) -> Iterator[str]:
    """Settings that are for streams of another kind."""
    own = kind_of(reference)
    for setting in sorted(frozenset[str]().union(*(kind.settings for kind in KINDS.values())) - own.settings):
        if stream.has(setting):
            takers = " and ".join(f"{kind.name}s" for kind in KINDS.values() if setting in kind.settings)
            yield f"`{setting}` is for {takers}; the reference is a {own.name}'s"


def _other_scores(stream: StreamSettings, schema: StreamSchema) -> Iterator[str]:
    """Scores that the reference was not built from."""
    known = "margin" if schema.margins else "posterior"
    if stream.scores not in (None, known):
        yield (
            f'scores = "{stream.scores}": the reference was built from {known}s; build it anew from the scores that '
            f"events have (shiftwatch reference build --scores {stream.scores})"
        )


def _forgotten(config: Config, sink: Sink) -> Iterator[str]:
    """Streams that go on with what they know after a restart, or correct wrongly, where the sink would not keep it."""
    goes_on = isinstance(sink, ReadBack)
    if isinstance(sink, ReadBack) and sink.keeps("states"):
        return
    for name, stream in config.streams.items():
        if stream.corrected == "live":
            yield f"streams.{name}: live correction wants a sink that keeps `states`: a restart has to go on with it"
        if stream.labels is not None and goes_on:
            yield f"streams.{name}: `labels` want `states` in [sink]: a restart has to know what they have shown"


def _strangers(stream: StreamSettings, schema: StreamSchema) -> Iterator[str]:
    """Features and classes with settings that the reference does not know."""
    known = {feature.name for feature in schema.features}
    for setting, names in (("features", stream.features.keys()), ("ignore", set(stream.ignore))):
        for name in sorted(names - known):
            yield f"{setting}: {name!r} is none of the reference's features {sorted(known)}"
    if stream.performance is not None:
        yield from _unmeasured(stream.performance, schema, awaited=stream.labels is not None)
    for name in stream.alarm.classes.keys() - set(schema.classes):
        yield f"alarm.classes: {name!r} is none of the reference's classes {list(schema.classes)}"


def _unmeasured(performance: PerformanceSettings, schema: StreamSchema, *, awaited: bool) -> Iterator[str]:
    """What is said of the model's performance and does not apply to it."""
    if performance.of_two_classes and len(schema.classes) != 2:
        yield f"performance: a threshold and costs are for two classes; the reference has {list(schema.classes)}"
    of_classes = performance.decisions.measures(len(schema.classes), 1) if schema.classes else {}
    measured = sorted(of_classes) if schema.classes else PREDICTION_ERRORS
    for name in sorted(performance.limits.keys() - set(measured)):
        yield f"performance: {name!r} is not measured of this stream; {', '.join(measured)} are"
    if not schema.classes and not awaited:
        yield "performance: what a regressor's errors are is known by labels alone: say `labels = { wait = ... }`"


def _outline(path: Path, schema: StreamSchema) -> Outline:
    """The decisions of the stream's tree or forest, each on a feature that the stream has."""
    try:
        outline = Outline.from_message(json.loads(path.read_bytes()))
    except OSError as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError([f"{path}: not the JSON of a model's outline: {error!r}; export it again"]) from error
    unknown = sorted(set(outline.names) - {feature.name for feature in schema.features})
    if unknown:
        raise ConfigurationError(
            [f"{path}: the model decides by {', '.join(unknown)}, which stream {schema.stream} has not"]
        )
    return outline


def decoder_of(config: Config, watched: Mapping[str, Watched]) -> Decoder:
    """What reads the records of the source."""
    return Decoder(
        [stream.reference.schema for stream in watched.values()],
        segments={name: stream.segments for name, stream in config.streams.items()},
        identified=[name for name, stream in watched.items() if stream.identified or config.streams[name].evidence],
        times={name: TimeReading.of(stream.times) for name, stream in config.streams.items()},
        mapping=config.event,
    )


def ends(config: Config, base: Path) -> tuple[Source, Sink]:
    """Source and sink. Nothing is connected yet."""
    return open_both(url_and_options(config.source), url_and_options(config.sink), base)


def url_and_options(table: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """What opens one end."""
    return table["url"], {key: value for key, value in table.items() if key != "url"}


def attempt(problems: list[str], make: Callable[[], _Made]) -> _Made | None:
    """What is made, or None and the reasons among the problems: once, though streams may share a reference."""
    more: Sequence[str]
    try:
        return make()
    except ConfigurationError as error:
        more = error.problems
    except (ShiftwatchError, OSError) as error:
        more = [str(error)]
    problems.extend(problem for problem in more if problem not in problems)
    return None
