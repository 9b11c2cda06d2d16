"""An assessment for whoever looks at it in a notebook: as a page, as a table, as a picture, in a line.

All of it is made from the message, as a report of many windows is.
"""

from abc import ABC, abstractmethod
from typing import Any

from monitor.assessment.verdict import facts_by_name
from monitor.pages.messages import WindowRead, read
from monitor.pages.notebooks import frame, picture
from monitor.pages.report import PeriodReport, of_window


class Viewed(ABC):
    """What the assessments of every kind of stream can be shown as."""

    __slots__ = ()

    @abstractmethod
    def to_json(self) -> bytes:
        """The message of contract 2."""

    def report(self) -> PeriodReport:
        """The window as a page: `.html()`, `.markdown()`, or as it is in a notebook."""
        return of_window(self._read(), facts_by_name())

    def to_frame(self) -> Any:
        """Every feature as a row of a pandas data frame: whether and how it moved, by how much, and what is missing."""
        return frame(self._read())

    def plot(self) -> Any:
        """The distributions of scores and features as a Matplotlib figure."""
        return picture(self._read())

    def _repr_html_(self) -> str:
        return self.report().in_frame()

    def __repr__(self) -> str:
        said = self._read()
        because = f": {said.reasons[0]}" if said.reasons else ""
        return f"<{type(self).__name__}, {said.verdict}, {said.events.used:,} events{because}>"

    def _read(self) -> WindowRead:
        message = read(self.to_json())
        assert isinstance(message, WindowRead)  # noqa: S101 - what `to_json` writes
        return message
