"""What is seen of a window: means in parts are those of the whole, and a search that cannot end well is not begun."""

import numpy as np
import pytest

from monitor.limits import PROJECTED_ROWS
from monitor.shifts import prepared, search
from monitor.shifts.prepared import prepare
from monitor.shifts.window_view import look, mean_with
from monitor.windows import Window
from tests.assessment import worlds

LEVEL = 0.003


def test_cosines_of_many_rows_have_the_mean_that_they_have_in_one_piece():
    ready = prepare(worlds.reference())
    rows = ready.projections.standardised(worlds.window(2 * PROJECTED_ROWS + 100, 1).features)
    assert ready.projections.mean(rows) == pytest.approx(
        ready.projections(rows).mean(axis=0, dtype=np.float64), abs=1e-7
    )


def test_the_mean_with_other_values_is_that_of_a_window_that_came_with_them():
    ready, window = prepare(worlds.reference()), worlds.window(2000, 1)
    others = np.array(window.features)
    others[:, 1] = others[:, 1] / 2 + 1
    others[::7, 3] = np.nan
    moved = {1: others[:, 1], 3: others[:, 3]}
    found = mean_with(look(window, ready), window.features, moved, ready)
    came = look(Window.of(window.posteriors, others), ready)
    assert found == pytest.approx(came.mean, rel=1e-12)


def test_no_feature_is_left_out_where_all_others_contradict_every_mix(monkeypatch: pytest.MonkeyPatch):
    """The answer is that of the search, which would look at each suspect."""
    ready, window = prepare(worlds.reference()), worlds.window(20_000, 1)
    far = look(Window.of(window.posteriors, window.features**3 + 1), ready)
    begun = prepared.without.cache_info()
    assert search.rest(far, ready, [0], LEVEL) is None
    assert prepared.without.cache_info() == begun
    monkeypatch.setattr(search, "HOPELESS", 0.0)
    assert search.rest(far, ready, [0], LEVEL) is None
    assert prepared.without.cache_info() != begun
