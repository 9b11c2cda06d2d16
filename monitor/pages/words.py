"""How numbers and times are said on pages; each function is a filter of the templates."""

import math
from collections.abc import Iterable
from datetime import UTC, datetime

FEW = 6
"""As many as fit on a line."""


def percent(share: float) -> str:
    """A share in percent, with the digits that matter."""
    if not math.isfinite(share):
        return "unknown"
    value = share * 100
    return f"{value:.1f} %" if abs(value) >= 10 or value == 0 else f"{value:.2f} %"


def some(parts: Iterable[str]) -> str:
    """The first few of many."""
    shown = list(parts)
    return ", ".join(shown[:FEW]) + (f", and {len(shown) - FEW} more" if len(shown) > FEW else "")


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


def sentence(words: str) -> str:
    """The text with a capital, as sentences begin; names such as `age_days` stay as they are."""
    first = words.partition(" ")[0]
    return words[:1].upper() + words[1:] if first.strip(",.:;").isalpha() else words


def p_value(value: float) -> str:
    """A p-value; very small ones are known to their order only."""
    return "< 1e-6" if value < 1e-6 else f"{value:.2g}"
