"""The rule that decides whether an input may be taken back to the reference's scale.

The values of an input that changed its unit and those of another population look the same: a stretched distribution.
Taken back, the first mends the scores; the second ruins them. The values cannot tell which it was, so that an input is
corrected only where somebody who knows has said that it may change in such a way.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from monitor.recalibration.message import InputCorrection

May = Literal["rescale", "remap"]
"""How an input may change without a change of what it means: by a line, as another unit does, or by any map that keeps
the order of the values."""

_MAPS: Mapping[str, frozenset[May]] = {"linear": frozenset({"rescale", "remap"}), "monotone": frozenset({"remap"})}
"""By the kind of a correction: the declarations that allow it."""


def gated(name: str, correction: InputCorrection, may: May | None, explained: bool) -> InputCorrection:
    """The correction of a moved input, or none in its place, and in either case why.

    `explained` says whether the moved inputs explain the window.
    """
    movement = f"it moved along {_in_words(correction)}"
    conditions = (
        (explained, "what moved does not explain the window"),
        (correction.alpha > 0, "the order of the values may be turned round, which the values cannot tell"),
        (may is not None, f'nobody has said that it may: `[streams.NAME.features."{name}"]`, `may = "rescale"`'),
        (may in _MAPS[correction.kind], f'that is more than `may = "{may}"` allows'),
    )
    failed = next((reason for holds, reason in conditions if not holds), None)
    if failed is not None:
        return InputCorrection("none", 1.0, 0.0, reason=f"{movement}, but {failed}")
    return replace(correction, apply=True, reason=f'{movement}, as `may = "{may}"` allows')


def _in_words(correction: InputCorrection) -> str:
    line = f"{correction.alpha:.3g} x value {correction.beta:+.3g}"
    return f"the line {line}" if correction.kind == "linear" else f"a curve about {line}"
