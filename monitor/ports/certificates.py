"""When certificates of ours expire, as whoever is shown them would see it."""

import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

# X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which Python gives no name: when an expired one expired is asked, too.
_ANY_TIME = 0x200000


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of a certificate, in PEM, and who shows it: one that is for clients alone is none of a server."""

    certificate: Path
    key: Path | None
    """None: in the same file."""
    password: str | None = field(default=None, repr=False)
    by: Literal["server", "client"] = "server"

    def expires(self) -> float | None:
        """Wall-clock seconds; None where it cannot be told.

        The library says it of a peer alone: here we are both ends of a connection, and the other one looks.
        """
        server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        looking = client if self.by == "server" else server
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            for end in (server, client):
                end.load_cert_chain(self.certificate, self.key, self.password or "")
            looking.load_verify_locations(self.certificate)
            looking.verify_mode = ssl.CERT_REQUIRED
            looking.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _ANY_TIME
            asking = client.wrap_bio(to_client, to_server)
            answering = server.wrap_bio(to_server, to_client, server_side=True)
            for each in (asking, answering, asking, answering):
                with suppress(ssl.SSLWantReadError):
                    each.do_handshake()
            seen = asking if self.by == "server" else answering
            expires = (seen.getpeercert() or {}).get("notAfter")
        except (OSError, ValueError):  # SSLError is an OSError
            return None
        return ssl.cert_time_to_seconds(expires) if isinstance(expires, str) else None

    @property
    def stamp(self) -> tuple[int, ...]:
        """When its files last changed."""
        paths = (self.certificate, self.key)
        return tuple(path.stat().st_mtime_ns for path in paths if path is not None and path.exists())


class CertificatesOnDisk:
    """Some certificates whose files may be replaced; they are read again only then, however often they are asked."""

    def __init__(self, *certificates: Certificate) -> None:
        self._certificates = certificates
        self._stamps: list[tuple[int, ...]] = []
        self._expires: float | None = None

    def expires(self) -> float | None:
        """When the first of them does; None where there is none."""
        stamps = [each.stamp for each in self._certificates]
        if stamps != self._stamps:
            times = [each.expires() for each in self._certificates]
            self._stamps, self._expires = stamps, min((at for at in times if at is not None), default=None)
        return self._expires
