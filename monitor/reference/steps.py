"""What the building of a reference says while it is at work."""

from collections.abc import Callable
from itertools import count

BuildProgress = Callable[[str, int, int], None]
"""Told what is being worked out, and how many of how many steps are done."""


def unseen(_what: str, _done: int, _of: int) -> None:
    """Nobody looks on."""


def counted(progress: BuildProgress, of: int) -> Callable[[str], None]:
    """Tells of one step after the other; the last one is the end."""
    number = count()
    return lambda what: progress(what, next(number), of)
