"""The bytes of every version of every concern that a release has written are read by this one.

`kept/states` holds them, a file for each: never changed, only added to, by
`SHIFTWATCH_KEEP_STATES=1 pytest tests/state/test_kept.py`.
"""

import os
from pathlib import Path

import pytest

from connectors.memory import MemoryLog
from monitor.state import AnyConcern, concerns_of
from monitor.state.records import read
from tests.service import streams
from tests.state.test_states import PLANS, run
from tests.state.windows import story

KEPT = Path(__file__).parents[1] / "kept" / "states"


def concerns() -> list[AnyConcern]:
    """Each once; those that a setting chooses among as their first setting has it."""
    made = [concern for plan in PLANS for concern in concerns_of(plan, streams.reference())]
    return list({concern.name: concern for concern in reversed(made)}.values())


def records(log: MemoryLog) -> bytes:
    """A line each."""
    return b"".join(message.value + b"\n" for message in log.messages if message.channel == "states")


@pytest.mark.parametrize("concern", concerns(), ids=lambda concern: concern.name)
def test_the_bytes_of_every_version_are_kept_and_read(concern: AnyConcern) -> None:
    path = KEPT / f"{concern.name}.v{concern.version}.jsonl"
    if os.environ.get("SHIFTWATCH_KEEP_STATES") and not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(records(run(story(), [concern])))
    assert path.exists(), f"{path} is missing: SHIFTWATCH_KEEP_STATES=1 pytest tests/state/test_kept.py writes it"
    for kept in KEPT.glob(f"{concern.name}.v*.jsonl"):
        known = read(kept.read_bytes().splitlines(), {"s": [concern]})
        assert set(known) == {("s", ""), ("s", "country=BE")}
        whole = known["s", ""]
        assert isinstance(whole.states[concern.name], concern.state)
        assert whole.states[concern.name] != concern.state() or whole.entries(concern.name)
