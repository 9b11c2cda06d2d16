"""Flags and fees: columns that are nearly all one value, by the law of a few events."""

import numpy as np
import pytest
from scipy.stats import fisher_exact

from monitor.shifts.unusual_values import expected_share, unusual_p, unusual_shares


@pytest.mark.parametrize(("seen", "n", "known", "m"), [(6, 100, 0, 300), (30, 200, 0, 300), (24, 300, 10, 1_000)])
def test_more_of_an_unusual_value_is_about_as_unlikely_as_by_fishers_exact_test_and_never_less(seen, n, known, m):
    exact = fisher_exact([[seen, n - seen], [known, m - known]], alternative="greater").pvalue
    found = unusual_p(seen / n - known / m, n, known / m, m)
    assert 0.5 * exact < found < 1000 * exact


@pytest.mark.parametrize("share", [0.0005, 0.002, 0.01])
def test_unusual_values_as_frequent_as_before_are_as_rarely_far_from_it_as_is_said(share: float):
    rng = np.random.default_rng(3)
    windows, known = rng.binomial(200, share, 20_000) / 200, rng.binomial(1_000, share, 20_000) / 1_000
    found = np.array([unusual_p(abs(w - q), 200, q, 1_000) for w, q in zip(windows, known, strict=True)])
    assert all((found < level).mean() <= level for level in (0.05, 0.01, 0.003))


def test_of_a_class_of_ten_rows_the_share_is_hardly_known_so_that_a_mix_that_has_more_of_it_moves_no_flag():
    labels = np.repeat([0, 1], [1000, 10])
    flags = np.where((labels == 1) & (np.arange(labels.size) % 3 == 0), 1.0, 0.0)
    shares, counts = unusual_shares(flags, labels, 2), np.array([1000.0, 10.0])
    assert shares is not None
    unsure = 0.01 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    of_ten, of_a_thousand, of_a_mix_that_was_learnt = (
        unusual_p(0.06, 500, *expected_share(shares, np.array(mix), counts, spread))
        for mix, spread in (([0.7, 0.3], None), ([0.99, 0.01], None), ([0.99, 0.01], unsure))
    )
    assert of_ten > 0.01
    assert of_a_thousand < 1e-6
    assert of_a_mix_that_was_learnt > 1e-4
