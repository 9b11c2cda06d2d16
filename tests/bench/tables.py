"""Markdown tables: written, read back, and joined over repeated runs. What a bench prints is its interface."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Table:
    """A table and the heading that it stands under."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def markdown(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; it ends with a new line."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in lines)


def claims(stated: Iterable[tuple[str, bool, str]]) -> str:
    """What a paper says, whether it holds here, and the figures that decide it."""
    rows = [(claim, "yes" if holds else "no", figures) for claim, holds, figures in stated]
    return markdown(["claim", "holds", "figures"], rows)


def tables(text: str) -> list[Table]:
    """All tables of a Markdown text."""
    found: list[Table] = []
    title = ""
    block: list[tuple[str, ...]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            block.append(tuple(cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")))
            continue
        if len(block) > 1:
            found.append(Table(title, block[0], tuple(block[2:])))
        block = []
        if line.startswith("#"):
            title = line.lstrip("# ").strip()
    return found


def joined(repeats: Sequence[Sequence[Table]]) -> list[Table]:
    """The tables of the first run, with the median and the range over all runs wherever a number differs."""
    first = repeats[0]
    if any([one.columns for one in run] != [one.columns for one in first] for run in repeats):
        raise ValueError("two runs of the same bench gave different tables")
    return [
        Table(one.title, one.columns, tuple(_rows([run[place].rows for run in repeats])))
        for place, one in enumerate(first)
    ]


def _rows(repeats: Sequence[Sequence[Sequence[str]]]) -> Iterable[tuple[str, ...]]:
    for rows in zip(*repeats, strict=True):
        yield tuple(_cell(cells) for cells in zip(*rows, strict=True))


def _cell(cells: Sequence[str]) -> str:
    """Runs may differ in numbers only; where they differ in words (or in how many numbers) all are shown."""
    found = [_NUMBER.findall(cell) for cell in cells]
    if len({_NUMBER.sub("", cell) for cell in cells}) > 1 or len({len(numbers) for numbers in found}) > 1:
        return " / ".join(dict.fromkeys(cells))
    merged = iter([_merged(numbers) for numbers in zip(*found, strict=True)])
    return _NUMBER.sub(lambda _: next(merged), cells[0])


def _merged(numbers: Sequence[str]) -> str:
    """The median in its own spelling, with the range in brackets if there is one."""
    ordered = sorted(numbers, key=value)
    middle = ordered[len(ordered) // 2]
    return middle if ordered[0] == ordered[-1] else f"{middle} [{ordered[0]}, {ordered[-1]}]"


def value(cell: str) -> float | str:
    """A cell as a number if it is one, with its thousands separated by commas or not."""
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return cell


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of the straight line through the points on two logarithmic axes: cost ~ size ** slope."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
