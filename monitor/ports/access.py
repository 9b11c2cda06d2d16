"""Who may ask a server of ours: the token, and the names under which this is us."""

import hmac
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask."""

    token: bytes = field(default=b"", repr=False)
    hosts: frozenset[str] | None = None
    """The names under which clients may reach us; None: any. Asked where no token is: a page from elsewhere could
    have its own name point to us (DNS rebinding), and read what only this machine may."""

    @classmethod
    def of(cls, token: str, host: str, hosts: Iterable[str]) -> "Access":
        """What the settings allow: where we listen, and other names of that place."""
        checked = not token and of_this_machine(host)
        names = {"localhost", "127.0.0.1", "::1", host, *hosts}
        return cls(token.encode(), frozenset(map(str.lower, names)) if checked else None)

    def knows(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a request means us."""
        return self.hosts is None or _name(headers.get(b"host", b"").decode("latin-1")) in self.hosts

    def lets_in(self, headers: Mapping[bytes, bytes]) -> bool:
        """`Bearer TOKEN` from programs, or the token as the password of any user from browsers."""
        if not self.token:
            return True
        scheme, _, credentials = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"basic":
            try:
                credentials = b64decode(credentials, validate=True).partition(b":")[2]
            except ValueError:
                return False
        return hmac.compare_digest(credentials.strip(), self.token)


def of_this_machine(host: str) -> bool:
    """Whether only programs of this machine reach what listens there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _name(host: str) -> str:
    """Without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
