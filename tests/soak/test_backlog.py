"""Sixty streams that have fallen behind: while they catch up, probes are content and memory is bounded."""

import time
from pathlib import Path

import pytest

from tests.processes import wait_until
from tests.soak.footprint import Footprint
from tests.soak.media import OnFiles
from tests.soak.plan import Events, Plan
from tests.soak.service import Soaked

WINDOWS = 12
MOST_MB = 750.0
"""Of loop and worker: sixty references with two segments each, ready for windows, and what is known over windows: some
6 MB a stream, and 160 MB whatever is watched."""


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_sixty_streams_that_have_fallen_behind_stay_ready_and_take_no_more_memory_than_they_need(
    tmp_path: Path,
) -> None:
    plan = Plan()
    plan.save_references(tmp_path, seed=1)
    files, events = OnFiles(tmp_path), Events(plan)
    files.send(events.next((WINDOWS + 1) * plan.per_window))
    service = Soaked(plan, files, tmp_path, "behind")
    taken: list[Footprint] = []

    def caught_up() -> bool:
        """Looks at the probe meanwhile, which has to be content at every moment."""
        service.member.check_alive()
        assert service.ready, "a backlog is no reason not to be ready"
        taken.append(Footprint.of(service.member.process))
        time.sleep(0.2)
        return len(files.look("behind").used) >= WINDOWS * plan.streams

    try:
        service.wait_until_ready()
        wait_until(caught_up, "all windows", 600)
    finally:
        service.end()
    assert max(each.loop_mb + each.workers_mb for each in taken) < MOST_MB
