"""How to reach Kafka, what to read there and where to write: every option of the connector, with its default.

In the configuration the options of the connection stand beside those of the source or the sink. Secrets come from
outside, as "${NAME}" or "${file:PATH}", and do not show in a `repr`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar

from connectors.formats import FormatSettings
from monitor.errors import ConfigurationError
from monitor.ports import Channel
from monitor.ports.certificates import Certificate
from monitor.ports.options import Duration, read

Driver = Literal["python", "fast"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
Strategy = Literal["cooperative", "range"]
Isolation = Literal["read_committed", "read_uncommitted"]
Delivery = Literal["exactly-once", "at-least-once"]
Choice = Literal["stop", "skip"]


_Settings = TypeVar("_Settings", "SourceSettings", "SinkSettings")


_SECOND = 1_000_000
_TEN_SECONDS = Duration(10 * _SECOND)
_FIFTEEN_SECONDS = Duration(15 * _SECOND)
_TWENTY_SECONDS = Duration(20 * _SECOND)
_ONE_MINUTE = Duration(60 * _SECOND)
_TWO_MINUTES = Duration(120 * _SECOND)
_FIVE_MINUTES = Duration(300 * _SECOND)


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the cluster is and who we are to it."""

    bootstrap: tuple[str, ...]
    driver: Driver = "python"
    client_id: str = "shiftwatch"
    tls: bool = False
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True
    mechanism: Mechanism | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    connect_timeout: Duration = _TWENTY_SECONDS
    """After which a cluster that does not answer is an error at start."""
    broker_version: str | None = None
    """Only for brokers that cannot say it themselves, such as "2.1"."""

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if not self.bootstrap or not all(self.bootstrap):
            yield "want `bootstrap` to name the brokers, as host:port"
        if self.mechanism is not None and (self.username is None or not self.password):
            yield f"{self.mechanism} needs `username` and `password`"
        if self.mechanism is None and self.username is not None:
            yield "want a `mechanism` beside `username`"
        if (self.certificate_file is None) != (self.key_file is None):
            yield "want `certificate_file` and `key_file` together"
        for name in FILES:
            path = getattr(self, name)
            if path is not None and not self.tls:
                yield f"`{name}` has no effect without `tls = true`"
            elif path is not None and not path.is_file():
                yield f"`{name}`: there is no file {path}"
        if self.broker_version is not None and re.fullmatch(r"\d+(\.\d+)+", self.broker_version) is None:
            yield f"want `broker_version` as 2.8, got {self.broker_version!r}"
        yield from _not_positive(self, "connect_timeout")

    @property
    def protocol(self) -> str:
        """The name that Kafka has for this combination."""
        return ("SASL_" if self.mechanism else "") + ("SSL" if self.tls else "PLAINTEXT")

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """What brokers are shown, if anything."""
        if self.certificate_file is None:
            return ()
        return (Certificate(self.certificate_file, self.key_file, self.key_password, by="client"),)


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """What to read, and what to do when the world is not as expected."""

    connection: Connection
    topics: tuple[str, ...]
    group: str | None = None
    """The consumer group. Needed for several members and for a Kafka sink; without one this process reads everything,
    and its positions live with whatever sink it feeds."""
    partitions: tuple[int, ...] = ()
    """These partitions of every topic and no others, for good: the group keeps their positions and shares nothing out.
    For members whose late labels wait on a disk of their own. Give each partition to one member."""
    instance: str | None = None
    """A name of this member that survives restarts: static membership, and a stable transactional id."""
    start: str = "earliest"
    """Where a partition begins that nobody has committed yet: earliest, latest, or an RFC 3339 time."""
    isolation: Isolation = "read_committed"
    strategy: Strategy = "cooperative"
    session_timeout: Duration = _TEN_SECONDS
    """After which a killed member's partitions go to the others."""
    poll_interval: Duration = _FIVE_MINUTES
    """Between two polls, after which a member counts as hung."""
    poll_records: int = 20_000
    """At most so many records a poll. kafka-python asks for the next records when a poll has emptied what was fetched:
    where polls are small the brokers are asked late, and reading stands still until they answer."""
    overtaken: Choice = "stop"
    """When retention has deleted records before they were read: stop with an error, or skip them and count."""
    assignment_timeout: Duration = _TWO_MINUTES
    """Without having joined the group, after which the process ends."""
    stall_timeout: Duration = _FIVE_MINUTES
    """Without progress on a partition that has records waiting, after which the process ends."""
    format: FormatSettings | None = None
    """[source.format]: how records are written that are not JSON."""

    @property
    def joins(self) -> bool:
        """Whether the group shares partitions out, to whoever is in it."""
        return self.group is not None and not self.partitions

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """What brokers and the schema registry are shown."""
        registry = None if self.format is None else self.format.registry
        return self.connection.certificates + (() if registry is None else registry.certificates)

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if not self.topics or not all(self.topics):
            yield "want `topics` to name at least one topic"
        if self.partitions and (self.group is None or self.instance is not None):
            yield "want a `group` beside `partitions`, which keeps their positions, and no `instance`: nobody joins it"
        if min(self.partitions, default=0) < 0 or len(set(self.partitions)) < len(self.partitions):
            yield f"want `partitions` of at least 0, each once, got {list(self.partitions)}"
        if self.instance is not None and self.group is None:
            yield "want a `group` beside `instance`: a static member is a member"
        if self.start not in ("earliest", "latest") and _time(self.start) is None:
            yield f"want `start` as earliest, latest or a time such as 2026-11-18T09:00:00Z, got {self.start!r}"
        if not 1 <= self.poll_records <= 1_000_000:  # librdkafka gives no more
            yield f"want `poll_records` from 1 to 1000000, got {self.poll_records}"
        yield from _not_positive(self, "session_timeout", "poll_interval", "assignment_timeout", "stall_timeout")


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """Where each channel goes, and how it is delivered. A channel without a topic is not published."""

    connection: Connection
    results: str
    recalibrations: str | None = None
    events: str | None = None
    alarms: str | None = None
    """Alarms that begin, go on and end; a compacted topic keeps how each of them stands."""
    dead_letters: str | None = None
    states: str | None = None
    """A compacted topic for what is known over windows. Without one that begins anew with every restart."""
    delivery: Delivery = "exactly-once"
    group: str | None = None
    """Under which group the positions of a source that is not Kafka are kept."""
    transactional_id: str | None = None
    """Unique per running process; by default made from the group and the member's instance name, or random."""
    transaction_timeout: Duration = _FIFTEEN_SECONDS
    """How long readers wait at most for a transaction of a process that died; and how long the Python client waits for
    the answer to one of its own before it begins again with a fresh producer."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    max_message_bytes: int = 1_000_000
    """Below the brokers' default of 1 MiB; longer dead letters are cut, and say so."""
    commit_timeout: Duration = _ONE_MINUTE
    """What one commit may take before the process ends (a restart is safe): the brokers themselves give its transaction
    up after `transaction_timeout`."""

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if self.max_message_bytes < 1_000:
            yield f"want `max_message_bytes` of at least 1000, got {self.max_message_bytes}"
        others = ("results", "recalibrations", "events", "alarms", "dead_letters")
        for name in others if self.states is not None else ():
            if getattr(self, name) == self.states:
                yield f"want a topic for `states` alone, they are read back by key: `{name}` has {self.states}, too"
        yield from _not_positive(self, "transaction_timeout", "commit_timeout")

    def topic(self, channel: Channel) -> str | None:
        """Where messages of this channel go."""
        by_channel = {
            "results": self.results,
            "recalibrations": self.recalibrations,
            "events": self.events,
            "alarms": self.alarms,
            "dead-letters": self.dead_letters,
            "states": self.states,
        }
        return by_channel[channel]

    @property
    def topics(self) -> tuple[str, ...]:
        """Every topic that is written to."""
        topics = (self.results, self.recalibrations, self.events, self.alarms, self.dead_letters, self.states)
        return tuple(dict.fromkeys(topic for topic in topics if topic is not None))


RECONNECT_MILLISECONDS = 1000
"""How long a client waits at most before it tries a broker again. By default kafka-python waits up to 30 s, librdkafka
up to 10 s, longer with each failure: after an outage each connection then stays away for as long again."""

FILES = ("ca_file", "certificate_file", "key_file")
_SHARED = [each.name for each in fields(Connection)]


def source_settings(options: Mapping[str, Any], base: Path = Path()) -> SourceSettings:
    """What the configuration says about a Kafka source; keys are the field names of the two classes."""
    settings = _settings(SourceSettings, options, base, "source")
    return settings if settings.format is None else replace(settings, format=settings.format.under(base))


def sink_settings(options: Mapping[str, Any], base: Path = Path()) -> SinkSettings:
    """What the configuration says about a Kafka sink; keys are the field names of the two classes."""
    return _settings(SinkSettings, options, base, "sink")


def start_time(start: str) -> int | None:
    """Epoch milliseconds if `start` is a time, None for earliest and latest."""
    return None if start in ("earliest", "latest") else _time(start)


def _settings(kind: type[_Settings], options: Mapping[str, Any], base: Path, where: str) -> _Settings:
    problems: list[str] = []
    given = {key: _listed(value) if key in ("bootstrap", "topics") else value for key, value in options.items()}
    given |= {key: str(base / given[key]) for key in FILES if isinstance(given.get(key), str)}
    own = [each.name for each in fields(kind) if each.name != "connection"]
    shared = {key: value for key, value in given.items() if _belongs_to_connection(key, own)}
    connection = read(Connection, shared, where, problems)
    rest = {key: value for key, value in given.items() if key not in shared}
    # A placeholder, so that the problems of both parts are listed at once.
    settings = read(kind, rest | {"connection": connection or Connection(("-",))}, where, problems)
    if settings is None or connection is None or problems:
        raise ConfigurationError(problems)
    return replace(settings, connection=connection)


def _belongs_to_connection(key: str, own: list[str]) -> bool:
    """An unknown key goes to where the most similar one is, and is complained about there."""
    return bool(set(get_close_matches(key, [*_SHARED, *own], n=1, cutoff=0.5)) & set(_SHARED))


def _listed(names: Any) -> Any:
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else names


def _not_positive(settings: Any, *names: str) -> Iterator[str]:
    for name in names:
        if getattr(settings, name) <= 0:
            yield f"want `{name}` above zero"


def _time(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else int(moment.timestamp() * 1000)
