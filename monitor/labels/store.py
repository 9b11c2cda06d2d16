"""The store on disk: closed windows that wait for labels, and the labels that came. Nothing here interprets either.

A killed process reads records again, so everything is keyed by where it came from and written as often as need be:
a label by its record, a window by its id. The labels that a crash left behind are those that the next run writes again,
and have an effect only where an uninterrupted run would have it too (`joined` says as of when a label was used). The
windows that it left behind are taken back: their outcomes would be published before they are.

SQLite in WAL mode, one transaction from one commit of the service to the next. It is made durable before the sink
commits: the store may be ahead of the sink, never behind.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from monitor.arrays import Labels
from monitor.errors import ConnectorError
from monitor.labels.numbering import numbers_in, order_in
from monitor.labels.values import Arrived, Found, Stateless, Waiting
from monitor.ports import NEVER

_SCHEMA = """
CREATE TABLE IF NOT EXISTS windows (
    stream TEXT NOT NULL, window TEXT NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL,
    closes INTEGER NOT NULL, deadline INTEGER NOT NULL, events INTEGER NOT NULL, told BLOB NOT NULL, rows BLOB,
    UNIQUE (stream, deadline, window)
);
CREATE TABLE IF NOT EXISTS labels (
    stream TEXT NOT NULL, source TEXT NOT NULL, "offset" INTEGER NOT NULL, copy INTEGER NOT NULL,
    place INTEGER NOT NULL, id TEXT, mark INTEGER NOT NULL, time INTEGER NOT NULL, value REAL NOT NULL,
    at INTEGER, answers BLOB, joined INTEGER,
    PRIMARY KEY (stream, source, "offset", copy, place)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS labels_by_id ON labels (stream, id);
CREATE INDEX IF NOT EXISTS labels_by_mark ON labels (stream, mark);
CREATE INDEX IF NOT EXISTS labels_by_event_time ON labels (stream, at) WHERE at IS NOT NULL;
CREATE TABLE IF NOT EXISTS outcomes (
    stream TEXT NOT NULL, deadline INTEGER NOT NULL, window TEXT NOT NULL, told BLOB NOT NULL,
    PRIMARY KEY (stream, deadline, window)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS noted (
    token TEXT NOT NULL, stream TEXT NOT NULL, deadline INTEGER NOT NULL, window TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS kept (
    token TEXT NOT NULL, stream TEXT NOT NULL, deadline INTEGER NOT NULL, window TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS numbering (stream TEXT PRIMARY KEY, classes TEXT NOT NULL) WITHOUT ROWID;
CREATE TEMP TABLE wanted (row INTEGER PRIMARY KEY, id TEXT NOT NULL);
"""

FORMAT = 1

# A limit on the size of files shows as the second.
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
_NO_ROOM = (
    "the disk is full, or the file may not grow. Make room there, or let less wait in `labels` (`wait`, `max_events`), "
    "and start again: nothing is lost, what was not committed is read again"
)

# An id is joined through the temporary table, in memory: one statement for all rows of a window. Without statistics
# SQLite would walk through all labels in the order of their marks instead, so each statement names its index.
_JOIN = """
SELECT wanted.row, labels.value, labels.time, labels.mark FROM wanted
CROSS JOIN labels INDEXED BY labels_by_id ON labels.stream = :stream AND labels.id = wanted.id AND labels.mark < :before
ORDER BY wanted.row, CASE WHEN labels.time > :never THEN labels.time ELSE labels.mark END,
    labels.source, labels."offset", labels.copy, labels.place
"""
_FLAG = """
UPDATE labels INDEXED BY labels_by_id SET joined = min(coalesce(joined, :deadline), :deadline)
WHERE stream = :stream AND mark < :deadline AND id IN (SELECT id FROM wanted)
"""
_STATELESS = """
SELECT id, value, answers FROM labels INDEXED BY labels_by_event_time
WHERE stream = :stream AND at >= :start AND at < :end AND mark < :before
ORDER BY at, id, source, "offset", place
"""
_FLAG_STATELESS = """
UPDATE labels INDEXED BY labels_by_event_time SET joined = min(coalesce(joined, :deadline), :deadline)
WHERE stream = :stream AND mark < :deadline AND at >= :start AND at < :end
"""
_UNKNOWN = """
SELECT count(*) FROM labels INDEXED BY labels_by_mark
WHERE stream = :stream AND mark >= :start AND mark < :end AND (joined IS NULL OR joined > :deadline)
"""
_EVICT = """
UPDATE windows SET rows = NULL WHERE rowid IN (
    SELECT rowid FROM (
        SELECT rowid, sum(events) OVER (ORDER BY deadline DESC, window DESC) AS together FROM windows
        WHERE stream = :stream AND deadline > :closes AND (deadline, window) <= (:deadline, :window)
          AND rows IS NOT NULL
    ) WHERE together > :most
)
"""


class LabelStore:
    """One file; several streams may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._trouble():
            self._db = sqlite3.connect(path, isolation_level=None, timeout=1.0)
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            # The sink's commit is durable when it returns: what it builds on has to be as well.
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA temp_store = MEMORY")
            self._db.executescript(_SCHEMA)
            self._check_format()
            self._db.execute("BEGIN IMMEDIATE")

    def number_by(self, stream: str, classes: Sequence[str]) -> None:
        """From now on class numbers stand for these: labels that came under another reference are brought in line."""
        with self._trouble():
            row = self._db.execute("SELECT classes FROM numbering WHERE stream = ?", (stream,)).fetchone()
            self._db.execute("INSERT OR REPLACE INTO numbering VALUES (?, ?)", (stream, json.dumps(classes)))
            before = classes if row is None else json.loads(row[0])
            if list(before) == list(classes):
                return
            numbers, known = numbers_in(np.arange(float(len(before))), before, classes)
            number = dict(zip(np.flatnonzero(known).tolist(), numbers.tolist(), strict=True))
            order = order_in(before, classes)
            self._db.create_function("number_now", 1, number.get)
            self._db.create_function(
                "answers_now",
                1,
                lambda data: None if data is None or order is None else np.frombuffer(data)[order].tobytes(),
            )
            self._db.execute("DELETE FROM labels WHERE stream = ? AND number_now(value) IS NULL", (stream,))
            # What the model says over other classes is no answer of the one whose windows wait: the label stays.
            self._db.execute(
                "UPDATE labels SET value = number_now(value), answers = answers_now(answers), "
                "at = CASE WHEN answers_now(answers) IS NULL THEN NULL ELSE at END WHERE stream = ?",
                (stream,),
            )

    def arrived(self, stream: str, source: str, labels: Arrived) -> int:
        """Keep labels; says how many were not known before."""
        places = _places(labels.offsets)
        copy = labels.at is not None
        at = [None] * places.size if labels.at is None else labels.at.tolist()
        answers = [None] * places.size if labels.answers is None else [row.tobytes() for row in labels.answers]
        columns = (labels.offsets, places, labels.marks, labels.times, labels.values)
        rows = zip(*(column.tolist() for column in columns), labels.ids, at, answers, strict=True)
        with self._trouble():
            cursor = self._db.executemany(
                "INSERT OR IGNORE INTO labels "
                '(stream, source, "offset", copy, place, id, mark, time, value, at, answers) '
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (stream, source, offset, copy, position, name, mark, time, value, when, answer)
                    for offset, position, mark, time, value, name, when, answer in rows
                ),
            )
            return max(cursor.rowcount, 0)

    def keep(self, one: Waiting, most: int) -> int:
        """Keep a closed window; beyond `most` events waiting at its close, the oldest windows' rows go.

        Says how many windows lost their rows. Which ones depends on the windows alone, not on when outcomes were
        published or on what a killed run had kept.
        """
        values = (one.stream, one.window, one.start, one.end, one.closes, one.deadline, one.events, one.told, one.rows)
        bounds = {"stream": one.stream, "window": one.window, "closes": one.closes, "deadline": one.deadline}
        with self._trouble():
            self._db.execute("INSERT OR REPLACE INTO windows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            return self._db.execute(_EVICT, {**bounds, "most": most}).rowcount

    def due(self, stream: str, mark: int | None) -> list[tuple[int, str]]:
        """(deadline, window id) of the stream's windows whose outcome is due; of all for None."""
        with self._trouble():
            return self._db.execute(
                "SELECT deadline, window FROM windows WHERE stream = ? AND (? IS NULL OR deadline <= ?) ORDER BY 1, 2",
                (stream, mark, mark),
            ).fetchall()

    def waiting(self, stream: str, deadline: int, window: str) -> Waiting:
        """One window that waits."""
        with self._trouble():
            row = self._db.execute(
                'SELECT stream, window, start, "end", closes, deadline, events, told, rows FROM windows '
                "WHERE stream = ? AND deadline = ? AND window = ?",
                (stream, deadline, window),
            ).fetchone()
        return Waiting(*row)

    def unsettled(self, stream: str, after: tuple[int, str], until: tuple[int, str]) -> list[tuple[int, str]]:
        """(deadline, window id) of the stream's windows by their end and id: those after one, up to another."""
        with self._trouble():
            return self._db.execute(
                'SELECT deadline, window FROM windows WHERE stream = ? AND ("end", window) > (?, ?) '
                'AND ("end", window) <= (?, ?) ORDER BY "end", window',
                (stream, *after, *until),
            ).fetchall()

    def labels_of(self, one: Waiting, ids: Iterable[str | None]) -> Found:
        """The labels in time for a window's rows; from now on they count as used at its deadline."""
        joined = self.labels_before(one, ids, one.deadline)
        with self._trouble():
            self._db.execute(_FLAG, {"stream": one.stream, "deadline": one.deadline})
        return joined

    def labels_before(self, one: Waiting, ids: Iterable[str | None], before: int) -> Found:
        """The labels of a window's rows that had come before some event time."""
        with self._trouble():
            self._db.execute("DELETE FROM wanted")
            wanted = ((row, name) for row, name in enumerate(ids) if name is not None)
            self._db.executemany("INSERT INTO wanted VALUES (?, ?)", wanted)
            joined = self._db.execute(_JOIN, {"stream": one.stream, "before": before, "never": NEVER}).fetchall()
        rows, values, times, marks = zip(*joined, strict=True) if joined else ((), (), (), ())
        return Found(
            np.array(rows, dtype=np.int64),
            np.array(values, dtype=np.float64),
            np.array(times, dtype=np.int64),
            np.array(marks, dtype=np.int64),
        )

    def copies_in(self, one: Waiting) -> Stateless:
        """The labelled copies in time with an event time in the window; used as of its deadline."""
        span = {"stream": one.stream, "start": one.start, "end": one.end}
        with self._trouble():
            copies = self._db.execute(_STATELESS, {**span, "before": one.deadline}).fetchall()
            self._db.execute(_FLAG_STATELESS, {**span, "deadline": one.deadline})
        answers = [np.frombuffer(row[2], dtype=np.float64) for row in copies]
        return Stateless(
            [row[0] for row in copies],
            np.array([row[1] for row in copies], dtype=np.float64),
            np.array(answers) if answers else np.empty((0, 0)),
        )

    def unknown(self, one: Waiting) -> int:
        """Labels that came while the window ran and that no window has used up to its deadline."""
        bounds = {"stream": one.stream, "start": one.start, "end": one.end, "deadline": one.deadline}
        with self._trouble():
            return int(self._db.execute(_UNKNOWN, bounds).fetchone()[0])

    def settled(self, windows: Iterable[tuple[str, int, str]]) -> None:
        """Outcomes, by stream, deadline and window, are out for good: let go of the windows."""
        out = sorted(windows)
        with self._trouble():
            self._db.execute("DELETE FROM noted")
            self._db.executemany("DELETE FROM windows WHERE stream = ? AND deadline = ? AND window = ?", out)

    def drop(self, stream: str, deadline: int, window: str) -> None:
        """Take back a window."""
        with self._trouble():
            self._db.execute(
                "DELETE FROM windows WHERE stream = ? AND deadline = ? AND window = ?", (stream, deadline, window)
            )

    def note(self, token: str, windows: Iterable[tuple[str, int, str]]) -> None:
        """These outcomes are about to be published, with a commit of that name."""
        with self._trouble():
            self._db.execute("DELETE FROM noted")
            self._db.executemany(
                "INSERT INTO noted VALUES (?, ?, ?, ?)", ((token, *window) for window in sorted(windows))
            )

    def noted(self, tokens: Collection[str]) -> list[tuple[str, int, str]]:
        """What was about to be published, if it was with one of these commits."""
        with self._trouble():
            noted = self._db.execute("SELECT token, stream, deadline, window FROM noted").fetchall()
        return [(stream, deadline, window) for token, stream, deadline, window in noted if token in tokens]

    def note_kept(self, windows: Mapping[tuple[str, int, str], str]) -> None:
        """With a commit of which name these windows, by stream, deadline and window, are about to be published.

        Empty where it is a later one.
        """
        with self._trouble():
            self._db.execute("DELETE FROM kept")
            self._db.executemany(
                "INSERT INTO kept VALUES (?, ?, ?, ?)", ((token, *one) for one, token in sorted(windows.items()))
            )

    def take_back(self, tokens: Collection[str]) -> None:
        """Let go of windows that were not published with one of these commits: they will come again."""
        with self._trouble():
            kept = self._db.execute("SELECT token, stream, deadline, window FROM kept").fetchall()
            self._db.execute("DELETE FROM kept")
        for token, *window in kept:
            if token not in tokens:
                self.drop(*window)

    def oldest(self, stream: str) -> int | None:
        """The start of the oldest window that waits."""
        with self._trouble():
            start: int | None = self._db.execute(
                "SELECT min(start) FROM windows WHERE stream = ?", (stream,)
            ).fetchone()[0]
        return start

    def forget_labels(self, stream: str, before: int) -> int:
        """Let go of labels that nothing can join any more. Labels without any time stay until there are too many."""
        with self._trouble():
            return self._db.execute(
                "DELETE FROM labels WHERE stream = ? AND mark > ? AND mark < ?", (stream, NEVER, before)
            ).rowcount

    def thin_labels(self, stream: str, surplus: int) -> None:
        """Let go of that many of the oldest labels."""
        with self._trouble():
            self._db.execute(
                'DELETE FROM labels WHERE (stream, source, "offset", copy, place) IN (SELECT stream, source, "offset",'
                " copy, place FROM labels WHERE stream = ? ORDER BY mark LIMIT ?)",
                (stream, surplus),
            )

    def size(self, stream: str) -> tuple[int, int]:
        """Windows that wait, and their events on disk."""
        with self._trouble():
            windows, events = self._db.execute(
                "SELECT count(*), coalesce(sum(CASE WHEN rows IS NULL THEN 0 ELSE events END), 0) "
                "FROM windows WHERE stream = ?",
                (stream,),
            ).fetchone()
        return windows, events

    def labels(self, stream: str) -> int:
        """How many labels there are: counted one by one."""
        with self._trouble():
            return int(self._db.execute("SELECT count(*) FROM labels WHERE stream = ?", (stream,)).fetchone()[0])

    def flush(self) -> None:
        """Make everything durable."""
        with self._trouble():
            self._db.execute("COMMIT")
            self._db.execute("BEGIN IMMEDIATE")

    def close(self) -> None:
        """What was not flushed comes again with the records that are read again."""
        with self._trouble():
            if self._db.in_transaction:  # a full disk has ended it
                self._db.execute("ROLLBACK")
            self._db.close()

    def _check_format(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, FORMAT):
            raise ConnectorError(f"{self.path}: has format {version}, this version reads {FORMAT}")
        self._db.execute(f"PRAGMA user_version = {FORMAT}")

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            full = getattr(error, "sqlite_errorcode", None) in _FULL
            raise ConnectorError(f"{self.path}: the store of late labels: {_NO_ROOM if full else error}") from error


def _places(offsets: Labels) -> Labels:
    """The number of each label among those of its record: an array holds several."""
    numbers = np.arange(offsets.size)
    first = numbers.copy()
    first[1:][offsets[1:] == offsets[:-1]] = 0
    return numbers - np.maximum.accumulate(first)
