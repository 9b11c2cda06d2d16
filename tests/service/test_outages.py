"""An outage is waited for, however long it takes; every other error ends the run."""

from itertools import pairwise

import pytest

from monitor.errors import ConnectorError, OutageError
from monitor.limits import OUTAGE_PAUSES
from monitor.service import Interrupted, through_outages


class Time:
    """A clock that only sleeping moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_it_tries_again_until_the_other_side_answers_and_tells_of_it_once_a_minute() -> None:
    time, began, told = Time(), list[float](), list[Interrupted]()

    def attempt() -> None:
        began.append(time.now)
        if time.now < 600:
            raise OutageError(f"no answer at {time.now:.0f}")

    through_outages(attempt, lambda: False, told.append, time, time.sleep)
    pauses = [round(after - before) for before, after in pairwise(began)]
    assert pauses == sorted(pauses), pauses
    assert max(pauses) == pytest.approx(OUTAGE_PAUSES[1], abs=0.2)
    assert 600 <= began[-1] < 600 + OUTAGE_PAUSES[1] + 1
    assert 9 <= len(told) <= 10
    assert told[0].reason == "no answer at 0"


def test_an_outage_after_a_long_time_without_one_is_tried_again_soon() -> None:
    time, began = Time(), list[float]()

    def attempt() -> None:
        began.append(time.now)
        time.sleep(3_600)
        if len(began) < 4:
            raise OutageError("gone")

    through_outages(attempt, lambda: False, lambda _: None, time, time.sleep)
    assert began[3] - began[2] == pytest.approx(3_600 + OUTAGE_PAUSES[0], abs=0.2)


def test_a_stop_is_not_waited_for() -> None:
    time = Time()

    def attempt() -> None:
        raise OutageError("gone")

    through_outages(attempt, lambda: time.now > 5, lambda _: None, time, time.sleep)
    assert time.now < 6


def test_any_other_error_ends_the_run() -> None:
    def attempt() -> None:
        raise ConnectorError("the password is wrong")

    with pytest.raises(ConnectorError, match="password"):
        through_outages(attempt, lambda: False, lambda _: None)
