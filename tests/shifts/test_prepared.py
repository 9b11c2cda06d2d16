"""What is kept of references between windows: of as many as one process watches, and no longer than they are needed."""

import gc
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np

from monitor.assessment import assess
from monitor.reference.classifier import Reference
from monitor.shifts.comparable import reference_written
from monitor.shifts.prepared import prepare
from monitor.windows import Window
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


def test_a_reference_that_is_ready_takes_little_more_than_twice_its_file(tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(0), 10_000
    labels = rng.integers(0, 3, rows)
    odds = np.exp(2.0 * np.eye(3)[labels] + rng.normal(size=(rows, 3)))
    features = rng.normal(size=(rows, 10)) + labels[:, None]
    path = tmp_path / "ten.ref"
    Reference.fit(odds / odds.sum(axis=1, keepdims=True), labels, features=features).save(path)
    reference = Reference.load(path)
    window = Window.of(odds[:500] / odds[:500].sum(axis=1, keepdims=True), features[:500])
    gc.collect()
    tracemalloc.start()
    assess(window, reference)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 2.5 * path.stat().st_size


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
