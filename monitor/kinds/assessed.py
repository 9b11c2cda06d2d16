"""What all assessments have in common, whatever the kind of stream."""

from collections.abc import Mapping
from typing import Protocol

from monitor.assessment import Baseline, DataQuality, FeatureShift, Test, Verdict
from monitor.recalibration import Recalibration
from monitor.shifts import Sketches
from monitor.windows import Origin, WindowCounts, WindowKey


class Assessed(Protocol):
    """What the assessments of all kinds have in common."""

    @property
    def task(self) -> str | None:
        """The task of their references."""
        ...

    @property
    def key(self) -> WindowKey: ...
    @property
    def closed_because(self) -> str: ...
    @property
    def origin(self) -> Origin: ...
    @property
    def events(self) -> int: ...
    @property
    def counts(self) -> WindowCounts: ...
    @property
    def unusable(self) -> int: ...
    @property
    def missing_values(self) -> int: ...
    @property
    def verdict(self) -> Verdict: ...
    @property
    def reasons(self) -> tuple[str, ...]: ...
    @property
    def baselines(self) -> Mapping[str, Baseline]:
        """Against the `reference`, which `verdict` is, and against the `recent` normal where one is known."""
        ...

    @property
    def tests(self) -> Mapping[str, Test]: ...
    @property
    def features(self) -> Mapping[str, FeatureShift]: ...
    @property
    def compared(self) -> Mapping[str, FeatureShift]:
        """The features, and whatever else was compared with the reference one by one."""
        ...

    @property
    def quality(self) -> DataQuality:
        """What is plainly wrong with the data."""
        ...

    @property
    def sketches(self) -> Sketches | None:
        """How its columns are distributed; None where that is not wanted, or there are too few events."""
        ...

    @property
    def recalibration(self) -> Recalibration: ...
    @property
    def reference_version(self) -> str: ...

    def to_json(self) -> bytes:
        """The message of contract 2."""
        ...
