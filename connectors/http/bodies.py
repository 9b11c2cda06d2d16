"""From the body of a post to lines for the log: NDJSON, JSON, and CloudEvents in all three modes. Pure.

Lines are not looked at here: what is in them is the decoder's to judge, and what is no event becomes a dead letter. A
body that cannot be taken apart into lines is refused whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

import msgspec

from connectors import cloudevents
from connectors.http.log import Posted

LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
EVENT, EVENTS = "application/cloudevents+json", "application/cloudevents-batch+json"
KEY_HEADER = b"idempotency-key"
_PREFIX = b"ce-"

_array = msgspec.json.Decoder(list[msgspec.Raw])


class RefusedPostError(Exception):
    """Why a post is not taken: the status of the answer, a name for the count, and when to try again, if ever."""

    def __init__(self, status: int, reason: str, detail: str, retry: int = 0) -> None:
        super().__init__(detail)
        self.status = status
        self.reason = reason
        self.retry = retry


def posted(headers: Mapping[bytes, bytes], body: bytes) -> Sequence[Posted]:
    """What a post holds; raises RefusedPostError."""
    kind = headers.get(b"content-type", b"").decode("latin-1")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise RefusedPostError(415, "unknown-type", "want a body that is not compressed")
    if "charset=" in kind.lower() and "utf-8" not in kind.lower():
        raise RefusedPostError(415, "unknown-type", "want UTF-8")
    key = headers.get(KEY_HEADER, b"")
    try:
        posts = list(_posts(headers, kind, body, b"" if not key else b"key " + key))
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise RefusedPostError(400, "unreadable", str(error)) from None
    if not posts:
        raise RefusedPostError(400, "empty", "there is no event in the body")
    return posts


def _posts(headers: Mapping[bytes, bytes], kind: str, body: bytes, key: bytes) -> Iterator[Posted]:
    plain = cloudevents.media_type(kind)
    if plain == EVENT:
        yield _event(cloudevents.in_one_line(body))
    elif plain == EVENTS:
        for each in _array.decode(body):
            yield _event(_line(each))
    elif _PREFIX + cloudevents.SPECIFICATION.encode() in headers:
        attributes = {
            name[len(_PREFIX) :].decode("latin-1"): unquote(value.decode("latin-1"))
            for name, value in headers.items()
            if name.startswith(_PREFIX)
        }
        yield _event(cloudevents.structured(attributes, kind, body))
    elif plain in LINES:
        if body.strip():
            yield Posted(body if body.endswith(b"\n") else body + b"\n", key)
    elif plain == "application/json":
        lines = list(map(_line, _array.decode(body))) if body.lstrip().startswith(b"[") else [_line(body)]
        if lines:
            yield Posted(b"\n".join(lines) + b"\n", key)
    else:
        wanted = ", ".join((LINES[0], "application/json", EVENT, EVENTS))
        raise RefusedPostError(415, "unknown-type", f"want one of {wanted}, or headers of a CloudEvent; got {kind!r}")


def _event(event: bytes) -> Posted:
    """Senders of CloudEvents send again what they heard nothing of: each has a name of its own."""
    return Posted(event + b"\n", b"event " + cloudevents.name(event))


def _line(value: msgspec.Raw | bytes) -> bytes:
    text = bytes(value)
    return cloudevents.in_one_line(text) if b"\n" in text or b"\r" in text or isinstance(value, bytes) else text
