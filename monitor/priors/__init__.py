"""How much of each class is out there: the prior estimators, one method one file, and their registry.

Every interval is for the rate at which classes come. The Fourier features of the entries are those of dussap's eq 10.
Eq 11 has no entry: at the same cost it is worse in variance and in bound, as the paper says and a test shows;
`maps.fourier` takes its offsets.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from monitor.arrays import Labels, Matrix
from monitor.priors import bayes, counting, em, intervals, matching
from monitor.priors.by_counting import ACC, CC, CDE, PCC
from monitor.priors.by_likelihood import EM, EM_SHRUNK, EM_SLD, EM_STOPPED
from monitor.priors.by_matching import PACC, PACC_SOFT, entries
from monitor.priors.by_retargeting import EM_DEBIASED, RETARGETED
from monitor.priors.estimate import CalibratedView, Estimator, HoldOut, PriorEstimate, ReferenceView, Statistics, frozen
from monitor.priors.maps import ENERGY, GAUSSIAN, ONE_HOT, RFF
from monitor.priors.smoothing import Levels
from monitor.windows import Window, fixed_sums

ESTIMATORS: Final[dict[str, Estimator]] = {
    estimator.name: estimator
    for estimator in [
        CC,
        PCC,
        ACC,
        *entries("acc-qp", ONE_HOT, "posteriors", raw=True),
        PACC,
        PACC_SOFT,
        CDE,
        EM,
        EM_SHRUNK,
        EM_SLD,
        EM_STOPPED,
        RETARGETED,
        EM_DEBIASED,
        *entries("dfm-energy", ENERGY, "posteriors"),
        *entries("dfm-gaussian", GAUSSIAN, "posteriors"),
        *entries("dfm-rff", RFF, "posteriors"),
        *entries("dfm-energy-features", ENERGY, "features"),
        *entries("dfm-gaussian-features", GAUSSIAN, "features"),
        *entries("dfm-rff-features", RFF, "features"),
        *entries("dfm-energy-both", ENERGY, "both"),
        *entries("dfm-gaussian-both", GAUSSIAN, "both"),
        *entries("dfm-rff-both", RFF, "both"),
    ]
}

CHEAP: Final = tuple(name for name, estimator in ESTIMATORS.items() if estimator.always)
"""Reported of every window; the reference's choice comes on top."""

DEFAULT: Final = EM_DEBIASED.name
"""What a reference reports as the prevalence, unless it is told otherwise."""

_BUILT_ON: Final = {EM_DEBIASED.name: (RETARGETED.name,)}
"""Beside EM."""


def kept_for(name: str) -> frozenset[str]:
    """The estimators whose statistics this one reads: a soft one reads the hard one's, and some begin with EM."""
    return frozenset({name, name.removesuffix("-soft"), EM.name, *_BUILT_ON.get(name, ())})


def solve(names: Iterable[str], window: Window, reference: ReferenceView) -> dict[str, PriorEstimate]:
    """The answers of these estimators to a prepared window; what several of them build on is worked out once."""
    answers = _Answers(window, reference)
    return {name: answers.of(name) for name in names}


@dataclass(frozen=True)
class _Answers:
    """To one window. An object, as a function that calls itself is a cycle, which would keep the window long after."""

    window: Window
    reference: ReferenceView
    known: dict[str, PriorEstimate] = field(default_factory=dict)

    def of(self, name: str) -> PriorEstimate:
        if name not in self.known:
            entry = ESTIMATORS[name]
            build, given = entry.building_on, (self.window, self.reference)
            self.known[name] = entry.estimate(*given) if build is None else build(*given, self.of)
        return self.known[name]


def tallied(posteriors: Matrix, reference: ReferenceView, rows: int) -> dict[str, Labels]:
    """What the estimators that need sums alone need of the first rows of calibrated posteriors, in fixed point."""
    known = [entry for entry in ESTIMATORS.values() if entry.name in reference.statistics]
    images = {entry.summed.name: (entry.summed, entry.name) for entry in known if entry.summed is not None}
    sums = (
        fixed_sums(image.name, image.apply(reference.statistics[name], posteriors)[:rows])
        for image, name in images.values()
    )
    return {name: numbers for each in sums for name, numbers in each.items()}


__all__ = [
    "CHEAP",
    "DEFAULT",
    "ESTIMATORS",
    "CalibratedView",
    "Estimator",
    "HoldOut",
    "Levels",
    "PriorEstimate",
    "ReferenceView",
    "Statistics",
    "bayes",
    "counting",
    "em",
    "frozen",
    "intervals",
    "kept_for",
    "matching",
    "solve",
    "tallied",
]
