"""The order of rows inside a window, against sorting all of them by time and digest."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from monitor.windows.window import Window, ordered, row_digests


def slowly(window: Window) -> Window:
    digests = row_digests(window)
    keys = (digests,) if window.timestamps is None else (digests, window.timestamps)
    return window.take(np.lexsort(keys))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=30), st.booleans())
def test_rows_stand_by_time_and_ties_by_digest(rows: list[tuple[int, int]], timed: bool) -> None:
    first = np.array([share / 4 for _, share in rows])
    window = Window(
        posteriors=np.column_stack([first, 1 - first]),
        timestamps=np.array([time for time, _ in rows], dtype=np.int64) if timed else None,
    )
    fast, slow = ordered(window), slowly(window)
    assert fast.posteriors.tobytes() == slow.posteriors.tobytes()
    assert not timed or np.array_equal(fast.timestamps, slow.timestamps)


def test_rows_in_order_are_not_copied() -> None:
    window = Window(posteriors=np.array([[0.5, 0.5], [0.1, 0.9]]), timestamps=np.array([1, 2]))
    assert ordered(window) is window
