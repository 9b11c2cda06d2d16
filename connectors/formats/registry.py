"""Schemas from a schema registry, by the identifiers that records carry.

A schema of an identifier never changes, so it is asked for once. A registry that is away is an outage, through which
the service waits; an identifier that it does not know is asked for again for a while, since a replica may learn of it
late, and is then wrong.
"""

import base64
import http.client
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import UUID

import msgspec

from monitor.errors import ConnectorError, OutageError
from monitor.ports.certificates import Certificate

MAGIC, MAGIC_OF_GUID = 0, 1
"""The first byte before the number of a schema, in four bytes, and before its GUID."""
HEAD_BYTES = 5
"""What a record begins with whose schema has a number."""
ID_HEADER = "__value_schema_id"
KEPT = 1_000
"""Schemas, and identifiers that are known to be wrong: more are a fault of the producers."""
PATIENCE = 10.0
"""Seconds for which an identifier that nobody knows is asked for again, once a while: not for each that is made up."""
AGAIN = 60.0
"""Seconds after which it is asked for anew, and after which there is patience again."""
TIMEOUT = 10.0
LARGEST = 4 << 20
"""Bytes of an answer."""


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Where the registry is, and who we are to it."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    """In place of username and password."""
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None

    def under(self, base: Path) -> "RegistrySettings":
        """With its files in a folder."""
        files = {name: getattr(self, name) for name in ("ca_file", "certificate_file", "key_file")}
        return replace(self, **{name: base / path for name, path in files.items() if path is not None})

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """What the registry is shown, if anything."""
        return (
            () if self.certificate_file is None else (Certificate(self.certificate_file, self.key_file, by="client"),)
        )


class SchemaReference(msgspec.Struct, frozen=True):
    """Another schema that a schema needs."""

    name: str
    subject: str
    version: int


class RegisteredSchema(msgspec.Struct, frozen=True):
    """What the registry says of a schema."""

    schema: str
    schemaType: str = "AVRO"  # noqa: N815 - as the registry writes it
    references: tuple[SchemaReference, ...] = ()


class WrongSchemaError(Exception):
    """The registry is there, and there is no such schema, or another one than it should be."""


class Registry:
    """Asks once, and remembers."""

    def __init__(
        self,
        settings: RegistrySettings,
        query: str = "",
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`query` goes with every request for a schema."""
        self._settings = settings
        self._query = query
        self._clock = clock
        self._pause = pause
        parts = urlsplit(settings.url)
        self._tls = parts.scheme == "https"
        self._host, self._port, self._path = parts.hostname or "", parts.port, parts.path.rstrip("/")
        self._known: OrderedDict[str, RegisteredSchema] = OrderedDict()
        self._wrong: OrderedDict[str, tuple[float, WrongSchemaError]] = OrderedDict()
        """Since when, and why."""
        self._patient_from = float("-inf")

    def schema(self, identifier: int | UUID) -> RegisteredSchema:
        """Of an identifier; raises WrongSchemaError."""
        kind = "ids" if isinstance(identifier, int) else "guids"
        return self._schema(f"/schemas/{kind}/{identifier}")

    def referenced(self, reference: SchemaReference) -> RegisteredSchema:
        """One that another one needs; raises WrongSchemaError."""
        return self._schema(f"/subjects/{quote(reference.subject, safe='')}/versions/{reference.version}")

    def _schema(self, path: str) -> RegisteredSchema:
        if path in self._known:
            return self._known[path]
        since, error = self._wrong.get(path, (float("-inf"), None))
        if error is not None and self._clock() < since + AGAIN:
            raise error
        try:
            known = self._asked(path)
        except WrongSchemaError as wrong:
            _keep(self._wrong, path, (self._clock(), wrong))
            raise
        _keep(self._known, path, known)
        return known

    def _asked(self, path: str) -> RegisteredSchema:
        begun = self._clock()
        until = begun + PATIENCE if begun >= self._patient_from else begun
        while True:
            status, answer = self._get(path + self._query)
            if status == http.client.OK:
                try:
                    return msgspec.json.decode(answer, type=RegisteredSchema)
                except msgspec.MsgspecError as error:
                    raise WrongSchemaError(f"{path}: not the answer of a schema registry: {error}") from None
            if status != http.client.NOT_FOUND:
                raise WrongSchemaError(f"{path}: the registry answers {status}")
            if self._clock() >= until:
                self._patient_from = self._clock() + AGAIN
                raise WrongSchemaError(f"{path}: the registry knows no such schema")
            self._pause(1.0)

    def _get(self, path: str) -> tuple[int, bytes]:
        connection = self._connection()
        try:
            connection.request("GET", self._path + path, headers=self._headers())
            answer = connection.getresponse()
            body = answer.read(LARGEST + 1)
        except (OSError, http.client.HTTPException) as error:
            raise OutageError(f"the schema registry {self._settings.url} does not answer: {error}") from error
        finally:
            connection.close()
        if answer.status in (401, 403):
            raise ConnectorError(f"the schema registry {self._settings.url} refuses us: {answer.status}")
        if answer.status >= 500 or answer.status == 429:
            raise OutageError(f"the schema registry {self._settings.url} answers {answer.status}")
        if len(body) > LARGEST:
            raise WrongSchemaError(f"{path}: more than {LARGEST} bytes")
        return answer.status, body

    def _connection(self) -> http.client.HTTPConnection:
        if not self._tls:
            return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT)
        settings = self._settings
        try:
            context = ssl.create_default_context(cafile=settings.ca_file)
            if settings.certificate_file is not None:
                context.load_cert_chain(settings.certificate_file, settings.key_file)
        except (OSError, ssl.SSLError) as error:
            raise ConnectorError(f"the schema registry's files of TLS cannot be used: {error}") from error
        return http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT, context=context)

    def _headers(self) -> Mapping[str, str]:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self._settings.token:
            headers["Authorization"] = f"Bearer {self._settings.token}"
        elif self._settings.username:
            login = f"{self._settings.username}:{self._settings.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        return headers


def _keep(some: OrderedDict[str, Any], path: str, value: Any) -> None:
    some[path] = value
    if len(some) > KEPT:
        some.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Framed:
    """A record, taken apart."""

    schema: int | UUID
    """By which the registry knows its schema."""
    rest: bytes
    """What follows that in the same place."""
    value: bytes | None
    """The record, where its schema is named in a header."""


def unframed(record: bytes, headers: Mapping[str, bytes]) -> Framed:
    """Take apart what the registry's serializers write; raises ValueError."""
    named = headers.get(ID_HEADER)
    frame = record if named is None else named
    value = None if named is None else record
    if len(frame) >= HEAD_BYTES and frame[0] == MAGIC:
        return Framed(int.from_bytes(frame[1:HEAD_BYTES], "big"), frame[HEAD_BYTES:], value)
    if len(frame) >= 17 and frame[0] == MAGIC_OF_GUID:
        return Framed(UUID(bytes=bytes(frame[1:17])), frame[17:], value)
    raise ValueError("want a zero byte and the number of a schema in four bytes at the beginning")
