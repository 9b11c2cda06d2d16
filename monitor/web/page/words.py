"""How things are said on the page: verdicts, numbers, times."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape


@dataclass(frozen=True, slots=True)
class Said:
    """A verdict for a person."""

    words: str
    advice: str
    mark: str
    """Read by those who cannot tell the colours apart."""


VERDICTS = {
    "stable": Said("Nothing has moved", "No action is needed.", "✓"),
    "prior-shift": Said(
        "The class mix has moved",
        "Apply the recalibration, and look for the cause if the new mix is a surprise.",
        "◐",
    ),
    "covariate-shift": Said(
        "Inputs have moved",
        "Look at the features named here: a unit, an encoding, a new source. Scores may be off.",
        "▲",
    ),
    "prior-and-covariate-shift": Said(
        "The class mix and inputs have moved",
        "Mend the inputs first: the prevalence is less certain than its interval says.",
        "◮",
    ),
    "unknown-class": Said(
        "Some events look like no known class",
        "Look at those events: the model has to learn the new class.",
        "?",
    ),
    "relation-shift": Said(
        "Labels depend on the inputs in another way",
        "Apply the correction where it is justified, and train the model anew on recent labels.",
        "⤢",
    ),
    "unexplained": Said(
        "Moved, and no known shift says why",
        "Compare with a freshly labelled sample.",
        "!",
    ),
    "insufficient-data": Said("Too few events to tell", "Wait, or choose longer windows.", "…"),
}
WAITING = Said("Waiting for the first window", "", "…")


def said(verdict: str) -> Said:
    """The words for a verdict; its own name if it is a new one."""
    return VERDICTS.get(verdict, Said(verdict, "", "•"))


def percent(share: float) -> str:
    """With the digits that matter."""
    if not math.isfinite(share):
        return "unknown"
    value = share * 100
    return f"{value:.1f} %" if abs(value) >= 10 or value == 0 else f"{value:.2f} %"


def number(value: float) -> str:
    """Whole numbers with separators, others with three digits."""
    if not math.isfinite(value):
        return "unknown"
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.3g}"


def seconds(value: float) -> str:
    """A duration in the unit that suits it."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if abs(value) >= 2 * size:
            return f"{value / size:.0f} {unit}"
    return f"{value:.0f} s" if abs(value) >= 10 else f"{value:.1f} s" if abs(value) >= 0.95 else f"{value * 1e3:.0f} ms"


def moment(microseconds: int, pattern: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time of day with its date."""
    return datetime.fromtimestamp(microseconds / 1e6, UTC).strftime(pattern)


def span(start: int, end: int) -> str:
    """From when until when, the date only as often as needed."""
    same = moment(start, "%Y-%m-%d") == moment(end, "%Y-%m-%d")
    return f"{moment(start)} to {moment(end, '%H:%M:%S' if same else '%Y-%m-%d %H:%M:%S')} UTC"


def text(value: object) -> str:
    """Safe inside HTML."""
    return escape(str(value), quote=True)
