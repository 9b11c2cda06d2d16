"""The bytes of every version of every concern that a release has written are read by this one.

`kept/states` holds them, a file for each: never changed, only added to, by
`SHIFTWATCH_KEEP_STATES=1 pytest tests/state/test_kept.py`.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.memory import MemoryLog
from monitor.reference import FiledReference
from monitor.state import CONCERNS, AnyConcern, StatePlan
from monitor.state.records import read
from tests.state.test_states import run
from tests.state.windows import STREAMS, Told

KEPT = Path(__file__).parents[1] / "kept" / "states"

Registered = Callable[[StatePlan, FiledReference], AnyConcern | None]


def first_with(registered: Registered) -> tuple[Told, AnyConcern]:
    """The first of the tests' streams that has a concern: a setting that it depends on is as it is there."""
    for told in STREAMS:
        concern = registered(told.plan, told.reference())
        if concern is not None:
            return told, concern
    pytest.fail(f"no stream of tests/state/windows.py has the concern {registered.__name__}: add one to STREAMS")


def records(log: MemoryLog) -> bytes:
    """A line each."""
    return b"".join(message.value + b"\n" for message in log.messages if message.channel == "states")


@pytest.mark.parametrize("registered", CONCERNS, ids=lambda registered: registered.__name__)
def test_the_bytes_of_every_version_are_kept_and_read(registered: Registered) -> None:
    told, concern = first_with(registered)
    path = KEPT / f"{concern.name}.v{concern.version}.jsonl"
    if os.environ.get("SHIFTWATCH_KEEP_STATES") and not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(records(run(told.story(), [concern])))
    for version in {*concern.earlier, concern.version}:
        assert (KEPT / f"{concern.name}.v{version}.jsonl").exists(), (
            f"no bytes of {concern.name} in version {version}: SHIFTWATCH_KEEP_STATES=1 pytest "
            "tests/state/test_kept.py writes those of this release"
        )
    for kept in KEPT.glob(f"{concern.name}.v*.jsonl"):
        known = read(kept.read_bytes().splitlines(), {"s": [concern]})
        assert set(known) == {("s", ""), ("s", "country=BE")}
        whole = known["s", ""]
        assert isinstance(whole.states[concern.name], concern.state)
        assert whole.states[concern.name] != concern.state() or whole.entries(concern.name)


def test_every_kept_file_is_of_a_concern_that_reads_it() -> None:
    names = {first_with(registered)[1].name for registered in CONCERNS}
    assert {path.name.partition(".v")[0] for path in KEPT.glob("*.jsonl")} == names
