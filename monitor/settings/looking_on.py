"""For whoever looks on from outside: the server, and a collector of OpenTelemetry."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from monitor.limits import CLASS_SERIES, FEATURE_SERIES, SEGMENT_FEATURE_SERIES, WINDOWS_REMEMBERED
from monitor.ports.options import Duration

_EVERY = Duration(15_000_000)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """HTTP: status page, metrics, API. Only with a table [server], be it empty."""

    host: str = "127.0.0.1"
    port: int = 8321
    token: str = field(default="", repr=False)
    """What clients have to show; best from outside, as "${file:/run/secrets/token}"."""
    certificate: Path | None = None
    key: Path | None = None
    """TLS, in PEM."""
    hosts: tuple[str, ...] = ()
    """Further names under which clients reach this server where it listens on loopback and asks for no token, such as a
    proxy's. Requests for any other are refused."""
    max_connections: int = 200
    """Services that may wait for a recalibration at once; probes, scrapes and browsers have room beside them."""
    windows: int = WINDOWS_REMEMBERED
    """How many windows of each stream are remembered."""
    max_features: int = FEATURE_SERIES
    """Features of a stream that become series in Prometheus; those that moved most."""
    max_segment_features: int = SEGMENT_FEATURE_SERIES
    """The same for each segment."""
    max_classes: int = CLASS_SERIES

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if not 0 <= self.port < 65_536:
            yield f"want `port` from 0 to 65535, got {self.port}"
        if (self.certificate is None) != (self.key is None):
            yield "want `certificate` and `key` together"
        if min(self.max_connections, self.windows, self.max_classes) < 1:
            yield "want `max_connections`, `windows` and `max_classes` of at least 1"
        if min(self.max_features, self.max_segment_features) < 0:
            yield "want `max_features` and `max_segment_features` of at least 0"


@dataclass(frozen=True, slots=True)
class OtlpSettings:
    """Metrics, log lines and traces to a collector of OpenTelemetry, by OTLP over HTTP. Only with a table [otlp]."""

    endpoint: str = "http://127.0.0.1:4318"
    """Of the collector: /v1/metrics, /v1/logs and /v1/traces are below it."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with each request; secrets best from outside, as "Bearer ${file:/run/secrets/token}"."""
    every: Duration = _EVERY
    """How often metrics are sent. Log lines go within seconds."""
    logs: bool = True
    """Whether log lines are sent, too."""
    traces: bool = False
    """Whether each window is a trace: how long it and its segments were assessed, and until they were committed."""
    ca_file: Path | None = None
    """The certificates to trust, in PEM, of a collector that is reached by HTTPS."""

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if not self.endpoint.startswith(("http://", "https://")):
            yield f"want `endpoint` as http:// or https://, got {self.endpoint!r}"
        if self.every < 1_000_000:
            yield "want `every` of at least 1s"
