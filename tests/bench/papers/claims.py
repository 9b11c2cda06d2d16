"""A claim of a paper, beside what is found here; a study of a paper; and the one page of all claims."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.papers.cells import Cells
from tests.bench.tables import markdown, tables

COLUMNS = ("claim", "printed", "ours", "holds", "why not")


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of the page."""

    says: str
    printed: str
    ours: str
    holds: bool
    why: str = ""
    """Where it does not hold: the experiment that says why, with its figures."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a study is run with."""

    cells: Cells
    quick: bool
    data: Path | None
    """A folder of UCI tables."""
    pictures: Path
    """Where pictures go."""


@dataclass(frozen=True, slots=True)
class Study:
    """What a paper's study gives: its claims, and the tables behind them."""

    claims: Sequence[Claim]
    body: str


def table(claims: Iterable[Claim]) -> str:
    """The claims as Markdown; why is said of those that fail."""
    rows = [(c.says, c.printed, c.ours, "yes" if c.holds else "no", "" if c.holds else c.why) for c in claims]
    return markdown(COLUMNS, rows)


def claimed(page: str) -> list[tuple[str, ...]]:
    """The lines of a page's table of claims."""
    return [row for found in tables(page) if found.columns == COLUMNS for row in found.rows]
