"""How to reach Kafka, what to read there and where to write: parsed once, frozen, every problem listed at once.

Secrets come from the environment or from files and never leave their `Secret`, except into the client library.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast, get_args

from connectors.protocols import Channel
from monitor.errors import ConfigurationError

Driver = Literal["python", "fast"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
Strategy = Literal["cooperative", "range"]
Isolation = Literal["read_committed", "read_uncommitted"]
Delivery = Literal["exactly-once", "at-least-once"]
Choice = Literal["stop", "skip"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A password that does not show in logs, tracebacks or `repr`."""

    value: str = field(repr=False)

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the cluster is and who we are to it."""

    bootstrap: tuple[str, ...]
    driver: Driver = "python"
    client_id: str = "shiftwatch"
    tls: bool = False
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: Secret | None = None
    check_hostname: bool = True
    mechanism: Mechanism | None = None
    username: str | None = None
    password: Secret | None = None
    connect_timeout: float = 20.0
    """Seconds until a cluster that does not answer is an error at start."""
    broker_version: tuple[int, ...] | None = None
    """Only for brokers that cannot say it themselves."""

    @property
    def protocol(self) -> str:
        """The name that Kafka has for this combination."""
        return ("SASL_" if self.mechanism else "") + ("SSL" if self.tls else "PLAINTEXT")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """What to read, and what to do when the world is not as expected."""

    connection: Connection
    topics: tuple[str, ...]
    group: str | None = None
    """The consumer group. Needed for several members and for a Kafka sink; without one this process reads everything,
    and its positions live with whatever sink it feeds."""
    instance: str | None = None
    """A name of this member that survives restarts: static membership, and a stable transactional id."""
    start: str = "earliest"
    """Where a partition begins that nobody has committed yet: earliest, latest, or an RFC 3339 time."""
    isolation: Isolation = "read_committed"
    strategy: Strategy = "cooperative"
    session_timeout: float = 10.0
    """Seconds after which a killed member's partitions go to the others."""
    poll_interval: float = 300.0
    """Seconds between two polls after which a member counts as hung."""
    poll_records: int = 2000
    """Records per poll of the Python client."""
    overtaken: Choice = "stop"
    """When retention has deleted records before they were read: stop with an error, or skip them and count."""
    assignment_timeout: float = 120.0
    """Seconds without having joined the group after which the process ends."""
    stall_timeout: float = 300.0
    """Seconds without progress on a partition that has records waiting, after which the process ends."""


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """Where each channel goes, and how it is delivered. A channel without a topic is not published."""

    connection: Connection
    results: str | None = None
    recalibrations: str | None = None
    events: str | None = None
    dead_letters: str | None = None
    delivery: Delivery = "exactly-once"
    group: str | None = None
    """Under which group the positions of a source that is not Kafka are kept."""
    transactional_id: str | None = None
    """Unique per running process; by default made from the group and the member's instance name, or random."""
    transaction_timeout: float = 15.0
    """Seconds that readers wait at most for a transaction of a process that died."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    max_message_bytes: int = 1_000_000
    """Below the brokers' default of 1 MiB; longer dead letters are cut, and say so."""
    commit_timeout: float = 300.0
    """Seconds that one commit may take before the process ends (a restart is safe)."""

    def topic(self, channel: Channel) -> str | None:
        """Where messages of this channel go."""
        by_channel = {
            "results": self.results,
            "recalibrations": self.recalibrations,
            "events": self.events,
            "dead-letters": self.dead_letters,
        }
        return by_channel[channel]

    @property
    def topics(self) -> tuple[str, ...]:
        """Every topic that is written to."""
        found = (self.results, self.recalibrations, self.events, self.dead_letters)
        return tuple(dict.fromkeys(topic for topic in found if topic is not None))


_FILES = ("ca_file", "certificate_file", "key_file")
SECRETS = ("password", "key_password")
_DURATIONS = ("connect_timeout", "session_timeout", "poll_interval", "assignment_timeout", "stall_timeout",
              "transaction_timeout", "commit_timeout")  # fmt: skip
_CHOICES: dict[str, tuple[object, ...]] = {
    "driver": get_args(Driver),
    "mechanism": get_args(Mechanism),
    "isolation": get_args(Isolation),
    "strategy": get_args(Strategy),
    "overtaken": get_args(Choice),
    "delivery": get_args(Delivery),
    "compression": ("none", "gzip", "snappy", "lz4", "zstd"),
}


def source_settings(
    options: Mapping[str, object], environment: Mapping[str, str], base: Path = Path()
) -> SourceSettings:
    """Parse what the configuration says about a Kafka source; keys are the field names of the two classes."""
    reader = _Reader(options, environment, base, SourceSettings)
    found = reader.settings()
    if not found.get("topics"):
        reader.problem("topics: name at least one topic to read")
    if found.get("instance") is not None and found.get("group") is None:
        reader.problem("instance: a static member needs a group")
    start = found.get("start", "earliest")
    if start not in ("earliest", "latest") and _time(str(start)) is None:
        reader.problem(f"start: want earliest, latest or a time as 2026-11-18T09:00:00Z, got {start!r}")
    return cast(SourceSettings, reader.finish(found))


def sink_settings(options: Mapping[str, object], environment: Mapping[str, str], base: Path = Path()) -> SinkSettings:
    """Parse what the configuration says about a Kafka sink; keys are the field names of the two classes."""
    reader = _Reader(options, environment, base, SinkSettings)
    found = reader.settings()
    if found.get("results") is None:
        reader.problem("results: name the topic that results go to")
    return cast(SinkSettings, reader.finish(found))


def start_time(start: str) -> int | None:
    """Epoch milliseconds if `start` is a time, None for earliest and latest."""
    return None if start in ("earliest", "latest") else _time(start)


def _time(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else int(moment.timestamp() * 1000)


class _Reader:
    """One pass over the options that collects problems instead of stopping at the first."""

    def __init__(
        self,
        options: Mapping[str, object],
        environment: Mapping[str, str],
        base: Path,
        kind: type[SourceSettings] | type[SinkSettings],
    ) -> None:
        self._options = dict(options)
        self._environment = environment
        self._base = base
        self._kind = kind
        self._problems: list[str] = []
        self._own = {each.name: each for each in fields(kind) if each.name != "connection"}
        self._shared = {each.name: each for each in fields(Connection)}

    def problem(self, text: str) -> None:
        self._problems.append(text)

    def settings(self) -> dict[str, Any]:
        """The values of the known keys, checked one by one."""
        self._take_secrets()
        found: dict[str, Any] = {}
        for key, value in self._options.items():
            if key in self._own or key in self._shared:
                found[key] = self._value(key, value)
            else:
                near = difflib.get_close_matches(key, [*self._own, *self._shared], n=1)
                self.problem(f"{key}: unknown setting" + (f"; did you mean {near[0]}?" if near else ""))
        self._check_connection(found)
        return found

    def finish(self, found: dict[str, Any]) -> SourceSettings | SinkSettings:
        if self._problems:
            raise ConfigurationError(self._problems)
        shared = {key: found.pop(key) for key in list(found) if key in self._shared}
        return self._kind(connection=Connection(**shared), **found)

    def _take_secrets(self) -> None:
        for name in SECRETS:
            given = [key for key in (name, f"{name}_env", f"{name}_file") if key in self._options]
            if len(given) > 1:
                self.problem(f"{' and '.join(given)}: give one of them")
            for key in given:
                text = self._secret(key, str(self._options.pop(key)))
                if text is not None:
                    self._options[name] = Secret(text)

    def _secret(self, key: str, value: str) -> str | None:
        if key.endswith("_env"):
            if value not in self._environment:
                self.problem(f"{key}: the environment has no variable {value}")
            return self._environment.get(value)
        if key.endswith("_file"):
            try:
                return (self._base / value).read_text(encoding="utf-8").rstrip("\r\n")
            except OSError as error:
                self.problem(f"{key}: cannot read {value}: {error.strerror}")
                return None
        return value

    def _value(self, key: str, value: object) -> object:
        checks: dict[str, Callable[[str, object], object]] = {
            "bootstrap": self._names,
            "topics": self._names,
            "broker_version": self._version,
        }
        if key in checks:
            return checks[key](key, value)
        if key in _CHOICES:
            if value not in _CHOICES[key]:
                self.problem(f"{key}: want one of {', '.join(map(str, _CHOICES[key]))}, got {value!r}")
            return value
        if key in _DURATIONS:
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                self.problem(f"{key}: want a positive number of seconds, got {value!r}")
                return 1.0
            return float(value)
        if key in _FILES and isinstance(value, str):
            path = self._base / value
            if not path.is_file():
                self.problem(f"{key}: no file {path}")
            return str(path)
        known = self._own.get(key) or self._shared[key]
        want: type = Secret if key in SECRETS else bool if known.default in (True, False) else str
        want = int if isinstance(known.default, int) and want is str else want
        if type(value) is not want or value in ("", 0):
            self.problem(f"{key}: want {want.__name__}, got {value!r}")
        return value

    def _names(self, key: str, value: object) -> tuple[str, ...]:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) and part.strip() for part in parts):
            self.problem(f"{key}: want names as a list or separated by commas, got {value!r}")
            return ("?",)
        return tuple(dict.fromkeys(part.strip() for part in parts))

    def _version(self, key: str, value: object) -> tuple[int, ...] | None:
        try:
            return tuple(int(part) for part in str(value).split("."))
        except ValueError:
            self.problem(f"{key}: want a version as 2.8, got {value!r}")
            return None

    def _check_connection(self, found: Mapping[str, Any]) -> None:
        required = [each.name for each in fields(Connection) if each.default is MISSING]
        for name in required:
            if name not in found:
                self.problem(f"{name}: where is the cluster? Want host:port, several separated by commas")
        if found.get("mechanism") is not None:
            for name in ("username", "password"):
                if found.get(name) is None:
                    self.problem(f"{name}: {found['mechanism']} needs one")
        elif found.get("username") is not None:
            self.problem("mechanism: a username needs one of " + ", ".join(get_args(Mechanism)))
        if (found.get("certificate_file") is None) != (found.get("key_file") is None):
            self.problem("certificate_file and key_file: give both or none")
        for name in _FILES:
            if found.get(name) is not None and not found.get("tls"):
                self.problem(f"{name}: has no effect without tls = true")
