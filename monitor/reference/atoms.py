"""Scores that many events share: said where a reference is shown, as rounding moves all of them at once."""

import numpy as np

from monitor.reference.classifier import Reference
from monitor.shifts import SINGLE, reference_written
from monitor.tolerances import ATOM_SHARE


def largest_atom(reference: Reference) -> float:
    """The share of the hold-out events that have the most common score of a class."""
    shares = [np.unique(column, return_counts=True)[1].max() / column.size for column in reference.raw.T]
    return float(max(shares))


def atoms_sentence(reference: Reference) -> str:
    """What scores have in common, and what a producer may do with them."""
    share, decimals = largest_atom(reference), reference_written(reference).scores.own
    written = "" if decimals >= SINGLE else f" They come with {decimals} decimals."
    if share < ATOM_SHARE:
        return f"Hardly any two events have the same score.{written}"
    return (
        f"Scores have atoms: the most common value holds {share:.0%}.{written} Sent in single precision, or with a few "
        "decimals, they are no shift: both sides are compared at the resolution that they have in common."
    )
