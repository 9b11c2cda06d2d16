"""Volume: beside the same hour of earlier days, in the result of the window."""

import json
from dataclasses import replace

from connectors.memory import MemoryLog
from monitor.state import Seen, StatePlan, WindowSeen, concerns_of
from monitor.windows import WindowKey
from tests.service import streams
from tests.state.test_states import taken_up
from tests.state.windows import HOUR, seen


def window(number: int, events: int) -> WindowSeen:
    """Of that hour since the epoch."""
    one = seen(1)
    key = WindowKey("s", "", number * HOUR, (number + 1) * HOUR)
    assessment = replace(one.assessment, key=key)
    return replace(one, assessment=assessment, window=replace(one.window, key=key, events=events), written=None)


def test_volume_is_held_against_the_same_hour_of_earlier_days() -> None:
    days: list[Seen] = [window(24 * day + hour, 1_000 if hour else 100) for day in range(3) for hour in (0, 12)]
    states, _ = taken_up(MemoryLog(), concerns_of(StatePlan(), streams.reference()))
    few = window(24 * 3, 50)
    told = [json.loads(states.advance(each, {})[0].result_message)["volume"] for each in [*days, few]]
    assert told[:2] == [None, None]
    assert [each["ratio"] for each in told[2:]] == [1.0, 1.0, 1.0, 1.0, 0.5]
    assert [each["days"] for each in told[2:]] == [1, 1, 2, 2, 3]
