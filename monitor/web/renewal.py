"""Certificates, tokens and hosts that are renewed while the service runs: their files are looked at again and again.

The settings are read anew; what a file says that cannot be used is told in the log, and what was in force stays so.
"""

import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from monitor.errors import ConfigurationError
from monitor.limits import RENEWAL_SECONDS
from monitor.ports.access import Access
from monitor.ports.certificates import Certificate
from monitor.settings import ServerSettings

_LOG = logging.getLogger("monitor.web")


@dataclass(slots=True)
class Renewed:
    """What is in force now; a look replaces it as a whole."""

    settings: ServerSettings
    access: Access
    expires: float | None
    """When the certificate does; wall clock, seconds."""

    @classmethod
    def of(cls, settings: ServerSettings, base: Path) -> "Renewed":
        """At the start."""
        return cls(settings, _access(settings), _expiry(settings, base))


@contextmanager
def renewing(
    now: Renewed, base: Path, context: ssl.SSLContext | None, read: Callable[[], ServerSettings | None] | None
) -> Iterator[None]:
    """Look for another token, other hosts and another certificate while the block runs."""
    if read is None:
        yield
        return
    over, stamp = Event(), _stamp(now.settings, base)

    def look() -> None:
        nonlocal stamp
        while not over.wait(RENEWAL_SECONDS):
            try:
                settings = read()
            except ConfigurationError as error:
                _LOG.warning("the configuration cannot be read again, what was in force stays so: %s", error)
                continue
            if settings is not None:
                if (settings.token, settings.hosts) != (now.settings.token, now.settings.hosts):
                    now.settings, now.access = settings, _access(settings)
                    _LOG.info("the token or the hosts of [server] were renewed")
                stamp = _certified(settings, base, context, stamp)
                now.expires = _expiry(settings, base)

    thread = Thread(target=look, name="shiftwatch-renewal", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _access(settings: ServerSettings) -> Access:
    return Access.of(settings.token, settings.host, settings.hosts)


def _certified(
    settings: ServerSettings, base: Path, context: ssl.SSLContext | None, stamp: tuple[float, ...]
) -> tuple[float, ...]:
    """New connections are made with the certificate as it is on disk."""
    after = _stamp(settings, base)
    if context is None or after == stamp or settings.certificate is None or settings.key is None:
        return after
    try:
        context.load_cert_chain(base / settings.certificate, base / settings.key)
    except (OSError, ssl.SSLError) as error:
        _LOG.warning("the certificate cannot be renewed, the one before stays in force: %s", error)
        return stamp
    _LOG.info("the certificate was renewed")
    return after


def _expiry(settings: ServerSettings, base: Path) -> float | None:
    if settings.certificate is None or settings.key is None:
        return None
    return Certificate(base / settings.certificate, base / settings.key).expires()


def _stamp(settings: ServerSettings, base: Path) -> tuple[float, ...]:
    """When the files of the certificate last changed."""
    paths = [base / path for path in (settings.certificate, settings.key) if path is not None]
    return tuple(path.stat().st_mtime_ns if path.exists() else 0 for path in paths)
