"""Shiftwatch on a table of scored events, as somebody writes it who has one."""

from collections.abc import Iterator
from typing import Any

WINDOW = 1_000


def watch(hold_out: Any, events: Any, inputs: list[str]) -> Iterator[Any]:
    """The answer about each window."""
    from monitor import Reference, Window, assess  # noqa: PLC0415 - one of these three is installed

    def scores(table: Any) -> Any:
        return table[["legit", "fraud"]].to_numpy()

    reference = Reference.fit(
        scores(hold_out), hold_out["label"], features=hold_out[inputs], classes=["legit", "fraud"], positive="fraud"
    )
    for start in range(0, len(events), WINDOW):
        window = events[start : start + WINDOW]
        yield assess(Window.of(scores(window), features=window[inputs]), reference)


def told(assessment: Any) -> dict[str, Any]:
    """What it says of a window, in short."""
    area = assessment.performance.figures.get("roc_auc")
    return {
        "flagged": assessment.verdict.moved,
        "words": str(assessment.verdict),
        "inputs": [name for name, shift in assessment.features.items() if shift.moved],
        "share": float(assessment.prevalence.priors[1]),
        "auc": None if area is None else area.value,
    }
