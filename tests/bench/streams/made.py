"""Made-up streams whose blocks differ in a known way: not at all, as a walk, by season, or until a regime changes.

Three classes of Gaussian inputs. Each block of rows has an offset of the inputs and a change of the log mix of its own:

    block b:   logits of the mix = l + MIX w_b,   inputs = centre of the class + INPUTS W_b + noise

with w and W standard normal in size: i.i.d. zero, an autoregression (.9) that ends nowhere, a sine of 24 blocks, or
i.i.d. with a jump of two deviations at 60 % of the stream.
"""

import numpy as np

from monitor.arrays import Matrix
from monitor.ports.schema import Feature
from tests.bench.streams.table import Table

KINDS = ("exchangeable", "random walk", "seasonal", "regime change")
BLOCK = 200
BLOCKS = 150
FEATURES = 6
CLASSES = 3
MIX = 0.5
INPUTS = 0.3
SEASON = 24


def made_up(kind: str, blocks: int = BLOCKS, block: int = BLOCK) -> Table:
    """One stream."""
    rng = np.random.default_rng([19, KINDS.index(kind)])
    centres = 1.2 * rng.normal(size=(CLASSES, FEATURES))
    logits = np.log([0.5, 0.3, 0.2])
    effects = _effects(kind, blocks, rng)
    rows, labels = [], []
    for effect in effects:
        weights = np.exp(logits + MIX * effect[:CLASSES])
        y = rng.choice(CLASSES, size=block, p=weights / weights.sum())
        rows.append(centres[y] + INPUTS * effect[CLASSES:] + rng.normal(size=(block, FEATURES)))
        labels.append(y)
    return Table(
        f"made up: {kind}",
        tuple(Feature(f"x{j}") for j in range(FEATURES)),
        np.concatenate(rows),
        np.concatenate(labels),
        tuple(f"class {y}" for y in range(CLASSES)),
        block=block,
    )


def _effects(kind: str, blocks: int, rng: np.random.Generator) -> Matrix:
    width = CLASSES + FEATURES
    noise = rng.normal(size=(blocks, width))
    if kind == "exchangeable":
        return np.zeros((blocks, width))
    if kind == "random walk":
        walk = noise.copy()
        for b in range(1, blocks):
            walk[b] = 0.9 * walk[b - 1] + np.sqrt(1 - 0.9**2) * noise[b]
        return walk
    if kind == "seasonal":
        phase, swing = rng.uniform(0, 2 * np.pi, width), rng.normal(size=width)
        return np.sqrt(2) * swing * np.sin(2 * np.pi * np.arange(blocks)[:, None] / SEASON + phase)
    jump = 2 * rng.choice([-1.0, 1.0], size=width)
    return noise + np.where(np.arange(blocks)[:, None] >= 0.6 * blocks, jump, 0.0)
