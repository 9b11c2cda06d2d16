"""What is written to standard error while the service runs: one line for each thing that somebody may want to know.

Lines hold counts, names and verdicts; never the content of an event, never a secret.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from monitor.happenings import BatchTaken, Committed, Happening, Reassigned, WindowAssessed

_LOG = logging.getLogger("shiftwatch")


def log(happening: Happening) -> None:
    """An observer that logs what happened."""
    if isinstance(happening, WindowAssessed):
        assessment, window = happening.assessment, happening.window
        level = logging.INFO if assessment.verdict in ("stable", "insufficient-data") else logging.WARNING
        _say(
            level,
            "window",
            stream=window.key.stream,
            segment=window.key.segment,
            start=_time(window.key.start),
            end=_time(window.key.end),
            events=window.events,
            late=window.counts.late,
            rejected=window.counts.rejected,
            closed=window.closed_because,
            verdict=str(assessment.verdict),
            reason="; ".join(assessment.reasons),
            seconds=round(happening.seconds, 4),
        )
    elif isinstance(happening, BatchTaken) and (happening.rejected or sum(happening.late_after_idle.values())):
        reasons = {f"{stream or '?'}:{reason}": count for (stream, reason), count in happening.rejected.items()}
        late = sum(happening.late_after_idle.values())
        _say(logging.DEBUG, "rejected", partition=happening.partition, late_after_idle=late, **reasons)
    elif isinstance(happening, Committed):
        _say(logging.DEBUG, "committed", partitions=len(happening.checkpoint.progress), seconds=happening.seconds)
    elif isinstance(happening, Reassigned):
        level = logging.WARNING if happening.refused else logging.INFO
        came, gone = sorted(happening.came), sorted(happening.gone)
        _say(level, "commit refused" if happening.refused else "partitions changed", came=came, gone=gone)


@contextmanager
def logging_to_stderr(style: str, level: str) -> Iterator[None]:
    """Log to standard error as text or JSON lines while the block runs."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if style == "json" else _Text())
    before = _LOG.level
    _LOG.addHandler(handler)
    _LOG.setLevel(level.upper())
    try:
        yield
    finally:
        _LOG.removeHandler(handler)
        _LOG.setLevel(before)


def _say(level: int, message: str, /, **facts: Any) -> None:
    _LOG.log(level, message, extra={"facts": facts})


def _time(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="seconds")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = getattr(record, "facts", {})
        head = {
            "time": _time(int(record.created * 1e6)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        return json.dumps({**head, **facts}, ensure_ascii=False)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = getattr(record, "facts", {})
        told = " ".join(f"{name}={value}" for name, value in facts.items() if value not in ("", 0, [], None))
        return f"{_time(int(record.created * 1e6))} {record.levelname.lower():7} {record.getMessage()} {told}".rstrip()
