"""From a configuration to a running service: `run` until stopped, `replay` once over files."""

import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, TypeVar

from monitor.commands.connectors import open_both
from monitor.errors import ConfigurationError, ShiftwatchError
from monitor.events import Decoder, TimeReading
from monitor.kinds import KINDS, Declared, kind_of, load_reference
from monitor.observers import Totals, log, logging_to_stderr
from monitor.performance import Decisions
from monitor.ports import ReadBack, Sink, Source
from monitor.ports.schema import StreamSchema
from monitor.reference import FiledReference
from monitor.service import (
    Happening,
    Listening,
    Observer,
    Opened,
    Pace,
    Service,
    Watched,
    Workers,
    collect_garbage_rarely,
    keep_freed_memory,
    through_outages,
)
from monitor.settings import Config, ServerSettings, StreamSettings, load
from monitor.shifts import Outline
from monitor.state import StatePlan

ENDING = ("jsonl:", "synthetic:", "table:")

_Made = TypeVar("_Made")


def run(path: Path) -> int:
    """Watch until the source ends or a signal comes."""
    config = configured(path)
    watch(config, path.parent, again=lambda: load(path).server)
    return 0


def replay(path: Path, out: Path, *, overwrite: bool = False) -> int:
    """The same over files, once, with all results written anew to `out`."""
    config = configured(path)
    if not config.source["url"].startswith(ENDING) or config.source.get("follow"):
        raise ConfigurationError([f"source: replay wants one that ends ({' or '.join(ENDING)}), without `follow`"])
    _check_place(out, [path, *_inputs(config, path.parent)], overwrite=overwrite)
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
        results = Path(folder).resolve() / out.name
        anew = replace(
            config, sink={"url": f"jsonl:{results}"}, server=None, streams=_replayed(config.streams, Path(folder))
        )
        totals = Totals()
        finished = watch(anew, path.parent, [totals])
        if not finished:
            raise ShiftwatchError(f"the replay was interrupted: {out} was not written")
        results.replace(out)
    print(f"{out}: ", "\n".join(totals.sentences()), sep="")
    return 0


def configured(path: Path) -> Config:
    """The configuration in a file, or every problem with it and with the connectors and references that it names."""

    def further(table: Mapping[str, Any], known: Sequence[str]) -> list[str]:
        problems: list[str] = []
        ends: list[Any] = [table.get("source"), table.get("sink")]
        whole = all(isinstance(end, Mapping) and isinstance(end.get("url"), str) for end in ends)
        if whole and not any(problem.startswith(("source.", "sink.")) for problem in known):
            _attempt(problems, lambda: open_both(_url_and_options(ends[0]), _url_and_options(ends[1]), path.parent))
        streams = table.get("streams")
        for name, stream in streams.items() if isinstance(streams, Mapping) else ():
            reference = stream.get("reference") if isinstance(stream, Mapping) else None
            if isinstance(reference, str) and not any(
                problem.startswith(f"streams.{name}.reference:") for problem in known
            ):
                _attempt(problems, partial(load_reference, path.parent / reference))
        return problems

    return load(path, further=further)


def _check_place(out: Path, inputs: Sequence[Path], *, overwrite: bool) -> None:
    """Before the work: the results replace whatever is at `out`."""
    if not out.parent.is_dir():
        raise ConfigurationError([f"{out}: there is no such folder"])
    if out.resolve() in [path.resolve() for path in inputs]:
        raise ConfigurationError([f"{out} is what the replay reads: choose another --out"])
    if out.exists() and not out.is_file():
        raise ConfigurationError([f"{out} is not a file: choose another --out"])
    if out.exists() and not overwrite:
        raise ConfigurationError([f"{out} is there already: choose another --out, or say --force"])


def _inputs(config: Config, base: Path) -> Iterator[Path]:
    """The files that a configuration names to be read."""
    yield base / config.source["url"].partition(":")[2]
    for stream in config.streams.values():
        yield stream.reference
        if stream.outline is not None:
            yield stream.outline


def _replayed(streams: Mapping[str, StreamSettings], folder: Path) -> dict[str, StreamSettings]:
    """A replay writes results only, and must not touch what a running service has on disk.

    Corrected events go nowhere, but their ids have to be kept: they are part of the order in which sums are taken.
    """
    store = folder / "labels.sqlite"
    return {
        name: replace(
            stream,
            labels=None if stream.labels is None else replace(stream.labels, store=store),
            corrected="no" if stream.corrected == "no" else "window",
        )
        for name, stream in streams.items()
    }


def watch(
    config: Config,
    base: Path,
    observers: Sequence[Observer] = (),
    again: Callable[[], ServerSettings | None] | None = None,
) -> bool:
    """Run the service that a configuration describes; says whether it came to the end of its source.

    `again` reads the settings of the server anew.
    """
    keep_freed_memory()
    source, sink, watched = opened(config, base)
    collect_garbage_rarely()
    ends = (source, sink)
    always = chain([ends], (_ends(config, base) for _ in count()))
    with (
        stop_on_signals() as stopping,
        shown(config) as showing,
        served(config, base, watched, ends, showing, again=again) as serving,
    ):
        everybody = [*showing, *serving, *observers]

        def tell(happening: Happening) -> None:
            for observer in everybody:
                observer(happening)

        def attempt() -> None:
            opened_now = next(always)
            tell(Opened(*opened_now))
            service(config, watched, *opened_now, everybody).run(stopping)

        through_outages(attempt, stopping, tell)
        return not stopping()


def _ends(config: Config, base: Path) -> tuple[Source, Sink]:
    return open_both(_url_and_options(config.source), _url_and_options(config.sink), base)


def opened(config: Config, base: Path) -> tuple[Source, Sink, Mapping[str, Watched]]:
    """Source, sink and references, or every problem with them at once. Nothing is connected yet."""
    problems: list[str] = []
    ends = _attempt(problems, lambda: _ends(config, base))
    watched = {}
    for name, stream in config.streams.items():
        reference = _attempt(problems, partial(load_reference, stream.reference))
        if reference is not None:
            problems.extend(f"streams.{name}: {problem}" for problem in _misplaced(stream, reference))
            problems.extend(f"streams.{name}: {problem}" for problem in _other_scores(stream, reference.schema))
            schema = replace(reference.schema, stream=name)
            watched[name] = Watched(
                reference=replace(reference.ignoring(stream.ignore), schema=schema),
                plan=kind_of(reference).plan(stream.window.plan, reference, stream.evidence),
                most_segments=stream.max_segments,
                dead_letter_late=stream.dead_letter_late,
                spread=stream.spread,
                awaited=None if stream.labels is None else stream.labels.awaited,
                corrected=stream.corrected,
                declared=Declared(
                    None if stream.outline is None else _attempt(problems, partial(_outline, stream.outline, schema)),
                    {feature: said.may for feature, said in stream.features.items() if said.may is not None},
                    stream.alarm.mix_rule,
                    stream.adapt or "bic",
                    Decisions() if stream.performance is None else stream.performance.decisions,
                    stream.sketches,
                ),
                states=_states(name, config),
            )
            problems.extend(f"streams.{name}.{problem}" for problem in _strangers(stream, schema))
            problems.extend(f"source.event: {gap}" for gap in config.event.gaps(schema, stream.segments))
    if ends is not None:
        problems.extend(_forgotten(config, ends[1]))
    if ends is None or problems:
        raise ConfigurationError(problems)
    return *ends, watched


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
        remembered=0 if config.server is None else config.server.windows,
    )


def _misplaced(stream: StreamSettings, reference: FiledReference) -> Iterator[str]:
    """Settings that are for streams of another kind."""
    own = kind_of(reference)
    for setting in sorted(frozenset[str]().union(*(kind.settings for kind in KINDS.values())) - own.settings):
        if stream.has(setting):
            takers = " and ".join(f"{kind.name}s" for kind in KINDS.values() if setting in kind.settings)
            labels = f" (its labels: `{own.labels}`)" if setting in {kind.labels for kind in KINDS.values()} else ""
            yield f"`{setting}` is for {takers}; the reference is a {own.name}'s{labels}"


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
    if stream.performance is not None and stream.performance.of_two_classes and len(schema.classes) != 2:
        yield f"performance: a threshold and costs are for two classes; the reference has {list(schema.classes)}"
    if stream.performance is not None:
        measured = stream.performance.decisions.measures(len(schema.classes), 1)
        for name in stream.performance.limits.keys() - measured.keys():
            yield f"performance: {name!r} is not measured of this stream; {sorted(measured)} are"
    for name in stream.alarm.classes.keys() - set(schema.classes):
        yield f"alarm.classes: {name!r} is none of the reference's classes {list(schema.classes)}"


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


def service(
    config: Config, watched: Mapping[str, Watched], source: Source, sink: Sink, observers: Sequence[Observer]
) -> Service:
    """The service that a configuration describes."""
    decoder = decoder_of(config, watched)
    pace = Pace(
        commit=config.pace.commit / 1e6, idle=config.pace.idle / 1e6, most_waiting=config.pace.max_waiting_events
    )
    return Service(
        watched,
        decoder,
        source,
        sink,
        observers=observers,
        limits=config.dead_letters,
        pace=pace,
        assessing=Workers(watched, config.pace.workers) if config.pace.workers else None,
    )


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """SIGTERM and SIGINT ask to stop while the block runs; a second one is not waited for."""
    asked = False

    def ask(number: int, _: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def shown(config: Config) -> Iterator[list[Observer]]:
    """What a person sees meanwhile: a live table in a terminal, log lines elsewhere."""
    if config.log.format == "auto" and sys.stderr.isatty():
        from monitor.observers.terminal import live_table  # rich is only needed in a terminal

        with live_table() as observer:
            yield [observer]
    else:
        totals = Totals()
        with logging_to_stderr(config.log.format, config.log.level):
            yield [log, totals]
            totals.log()


@contextmanager
def served(
    config: Config,
    base: Path,
    watched: Mapping[str, Watched],
    ends: tuple[Source, Sink],
    told: Sequence[Observer],
    *,
    again: Callable[[], ServerSettings | None] | None,
) -> Iterator[list[Observer]]:
    """Status page, metrics and API meanwhile, where the configuration has a [server]."""
    settings = config.server
    if settings is None:
        yield []
        return
    from monitor.observers import (
        Caps,
        History,  # not every run serves
        facts,
    )
    from monitor.web.server import serving

    history = History(
        {name: facts(name, stream) for name, stream in watched.items()},
        caps=Caps(settings.max_features, settings.max_segment_features, settings.max_classes),
        source=ends[0],
        sink=ends[1],
    )
    with serving(settings, history, base, again) as address:
        for observer in told:
            observer(Listening(address))
        yield [history]


def _url_and_options(table: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    return table["url"], {key: value for key, value in table.items() if key != "url"}


def _attempt(problems: list[str], make: Callable[[], _Made]) -> _Made | None:
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
