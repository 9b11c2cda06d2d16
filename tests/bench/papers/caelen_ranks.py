"""Table 7.5 of Caelen's thesis: Friedman's test over data sets and intensities, then Nemenyi's and Wilcoxon's."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon

from tests.bench.papers.caelen_print import TESTS
from tests.bench.papers.caelen_runs import COLUMNS
from tests.bench.papers.claims import Claim

TRAINING_SHARES = "source error per class"


@dataclass(frozen=True, slots=True)
class Ranked:
    """Friedman's test and those after it."""

    values: np.ndarray
    """(data sets and intensities, methods)."""
    ranks: np.ndarray
    friedman: float

    def nemenyi(self, i: int, j: int) -> float:
        """p that two methods rank alike (Demsar 2006)."""
        methods = self.values.shape[1]
        spread = np.sqrt(methods * (methods + 1) / (6 * len(self.values)))
        return float(studentized_range.sf(abs(self.ranks[i] - self.ranks[j]) / spread * np.sqrt(2), methods, np.inf))

    def wilcoxon(self, i: int, j: int) -> float:
        """p of the signed ranks."""
        return float(wilcoxon(self.values[:, i], self.values[:, j]).pvalue)


def _ranked(means: np.ndarray, names: Sequence[str]) -> Ranked:
    values = np.column_stack([means[..., COLUMNS.index(name)].ravel() for name in names])
    values = values[np.isfinite(values).all(axis=1)]
    ranks = np.mean([rankdata(row) for row in values], axis=0)
    return Ranked(values, ranks, float(friedmanchisquare(*values.T).pvalue))


def claims(kind: str, means: np.ndarray) -> list[Claim]:
    """Table 7.5 over all data sets and intensities; and again with base as it seems to have been printed."""
    names = ("em, priors", "em-stop, priors", "base, priors")
    p, nemenyi, wilcoxons = TESTS[kind]
    ours, again = (_ranked(means, (*names[:2], last)) for last in (names[2], TRAINING_SHARES))
    said = [
        Claim(
            f"{kind}: Table 7.5, Friedman's test tells em, em-stop and base apart",
            f"p = {p:.2g}",
            f"p = {ours.friedman:.2g}",
            ours.friedman < 0.05,
            f"with base as it is printed p = {again.friedman:.2g}",
        )
    ]
    pairs = (("em - base", 0, 2), ("em-stop - base", 1, 2), ("em-stop - em", 1, 0))
    for (name, i, j), paper, paper_w in zip(pairs, nemenyi, wilcoxons, strict=True):
        found = ours.nemenyi(i, j)
        said.append(
            Claim(
                f"{kind}: Table 7.5, Nemenyi and Wilcoxon for {name}",
                f"{paper:.2g}, {paper_w:.2g}",
                f"{found:.2g}, {ours.wilcoxon(i, j):.2g} (mean ranks {ours.ranks[i]:.2f}, {ours.ranks[j]:.2f})",
                (found < 0.05) == (paper < 0.05),
                f"better in {np.mean(ours.values[:, i] < ours.values[:, j]):.0%} of {len(ours.values)} pairs of data "
                f"set and intensity (225 in print); with base as it is printed, the training shares' error over the "
                f"classes, {again.nemenyi(i, j):.2g}, {again.wilcoxon(i, j):.2g} (mean ranks {again.ranks[i]:.2f}, "
                f"{again.ranks[j]:.2f})",
            )
        )
    return said
