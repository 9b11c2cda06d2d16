"""`shiftwatch state show|reset`: what is known over the windows of a stream, for an operator."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monitor.ports import Amendable
    from monitor.service import Watched
    from monitor.state import AnyConcern, Known

SHOW = """\
Prints JSON, a line for a stream and for each of its segments:

  shiftwatch state show shiftwatch.toml fraud-v3 | jq .states.alarms
"""

RESET = """\
Alarms, changes of level, trust in the estimates, corrections in force and the history of the status page begin anew.
Results and positions stay as they are. Stop the service first.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Hang the command and its sub-commands into the command line."""
    state = commands.add_parser("state", help="what is known over windows and survives restarts: show, reset")
    actions = state.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action, run, help_text, epilog in (
        ("show", _show, "print what is known of a stream", SHOW),
        ("reset", _reset, "forget what is known of a stream", RESET),
    ):
        each = actions.add_parser(
            action, help=help_text, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        each.add_argument("config", type=Path, help="a TOML file")
        each.add_argument("stream", help="the name of a stream in it")
        each.add_argument("--segment", help="only this segment of the stream, such as country=BE")
        each.set_defaults(run=run)


def _show(given: argparse.Namespace) -> int:
    from monitor.state.records import read

    sink, watched = _opened(given)
    concerns = watched.concerns
    for (_, segment), known in sorted(read(sink.read_back("states"), {given.stream: concerns}).items()):
        if given.segment in (None, segment):
            print(json.dumps({"stream": given.stream, "segment": segment, **_described(known, concerns)}))
    return 0


def _reset(given: argparse.Namespace) -> int:
    from monitor.state.records import forgotten

    sink, _ = _opened(given)
    records = [
        message for message in forgotten(sink.read_back("states"), given.stream) if given.segment in (None, message[0])
    ]
    sink.amend(message for _, message in records)
    segments = {segment for segment, _ in records} - {""}
    print(f"{given.stream}: {f'forgotten, with {len(segments)} segments' if records else 'nothing was known'}")
    return 0


def _opened(given: argparse.Namespace) -> "tuple[Amendable, Watched]":
    """The sink of a configuration, and what is watched of the stream."""
    from monitor.commands.run import configured
    from monitor.commands.streams import opened
    from monitor.errors import ConfigurationError
    from monitor.ports import Amendable

    _, sink, watched = opened(configured(given.config), given.config.parent)
    if given.stream not in watched:
        raise ConfigurationError([f"there is no stream {given.stream!r}: want one of {', '.join(sorted(watched))}"])
    if not (isinstance(sink, Amendable) and sink.keeps("states")):
        raise ConfigurationError(["sink: keeps no states"])
    return sink, watched[given.stream]


def _described(known: "Known", concerns: "tuple[AnyConcern, ...]") -> dict[str, Any]:
    """Windows that are remembered one by one are only counted."""
    import msgspec

    from monitor.assessment import rfc3339

    def states() -> Iterator[tuple[str, Any]]:
        for concern in concerns:
            if concern.entries:
                yield concern.name, {"remembered": len(known.entries(concern.name))}
            elif concern.name in known.states:
                yield concern.name, msgspec.to_builtins(known.states[concern.name])

    return {"reference": known.reference, "until": rfc3339(known.until), "states": dict(states())}
