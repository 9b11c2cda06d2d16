"""Which connector a URL means. The only file of the monitor that loads connectors, its own and those of others.

A URL's scheme names the connector; the rest of the URL and the options are the connector's own. Connectors are found by
the entry points of the group `shiftwatch.connectors`, so that whatever is installed beside the monitor can be named.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

from monitor.errors import ConfigurationError
from monitor.ports import Sink, Source

GROUP = "shiftwatch.connectors"


def open_source(url: str, options: Mapping[str, Any], base: Path = Path()) -> Source:
    """The source that a URL names, not started yet. Relative paths are taken from `base`."""
    return cast(Source, _opener(url, "source")(_rest(url), options, base))


def open_sink(url: str, options: Mapping[str, Any], base: Path = Path()) -> Sink:
    """The sink that a URL names, not recovered yet. Relative paths are taken from `base`."""
    return cast(Sink, _opener(url, "sink")(_rest(url), options, base))


def open_both(
    source: tuple[str, Mapping[str, Any]], sink: tuple[str, Mapping[str, Any]], base: Path = Path()
) -> tuple[Source, Sink]:
    """Source and sink, each from its URL and options. A connector may have a `pair` for being both at once."""
    (source_url, source_options), (sink_url, sink_options) = source, sink
    if _scheme(source_url) == _scheme(sink_url):
        pair = getattr(_module(source_url, "source"), "pair", None)
        if pair is not None:
            ends = (_rest(source_url), source_options), (_rest(sink_url), sink_options)
            return cast(tuple[Source, Sink], pair(*ends, base))
    problems: list[str] = []
    opened = []
    for opener, (url, options) in ((open_source, source), (open_sink, sink)):
        try:
            opened.append(opener(url, options, base))
        except ConfigurationError as error:
            problems.extend(error.problems)
    if problems:
        raise ConfigurationError(problems)
    return cast(tuple[Source, Sink], tuple(opened))


def known_connectors() -> dict[str, EntryPoint]:
    """What is installed, by scheme. Two packages that claim one scheme are a problem, not a choice."""
    known: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        other = known.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise ConfigurationError(
                [f"{entry.name}: is claimed by two connectors, {other.value} and {entry.value}: uninstall one of them"]
            )
    return known


def _opener(url: str, role: str) -> Any:
    opener = getattr(_module(url, role), role, None)
    if opener is None:
        raise ConfigurationError([f"{role}.url: {_scheme(url)}: cannot be a {role}"])
    return opener


def _module(url: str, role: str) -> Any:
    connectors = known_connectors()
    if not connectors:
        raise ConfigurationError([f"{GROUP} has no entry points, not even the monitor's own: install it anew"])
    scheme = _scheme(url)
    if scheme not in connectors:
        known = ", ".join(f"{name}:" for name in sorted(connectors))
        raise ConfigurationError([f"{role}.url: {url!r} begins with none of {known}"])
    try:
        return connectors[scheme].load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            [f"{role}.url: the connector {scheme}: ({connectors[scheme].value}) cannot be imported: {error}"]
        ) from error


def _scheme(url: str) -> str:
    return url.partition(":")[0] if ":" in url else ""


def _rest(url: str) -> str:
    return url.partition(":")[2]
