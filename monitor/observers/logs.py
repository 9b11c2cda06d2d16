"""What is written to standard error while the service runs: one line for each thing that somebody may want to know.

Lines hold counts, names and verdicts; never the content of an event, never a secret.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from monitor.service import (
    BatchTaken,
    Committed,
    Happening,
    Interrupted,
    Listening,
    OutcomeKnown,
    Reassigned,
    RecordsRejected,
    StateAdvanced,
    StreamsSpread,
    WindowAssessed,
    WindowPublished,
    WindowRefused,
)
from monitor.state import AlarmState, ChangeState, Known, WindowSeen
from monitor.windows import Gap, WindowKey

_LOG = logging.getLogger("shiftwatch")
OURS = (_LOG, logging.getLogger("monitor"), logging.getLogger("connectors"))
_LIBRARIES = (logging.getLogger("kafka"), logging.getLogger("opentelemetry"))
_LIBRARY_SECONDS = 60.0


def log(happening: Happening) -> None:
    """An observer that logs what happened."""
    if isinstance(happening, WindowAssessed | WindowPublished):
        _log_window(happening)
    elif isinstance(happening, OutcomeKnown):
        outcome = happening.outcome
        _say(
            logging.INFO if outcome.trusted else logging.WARNING,
            "outcome",
            stream=outcome.stream,
            segment=outcome.segment,
            end=outcome.end,
            labelled=outcome.labels.joined,
            missing=outcome.labels.missing,
            **outcome.logged,
        )
    elif isinstance(happening, StateAdvanced) and isinstance(happening.seen, WindowSeen):
        _log_states(happening.seen.window.key, happening.known)
    elif isinstance(happening, BatchTaken) and (happening.rejected or sum(happening.late_after_idle.values())):
        reasons = {f"{stream or '?'}:{reason}": count for (stream, reason), count in happening.rejected.items()}
        late = sum(happening.late_after_idle.values())
        _say(logging.DEBUG, "rejected", partition=happening.partition, late_after_idle=late, **reasons)
    elif isinstance(happening, Committed):
        _say(logging.DEBUG, "committed", partitions=len(happening.checkpoint.progress), seconds=happening.seconds)
    elif isinstance(happening, Reassigned):
        if happening.refused:
            _say(logging.WARNING, "commit refused", reason=happening.refused)
        else:
            _say(logging.INFO, "partitions changed", came=sorted(happening.came), gone=sorted(happening.gone))
    elif isinstance(happening, StreamsSpread):
        _log_spread(happening)
    elif isinstance(happening, WindowRefused):
        key = happening.key
        where = {"stream": key.stream, "start": _time(key.start), "end": _time(key.end)}
        _say(logging.WARNING, "window not published", **where, events=happening.events, reason=Gap.SPREAD.words)
    elif isinstance(happening, Interrupted):
        _say(logging.WARNING, "outage: trying again until it is over", reason=happening.reason)
    elif isinstance(happening, Listening):
        _say(logging.INFO, "listening", address=happening.address)


class Totals:
    """An observer that counts, for one line at the end: where every event came too late, no window tells of it."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(("events", "windows", "late", "rejected"), 0)
        self._reasons: Counter[str] = Counter()
        self._examples: dict[str, str] = {}
        self._verdicts: dict[str, Counter[str]] = {}

    def __call__(self, happening: Happening) -> None:
        """Count a notice of the service for the closing line."""
        if isinstance(happening, WindowAssessed | WindowPublished):
            self._counts["windows"] += 1
            reading = happening.reading
            name = f"{reading.key.stream} {reading.key.segment}".rstrip()
            self._verdicts.setdefault(name, Counter())[str(reading.verdict)] += 1
        if isinstance(happening, BatchTaken):
            self._counts["events"] += sum(happening.events.values())
            self._counts["late"] += sum(happening.late.values()) + sum(happening.late_after_idle.values())
            self._examples = {**happening.examples, **self._examples}
        elif isinstance(happening, WindowPublished):
            self._counts["events"] += happening.events
            self._counts["late"] += happening.late
        if isinstance(happening, BatchTaken | RecordsRejected):
            for (_, reason), count in happening.rejected.items():
                self._counts["rejected"] += count
                self._reasons[reason] += count

    def log(self) -> None:
        """Say how much of everything there was; it is a warning if something came and no event found its window."""
        lost = self._counts["late"] + self._counts["rejected"]
        useless = lost > 0 and self._counts["events"] <= self._counts["late"]
        _say(logging.WARNING if useless else logging.INFO, "ended", **self._counts, **self._reasons)

    def sentences(self) -> list[str]:
        """The same for a person, with what was wrong first, and the verdicts of each stream and segment."""
        rejected = ", ".join(f"{count:,} {reason}" for reason, count in self._reasons.most_common())
        counts = {name: f"{count:,}" for name, count in self._counts.items()}
        return [
            f"{counts['windows']} windows of {counts['events']} events; {counts['late']} late, {counts['rejected']} "
            f"rejected{f' ({rejected})' if rejected else ''}",
            *(f"  first {reason}: {detail}" for reason, detail in sorted(self._examples.items())),
            *(
                f"  {name}: {', '.join(f'{count:,} {verdict}' for verdict, count in verdicts.most_common())}"
                for name, verdicts in sorted(self._verdicts.items())
            ),
        ]


def _log_window(happening: WindowAssessed | WindowPublished) -> None:
    if isinstance(happening, WindowAssessed):
        level = logging.WARNING if happening.assessment.verdict.moved else logging.INFO
        _say(level, "window", **facts_of(happening), seconds=round(happening.seconds, 4))
        return
    reading = happening.reading
    facts = {
        "stream": reading.key.stream,
        "segment": reading.key.segment,
        "start": _time(reading.key.start),
        "end": _time(reading.key.end),
        "events": reading.events,
        "late": reading.late,
        "rejected": reading.rejected,
        "verdict": str(reading.verdict),
        "reason": "; ".join(reading.reasons),
    }
    _say(logging.WARNING if reading.verdict.moved else logging.INFO, "window", **facts)


def _log_states(key: WindowKey, known: Known) -> None:
    alarm, changes = known.state(AlarmState), known.state(ChangeState)
    where = {"stream": key.stream, "segment": key.segment, "end": _time(key.end)}
    if alarm.turned:
        level, message = (logging.WARNING, "alarm") if alarm.alarm else (logging.INFO, "alarm over")
        _say(level, message, **where, moved=f"{alarm.moved} of the last {len(alarm.flags)}")
    if changes.last:
        _say(logging.WARNING, "change", **where, detector=changes.detector, series="; ".join(changes.last))


def _log_spread(spread: StreamsSpread) -> None:
    for stream in sorted(spread.refused):
        _say(
            logging.ERROR,
            f"stream {stream} comes to several members of the group, so that no member has whole windows of it: none "
            f'are published. Key the topic by stream, or set `spread = "parts"` in [streams.{stream}] for windows '
            "of each member's part",
        )
    for stream in sorted(spread.streams - spread.refused):
        _say(logging.WARNING, f"stream {stream} comes to several members of the group: windows are published in parts")
    if not spread.streams:
        _say(logging.INFO, "every stream comes to one member of the group")


@contextmanager
def logging_to_stderr(style: str, level: str) -> Iterator[None]:
    """Log to standard error as text or JSON lines while the block runs."""
    handler, library = logging.StreamHandler(), logging.StreamHandler()
    for each in (handler, library):
        each.setFormatter(_Json() if style == "json" else _TextFormatter())
    library.addFilter(_Sparingly())
    before = {logger: logger.level for logger in OURS}
    for logger in _LIBRARIES:
        logger.addHandler(library)
    for logger in OURS:
        logger.addHandler(handler)
        logger.setLevel(level.upper())
    try:
        yield
    finally:
        for logger in _LIBRARIES:
            logger.removeHandler(library)
        for logger in OURS:
            logger.removeHandler(handler)
            logger.setLevel(before[logger])


def facts_of(seen: WindowSeen) -> dict[str, Any]:
    """What is said of a window, in lines and in traces."""
    window = seen.window
    return {
        "stream": window.key.stream,
        "segment": window.key.segment,
        "start": _time(window.key.start),
        "end": _time(window.key.end),
        "events": window.events,
        "late": window.counts.late,
        "rejected": window.counts.rejected,
        "closed": window.closed_because,
        "verdict": str(seen.assessment.verdict),
        "reason": "; ".join(seen.assessment.reasons),
    }


def _say(level: int, message: str, /, **facts: Any) -> None:
    _LOG.log(level, message, extra={"facts": facts})


def _time(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="seconds")


class _Sparingly(logging.Filter):
    """A client library repeats itself dozens of times a second while a broker is away: one line in a while will do."""

    def __init__(self) -> None:
        super().__init__()
        self._last = float("-inf")
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.created - self._last < _LIBRARY_SECONDS:
            self._left_out += 1
            return False
        record.facts = {"library": record.name, "left_out": self._left_out}
        self._last, self._left_out = record.created, 0
        return True


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = getattr(record, "facts", {})
        head = {
            "time": _time(int(record.created * 1e6)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        return json.dumps({**head, **facts}, ensure_ascii=False)


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = getattr(record, "facts", {})
        text = " ".join(f"{name}={value}" for name, value in facts.items() if value not in ("", 0, [], None))
        return f"{_time(int(record.created * 1e6))} {record.levelname.lower():7} {record.getMessage()} {text}".rstrip()
