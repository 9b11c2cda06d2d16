"""A class that a small window hardly shows is not corrected away: scores of the next window are not worse for it."""

import numpy as np
import pytest

from monitor import assess, quality
from monitor.recalibration import RecalibrationClient
from monitor.reference import Reference
from monitor.windows import Window
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


@pytest.mark.parametrize(("of_the_rarest", "corrects"), [(29, False), (60, True)])
def test_a_class_of_which_the_hold_out_has_hardly_any_event_corrects_nothing(
    of_the_rarest: int, corrects: bool
) -> None:
    x, labels = worlds.draw(2_000, 1, [0.5, 0.4, 0.1])
    kept = np.sort(np.concatenate([np.flatnonzero(labels < 2), np.flatnonzero(labels == 2)[:of_the_rarest]]))
    reference = Reference.fit(worlds.posteriors(x[kept]), labels[kept], x[kept], classes=["0", "1", "2"])
    x, _ = worlds.draw(1_000, 2, [0.2, 0.79, 0.01])
    found = assess(Window.of(worlds.posteriors(x), x), reference).recalibration
    assert found.apply is corrects
    if not corrects:
        assert found.reason == "a class has 29 hold-out events, fewer than 30: too few to tell by"
