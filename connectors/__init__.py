"""Sources and sinks: what feeds the monitor, and where its answers go.

A URL's scheme names the connector, one module each; the rest of the URL and the options are the connector's own.
A new connector is one module with `source` and `sink` functions (or one of them) and one line here.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from connectors.protocols import Sink, Source
from monitor.errors import ConfigurationError

CONNECTORS = {
    "jsonl": "connectors.jsonl",
    "synthetic": "connectors.synthetic",
}


def open_source(url: str, options: Mapping[str, Any], base: Path = Path()) -> Source:
    """The source that a URL names, not started yet. Relative paths are taken from `base`."""
    return cast(Source, _opener(url, "source")(_rest(url), options, base))


def open_sink(url: str, options: Mapping[str, Any], base: Path = Path()) -> Sink:
    """The sink that a URL names, not recovered yet. Relative paths are taken from `base`."""
    return cast(Sink, _opener(url, "sink")(_rest(url), options, base))


def _opener(url: str, role: str) -> Any:
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in CONNECTORS:
        known = ", ".join(f"{one}:" for one in sorted(CONNECTORS))
        raise ConfigurationError([f"{role}.url: {url!r} begins with none of {known}"])
    opener = getattr(import_module(CONNECTORS[scheme]), role, None)
    if opener is None:
        raise ConfigurationError([f"{role}.url: {scheme}: cannot be a {role}"])
    return opener


def _rest(url: str) -> str:
    return url.partition(":")[2]
