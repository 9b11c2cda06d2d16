"""Sources and sinks: what feeds the monitor, and where its answers go.

A URL's scheme names the connector, one module each; the rest of the URL and the options are the connector's own.
A new connector is one module with `source` and `sink` functions (or one of them) and one line here.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from connectors.protocols import Sink, Source
from monitor.errors import ConfigurationError

CONNECTORS = {
    "jsonl": "connectors.jsonl",
    "kafka": "connectors.kafka",
    "synthetic": "connectors.synthetic",
}


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


def _opener(url: str, role: str) -> Any:
    opener = getattr(_module(url, role), role, None)
    if opener is None:
        raise ConfigurationError([f"{role}.url: {_scheme(url)}: cannot be a {role}"])
    return opener


def _module(url: str, role: str) -> ModuleType:
    scheme = _scheme(url)
    if scheme not in CONNECTORS:
        known = ", ".join(f"{one}:" for one in sorted(CONNECTORS))
        raise ConfigurationError([f"{role}.url: {url!r} begins with none of {known}"])
    return import_module(CONNECTORS[scheme])


def _scheme(url: str) -> str:
    return url.partition(":")[0] if ":" in url else ""


def _rest(url: str) -> str:
    return url.partition(":")[2]
