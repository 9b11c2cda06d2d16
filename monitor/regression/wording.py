"""A link in words that an operator can act on: what was multiplied by what, and what stayed."""

from collections.abc import Sequence

import numpy as np

from monitor.arrays import Matrix, Vector
from monitor.regression.links import Model
from monitor.regression.mixture import Mixture
from monitor.tolerances import FACTOR_IN_WORDS, FACTOR_UNCHANGED

_WORDS = {2.0: "doubled", 3.0: "tripled", 4.0: "quadrupled", 0.5: "halved"}


def factor_word(factor: float) -> str:
    """ "doubled" for a factor near 2, "multiplied by 1.37" where no word is near."""
    if abs(factor - 1.0) <= FACTOR_UNCHANGED:
        return "unchanged"
    for value, word in _WORDS.items():
        if abs(factor / value - 1.0) <= FACTOR_IN_WORDS:
            return word
    return f"multiplied by {factor:.3g}"


def describe(
    model: Model,
    factors: Matrix,
    now: Mixture,
    before: Mixture,
    names: Sequence[str] | None = None,
) -> str:
    """What the link did: factors lambda (K, p + 1) from one mixture to the other, and names of the inputs."""
    inputs = names or [f"x{number}" for number in range(1, factors.shape[1])]
    parts = _relation(model, factors, now.sigmas / before.sigmas, inputs)
    if model.free_proportions and now.components > 1:
        shares = f"shares of the components {_percent(before.weights)} became {_percent(now.weights)}"
        parts = [*parts, shares] if parts else [shares, "slopes and intercepts unchanged"]
    return "; ".join(parts) or "nothing changed"


def _relation(model: Model, factors: Matrix, noise: Vector, names: Sequence[str]) -> list[str]:
    several = model.link.per_component and factors.shape[0] > 1
    intercepts, slopes = factors[:, 0], factors[:, -1]
    words = [factor_word(factor) for factor in factors[0, 1:]]
    each = ", ".join(f"slope of {name} {word}" for name, word in zip(names, words, strict=True))
    if len(words) > 1 and len(set(words)) == 1:
        each = f"all slopes {words[0]}"
    sentences: dict[str, list[str]] = {
        "same": [],
        "noise": [_told("noise", noise, noise.size > 1), "slopes and intercepts unchanged"],
        "slopes": [_told("slopes", slopes, several), "intercepts unchanged"],
        "intercepts": [_told("intercepts", intercepts, several), "slopes unchanged"],
        "all": [_told("slopes and intercepts", slopes, several)],
        "both": [_told("slopes", slopes, several), _told("intercepts", intercepts, several)],
        "slopes+noise": [
            _told("slopes", slopes, several),
            "intercepts unchanged",
            _told("noise", noise, noise.size > 1),
        ],
        "inputs": [each, "intercepts unchanged", "noise estimated anew"],
        "inputs+": [each, f"intercepts {factor_word(factors[0, 0])}", "noise estimated anew"],
        "free": ["every slope, intercept and noise level estimated anew"],
    }
    return sentences[model.link.shape]


def _told(what: str, factors: Vector, several: bool) -> str:
    if not several:
        return f"{'' if what == 'noise' else 'all '}{what} {factor_word(float(factors[0]))}"
    listed = [f"{factor_word(float(factor))} in component {k}" for k, factor in enumerate(factors, start=1)]
    return f"{what} " + ", ".join(listed)


def _percent(weights: Vector) -> str:
    return "/".join(f"{share:.0%}" for share in np.asarray(weights))
