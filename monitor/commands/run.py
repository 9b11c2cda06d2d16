"""From a configuration to a running service: `run` until stopped, `replay` once over files."""

import gc
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, TypeVar

from monitor.commands.connectors import open_both
from monitor.commands.references import References
from monitor.commands.streams import attempt, decoder_of, ends, opened, url_and_options, watched_now
from monitor.errors import ConfigurationError, ShiftwatchError
from monitor.kinds import load_reference
from monitor.observers import Caps, History, Totals, facts, log, logging_to_stderr
from monitor.ports import ReadBack, Sink, Source
from monitor.service import (
    Happening,
    Listening,
    Observer,
    Opened,
    Pace,
    Reassigned,
    Service,
    Watched,
    Workers,
    collect_garbage_rarely,
    give_back_freed_memory,
    keep_freed_memory,
    through_outages,
)
from monitor.settings import Config, OtlpSettings, ServerSettings, StreamSettings, load

ENDING = ("jsonl:", "synthetic:", "table:", "delta:")

Stop = Callable[[], bool]

_Made = TypeVar("_Made")


def run(path: Path) -> int:
    """Watch until the source ends or a signal comes."""
    config = configured(path)
    watch(config, path.parent, again=partial(server_now, path))
    return 0


def server_now(path: Path) -> ServerSettings | None:
    """The settings of the server anew, without a look at the references."""
    return load(path).server


def replay(path: Path, out: Path, *, overwrite: bool = False) -> int:
    """The same over files, once, with all results written anew to `out`."""
    config = configured(path)
    if not config.source["url"].startswith(ENDING) or config.source.get("follow"):
        raise ConfigurationError([f"source: replay wants one that ends ({' or '.join(ENDING)}), without `follow`"])
    _check_place(out, [path, *_inputs(config, path.parent)], overwrite=overwrite)
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
        results = Path(folder).resolve() / out.name
        anew = replace(
            config,
            sink={"url": f"jsonl:{results}"},
            server=None,
            otlp=None,
            streams=_replayed(config.streams, Path(folder)),
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
            attempt(problems, lambda: open_both(url_and_options(ends[0]), url_and_options(ends[1]), path.parent))
        streams = table.get("streams")
        for name, stream in streams.items() if isinstance(streams, Mapping) else ():
            reference = stream.get("reference") if isinstance(stream, Mapping) else None
            if isinstance(reference, str) and not any(
                problem.startswith(f"streams.{name}.reference:") for problem in known
            ):
                attempt(problems, partial(load_reference, path.parent / reference))
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
    first = (source, sink)
    always = chain([first], (ends(config, base) for _ in count()))

    def run_until_renewed(watched: Mapping[str, Watched], everybody: Sequence[Observer], stop: Stop) -> None:
        gc.collect()  # what an outage or another reference ended is in cycles, with all of its windows
        give_back_freed_memory()
        opened_now = next(always)
        tell_all(everybody, Opened(*opened_now, watched))
        service(config, watched, *opened_now, [*everybody, _give_back]).run(stop)

    files = _renewed(config, sink) if again is not None else ()
    return attended(config, base, watched, first, run_until_renewed, files=files, observers=observers, again=again)


def attended(
    config: Config,
    base: Path,
    watched: Mapping[str, Watched],
    ends: tuple[object, object],
    run: Callable[[Mapping[str, Watched], Sequence[Observer], Stop], None],
    *,
    files: Sequence[Path],
    observers: Sequence[Observer] = (),
    again: Callable[[], ServerSettings | None] | None,
) -> bool:
    """Run anew after each outage and with each renewal of the references in `files`, and show how it does; says whether
    it came to its end."""
    references = References(watched, partial(watched_now, config), files)
    with (
        stop_on_signals() as stopping,
        renewed_on_hangup(references),
        shown(config) as showing,
        served(config, base, watched, ends, showing, again=again) as serving,
    ):
        everybody = [*showing, *serving, *observers]

        def run_until_renewed() -> None:
            run(references.watched, everybody, lambda: stopping() or references.due())

        def attempt() -> None:
            run_until_renewed()
            while references.taken() and not stopping():
                run_until_renewed()

        through_outages(attempt, stopping, partial(tell_all, everybody))
        return not stopping()


def _give_back(happening: Happening) -> None:
    if isinstance(happening, Reassigned):  # after a refused commit, too: windows were dropped
        give_back_freed_memory()


def tell_all(everybody: Sequence[Observer], happening: Happening) -> None:
    """Tell every observer."""
    for observer in everybody:
        observer(happening)


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
        join=config.join,
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


def _renewed(config: Config, sink: Sink) -> list[Path]:
    """The references that may be renewed: where nobody could go on from a commit, none may."""
    if config.source["url"] == "jsonl:-" or not isinstance(sink, ReadBack):
        return []
    return [stream.reference for stream in config.streams.values()]


@contextmanager
def renewed_on_hangup(references: References) -> Iterator[None]:
    """SIGHUP asks to look at the references now. In a terminal it still ends the process with its window."""
    if sys.stderr.isatty() or not references.renewable:
        yield
        return
    before = signal.signal(signal.SIGHUP, lambda *_: references.ask())
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


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
    ends: tuple[object, object],
    told: Sequence[Observer],
    *,
    again: Callable[[], ServerSettings | None] | None,
) -> Iterator[list[Observer]]:
    """Status page, metrics and API meanwhile, where the configuration has a [server]; metrics, lines and traces to a
    collector where it has [otlp]."""
    if config.server is None and config.otlp is None:
        yield []
        return
    settings = config.server or ServerSettings()
    history = History(
        {name: facts(name, stream) for name, stream in watched.items()},
        caps=Caps(settings.max_features, settings.max_segment_features, settings.max_classes),
        source=ends[0],
        sink=ends[1],
    )
    with ExitStack() as opened:
        tracing: Sequence[Observer] = ()
        if config.otlp is not None:
            tracing = opened.enter_context(_exporting(config.otlp, history, base))
        if config.server is not None:
            from monitor.web.server import serving

            address = opened.enter_context(serving(config.server, history, base, again))
            for observer in told:
                observer(Listening(address))
        yield [history, *tracing]


def _exporting(settings: OtlpSettings, history: History, base: Path) -> AbstractContextManager[Sequence[Observer]]:
    try:
        from monitor.observers.otlp import exporting
    except ImportError as error:
        raise ConfigurationError([f"otlp: {error}"]) from error
    ca_file = None if settings.ca_file is None else base / settings.ca_file
    return exporting(
        history,
        settings.endpoint,
        settings.headers,
        settings.every / 1e6,
        logs=settings.logs,
        traces=settings.traces,
        ca_file=ca_file,
    )
