"""Clients may be slow, huge, malformed or many: they get an answer or are cut off, and the loop does not notice."""

import re
import socket
import ssl
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread

import httpx
import pytest

from connectors.memory import MemoryLog, MemorySink, MemorySource
from monitor.errors import ConfigurationError
from monitor.events.decoding import Decoder
from monitor.observers.history import History
from monitor.observers.snapshot import facts
from monitor.ports import listening
from monitor.service.loop import Pace, Service
from monitor.service.notices import Turned
from monitor.service.publishing import Watched
from monitor.settings.config import ServerSettings
from monitor.web import renewal
from monitor.web.server import not_ready, serving
from monitor.windows.by_time import TimePlan
from tests.deploy.parts import until
from tests.processes import wait_until
from tests.service.streams import lines, reference
from tests.web.made_up import MINUTE, Story

SETTINGS = ServerSettings(port=0)


@pytest.fixture
def story() -> Story:
    story = Story(features=100)
    for _ in range(50):
        story.window()
    story.busy()
    return story


@pytest.fixture
def url(story: Story) -> Iterator[str]:
    with serving(SETTINGS, story.history) as url:
        yield url


def connect(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def answered(connection: socket.socket) -> bytes:
    received = b""
    try:
        while piece := connection.recv(65_536):
            received += piece
    except (TimeoutError, ConnectionResetError):
        pass
    return received


def test_it_listens_on_loopback_only_unless_told_otherwise(url: str) -> None:
    assert url.startswith("http://127.0.0.1:")
    assert ServerSettings().host == "127.0.0.1"


def test_every_answer_carries_headers_that_keep_browsers_honest(url: str) -> None:
    for path in ("/", "/metrics", "/api/streams", "/nothing", "/healthz"):
        headers = httpx.get(url + path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


def test_answers_are_compressed_for_those_who_want_it(url: str) -> None:
    compressed = httpx.get(url + "/metrics", headers={"Accept-Encoding": "gzip"})
    assert compressed.headers["content-encoding"] == "gzip"
    assert int(compressed.headers["content-length"]) < len(compressed.content) / 5


def test_prometheus_gets_the_format_that_it_asks_for(url: str) -> None:
    assert httpx.get(url + "/metrics").headers["content-type"].startswith("text/plain")
    wanted = {"Accept": "application/openmetrics-text;version=1.0.0"}
    answer = httpx.get(url + "/metrics", headers=wanted)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_a_member_of_a_group_that_waits_for_partitions_is_ready(story: Story) -> None:
    story.tell(Turned((), frozenset(), frozenset(), 0))
    assert not_ready(story.history) == ""


def test_ready_means_that_the_loop_turns(story: Story) -> None:
    assert not_ready(Story().history) == "the loop has not turned yet"
    assert not_ready(story.history) == ""
    story.now += 2 * MINUTE
    assert not_ready(story.history) == "the loop has not turned for 120 s"


def test_a_backlog_whose_windows_come_is_progress_however_long_one_turn_takes(story: Story) -> None:
    for _ in range(10):
        story.now += MINUTE // 2
        story.window()
        assert not_ready(story.history) == ""
    story.now += 2 * MINUTE
    assert not_ready(story.history) == "the loop has not turned for 120 s"


def test_a_token_is_asked_of_everybody_but_probes(story: Story) -> None:
    with serving(ServerSettings(port=0, token="s3cret-token"), story.history) as url:
        for path in ("/", "/metrics", "/api/streams", "/assets/live.js", "/nothing"):
            refused = httpx.get(url + path)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Basic")
            assert httpx.get(url + path, headers={"Authorization": "Bearer wrong"}).status_code == 401
            assert httpx.get(url + path, headers={"Authorization": "Basic !!!"}).status_code == 401
        assert httpx.get(url + "/metrics", headers={"Authorization": "Bearer s3cret-token"}).status_code == 200
        assert httpx.get(url + "/", auth=("anybody", "s3cret-token")).status_code == 200
        weird = b64encode("j\xfc:".encode("latin-1") + b"\xff\xfe").decode()
        assert httpx.get(url + "/", headers={"Authorization": f"Basic {weird}"}).status_code == 401
        assert httpx.get(url + "/healthz").status_code == 200
        assert httpx.get(url + "/readyz").status_code == 200


def test_the_token_does_not_show_in_the_settings() -> None:
    assert "s3cret" not in repr(ServerSettings(token="s3cret"))


def certify(folder: Path, days: int = 2) -> Path:
    """A key and a certificate of its own for this machine."""
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", str(days), *names, *files]
    subprocess.run(make, check=True, capture_output=True)
    return folder / "cert.pem"


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


def test_it_speaks_tls(story: Story, tmp_path: Path) -> None:
    certificate = certify(tmp_path)
    settings = ServerSettings(port=0, certificate=Path("cert.pem"), key=Path("key.pem"))
    with serving(settings, story.history, tmp_path) as url:
        assert url.startswith("https://")
        assert httpx.get(url + "/healthz", verify=trusting(certificate)).text == "alive\n"


def test_a_certificate_and_a_token_are_renewed_without_a_restart(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewal, "RENEWAL_SECONDS", 0.05)
    certificate, token = certify(tmp_path), ["first"]

    def read() -> ServerSettings:
        return ServerSettings(port=0, token=token[0], certificate=Path("cert.pem"), key=Path("key.pem"))

    def status(known: str) -> int:
        headers = {"Authorization": f"Bearer {known}"}
        return httpx.get(url + "/metrics", headers=headers, verify=trusting(certificate)).status_code

    with serving(read(), story.history, tmp_path, read) as url:
        assert (status("first"), status("second")) == (200, 401)
        token[0] = "second"
        wait_until(lambda: status("second") == 200, "the new token")
        assert status("first") == 401
        old = trusting(certificate)
        certify(tmp_path)
        wait_until(lambda: trusted(url, certificate), "the new certificate")
        with pytest.raises(httpx.ConnectError):
            httpx.get(url + "/healthz", verify=old)
        (tmp_path / "key.pem").write_text("half", encoding="utf-8")
        time.sleep(0.3)
        assert trusted(url, certificate), "what cannot be used leaves what was in force"


def trusted(url: str, certificate: Path) -> bool:
    with suppress(httpx.ConnectError):
        return httpx.get(url + "/healthz", verify=trusting(certificate)).status_code == 200
    return False


def test_an_address_of_the_sixth_version_can_be_followed(story: Story) -> None:
    with serving(ServerSettings(host="::1", port=0), story.history) as url:
        assert httpx.get(url + "/healthz").text == "alive\n"


def test_what_cannot_be_listened_on_or_loaded_is_a_problem_of_the_configuration(story: Story, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1:{port}"):
            serving(ServerSettings(port=port), story.history).__enter__()
    settings = ServerSettings(port=0, certificate=Path("none.pem"), key=Path("none.pem"))
    with pytest.raises(ConfigurationError, match="cannot listen"):
        serving(settings, story.history, tmp_path).__enter__()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\xff\xfe rubbish\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: minus one\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=["bytes", "no-target", "length", "two-lengths", "long-header", "long-target", "tls", "http2"],
)
def test_malformed_requests_are_refused_and_cut_off(url: str, sent: bytes) -> None:
    with connect(url) as connection:
        with suppress(OSError):  # it may have been cut off before all was sent
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        reply = answered(connection)
    assert reply == b"" or reply.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5"))
    assert httpx.get(url + "/healthz").status_code == 200


def test_a_huge_body_is_not_read(url: str) -> None:
    with connect(url) as connection:
        connection.sendall(b"POST /api/streams HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\n")
        sent = 0
        try:
            for _ in range(2_000):
                sent += connection.send(b"x" * 65_536)
        except (ConnectionError, TimeoutError):
            pass
    assert sent < 50_000_000
    assert httpx.get(url + "/healthz").status_code == 200


def drip(connection: socket.socket, request: bytes) -> None:
    for byte in request:
        connection.send(bytes([byte]))
        time.sleep(0.02)


def test_slow_clients_are_cut_off(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that brings no whole request in time, whether silent or dripping."""
    monkeypatch.setattr(listening, "REQUEST_SECONDS", 0.3)
    with serving(SETTINGS, story.history) as url, connect(url) as silent, connect(url) as dripping:
        started = time.monotonic()
        with pytest.raises(OSError, match=r"reset|Broken pipe|closed"):
            drip(dripping, b"GET / HTTP/1.1\r\nX: " + b"a" * 1_000)
        assert answered(silent) == b""
        assert time.monotonic() - started < 5


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HT"], ids=["silent", "half-a-request"])
def test_probes_and_scrapes_are_answered_while_a_thousand_connections_say_nothing(story: Story, sent: bytes) -> None:
    with serving(ServerSettings(port=0, max_connections=20), story.history) as url, ExitStack() as held:
        for _ in range(1_000):
            held.enter_context(connect(url)).sendall(sent)
        for path in ("/healthz", "/readyz", "/metrics"):
            took = []
            for _ in range(20):
                began = time.perf_counter()
                with connect(url) as probe:
                    probe.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                    assert answered(probe).startswith(b"HTTP/1.1 200")
                took.append(time.perf_counter() - began)
            assert sorted(took)[10] < 0.1, path


def test_services_that_wait_are_bounded_apart_and_keep_their_place(story: Story) -> None:
    with serving(ServerSettings(port=0, max_connections=5), story.history) as url, ExitStack() as held:
        path = "/api/streams/made-up/recalibration"
        tag = httpx.get(url + path).headers["etag"]
        wait = f"GET {path}?wait=50 HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {tag}\r\n\r\n".encode()
        waiting = [held.enter_context(connect(url)) for _ in range(5)]
        for each in waiting:
            each.sendall(wait)
        time.sleep(0.5)
        refused = httpx.get(f"{url}{path}?wait=50", headers={"If-None-Match": tag})
        assert refused.status_code == 503
        assert "others wait already" in refused.json()["error"]
        for _ in range(200):
            held.enter_context(connect(url))
        assert httpx.get(url + "/healthz").status_code == 200
        for each in waiting:
            each.settimeout(0.2)
            with pytest.raises(TimeoutError):  # neither answered nor cut
                each.recv(1)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8321", "127.0.0.1.evil.example", ""])
def test_a_page_from_elsewhere_cannot_read_what_only_this_machine_may(story: Story, host: str) -> None:
    with serving(SETTINGS, story.history) as url:
        for path in ("/", "/metrics", "/api/streams"):
            assert httpx.get(url + path, headers={"Host": host}).status_code == 421
        for ours in ("localhost", "LOCALHOST:8321", "127.0.0.1", "[::1]:8321"):
            assert httpx.get(url + "/metrics", headers={"Host": ours}).status_code == 200


def test_other_names_are_ours_where_the_settings_or_a_token_say_so(story: Story) -> None:
    asked = {"Host": "drift.example"}
    with serving(ServerSettings(port=0, hosts=("drift.example",)), story.history) as url:
        assert httpx.get(url + "/metrics", headers=asked).status_code == 200
    with serving(ServerSettings(port=0, token="t"), story.history) as url:
        assert httpx.get(url + "/metrics", headers={**asked, "Authorization": "Bearer t"}).status_code == 200


def test_headers_are_bounded_also_where_they_come_at_once(url: str) -> None:
    assert httpx.get(url + "/healthz", headers={"X": "a" * 20_000}).status_code in {400, 431}
    many = {f"X-{number}": "a" * 100 for number in range(200)}
    assert httpx.get(url + "/healthz", headers=many).status_code in {400, 431}
    assert httpx.get(url + "/healthz", headers={"X": "a" * 8_000}).status_code == 200


def test_stopping_does_not_wait_for_those_who_wait(story: Story) -> None:
    with serving(SETTINGS, story.history) as url:
        tag = httpx.get(url + "/api/streams/made-up/recalibration").headers["etag"]
        waiting = Thread(
            target=lambda: httpx.get(
                url + "/api/streams/made-up/recalibration?wait=50", headers={"If-None-Match": tag}, timeout=60
            )
        )
        waiting.start()
        time.sleep(0.3)
        started = time.monotonic()
    assert time.monotonic() - started < 1.5
    waiting.join(5)
    assert not waiting.is_alive()


def test_rough_clients_do_not_disturb_the_loop() -> None:
    """The same results to the byte, and no work put upon the loop's thread, while clients behave badly."""
    records = lines(1_200, jitter_ms=5_000)
    plan = TimePlan(60_000_000, 60_000_000, 10_000_000, 10_000)
    watched = {"s": Watched(reference(), plan)}
    history = History({"s": facts("s", watched["s"])})

    def run(observers: list[History]) -> tuple[MemoryLog, float]:
        sink, started = MemorySink(), time.thread_time()
        service = Service(
            watched,
            Decoder([reference().schema], segments={"s": ()}),
            MemorySource({"p": records}, batch=100),
            sink,
            observers=observers,
            pace=Pace(poll=0.0),
        )
        service.run()
        return sink.log, time.thread_time() - started

    run([])  # caches are filled
    calm, alone = run([])
    with serving(SETTINGS, history) as url:
        stopping: list[bool] = []
        rough = [Thread(target=_misbehave, args=(url, stopping)) for _ in range(3)]
        for one in rough:
            one.start()
        log, disturbed = run([history])
        stopping.append(True)
        for one in rough:
            one.join()
        # While they hold every connection others are turned away; once they are gone there is room again.
        scraped = until(lambda: (told := httpx.get(url + "/metrics")).status_code == 200 and told.text, 90, "a scrape")
    assert log.values("results") == calm.values("results")
    assert disturbed < 1.5 * alone + 0.2
    assert f'shiftwatch_events_total{{stream="s"}} {1200:.1f}' in scraped


def _misbehave(url: str, stopping: list[bool]) -> None:
    while not stopping:
        with connect(url) as slow, connect(url) as broken, connect(url) as greedy:
            slow.send(b"GET / HT")
            broken.sendall(b"\x00" * 30_000 + b"\r\n\r\n")
            greedy.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
            time.sleep(0.02)


@pytest.mark.parametrize("days", [2, 30])
def test_prometheus_is_told_when_the_certificate_in_force_expires(story: Story, tmp_path: Path, days: int) -> None:
    certificate = certify(tmp_path, days)
    settings = ServerSettings(port=0, certificate=Path("cert.pem"), key=Path("key.pem"))
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE  # what has expired is asked, too
    with serving(settings, story.history, tmp_path) as url:
        text = httpx.get(url + "/metrics", verify=anybody).text
    told = re.search(r"^shiftwatch_certificate_expires_timestamp_seconds (\S+)", text, re.MULTILINE)
    assert told is not None, certificate
    assert abs(float(told[1]) - time.time() - days * 86_400) < 3_600
