"""An input is taken back to the reference's scale only where somebody has said that it may change so."""

import pytest

from monitor.recalibration import InputCorrection, gated

LINE = InputCorrection("linear", 1.8, 32.0)
CURVE = InputCorrection("monotone", 1.1, 0.0, (0.0, 1.0), (0.0, 2.0))
NOTHING = ("none", 1.0, 0.0, (), (), False)


def numbers(one):
    return (one.kind, one.alpha, one.beta, one.window, one.reference, one.apply)


@pytest.mark.parametrize(("correction", "may"), [(LINE, "rescale"), (LINE, "remap"), (CURVE, "remap")])
def test_what_was_declared_is_corrected(correction, may):
    found = gated("x", correction, may, explained=True)
    assert numbers(found) == (*numbers(correction)[:-1], True)
    assert may in found.reason


@pytest.mark.parametrize(
    ("correction", "may", "explained", "why"),
    [
        (LINE, None, True, "nobody has said"),
        (CURVE, "rescale", True, 'more than `may = "rescale"` allows'),
        (LINE, "rescale", False, "does not explain"),
        (InputCorrection("linear", -2.0, 0.0), "rescale", True, "turned round"),
    ],
)
def test_anything_else_leaves_it_exactly_as_it_is_and_says_why(correction, may, explained, why):
    found = gated("x", correction, may, explained)
    assert numbers(found) == NOTHING
    assert why in found.reason
    assert "it moved along" in found.reason
