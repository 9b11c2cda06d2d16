"""When a certificate expires, as a client of ours would see it."""

import ssl
from contextlib import suppress
from pathlib import Path

# X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which Python gives no name: when an expired one expired is asked, too.
_ANY_TIME = 0x200000


def expiry(certificate: Path, key: Path) -> float | None:
    """Wall-clock seconds; None where it cannot be told. The library says it of a peer alone: here we are both ends."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        server.load_cert_chain(certificate, key)
        client.check_hostname = False
        client.load_verify_locations(certificate)
        client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _ANY_TIME
        asking = client.wrap_bio(to_client, to_server)
        answering = server.wrap_bio(to_server, to_client, server_side=True)
        for end in (asking, answering, asking):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
        expires = (asking.getpeercert() or {}).get("notAfter")
    except (OSError, ValueError):  # SSLError is an OSError
        return None
    return ssl.cert_time_to_seconds(expires) if isinstance(expires, str) else None
