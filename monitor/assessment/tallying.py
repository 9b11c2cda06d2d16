"""Events of a classifier's window above the maximum: counted before their rows are let go, so that they have their part
in whatever needs no rows (distances, the fit of one class mix, estimators that need sums)."""

from dataclasses import dataclass

import numpy as np

from monitor.arrays import Flags, Labels, row_sums
from monitor.assessment.classifier_view import AssessedReference
from monitor.errors import InputError
from monitor.priors import tallied as sums_tallied
from monitor.shifts import Resolution, comparable_posteriors, prepare, tallied
from monitor.windows import Tally, Window

SINGLE = np.finfo(np.float32)
"""Windows are compared at the resolution that scores are written with, which may be single precision."""
_BLOCK = 2_048
"""Rows are mapped so many at a time, filled up where they are fewer: in products of matrices of one size the last digit
of a row does not depend on how many others there are, and so no count does."""


@dataclass(frozen=True, slots=True, eq=False)
class Tallying:
    """Counts rows by a reference, at the reference's own resolution."""

    reference: AssessedReference

    def __call__(self, window: Window) -> Tally:
        """The tally of all rows of a window as it came."""
        kept = np.flatnonzero(usable(window, self.reference))
        numbers: dict[str, Labels] = {}
        for begin in range(0, kept.size, _BLOCK):
            filled = kept.take(np.arange(begin, begin + _BLOCK), mode="clip")
            for name, counts in self._counted(window, filled, min(kept.size - begin, _BLOCK)).items():
                numbers[name] = numbers.get(name, 0) + counts
        return Tally(window.events, kept.size, _basis(self.reference), numbers)

    def _counted(self, window: Window, at: Labels, rows: int) -> dict[str, Labels]:
        """Of the first rows at these numbers."""
        ready = prepare(self.reference)
        posteriors = comparable_posteriors(window.posteriors[at], self.reference, ready.resolution)
        block = Window(posteriors, None if window.features is None else window.features[at])
        return tallied(block, ready, rows) | sums_tallied(posteriors, self.reference, rows)


def counted_in(window: Window, reference: AssessedReference, resolution: Resolution) -> Tally | None:
    """What was counted of the events that were left out of a window; None where it cannot be put beside the rows: some
    were let go uncounted, or were counted by another reference or at another resolution."""
    tally = window.left_out
    alike = tally is not None and tally.basis == _basis(reference) and resolution == prepare(reference).resolution
    return tally if alike and tally is not None and tally.rows == window.counts.sampled_out else None


def usable(window: Window, reference: AssessedReference) -> Flags:
    """Rows whose posteriors are numbers of at least 0 that do not all vanish; or whose margins are numbers."""
    g = window.posteriors
    classes, columns = len(reference.classes), len(reference.features)
    if g.shape[1] != classes:
        raise InputError(f"posteriors: want {classes} columns, got {g.shape[1]}")
    if window.features is not None and columns and window.features.shape[1] != columns:
        raise InputError(f"features: want {columns} columns, got {window.features.shape[1]}")
    with np.errstate(over="ignore"):
        sums = row_sums(g)
    if reference.margins:
        return np.asarray(np.isfinite(sums))
    meant = (sums < SINGLE.max) & (sums > SINGLE.tiny)
    return np.asarray(meant if g.min(initial=0.0) >= 0 else meant & (g >= 0).all(axis=1))


def _basis(reference: AssessedReference) -> str:
    return f"{reference.version} {reference.ignored}"
