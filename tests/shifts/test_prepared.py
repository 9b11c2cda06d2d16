"""What is kept of references between windows: of as many as one process watches, and no longer than they are needed."""

from dataclasses import replace

import numpy as np

from monitor.reference.classifier import Reference
from monitor.shifts.comparable import reference_written
from monitor.shifts.prepared import prepare
from tests.service.streams import scores

STREAMS, SEGMENTS = 60, 2


def test_sixty_streams_with_two_segments_each_are_made_ready_once() -> None:
    posteriors, labels = scores(300, 0.3, seed=1)
    first = Reference.fit(posteriors, labels, features=np.column_stack([labels, posteriors[:, 1]]))
    references = [replace(first) for _ in range(STREAMS * (1 + SEGMENTS))]
    prepare.cache_clear()
    for _ in range(2):  # windows, in the order in which streams bring them
        for reference in references:
            prepare(reference, reference_written(reference).base)
    assert prepare.cache_info().misses == len(references)


def test_columns_that_are_nearly_all_one_value_are_no_part_of_the_fit_whether_some_are_missing_or_none_differs() -> (
    None
):
    posteriors, labels = scores(600, 0.3, seed=1)
    rng = np.random.default_rng(0)
    flag = (rng.random(600) < 0.01).astype(float)
    often_missing = np.where(rng.random(600) < 0.3, np.nan, flag)
    columns = [rng.normal(size=600), np.full(600, 4.0), flag, often_missing, labels.astype(float)]
    reference = Reference.fit(posteriors, labels, features=np.column_stack(columns))
    ready = prepare(reference, reference_written(reference).base)
    assert {block.index for block in ready.blocks if block.kind == "feature"} == {0, 4}
    assert set(ready.unusual) == {1, 2, 3}
