"""Dussap, Blanchard and Cherief-Abdellatif (2023), "Label shift quantification with robustness guarantees via
distribution feature matching".

Figure 1 as in print: five Gaussian classes, 10,000 events and noise on top, dimensions 2 to 10, 20 mixtures each.
Figure 2 is drawn on cytometry samples that cannot be had: its design, a class that the source lacks, is run on 10,992
digits written with a pen (16 columns, KEEL) and on scikit-learn's 1,797 scanned ones (64 columns). The figures are
pictures, so that their sentences are what can be compared. Of Theorems 1 and 2 and Corollary 1 it is checked that they
hold in simulation, and by how much.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.datasets import load_digits

from monitor.priors import counting, intervals, maps, matching, simplex
from tests.bench.papers import dussap_runs
from tests.bench.papers.claims import Claim, Given, Study
from tests.bench.papers.data import DataSet, keel
from tests.bench.papers.dussap_runs import KINDS, METHODS, ORACLES, SHARES
from tests.bench.tables import markdown
from tests.priors import papers as worlds

DIMENSIONS, REPETITIONS, DIGIT_SPLITS, BOUNDS = range(2, 11), 20, 20, 20
CODE = (dussap_runs, counting, intervals, maps, matching, simplex, worlds)


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured."""

    noise: np.ndarray
    """(mixtures, kinds, shares, methods and oracles)."""
    digits: dict[str, np.ndarray]
    """(splits, the missing digit with none first, methods and its share), by data set."""
    bounds: np.ndarray
    """(mixtures, map and bound): errors over bounds."""


def measured(given: Given) -> Found:
    """All three studies."""
    dimensions, repetitions = (range(2, 4), 1) if given.quick else (DIMENSIONS, REPETITIONS)
    events = 1_000 if given.quick else dussap_runs.EVENTS
    noise = [
        given.cells.get(f"dussap noise {d} {r} {events}", CODE, partial(dussap_runs.contaminated, d, r, events))
        for r in range(repetitions)
        for d in dimensions
    ]
    digits = {
        name: np.array(
            [
                given.cells.get(f"dussap {name} {gone} {seed}", CODE, partial(dussap_runs.left_out, x, y, gone, seed))
                for seed in range(1 if given.quick else DIGIT_SPLITS)
                for gone in range(-1, 10)
            ]
        ).reshape(-1, 11, len(METHODS) + 1)
        for name, x, y in _digits(given.quick)
    }
    bounds = [
        given.cells.get(f"dussap bounds {seed}", CODE, partial(dussap_runs.bounded, seed))
        for seed in range(2 if given.quick else BOUNDS)
    ]
    return Found(
        np.array(noise).reshape(len(noise), len(KINDS), len(SHARES), -1),
        digits,
        np.array(bounds).reshape(-1, 2, 3),
    )


def _digits(quick: bool) -> Iterator[DataSet]:
    yield "scanned digits", *load_digits(return_X_y=True)
    if not quick:
        yield from (one for one in keel() if one[0] == "penbased")


def study(given: Given) -> Study:
    """The claims of sections 3 and 4.2, and the figures as tables."""
    found = measured(given)
    return Study(_claims(found), _body(found))


def _claims(found: Found) -> list[Claim]:
    mean = found.noise[..., : len(METHODS)].mean(axis=0)
    soft_rff, rff, soft_energy, soft_bbse = (
        METHODS.index(name) for name in ("soft RFF", "RFF", "soft energy", "soft BBSE+")
    )
    paper = [soft_rff, rff, soft_energy, soft_bbse]
    others = [rff, soft_energy, soft_bbse]
    background, far, middle = mean
    oracle = dict(zip(ORACLES, found.noise[:, :, 1:, len(METHODS) :].mean(axis=(0, 2)).T, strict=True))
    holding = (found.bounds <= 1).mean(axis=(0, 1))
    looseness = 1 / np.median(found.bounds, axis=(0, 1))

    def best(errors: np.ndarray) -> str:
        return ", ".join(f"{row[soft_rff]:.3f} against {row[others].min():.3f}" for row in errors[1:])

    return [
        Claim(
            "Without noise all methods give excellent results",
            "figure 1",
            f"largest mean error {background[0].max():.3f}",
            bool(background[0].max() < 0.05),
        ),
        Claim(
            "Background noise: all perform well, the loss is around .1 in the worst case",
            "about .1",
            f"worst {background[:, paper].max():.3f} (of the soft ones but RFF: "
            f"{background[:, [soft_energy, soft_bbse]].max():.3f})",
            bool(background[:, paper].max() < 0.15),
        ),
        Claim(
            "Background noise: soft RFF is better than the others",
            "figure 1",
            best(background),
            bool((background[1:, soft_rff] < background[1:, others].min(axis=1)).all()),
        ),
        Claim(
            "A class far away: soft RFF outperforms the others",
            "figure 1",
            best(far),
            bool((far[1:, soft_rff] < far[1:, others].min(axis=1)).all()),
        ),
        Claim(
            "... as the noise's image is nearly orthogonal to the classes' under RFF, and not under BBSE+",
            "section 3.2",
            f"B-parallel of the far class: RFF {oracle['B-parallel RFF'][1]:.3f}, BBSE+ "
            f"{oracle['B-parallel BBSE+'][1]:.3f}",
            bool(oracle["B-parallel RFF"][1] < 0.2 * oracle["B-parallel BBSE+"][1]),
        ),
        Claim(
            "Soft energy and soft BBSE+ are not robust against a class far away",
            "figure 1",
            f"{far[-1, soft_energy]:.3f} and {far[-1, soft_bbse]:.3f} against {far[-1, soft_rff]:.3f}",
            bool(far[-1, [soft_energy, soft_bbse]].min() > 3 * far[-1, soft_rff]),
        ),
        Claim(
            "A class among the others: soft RFF has no such advantage",
            "figure 1",
            f"{middle[-1, soft_rff]:.3f} against {middle[-1, others].min():.3f}; B-parallel RFF "
            f"{oracle['B-parallel RFF'][2]:.3f}",
            bool(middle[-1, soft_rff] > middle[-1, others].min() / 2),
        ),
        Claim(
            "The soft form does not hurt where there is no noise",
            "section 4",
            f"RFF {background[0, soft_rff]:.4f} and {background[0, rff]:.4f}",
            bool(background[0, soft_rff] < 1.1 * background[0, rff]),
        ),
        *(_figure_2(name, tables.mean(axis=0), paper) for name, tables in found.digits.items()),
        Claim(
            "Theorem 1 holds with 95 %",
            "at least 95 %",
            f"{holding[0]:.0%}; in the median {looseness[0]:.0f} times the error",
            bool(holding[0] >= 0.95),
        ),
        Claim(
            "Corollary 1 holds with 95 %",
            "at least 95 %",
            f"{holding[1]:.0%}; in the median {looseness[1]:.0f} times the error",
            bool(holding[1] >= 0.95),
        ),
        Claim(
            "Theorem 2 holds with 95 %",
            "at least 95 %",
            f"{holding[2]:.0%}; in the median {looseness[2]:.0f} times the error",
            bool(holding[2] >= 0.95),
        ),
    ]


def _figure_2(name: str, mean: np.ndarray, methods: list[int]) -> Claim:
    """With a class missing soft RFF is best; where it is not, what the methods cost without one says why."""
    none, gone = mean[0], mean[1:].mean(axis=0)
    errors = ", ".join(f"{METHODS[i]} {gone[i]:.3f}" for i in methods)
    grown = ", ".join(f"{METHODS[i]} {none[i]:.3f} (+ {gone[i] - none[i]:.3f})" for i in methods)
    return Claim(
        f"Figure 2, a class missing from the source: soft RFF is the most robust ({name})",
        "figure 2, cytometry",
        errors,
        bool(gone[methods].argmin() == 0),
        f"the errors without a missing class, and what it adds: {grown}",
    )


def _body(found: Found) -> str:
    rows = [
        [
            kind,
            f"{share:.1f}",
            *(f"{np.mean(e):.4f} ({np.median(e):.4f})" for e in cell[: len(METHODS)]),
            *(f"{np.mean(b):.3f}" for b in cell[len(METHODS) :]),
        ]
        for k, kind in enumerate(KINDS)
        for s, share in enumerate(SHARES)
        for cell in [found.noise[:, k, s].T]
    ]
    parts = []
    for name, tables in found.digits.items():
        mean = tables.mean(axis=0)
        cells = [
            ["none" if k == 0 else k - 1, f"{r[-1]:.3f}", *(f"{e:.4f}" for e in r[:-1])] for k, r in enumerate(mean)
        ]
        parts.append(f"## Figure 2's design: {name}, mean of {len(tables)} splits\n")
        parts.append(markdown(["missing digit", "its share", *METHODS], cells))
    return "\n".join(
        [
            f"## Figure 1: distance from the true shares, mean (median) of {len(found.noise)} mixtures\n",
            "B-perp and B-parallel as the noise's population gives them (Theorem 2 with the dummy class).\n",
            markdown(["noise", "share", *METHODS, *ORACLES], rows),
            *parts,
        ]
    )
