"""References that are renewed while the service runs: their files are looked at again and again, and at a signal.

A renewal is a restart without a new process. What is complete is committed and the service ends; the next one goes on
from that commit with the new references, as after a kill. So each window is compared with one reference, whole, and is
published once, wherever the process is killed. The first window under another reference comes with a message that names
both (`shiftwatch.continuity`).
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from monitor.errors import ConfigurationError
from monitor.limits import RENEWAL_SECONDS
from monitor.service import Watched

_LOG = logging.getLogger("monitor.service")

_Stamp = tuple[int, int, int]


class References:
    """Those in some files, as they were last read. Without files they are not renewed."""

    def __init__(
        self,
        watched: Mapping[str, Watched],
        read: Callable[[], Mapping[str, Watched]],
        files: Collection[Path],
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self.watched = watched
        """What is in force."""
        self.renewable = bool(files)
        self._read_anew = read
        self._files = files
        self._elapsed = elapsed
        self._next: Mapping[str, Watched] | None = None
        self._asked = False
        self._looked = elapsed()
        self._stamps = self._on_disk()

    def ask(self) -> None:
        """Look at the files when `due` is asked next."""
        self._asked = True

    def due(self) -> bool:
        """Whether other references are to take effect. Their files are read here, between two turns of the loop."""
        if self._next is not None:
            return True
        if not self.renewable or not (self._asked or self._elapsed() - self._looked > RENEWAL_SECONDS):
            return False
        self._asked, self._looked = False, self._elapsed()
        stamps = self._on_disk()
        if stamps != self._stamps:
            self._stamps = stamps
            self._next = self._read()
        return self._next is not None

    def taken(self) -> bool:
        """Let those that are due take effect, if any are."""
        if self._next is None:
            return False
        for name, stream in self._next.items():
            before, now = self.watched[name].reference.version, stream.reference.version
            if before != now:
                _LOG.info(
                    "%s: reference %s takes the place of %s for windows that are not published yet", name, now, before
                )
        self.watched, self._next = self._next, None
        return True

    def _read(self) -> Mapping[str, Watched] | None:
        """The references on disk, if they are other ones and can be used."""
        try:
            streams = self._read_anew()
        except ConfigurationError as error:
            _LOG.warning("a reference cannot be renewed, what was in force stays so: %s", error)
            return None
        same = all(stream.reference.version == self.watched[name].reference.version for name, stream in streams.items())
        return None if same else streams

    def _on_disk(self) -> Mapping[Path, _Stamp | None]:
        return {path: _stamp(path) for path in self._files}


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
