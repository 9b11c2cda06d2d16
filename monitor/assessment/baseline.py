"""The verdict against one of the things that a window is held against: the reference, or what was normal lately."""

from dataclasses import dataclass

from monitor.assessment.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Baseline:
    """How a window stands against one of the things that it is held against."""

    verdict: Verdict
    reasons: tuple[str, ...]
    moved: tuple[str, ...] = ()
    """The features that differ, those that differ the most first."""
