"""A schema registry on loopback that speaks the documented REST API, as far as serializers and readers ask for it.

It is no real registry: it checks no compatibility and compiles nothing. Protobuf schemas it keeps as the serializers
register them, in base64, which is what a real one answers to `format=serialized`.
"""

import json
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID, uuid5


@dataclass
class LoopbackRegistry:
    """What it knows, and how it answers."""

    login: str = ""
    """The user and password that it wants, with a colon between them."""
    away: bool = False
    """Whether it answers 503."""
    schemas: list[dict[str, Any]] = field(default_factory=list)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        """The identifier of a schema."""
        kept = {"schemaType": "AVRO", "references": [], **{k: v for k, v in schema.items() if v is not None}}
        if kept not in self.schemas:
            self.schemas.append(kept)
        number = self.schemas.index(kept) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def described(self, number: int) -> dict[str, Any]:
        schema = self.schemas[number - 1]
        return {**schema, "id": number, "guid": str(guid(number))}

    def version(self, subject: str, version: str) -> dict[str, Any]:
        versions = self.subjects[subject]
        place = len(versions) if version == "latest" else int(version)
        return {"subject": subject, "version": place, **self.described(versions[place - 1])}

    def answer(self, method: str, path: str, body: Any) -> Any:
        """What it says; raises KeyError, IndexError or ValueError where it knows nothing."""
        match [unquote(part) for part in path.strip("/").split("/")]:
            case ["subjects", subject] | ["subjects", subject, "versions"] if method == "POST":
                number = self.register(subject, body)
                return self.version(subject, str(self.subjects[subject].index(number) + 1))
            case ["subjects", subject, "versions", version]:
                return self.version(subject, version)
            case ["schemas", "ids", number]:
                return self.described(positive(int(number)))
            case ["schemas", "guids", text]:
                return self.described(next(n for n in range(1, len(self.schemas) + 1) if guid(n) == UUID(text)))
        raise KeyError(path)


def positive(number: int) -> int:
    if number < 1:
        raise KeyError(number)
    return number


def guid(number: int) -> UUID:
    return uuid5(UUID(int=0), str(number))


@contextmanager
def registry(login: str = "", certificate: tuple[str, str] | None = None) -> Iterator[LoopbackRegistry]:
    """One that runs meanwhile; `certificate` and its key switch TLS on."""
    known = LoopbackRegistry(login)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def log_message(self, *_: Any) -> None:
            """Nothing is told."""

        def _answer(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, said = self._said(method, json.loads(body) if body else None)
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _said(self, method: str, body: Any) -> tuple[int, Any]:
            path = urlsplit(self.path).path
            known.asked.append(self.path)
            wanted = f"Basic {b64encode(known.login.encode()).decode()}"
            if known.login and self.headers.get("Authorization") != wanted:
                return 401, {"error_code": 401, "message": "Unauthorized"}
            if known.away:
                return 503, {"error_code": 503, "message": "away"}
            try:
                return 200, known.answer(method, path, body)
            except (LookupError, ValueError, StopIteration):
                return 404, {"error_code": 40403, "message": "Schema not found"}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    known.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
