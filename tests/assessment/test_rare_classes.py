"""A class that a small window hardly shows is not corrected away: scores of the next window are not worse for it."""

import numpy as np
import pytest

from monitor import assess, quality
from monitor.recalibration import RecalibrationClient
from tests.assessment import worlds


@pytest.mark.parametrize("back", [0.02, 0.04])
def test_a_rare_class_that_a_window_does_not_show_costs_nothing_when_it_comes_back(back: float) -> None:
    changes = []
    for seed in range(6):
        found = assess(worlds.window(300, seed=seed + 10, priors=[0.58, 0.4, 0.02]), worlds.reference())
        client = RecalibrationClient(lambda found=found: found.recalibration, "s")  # type: ignore[misc]
        client.refresh()
        x, labels = worlds.draw(1_000, seed + 100, [0.6 - back, 0.4, back])
        scores = worlds.posteriors(x)
        assert min(found.recalibration.multipliers) > 0
        changes.append(quality.log_loss(client.apply(scores), labels) - quality.log_loss(scores, labels))
    assert np.mean(changes) < 0.005
    assert np.count_nonzero(changes) >= 3  # or it corrects nothing
