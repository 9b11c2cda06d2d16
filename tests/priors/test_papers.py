"""What the papers print, where it is right, and what it should have said, where it is not (papers' errata)."""

import numpy as np
import pytest

from monitor.priors import bayes, counting, em
from monitor.priors.simplex import minimise
from tests.priors.papers import Contamination, one_dimension


class TestCaelen:
    def test_example_4_4_adjusted_count_of_two_classes(self) -> None:
        """Section 4.4: confusion [[889, 110], [115, 886]], predictions 912 and 197 of 1109; printed .91287, .08713."""
        for adjust in (counting.adjusted, counting.adjusted_qp):
            found = adjust([[889, 110], [115, 886]], [912, 197])
            np.testing.assert_allclose(found.priors, [0.91287, 0.08713], atol=5e-6)

    @pytest.mark.parametrize(
        ("row", "corrected"),
        [
            ([4, 14, 7, 0], [0.23425, 0.30916, 0.19940, 0.25719]),
            ([3, 14, 7, 0], [0.24686, 0.29645, 0.19950, 0.25719]),
        ],
    )
    def test_example_4_5_with_the_columns_as_true_classes(self, row: list[int], corrected: list[float]) -> None:
        """Section 4.5, erratum 1: printed .2829, .1012, .2934, .2488 solve the transposed system."""
        confusion = [[248, 4, 0, 0], row, [0, 4, 241, 8], [0, 0, 12, 235]]
        for adjust in (counting.adjusted, counting.adjusted_qp):
            found = adjust(confusion, np.array([0.28, 0.18, 0.289, 0.251]) * 1000)
            np.testing.assert_allclose(found.priors, corrected, atol=6e-6)

    def test_the_printed_program_is_reproduced_only_by_the_wrong_orientation(self) -> None:
        """Erratum 1: printed .2945241, .1385011, .3005869, .2663878; row 2 as in the counts, so it sums to 25."""
        confusion = np.array([[248, 4, 0, 0], [4, 14, 7, 0], [0, 4, 241, 8], [0, 0, 12, 235]])
        rates = confusion / confusion.sum(axis=1, keepdims=True)
        wrong = minimise(rates.T @ rates, rates.T @ np.array([0.28, 0.18, 0.289, 0.251])).point
        np.testing.assert_allclose(wrong, [0.2945241, 0.1385011, 0.3005869, 0.2663878], atol=1e-7)

    def test_section_3_3_1_intercepts_after_a_known_shift(self) -> None:
        """Printed: adjustments -.26157093, 2.08980433, -.26553133, -.24153018, and the new intercepts."""
        counts = np.array([252, 24, 253, 247])
        alpha = np.array([-0.35057895, 1.1672324, 3.1596501, -3.97630355])
        moved = bayes.shift_intercepts(alpha, counts / counts.sum(), np.full(4, 0.25))
        np.testing.assert_allclose(moved - alpha, [-0.26157093, 2.08980433, -0.26553133, -0.24153018], atol=1e-8)
        np.testing.assert_allclose(moved, [-0.61214988, 3.25703673, 2.89411877, -4.21783373], atol=1e-8)

    def test_the_four_class_example_where_em_runs_off_and_em_stop_does_not(self) -> None:
        """Section 6.1.2 and 6.2, over ten draws: the truth is a quarter each."""
        run_off, stopped = [], []
        for seed in range(10):
            train, labels, window, pi = one_dimension(seed, penalty=1.0)
            run_off.append(np.abs(em.sld(window, pi).priors - 0.25).max())
            stopped.append(np.abs(em.stopped(window, pi, train, labels).priors - 0.25).max())
        assert np.median(run_off) > 0.15
        assert np.median(stopped) < 0.6 * np.median(run_off)
        assert sum(s < r for s, r in zip(stopped, run_off, strict=True)) >= 9

    def test_it_is_the_penalty_and_not_em_that_diverges(self) -> None:
        """Erratum 4: with almost no penalty the same EM ends at a quarter each."""
        ends = []
        for seed in range(5):
            _, _, window, pi = one_dimension(seed, penalty=1e4)
            ends.append(em.maximum_likelihood(window, pi).priors)
        np.testing.assert_allclose(np.mean(ends, axis=0), 0.25, atol=0.04)

    def test_em_has_no_local_maximum(self) -> None:
        """Erratum 3: the likelihood is concave, so any start ends in the same place."""
        _, _, window, pi = one_dimension(0, penalty=1.0)
        first = em.maximum_likelihood(window, pi).priors
        for start in np.eye(4):
            np.testing.assert_allclose(em.maximum_likelihood(window, pi, start=start).priors, first, atol=1e-9)


class TestEsuli:
    def test_a_converged_sld_makes_priors_and_posteriors_consistent(self) -> None:
        """Eq 5: the priors are the mean of the corrected posteriors."""
        _, _, window, pi = one_dimension(1, penalty=1e4)
        best = em.maximum_likelihood(window, pi)
        np.testing.assert_allclose(bayes.correct(window, pi, best.priors).mean(axis=0), best.priors, atol=1e-9)

    def test_neither_convergence_nor_the_cap_is_the_maximum(self) -> None:
        """Erratum 4: and the gap says by how much."""
        rng = np.random.default_rng(0)
        g = rng.dirichlet(np.full(10, 2.0), size=3000)
        pi = np.full(10, 0.1)
        printed, best = em.sld(g, pi), em.maximum_likelihood(g, pi)
        assert not printed.converged
        assert printed.gap > 100 * best.gap
        missing = (best.log_likelihood or 0.0) - (printed.log_likelihood or 0.0)
        assert 0 < missing <= printed.gap


class TestDussap:
    @pytest.mark.parametrize("noise", ["background", "far"])
    def test_soft_fourier_features_stand_contamination_best(self, noise: str) -> None:
        """Section 4.2, figure 1, from a tenth of contamination on; at length in tests/bench/papers/dussap_runs.py."""
        names = ["dfm-rff-features-soft", "dfm-rff-features", "dfm-energy-features-soft", "acc-qp-soft"]
        worlds = [Contamination.draw(seed, dimensions, 3000, names) for seed, dimensions in [(0, 2), (1, 5), (2, 9)]]
        for share in (0.1, 0.3):
            found = [world.errors(noise, share, names) for world in worlds]
            mean = {name: np.mean([errors[name] for errors in found]) for name in names}
            assert min(mean, key=mean.__getitem__) == "dfm-rff-features-soft", (share, mean)
