"""What a collector of OpenTelemetry gets: the catalogue under the same names, and the lines of the log, each once.

Most of these tests have a collector of ours on loopback, which reads OTLP by the protocol's own generated classes. One
has OpenTelemetry's own, built from its Go modules (`collector/`), where that is installed.
"""

import gzip
import json
import logging
import math
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `otlp` is not installed")

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from monitor.commands.cli import main
from monitor.observers.metric_catalogue import CATALOGUE
from monitor.observers.metrics import families
from monitor.observers.otlp import PARTING, exporting
from monitor.service import Committed, Reassigned
from monitor.settings import OtlpSettings
from monitor.windows import WindowCheckpoint
from tests.observers.test_metrics import full_story
from tests.processes import free_port, wait_until
from tests.service.streams import lines, reference
from tests.state.test_evidence import many, windows

REQUESTS = {
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/traces": ExportTraceServiceRequest,
}


@dataclass
class Collector:
    """What came."""

    url: str = ""
    metrics: list[Any] = field(default_factory=list)
    """The metrics of each request, by name."""
    lines: list[Any] = field(default_factory=list)
    spans: list[Any] = field(default_factory=list)
    resource: dict[str, str] = field(default_factory=dict)
    headers: list[str | None] = field(default_factory=list)
    refusing: int = 0
    """So many requests are answered with 503."""

    def take(self, path: str, body: bytes, header: str | None) -> int:
        if self.refusing:
            self.refusing -= 1
            return 503
        request = REQUESTS[path].FromString(body)
        self.headers.append(header)
        for group in request.resource_metrics if path == "/v1/metrics" else ():
            self.resource = {each.key: each.value.string_value for each in group.resource.attributes}
            self.metrics.append({each.name: each for scope in group.scope_metrics for each in scope.metrics})
        for group in request.resource_logs if path == "/v1/logs" else ():
            self.lines += [line for scope in group.scope_logs for line in scope.log_records]
        for group in request.resource_spans if path == "/v1/traces" else ():
            self.spans += [span for scope in group.scope_spans for span in scope.spans]
        return 200


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            self.send_response(collector.take(self.path, body, self.headers.get("X-Team")))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def attributes(of: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in of.attributes}


def test_the_collector_gets_what_prometheus_gets() -> None:
    story = full_story()
    with collecting() as collector, exporting(story.history, collector.url, {"X-Team": "fraud"}, 60):
        pass
    (sent,) = collector.metrics
    known = {family.name: family for family in families(story.history.snapshot, story.history.now())}
    kinds = {"gauge": "gauge", "info": "gauge", "counter": "sum", "histogram": "histogram"}
    assert {(spec.full_name, kinds[spec.kind]) for spec in CATALOGUE if f"shiftwatch_{spec.name}" in known} == {
        (name, metric.WhichOneof("data")) for name, metric in sent.items()
    }
    for family in known.values():
        for sample in family.samples if family.type != "histogram" else ():
            data = getattr(sent[sample.name], sent[sample.name].WhichOneof("data"))
            (point,) = [each for each in data.data_points if attributes(each) == sample.labels]
            assert point.as_double == sample.value or math.isnan(sample.value)
    rejected = sent["shiftwatch_rejected_total"].sum
    assert rejected.is_monotonic
    assert all(point.start_time_unix_nano for point in rejected.data_points)
    assert sent["shiftwatch_commit_duration_seconds"].unit == "s"
    assert collector.resource["service.name"] == "shiftwatch"
    assert collector.headers == ["fraud"]


COLLECTOR = """
receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: "127.0.0.1:{port}" }} }} }} }}
exporters: {{ debug: {{ verbosity: detailed }} }}
service:
  telemetry: {{ metrics: {{ level: none }} }}
  pipelines:
    metrics: {{ receivers: [otlp], exporters: [debug] }}
    logs: {{ receivers: [otlp], exporters: [debug] }}
    traces: {{ receivers: [otlp], exporters: [debug] }}
"""


@pytest.mark.skipif(shutil.which("otelcol") is None, reason="otelcol is not installed (.ci/install-parts builds it)")
def test_opentelemetrys_own_collector_understands_all_of_it(tmp_path: Path) -> None:
    story, port, output = full_story(), free_port(), tmp_path / "output.txt"
    (tmp_path / "collector.yaml").write_text(COLLECTOR.format(port=port))
    with output.open("wb") as file:
        command = ["otelcol", "--config", f"file:{tmp_path / 'collector.yaml'}"]
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        wait_until(lambda: "Everything is ready" in output.read_text(), "the collector")
        with exporting(story.history, f"http://127.0.0.1:{port}", {}, 60, traces=True) as (traces,):
            logging.getLogger("shiftwatch").warning("window", extra={"facts": {"stream": "fraud"}})
            traces(windows([0.3], many())[0])
            traces(Committed(WindowCheckpoint(), 0.01, windows=1))
        wait_until(lambda: "shiftwatch_build_info" in output.read_text(), "the metrics")
    finally:
        process.terminate()
        process.wait()
    said = output.read_text()
    filled = {family.name for family in families(story.history.snapshot, story.history.now())}
    names = {spec.full_name for spec in CATALOGUE if f"shiftwatch_{spec.name}" in filled}
    assert set(re.findall(r"-> Name: (\S+)", said)) == names
    assert re.findall(r"\n    Name +: (\S+)", said) == ["assess", "wait", "commit", "window"]
    assert "-> verdict: Str(stable)" in said
    assert re.search(r"SeverityText: WARNING\nSeverityNumber: Warn\(13\)\nBody: Str\(window\)", said)
    assert "-> service.name: Str(shiftwatch)" in said


def test_buckets_count_what_lies_between_two_bounds() -> None:
    story = full_story()
    with collecting() as collector, exporting(story.history, collector.url, {}, 60, logs=False):
        pass
    histograms = [metric.histogram for metric in collector.metrics[0].values() if metric.HasField("histogram")]
    assert histograms
    for histogram in histograms:
        for point in histogram.data_points:
            assert sum(point.bucket_counts) == point.count
            assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
            assert not point.HasField("min")


def test_lines_have_their_facts_and_their_severity() -> None:
    log = logging.getLogger("shiftwatch")
    with collecting() as collector, exporting(full_story().history, collector.url, {}, 60):
        log.warning("window", extra={"facts": {"stream": "fraud", "events": 500}})
    assert not log.handlers
    (line,) = collector.lines
    assert (line.body.string_value, line.severity_text, line.severity_number) == ("window", "WARNING", 13)
    assert {each.key: each.value.string_value or each.value.int_value for each in line.attributes} == {
        "stream": "fraud",
        "events": 500,
    }
    assert abs(line.time_unix_nano / 1e9 - time.time()) < 60


def test_metrics_go_on_where_the_collector_was_away(caplog: pytest.LogCaptureFixture) -> None:
    with collecting() as collector, exporting(full_story().history, collector.url, {}, 0.05, logs=False):
        collector.refusing = 2
        wait_until(lambda: len(collector.metrics) > 1, "metrics after an outage")


def test_a_collector_that_is_not_there_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    began = time.monotonic()
    with exporting(full_story().history, "http://127.0.0.1:9", {}, 0.01):
        logging.getLogger("shiftwatch").warning("window")
        time.sleep(0.2)
    assert time.monotonic() - began < 3 * PARTING


CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"

[sink]
url = "jsonl:results.jsonl"

[otlp]
endpoint = "{url}"
headers = {{ X-Team = "${{TEAM}}" }}

[pace]
workers = 0

[streams.s]
reference = "s.ref"
window = {{ size = "1m", lateness = "10s" }}
"""


def test_a_run_sends_metrics_and_lines_beside_whatever_else_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM", "fraud")
    reference().save(tmp_path / "s.ref")
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(record or b"" for record in lines(200)))
    with collecting() as collector:
        (tmp_path / "shiftwatch.toml").write_text(CONFIGURATION.format(url=collector.url))
        assert main(["run", str(tmp_path / "shiftwatch.toml")]) == 0
    events = collector.metrics[-1]["shiftwatch_events_total"].sum.data_points
    assert [(attributes(point), point.as_double) for point in events] == [({"stream": "s"}, 200)]
    said = [line.body.string_value for line in collector.lines]
    assert said.count("window") == 4
    assert set(collector.headers) == {"fraud"}


def test_a_run_traces_the_way_of_each_window_and_of_its_segments_where_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM", "fraud")
    reference().save(tmp_path / "s.ref")
    events = [json.loads(record or b"") | {"segment": {"country": "BE"}} for record in lines(200)]
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
    with collecting() as collector:
        text = CONFIGURATION.format(url=collector.url).replace("[otlp]", "[otlp]\ntraces = true")
        (tmp_path / "shiftwatch.toml").write_text(f'{text}segments = ["country"]\n')
        assert main(["run", str(tmp_path / "shiftwatch.toml")]) == 0
    roots = [span for span in collector.spans if not span.parent_span_id]
    assert len(roots) == len({root.trace_id for root in roots}) == 4
    for root in roots:
        parts = [span for span in collector.spans if span.parent_span_id == root.span_id]
        assert (root.name, [part.name for part in parts]) == ("window", ["assess", "assess", "wait", "commit"])
        assert attributes(parts[1]) == {"segment": "country=BE"}
        assert [part.start_time_unix_nano for part in parts[1:]] == [part.end_time_unix_nano for part in parts[:-1]]
        assert (root.start_time_unix_nano, root.end_time_unix_nano) == (
            parts[0].start_time_unix_nano,
            parts[-1].end_time_unix_nano,
        )
    assert [attributes(root)["verdict"] for root in roots] == ["insufficient-data"] * 4


def test_a_window_is_traced_once_when_it_is_committed() -> None:
    """The first is refused and told of again; the second waits for a later commit."""
    first, second = windows([0.3, 0.3], many())
    with collecting() as collector, exporting(full_story().history, collector.url, {}, 60, traces=True) as (traces,):
        for happening in (first, Reassigned(refused="fenced"), first, second):
            traces(happening)
        traces(Committed(WindowCheckpoint(), 0.01, windows=1))
        traces(Committed(WindowCheckpoint(), 0.01))
    assert [attributes(span)["end"] for span in collector.spans if span.name == "window"] == [
        "1970-01-01T00:01:00+00:00"
    ]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('endpoint = "localhost:4318"', "want `endpoint` as http"),
        ('every = "1ms"', "want `every` of at least 1s"),
        ("profiles = true", "there is no such setting"),
    ],
)
def test_settings_that_cannot_be_are_named(
    tmp_path: Path, table: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CONFIGURATION.format(url="http://x").replace('endpoint = "http://x"', table).replace("${TEAM}", "x")
    (tmp_path / "shiftwatch.toml").write_text(text)
    assert main(["check", str(tmp_path / "shiftwatch.toml")]) == 2
    assert problem in capsys.readouterr().err


def test_secrets_are_not_shown() -> None:
    assert "hush" not in repr(OtlpSettings(headers={"Authorization": "hush"}))
