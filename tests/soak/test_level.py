"""What a soak calls growth: what stays, and not what an outage or a young worker shows for a while."""

import numpy as np
import pytest

from tests.soak.footprint import Footprint
from tests.soak.level import faults

ALLOWED = 70.0
SECONDS = 67
FILLED = Footprint(230.0, 435.0, descriptors=40, threads=13)


def quarter(*parts: tuple[int, Footprint]) -> list[Footprint]:
    """A sample a second: so many as given, the rest as usual."""
    given = [each for seconds, each in parts for _ in range(seconds)]
    return [*given, *[FILLED] * (SECONDS - len(given))]


def refilling(seconds: int) -> list[tuple[int, Footprint]]:
    """A worker that begins anew."""
    return [(1, Footprint(240.0, mb, descriptors=38, threads=12)) for mb in np.linspace(6.0, 435.0, seconds)]


@pytest.mark.parametrize(
    "quarters",
    [
        (quarter(), quarter((30, Footprint(230.0, 435.0, 80, 14)), *refilling(25))),
        (quarter((30, Footprint(230.0, 435.0, 80, 14)), *refilling(25)), quarter()),
        (quarter((3, Footprint(215.0, 0.0, 5, 5)), *refilling(25)), quarter()),
        (quarter(), quarter((20, Footprint(230.0, 435.0, 80, 14)))),
    ],
    ids=["a new worker late", "a new worker early", "a service that begins anew", "an outage at the end"],
)
def test_an_outage_and_a_worker_that_begins_anew_are_no_growth(
    quarters: tuple[list[Footprint], list[Footprint]],
) -> None:
    assert faults(quarters, ALLOWED) == []


def test_what_grows_steadily_or_is_left_open_is_told() -> None:
    def leaking(mb: float) -> tuple[list[Footprint], list[Footprint]]:
        at = [Footprint(230.0 + mb * second / (2 * SECONDS), 435.0, 40, 13) for second in range(2 * SECONDS)]
        return at[:SECONDS], at[SECONDS:]

    assert faults(leaking(60.0), ALLOWED) == []
    assert "memory grew by 80" in faults(leaking(80.0), ALLOWED)[0]
    open_left = Footprint(230.0, 435.0, descriptors=46, threads=18)
    assert faults((quarter(), [open_left] * SECONDS), ALLOWED) == [
        "descriptors went from 40 to 46",
        "threads went from 13 to 18",
    ]
