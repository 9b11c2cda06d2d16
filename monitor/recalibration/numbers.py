"""Numbers out of a message: as many as are wanted, and finite."""

from collections.abc import Iterable
from math import isfinite
from typing import Any


def finite(values: Iterable[Any], count: int | None = None) -> tuple[float, ...]:
    """Numbers from a message, so many of them; ValueError if they are not, or not finite."""
    numbers = tuple(values)
    if not all(isinstance(number, int | float) and isfinite(number) for number in numbers):
        raise ValueError(f"want finite numbers, got {list(numbers)}")
    if count is not None and len(numbers) != count:
        raise ValueError(f"want {count} numbers, got {len(numbers)}")
    return numbers


def finite_rows(
    values: Iterable[Any], rows: int | None = None, columns: int | None = None
) -> tuple[tuple[float, ...], ...]:
    """Rows of numbers from a message; of any length each where `columns` is None."""
    table = tuple(finite(row, columns) for row in values)
    if rows is not None and len(table) != rows:
        raise ValueError(f"want {rows} rows, got {len(table)}")
    return table
