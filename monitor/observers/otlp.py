"""Metrics, log lines and traces to a collector of OpenTelemetry, by OTLP over HTTP, beside what Prometheus asks for.

The metrics are those of the catalogue under the same names, filled from the same snapshot; the lines are those of
standard error. All are sent by threads of their own: a collector that is away holds nothing up. Totals count since the
start of the process, so that what was not sent is in the next; of lines and spans the last two thousand wait.
"""

import logging
import socket
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from prometheus_client.core import Metric as Family

from monitor.observers.history import History
from monitor.observers.logs import OURS
from monitor.observers.metrics import families
from monitor.service import Observer
from monitor.version import __version__

try:
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Gauge,
        Histogram,
        HistogramDataPoint,
        Metric,
        MetricsData,
        NumberDataPoint,
        ResourceMetrics,
        ScopeMetrics,
        Sum,
    )
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    from monitor.observers.traces import WindowTraces
except ImportError as error:
    raise ImportError("OTLP needs a library of OpenTelemetry: pip install 'shiftwatch[otlp]'") from error

SCOPE = "shiftwatch"
PATIENCE, PATIENCE_WITH_LINES = 5.0, 60.0
"""Seconds that a request may take, with all its repetitions: the next one says again what metrics are, and not what was
logged or traced."""
PARTING = 3.0
"""How long the end of a run waits for a collector."""
_UNITS = {"seconds": "s", "ratio": "1"}
_SEVERITY = {
    logging.DEBUG: SeverityNumber.DEBUG,
    logging.INFO: SeverityNumber.INFO,
    logging.WARNING: SeverityNumber.WARN,
    logging.ERROR: SeverityNumber.ERROR,
}


@contextmanager
def exporting(
    history: History,
    endpoint: str,
    headers: Mapping[str, str],
    every: float,
    *,
    logs: bool = True,
    traces: bool = False,
    ca_file: Path | None = None,
) -> Iterator[Sequence[Observer]]:
    """Send while the block runs, and once more at its end; what is traced has to be told to these observers."""
    resource = Resource.create(
        {"service.name": SCOPE, "service.version": __version__, "service.instance.id": socket.gethostname()}
    )
    common: Mapping[str, Any] = {
        "headers": dict(headers),
        "certificate_file": None if ca_file is None else str(ca_file),
    }
    below = endpoint.rstrip("/")
    with ExitStack() as opened:
        opened.enter_context(_metrics(history, f"{below}/v1/metrics", resource, every, common))
        if logs:
            opened.enter_context(_lines(f"{below}/v1/logs", resource, common))
        observers: list[Observer] = []
        if traces:
            observers.append(opened.enter_context(_traces(history, f"{below}/v1/traces", resource, common)))
        yield observers


def metrics_data(filled: Iterable[Family], resource: Resource, started: float, now: float) -> MetricsData:
    """The families of the catalogue as OTLP has them."""
    begun, at = int(started * 1e9), int(now * 1e9)
    metrics = [metric for family in filled for metric in _metric(family, begun, at)]
    scope = ScopeMetrics(InstrumentationScope(SCOPE, __version__), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, begun: int, at: int) -> Iterator[Metric]:
    unit = _UNITS.get(family.unit, "")
    if family.type == "histogram":
        points = list(_histogram_points(family, begun, at))
        data: Any = Histogram(points, AggregationTemporality.CUMULATIVE)
        yield Metric(family.name, family.documentation, unit, data)
        return
    counts = family.type == "counter"
    numbers = [
        NumberDataPoint(sample.labels, begun if counts else 0, at, float(sample.value)) for sample in family.samples
    ]
    data = Sum(numbers, AggregationTemporality.CUMULATIVE, is_monotonic=True) if counts else Gauge(numbers)
    yield Metric(family.samples[0].name, family.documentation, unit, data)


def _histogram_points(family: Family, begun: int, at: int) -> Iterator[HistogramDataPoint]:
    """Prometheus counts what is below each bound, OTLP what is between two."""
    series: dict[tuple[tuple[str, str], ...], dict[str, float]] = defaultdict(dict)
    for sample in family.samples:
        labels = tuple((name, value) for name, value in sample.labels.items() if name != "le")
        series[labels][sample.labels.get("le", sample.name.rpartition("_")[2])] = sample.value
    for labels, values in series.items():
        total, count = values.pop("sum"), int(values.pop("count"))
        below = [int(value) for value in values.values()]
        between = [after - before for before, after in zip([0, *below], below, strict=False)]
        bounds = [float(bound) for bound in values if bound != "+Inf"]
        unknown: Any = None  # the smallest and the largest value: OTLP may lack them, though the library's type may not
        yield HistogramDataPoint(dict(labels), begun, at, count, total, between, bounds, unknown, unknown)


@contextmanager
def _metrics(
    history: History, endpoint: str, resource: Resource, every: float, common: Mapping[str, Any]
) -> Iterator[None]:
    exporter = OTLPMetricExporter(endpoint=endpoint, timeout=PATIENCE, **common)
    stopping = Event()

    def send() -> None:
        snapshot, now = history.snapshot, history.now()
        exporter.export(metrics_data(families(snapshot, now), resource, snapshot.started, now))

    def work() -> None:
        while not stopping.wait(every):
            send()
        send()
        exporter.shutdown()

    thread = Thread(target=work, name="otlp-metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        _join(thread, exporter)


@contextmanager
def _lines(endpoint: str, resource: Resource, common: Mapping[str, Any]) -> Iterator[None]:
    provider = LoggerProvider(resource, shutdown_on_exit=False)
    exporter = OTLPLogExporter(endpoint=endpoint, timeout=PATIENCE_WITH_LINES, **common)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    handler = _LineHandler(provider)
    for logger in OURS:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in OURS:
            logger.removeHandler(handler)
        last = Thread(target=provider.shutdown, name="otlp-lines")
        last.start()
        _join(last, exporter)


@contextmanager
def _traces(history: History, endpoint: str, resource: Resource, common: Mapping[str, Any]) -> Iterator[WindowTraces]:
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=PATIENCE_WITH_LINES, **common)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    try:
        yield WindowTraces(provider.get_tracer(SCOPE, __version__), history.now)
    finally:
        last = Thread(target=provider.shutdown, name="otlp-spans")
        last.start()
        _join(last, exporter)


def _join(thread: Thread, exporter: OTLPMetricExporter | OTLPLogExporter | OTLPSpanExporter) -> None:
    """Wait for a thread that sends the last; not longer for a collector that is away."""
    thread.join(PARTING)
    if thread.is_alive():
        exporter.shutdown()
        thread.join()


class _LineHandler(logging.Handler):
    """Hands on what is logged: the message, and the facts as attributes."""

    def __init__(self, provider: LoggerProvider) -> None:
        super().__init__()
        self._logger = provider.get_logger(SCOPE, __version__)

    def emit(self, record: logging.LogRecord) -> None:
        self._logger.emit(
            LogRecord(
                timestamp=int(record.created * 1e9),
                observed_timestamp=time.time_ns(),
                severity_text=record.levelname,
                severity_number=_SEVERITY.get(record.levelno, SeverityNumber.INFO),
                body=record.getMessage(),
                attributes={name: value for name, value in getattr(record, "facts", {}).items() if value is not None},
            )
        )
