"""Which label holds for which row of a window, and what became of the rest. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.arrays import Flags, Labels, Vector
from monitor.labels.values import Found, Stateless
from monitor.ports import NEVER


@dataclass(frozen=True, slots=True, eq=False)
class LabelledRows:
    """A window's rows and what they really were."""

    values: Vector
    """By row: the label that holds, NaN where none came."""
    duplicate: int
    """Labels that said again what was known."""
    contradicting: int
    """Labels that said otherwise than the one before; the last one holds."""
    early: int
    """Labels that were known before their event, by their own time."""

    @property
    def labelled(self) -> Flags:
        """The rows whose truth is known."""
        return ~np.isnan(self.values)


def joined(known: Vector, times: Labels, found: Found) -> LabelledRows:
    """Labels for rows: `known` came with the events themselves (NaN where not), `found` afterwards."""
    values = known.copy()
    rows, first = np.unique(found.rows, return_index=True)
    last = np.append(first, found.rows.size)[1:] - 1
    before = np.empty(found.rows.size)
    before[1:] = found.values[:-1]
    before[first] = known[rows]
    again = ~np.isnan(before)
    values[rows] = found.values[last]
    early = (found.times > NEVER) & (found.times < times[found.rows])
    return LabelledRows(
        values=values,
        duplicate=int(np.count_nonzero(again & (found.values == before))),
        contradicting=int(np.count_nonzero(again & (found.values != before))),
        early=int(np.count_nonzero(early)),
    )


def among(found: Found, rows: Labels) -> Found:
    """The labels of these rows, which are numbered anew."""
    inside = np.isin(found.rows, rows)
    return Found(
        np.searchsorted(rows, found.rows[inside]), found.values[inside], found.times[inside], found.marks[inside]
    )


def strangers(copies: Stateless, members: Sequence[str | None] | None) -> Stateless:
    """The labelled copies of events that the window does not hold; each event once."""
    seen = {name for name in members or () if name is not None}
    fresh = np.ones(len(copies.ids), dtype=np.bool_)
    for row, name in enumerate(copies.ids):
        if name is not None:
            fresh[row] = name not in seen
            seen.add(name)
    ids = [name for name, new in zip(copies.ids, fresh.tolist(), strict=True) if new]
    return Stateless(ids, copies.values[fresh], copies.answers[fresh])
