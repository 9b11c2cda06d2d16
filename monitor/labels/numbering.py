"""Class numbers of one reference in those of another: labels outlive the reference under which they came. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from monitor.arrays import Flags, Labels, Vector

if TYPE_CHECKING:  # the store numbers anew what it has, by these functions
    from monitor.labels.values import Found, Stateless

Classes = Sequence[str]


def numbers_in(values: Vector, names: Classes, others: Classes) -> tuple[Vector, Flags]:
    """Numbers among `names` as numbers among `others`, and which of them have one."""
    if not names:  # the labels of a regressor: no class is meant by them
        return np.empty(0), np.zeros(values.size, dtype=np.bool_)
    table = np.array([others.index(name) if name in others else np.nan for name in names])
    numbers = table[values.astype(np.int64)]
    known = ~np.isnan(numbers)
    return numbers[known], known


def order_in(names: Classes, others: Classes) -> Labels | None:
    """The columns of posteriors over `names` in the order of `others`; None where the classes are not the same."""
    return np.array([names.index(name) for name in others]) if set(names) == set(others) else None


def found_in(found: Found, names: Classes, others: Classes) -> Found:
    """Labels by the numbers of `others`. A label of a class that these do not know says nothing."""
    values, known = numbers_in(found.values, names, others)
    return replace(found, rows=found.rows[known], values=values, times=found.times[known], marks=found.marks[known])


def stateless_in(copies: Stateless, names: Classes, others: Classes) -> Stateless:
    """Labelled copies by the numbers of `others`; none where their posteriors are over other classes."""
    order = order_in(names, others)
    if order is None:
        return replace(copies, ids=[], values=np.empty(0), answers=np.empty((0, 0)))
    values, _ = numbers_in(copies.values, names, others)
    return replace(copies, values=values, answers=copies.answers[:, order] if values.size else copies.answers)
