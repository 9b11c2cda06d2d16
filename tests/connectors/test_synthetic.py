"""The made-up world is what it says it is: whoever compares a monitor with its truth must be able to trust it."""

from pathlib import Path

import numpy as np
import pytest

from connectors.memory import MemorySource
from connectors.synthetic import START, SyntheticOptions, SyntheticSource, write
from connectors.worlds import UNKNOWN, Period, Population, Timetable, World, tour
from monitor.commands.connectors import open_source
from monitor.errors import ConfigurationError, ConnectorError, InputError
from monitor.events.decoding import Decoder
from monitor.windows.window import Window, merge
from tests.connectors.harness import batches, opened

WORLD = World()
NOW = START + 365 * 86_400 * 1_000_000


def population(period: Period, world: World = WORLD) -> Population:
    """All events of one period."""
    table = Timetable(world, (period,))
    blocks = [table.block(number).population for number in range(-(-table.events // 1000))]
    return Population(*(np.concatenate([getattr(b, n) for b in blocks]) for n in ("labels", "features", "posteriors")))


def decoded(options: SyntheticOptions) -> Window:
    """The rows of all events of a source that rejects nothing."""
    decoder = Decoder([options.world.schema])
    found = [decoder.decode(batch, NOW) for batch in batches(opened(SyntheticSource(options)))]
    assert not any(one.rejected for one in found)
    return merge([one.scored["demo"].rows for one in found])


def test_the_classifier_is_calibrated_on_its_reference() -> None:
    holdout = WORLD.holdout(40_000)
    shares = np.bincount(holdout.labels) / 40_000
    np.testing.assert_allclose(shares, WORLD.priors, atol=0.01)
    np.testing.assert_allclose(holdout.posteriors.mean(axis=0), shares, atol=0.005)
    confident = holdout.posteriors[:, 0] > 0.8
    np.testing.assert_allclose(
        (holdout.labels[confident] == 0).mean(), holdout.posteriors[confident, 0].mean(), atol=0.01
    )


def test_a_prior_shift_moves_the_mix_and_leaves_each_class_as_it_was() -> None:
    moved = population(Period("p", 30_000, priors=(0.2, 0.2, 0.6)))
    np.testing.assert_allclose(np.bincount(moved.labels) / 30_000, (0.2, 0.2, 0.6), atol=0.01)
    for number in range(3):
        np.testing.assert_allclose(moved.features[moved.labels == number].mean(axis=0), WORLD.means[number], atol=0.05)


def test_a_linear_and_a_bent_input_are_maps_of_what_they_would_have_been() -> None:
    calm = population(Period("calm", 2_000))
    linear = population(Period("linear", 2_000, linear={"x1": (2.0, -1.0)}))
    bent = population(Period("bent", 2_000, monotone=("x2",)))
    np.testing.assert_allclose(linear.features[:, 0], 2 * calm.features[:, 0] - 1)
    np.testing.assert_allclose(bent.features[:, 1], np.sinh(calm.features[:, 1]))
    np.testing.assert_array_equal(linear.features[:, 1:], calm.features[:, 1:])
    np.testing.assert_array_equal(linear.labels, calm.labels)


def test_an_unknown_class_takes_its_share_from_all_others() -> None:
    mixed = population(Period("new", 30_000, unknown=0.2))
    assert abs((mixed.labels == UNKNOWN).mean() - 0.2) < 0.01
    known = mixed.labels[mixed.labels != UNKNOWN]
    np.testing.assert_allclose(np.bincount(known) / known.size, WORLD.priors, atol=0.01)


def test_a_missing_input_is_left_out_of_the_scores_and_keeps_them_calibrated() -> None:
    gaps = population(Period("gaps", 30_000, missing={"x1": 0.5}))
    missing = np.isnan(gaps.features[:, 0])
    assert abs(missing.mean() - 0.5) < 0.01
    assert not np.isnan(gaps.features[:, 1:]).any()
    np.testing.assert_allclose(gaps.posteriors[missing].mean(axis=0), WORLD.priors, atol=0.01)


def test_more_classes_than_axes_still_have_different_means() -> None:
    many = World(classes=tuple("abcdefghij"), priors=(0.1,) * 10, features=("u", "v"))
    assert len(np.unique(many.means, axis=0)) == 11


def test_the_tour_has_every_kind_of_period() -> None:
    assert {period.verdict for period in tour(10)} == {
        "stable",
        "prior-shift",
        "covariate-shift",
        "prior-and-covariate-shift",
        "unknown-class",
    }


def test_lists_and_objects_partitions_and_disorder_change_the_writing_and_not_the_events() -> None:
    periods = (Period("calm", 1_700),)
    plain = decoded(SyntheticOptions(periods=periods))
    listed = decoded(SyntheticOptions(periods=periods, form="list"))
    assert plain.posteriors.tobytes() == listed.posteriors.tobytes()
    assert plain.timestamps is not None
    assert (np.diff(plain.timestamps) == 60_000).all()
    dealt = decoded(SyntheticOptions(periods=periods, partitions=3))
    assert np.array_equal(np.sort(dealt.posteriors, axis=0), np.sort(plain.posteriors, axis=0))
    mixed_up = decoded(SyntheticOptions(periods=periods, disorder=500_000))  # type: ignore[arg-type]
    assert mixed_up.timestamps is not None
    late = plain.timestamps - mixed_up.timestamps
    assert 0 <= late.min() < late.max() <= 500_000 + 1_000  # written in milliseconds


def test_labels_are_the_truth_for_the_share_that_has_them() -> None:
    window = decoded(SyntheticOptions(periods=(Period("calm", 3_000),), labelled=0.25))
    assert window.labels is not None
    known = window.labels >= 0
    assert abs(known.mean() - 0.25) < 0.05
    truth = population(Period("calm", 3_000)).labels
    np.testing.assert_array_equal(window.labels[known], truth[known])


def test_malformed_records_are_rejected_in_many_ways_and_are_as_many_as_said() -> None:
    options = SyntheticOptions(periods=(Period("bad", 5_000, malformed=0.3),))
    decoder = Decoder([options.world.schema])
    found = [one for batch in batches(opened(SyntheticSource(options))) for one in decoder.decode(batch, NOW).rejected]
    assert abs(len(found) / 5_000 - 0.3) < 0.03
    assert len({one.reason for one in found}) == 9


def test_the_truth_is_told_in_event_time() -> None:
    source = SyntheticSource(SyntheticOptions(periods=(Period("a", 100), Period("b", 50, priors=(1, 1, 1)))))
    spans = [(one.period.name, one.period.verdict, one.start - START, one.end - START) for one in source.injected()]
    assert spans == [("a", "stable", 0, 6_000_000), ("b", "prior-shift", 6_000_000, 9_000_000)]


def test_a_file_holds_the_same_records_as_the_source(tmp_path: Path) -> None:
    options = SyntheticOptions(periods=(Period("a", 1_234),))
    assert write(tmp_path / "events.jsonl", options) == 1_234
    records = [record for batch in batches(opened(SyntheticSource(options))) for record in batch.records]
    assert (tmp_path / "events.jsonl").read_bytes().splitlines() == records


def test_a_rate_spreads_events_over_time() -> None:
    source = opened(SyntheticSource(SyntheticOptions(periods=(Period("a", 3_000),), rate=20_000)))
    assert len(source.poll(0.0)) == 1
    assert source.poll(0.0) == []
    assert len(source.poll(1.0)) == 1


def test_options_come_from_a_table() -> None:
    table = {
        "world": {"stream": "s", "classes": ["a", "b"], "priors": [0.5, 0.5]},
        "periods": [{"name": "p", "events": 10, "linear": {"x1": [2, 0]}, "missing": {"x2": 0.5}}],
        "interval": "1s",
    }
    source = open_source("synthetic:", table)
    assert isinstance(source, SyntheticSource)
    assert source.options.periods[0].linear == {"x1": (2.0, 0.0)}
    with pytest.raises(ConfigurationError, match="at least one partition"):
        open_source("synthetic:", {"partitions": 0})


@pytest.mark.parametrize(
    ("period", "message"),
    [
        (Period("p", 1, linear={"zz": (1, 0)}), "want features among"),
        (Period("p", 1, priors=(1, 2)), "want 3 priors"),
        (Period("p", 1, linear={"x1": (1,)}), "want alpha and beta"),
        (Period("p", 0), "at least one event"),
    ],
)
def test_a_period_that_makes_no_sense_is_refused(period: Period, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Timetable(WORLD, (period,))


def test_a_memory_source_can_be_added_to_until_it_ends() -> None:
    source = opened(MemorySource({"p": [b"1"]}, timestamps={"p": [7]}, open_ended=True))
    first = source.poll(0.0)
    assert first[0].timestamps is not None
    assert first[0].timestamps.tolist() == [7]
    assert not source.finished
    assert isinstance(source, MemorySource)
    source.end()
    assert source.finished
    with pytest.raises(ConnectorError, match="open-ended"):
        source.add("p", b"2")
