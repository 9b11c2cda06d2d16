"""The parts of a classifier's reference that an assessment uses, without the file that it is kept in."""

from typing import Protocol

from monitor.calibration import Calibration
from monitor.ports.schema import StreamSchema
from monitor.priors import ReferenceView
from monitor.recalibration import CalibrationMap
from monitor.shifts import ShiftReference
from monitor.windows import Window, WindowKey


class AssessedReference(ReferenceView, ShiftReference, Protocol):
    """The parts of a reference that an assessment uses."""

    @property
    def calibration(self) -> Calibration: ...
    @property
    def estimator(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def margin_map(self) -> CalibrationMap | None: ...
    @property
    def schema(self) -> StreamSchema: ...
    def timed(self, key: WindowKey) -> "AssessedReference": ...
    def of_segment(self, window: Window) -> "Comparison": ...
    def matched(self, window: Window) -> Window: ...
    def remarks(self, window: Window) -> tuple[str, ...]: ...


Comparison = tuple[AssessedReference, Window, tuple[str, ...]]
"""What a window is held against, the window as that reads it, and what has to be said of it."""
