"""Minutes or hours of sixty streams on files and on Apache Kafka, with kills, outages, rotations and new references.

    SHIFTWATCH_SOAK_SECONDS=7200 pytest -m chaos tests/soak/test_soak.py

`python -m tests.bench.soak --seconds 7200` does the same and keeps a record of it.
"""

import os
from pathlib import Path

import pytest

from tests.kafka.conftest import require_apache
from tests.soak.plan import Plan
from tests.soak.soaking import CATCH_UP, run

PLAN = Plan.lasting(float(os.environ.get("SHIFTWATCH_SOAK_SECONDS", "240")))


@pytest.mark.chaos
@pytest.mark.timeout(PLAN.seconds + 3 * CATCH_UP)
def test_every_window_comes_once_and_nothing_grows_through_kills_outages_rotations_and_new_references(
    tmp_path: Path,
) -> None:
    require_apache()
    soak = run(PLAN, tmp_path)
    assert soak.faults == []
    assert soak.outages
    assert soak.rotations
    assert all(soak.kills.values())
