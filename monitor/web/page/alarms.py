"""The open alarms of a stream and its segments, in words: on the page of all streams, and on its own."""

from collections.abc import Mapping
from typing import NamedTuple

from monitor.observers import Track
from monitor.pages import number


class AlarmInWords(NamedTuple):
    """One of them; the one that began first comes first."""

    since: int
    segment: str
    """Empty for the whole stream."""
    words: str
    windows: int


def open_alarms_in_words(tracks: Mapping[str, Track]) -> list[AlarmInWords]:
    """Those of a stream, by segment."""
    return sorted(
        AlarmInWords(alarm.since, segment, _words(track, series, alarm.size), alarm.windows)
        for segment, track in tracks.items()
        for series, alarm in track.open_alarms.items()
    )


def _words(track: Track, series: str, size: float) -> str:
    if series in track.data_faults:
        return f"more {series} than there used to be"
    return f"{series}, by {number(size)} standard errors a window"
