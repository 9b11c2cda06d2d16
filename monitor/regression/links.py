"""The links between a reference mixture and the population of now: Bouveyron & Jacques (2014), section 2.1.

beta*_k = diag(lambda_k0, ..., lambda_kp) beta_k. A link says which lambdas exist, which are equal, and what happens
to sigma_k. Twelve links, each with the reference's proportions ("M3c") or with free ones ("pM3c"): 24 models.

Two more are ours, as M2 ties the noise to the slopes, so that noise which grew by itself passes for steeper slopes: in
"M1n" only the sigmas change, in "M2n" one factor multiplies all slopes. Their sigmas are free, as those of M4 are.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from monitor.regression.mixture import Mixture
from monitor.tolerances import ZERO_COEFFICIENT

Shape = Literal["same", "noise", "slopes", "intercepts", "all", "both", "slopes+noise", "inputs", "inputs+", "free"]


@dataclass(frozen=True, slots=True)
class Link:
    """One row of the family."""

    name: str
    shape: Shape
    """What is multiplied: a = slopes, b = intercepts, c = all by one factor, d = both by their own."""
    per_component: bool
    """True: every component has its own factors (M3); False: one set for all (M2, M4)."""
    nested: tuple[str, ...]
    """The links that are special cases of this one, next below only."""

    def parameters(self, reference: Mixture) -> int:
        """How many parameters the labels determine (Table 1; a factor of a zero coefficient is not one)."""
        components, inputs = reference.components, reference.inputs
        zero = zero_coefficients(reference)
        intercepts = int(np.sum(~zero[:, 0])) if self.per_component else int(np.any(~zero[:, 0]))
        scales = components if self.per_component else 1
        columns = int(np.sum(np.any(~zero[:, 1:], axis=0)))
        return {
            "same": 0,
            "noise": components,
            "slopes": scales,
            "intercepts": intercepts,
            "all": scales,
            "both": scales + intercepts,
            "slopes+noise": int(columns > 0) + components,
            "inputs": columns + components,
            "inputs+": columns + int(np.any(~zero[:, 0])) + components,
            "free": components * (inputs + 2),
        }[self.shape]

    def identified(self, reference: Mixture) -> bool:
        """False when zero intercepts leave nothing that this link could change beyond a smaller one."""
        if self.shape in ("intercepts", "both"):
            return bool(np.any(~zero_coefficients(reference)[:, 0]))
        return True


_FAMILY = (
    Link("M1", "same", False, ()),
    Link("M1n", "noise", False, ("M1",)),
    Link("M2a", "slopes", False, ("M1",)),
    Link("M2b", "intercepts", False, ("M1",)),
    Link("M2c", "all", False, ("M1",)),
    Link("M2d", "both", False, ("M2a", "M2b", "M2c")),
    Link("M2n", "slopes+noise", False, ("M1n", "M2a")),
    Link("M3a", "slopes", True, ("M2a",)),
    Link("M3b", "intercepts", True, ("M2b",)),
    Link("M3c", "all", True, ("M2c",)),
    Link("M3d", "both", True, ("M2d", "M3a", "M3b", "M3c")),
    Link("M4a", "inputs", False, ("M2n",)),
    Link("M4b", "inputs+", False, ("M2d", "M4a")),
    Link("M5", "free", True, ("M3d", "M4b")),
)

LINKS: dict[str, Link] = {link.name: link for link in _FAMILY}
"""In order of complexity: a link comes after every link that is nested in it."""


@dataclass(frozen=True, slots=True)
class Model:
    """A link with fixed or free proportions."""

    link: Link
    free_proportions: bool

    @property
    def name(self) -> str:
        """The paper's name: a leading p where the proportions are estimated."""
        return ("p" if self.free_proportions else "") + self.link.name

    @property
    def nested(self) -> tuple[str, ...]:
        """The names of the models that are special cases, next below only."""
        if not self.free_proportions:
            return self.link.nested
        return (self.link.name, *("p" + name for name in self.link.nested))

    def parameters(self, reference: Mixture) -> int:
        """Table 1, plus K - 1 for free proportions."""
        return self.link.parameters(reference) + (reference.components - 1) * self.free_proportions


MODELS: dict[str, Model] = {
    model.name: model for free in (False, True) for model in (Model(link, free) for link in _FAMILY)
}


def zero_coefficients(reference: Mixture) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Which coefficients of the reference are zero, so that no factor of theirs can be seen, (K, p + 1)."""
    scale = max(float(np.max(np.abs(reference.coefficients))), float(reference.sigmas.max()))
    return np.asarray(np.abs(reference.coefficients) <= ZERO_COEFFICIENT * scale)
