"""Margins, and how they are written: numbers like a feature's, of which all classes share one resolution."""

from dataclasses import dataclass

import numpy as np

from monitor.arrays import Matrix
from monitor.shifts.resolution import WrittenColumn, coarsened, written


@dataclass(frozen=True, slots=True, eq=False)
class WrittenMargins:
    """How a reference's margins are written."""

    margins: WrittenColumn

    @property
    def own(self) -> int:
        """The resolution at which they stay what they are."""
        return self.margins.base

    def common(self, margins: Matrix) -> int:
        """The resolution that a window's margins have in common with them."""
        return self.margins.common(margins.ravel())

    def at(self, margins: Matrix, resolution: int) -> Matrix:
        """Margins at a resolution."""
        return coarsened(margins, resolution)


def written_margins(raw: Matrix) -> WrittenMargins:
    """How a reference's margins are written."""
    return WrittenMargins(written(np.sort(raw, axis=None)))
