"""Dussap et al., section 4.2: which sentences about figure 1 hold in the table of tests.bench.priors_contamination.

The figure is a picture in print, so that sentences are what can be compared.
"""

import numpy as np

from tests.bench.tables import Table, claims

SOFT_RFF, RFF, SOFT_ENERGY, SOFT_BBSE = range(4)


def statements(table: Table) -> str:
    """Sentence by sentence, from the mean errors by kind and share of noise."""
    found: dict[str, list[list[float]]] = {}
    for row in table.rows:
        found.setdefault(row[0], []).append([float(cell.split()[0]) for cell in row[2:6]])
    background, far, middle = (np.array(found[kind]) for kind in ("background", "far", "middle"))
    clean = background[0]
    return claims(
        [
            (
                "Without noise all methods are excellent",
                bool(clean.max() < 0.05),
                f"largest mean error {clean.max():.3f}",
            ),
            (
                "Background noise: all perform well, a loss of about 0.1 in the worst case",
                bool(background.max() < 0.15),
                f"worst {background.max():.3f}",
            ),
            _softly("Background noise: soft RFF is better than the others", background),
            _softly("A class far away: soft RFF is better than the others", far),
            (
                "Soft energy and soft BBSE+ are not robust against a class far away",
                bool(far[-1, SOFT_ENERGY:].min() > 3 * far[-1, SOFT_RFF]),
                f"{far[-1, SOFT_ENERGY]:.3f} and {far[-1, SOFT_BBSE]:.3f} against {far[-1, SOFT_RFF]:.3f}",
            ),
            (
                "A class among the others: soft RFF has no such advantage",
                bool(middle[-1, SOFT_RFF] > middle[-1, RFF:].min() / 2),
                f"{middle[-1, SOFT_RFF]:.3f} against {middle[-1, RFF:].min():.3f}",
            ),
        ]
    )


def _softly(claim: str, errors: np.ndarray) -> tuple[str, bool, str]:
    """At every share of noise above zero."""
    ours, others = errors[1:, SOFT_RFF], errors[1:, RFF:].min(axis=1)
    pairs = [f"{a:.3f} against {b:.3f}" for a, b in zip(ours, others, strict=True)]
    return claim, bool((ours < others).all()), ", ".join(pairs)
