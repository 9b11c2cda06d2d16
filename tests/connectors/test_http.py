"""The source that is posted to: whatever comes is answered, and what was answered with 200 is there after any kill."""

import json
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.http import HttpSource, log, source
from connectors.http.bodies import RefusedPostError, posted
from connectors.http.log import EventLog, Posted
from monitor.commands.connectors import open_source
from monitor.errors import ConfigurationError, ConnectorError
from monitor.events import Decoder, EventMapping
from monitor.ports import Checkpoint, Progress, RawBatch
from monitor.ports.schema import StreamSchema

LINES = {"Content-Type": "application/x-ndjson"}
JSON = {"Content-Type": "application/json"}
EVENT = {"specversion": "1.0", "id": "7", "source": "/a", "type": "scored", "data": {"score": 0.25}}


CLIENT = httpx.Client(timeout=20)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpSource]:
    """One that every test leaves with nothing to read."""
    shared = made(tmp_path_factory.mktemp("shared"))
    shared.start(None)
    yield shared
    shared.close()


@pytest.fixture(scope="module", autouse=True)
def client() -> Iterator[None]:
    with CLIENT:
        yield


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[HttpSource]:
    opened = made(tmp_path)
    opened.start(None)
    yield opened
    opened.close()


def made(folder: Path, **options: Any) -> HttpSource:
    made = open_source("http://127.0.0.1:0/events", options, folder)
    assert isinstance(made, HttpSource)
    return made


def post(source: HttpSource, body: bytes | str, headers: Mapping[str, str] = LINES) -> httpx.Response:
    return CLIENT.post(source.url, content=body, headers=dict(headers))


def taken(source: HttpSource) -> list[bytes]:
    return [record for batch in batches(source) for record in batch.records if record is not None]


def batches(source: HttpSource) -> Iterator[RawBatch]:
    while source.waiting("posted"):
        yield from source.poll(0.0)


def resumed(folder: Path, offset: int, **options: Any) -> HttpSource:
    source = made(folder, **options)
    try:
        source.start(Checkpoint({"posted": Progress(offset)}))
    except ConnectorError:
        source.close()
        raise
    return source


@pytest.mark.parametrize(
    ("headers", "body", "records"),
    [
        (LINES, b'{"a":1}\n{"a":2}', [b'{"a":1}', b'{"a":2}']),
        (LINES, b'\n{"a":1}\r\n\r\n{"a":2}\n', [b'{"a":1}\r', b'{"a":2}']),
        (LINES, b"not json\n", [b"not json"]),
        (JSON, b'{"a":\n 1}', [b'{"a":1}']),
        (JSON, b'[{"a": 1},\n {"a":\n 2}, 3]', [b'{"a": 1}', b'{"a":2}', b"3"]),
        (
            {"Content-Type": "application/cloudevents+json; charset=utf-8"},
            json.dumps(EVENT, indent=1),
            [json.dumps(EVENT, separators=(",", ":")).encode()],
        ),
        (
            {"Content-Type": "application/cloudevents-batch+json"},
            json.dumps([EVENT | {"id": "8"}, EVENT | {"id": "9"}]),
            [json.dumps(EVENT | {"id": "8"}).encode(), json.dumps(EVENT | {"id": "9"}).encode()],
        ),
        (
            {"ce-specversion": "1.0", "CE-Id": "7", "ce-source": "/a%20b", "ce-type": "scored", **JSON},
            b'{"score":\n0.25}',
            [
                b'{"specversion":"1.0","id":"7","source":"/a b","type":"scored",'
                b'"datacontenttype":"application/json","data":{"score":0.25}}'
            ],
        ),
        (
            {"ce-specversion": "1.0", "ce-id": "7", "ce-source": "a", "ce-type": "t", "Content-Type": "image/png"},
            b"\x00\x01",
            [
                b'{"specversion":"1.0","id":"7","source":"a","type":"t","datacontenttype":"image/png",'
                b'"data_base64":"AAE="}'
            ],
        ),
    ],
)
def test_each_kind_of_body_becomes_lines(
    shared: HttpSource, headers: Mapping[str, str], body: bytes | str, records: Sequence[bytes]
) -> None:
    answer = post(shared, body, headers)
    assert (answer.status_code, answer.content) == (200, b"")  # Knative takes an answer's body for another event
    assert taken(shared) == list(records)


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (JSON, b"[1, 2", 400),
        (JSON, b"[]", 400),
        (JSON, b"[" * 100_000, 400),
        (LINES, b" \n", 400),
        ({"Content-Type": "application/cloudevents+json"}, b'{"id": "7"}', 400),
        ({"ce-specversion": "1.0", "ce-id": "7", **JSON}, b"{}", 400),
        ({"ce-specversion": "1.0", "ce-id": "7", "ce-source": "a", "ce-type": "t", **JSON}, b"{", 400),
        ({"Content-Type": "text/plain"}, b"{}", 415),  # a browser sends it to anybody unasked
        ({**LINES, "Content-Encoding": "gzip"}, b"{}", 415),
        ({"Content-Type": "application/json; charset=utf-16"}, b"{}", 415),
        (LINES, b"x" * (8 << 20) + b"\n", 413),
        ({**LINES, "X-Long": "x" * 17_000}, b"{}", 431),
        ({**LINES, "Host": "attacker.example"}, b"{}", 421),
    ],
)
def test_what_cannot_be_taken_is_refused_whole(
    shared: HttpSource, headers: Mapping[str, str], body: bytes, status: int
) -> None:
    assert post(shared, body, headers).status_code in ({status, 400} if status == 431 else {status})
    assert not shared.waiting("posted")
    assert post(shared, b"{}").status_code == 200
    assert taken(shared) == [b"{}"]


def test_a_response_that_kserves_logger_posts_is_the_events_of_its_preset(shared: HttpSource) -> None:
    attributes = {
        "specversion": "1.0",
        "id": "0e8ba07e",
        "source": "http://localhost:9081/",
        "type": "org.kubeflow.serving.inference.response",
        "time": "2026-11-18T12:00:00.5Z",
        "inferenceservicename": "iris",
    }
    headers = {f"Ce-{name.capitalize()}": value for name, value in attributes.items()} | JSON
    assert post(shared, b'{"predictions": [[0.8, 0.2], [0.1, 0.9]]}', headers).status_code == 200
    (batch,) = batches(shared)
    decoder = Decoder([StreamSchema("iris", ("a", "b"))], identified=["iris"], mapping=EventMapping(preset="kserve-v1"))
    decoded = decoder.decode(batch, 2**60)
    assert decoded.rejected == ()
    rows = decoded.scored["iris"].rows
    assert list(rows.ids) == ["0e8ba07e/0", "0e8ba07e/1"]
    assert rows.posteriors.tolist() == [[0.8, 0.2], [0.1, 0.9]]
    assert rows.times.tolist() == [1_795_003_200_500_000] * 2


def test_only_posts_to_its_path_are_taken(shared: HttpSource) -> None:
    assert CLIENT.get(shared.url).status_code == 405
    assert CLIENT.post(shared.url + "/x", content=b"{}", headers=LINES).status_code == 404


def test_a_body_without_a_length_is_taken_up_to_the_bound(shared: HttpSource) -> None:
    def pieces(count: int) -> Iterator[bytes]:
        for _ in range(count):
            yield b'{"a":1}\n' * 8_192

    assert CLIENT.post(shared.url, content=pieces(3), headers=LINES).status_code == 200
    assert len(taken(shared)) == 3 * 8_192
    with suppress(httpx.HTTPError):  # cut off in the middle of sending
        assert CLIENT.post(shared.url, content=pieces(200), headers=LINES).status_code == 413
    assert not shared.waiting("posted")


def test_a_sender_shows_the_token(tmp_path: Path) -> None:
    source = made(tmp_path, token="secret")
    source.start(None)
    try:
        assert post(source, b"{}").status_code == 401
        assert post(source, b"{}", LINES | {"Authorization": "Bearer wrong"}).status_code == 401
        assert post(source, b"{}", LINES | {"Authorization": "Bearer secret"}).status_code == 200
        report = source.report().intake
        assert report is not None
        assert report.posts == {"unauthorized": 2, "accepted": 1}
    finally:
        source.close()


def test_posts_are_taken_under_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    source = made(tmp_path, certificate="c.pem", key="k.pem")
    source.start(None)
    try:
        assert source.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=certificate)
        assert httpx.post(source.url, content=b"{}", headers=LINES, verify=trusting).status_code == 200
    finally:
        source.close()


@pytest.mark.parametrize(
    ("rest", "options", "problem"),
    [
        ("//0.0.0.0:8090/events", {}, "want a `token`"),
        ("//127.0.0.1:99999/events", {}, "want a port"),
        ("///events", {}, "want a place to listen at"),
        ("//127.0.0.1:80/", {"certificate": "c"}, "`certificate` and `key` together"),
        ("//127.0.0.1:80/", {"max_log_bytes": 1_000}, "at least four times"),
        ("//127.0.0.1:80/", {"tokn": "x"}, "did you mean 'token'"),
    ],
)
def test_settings_that_cannot_be_are_told(tmp_path: Path, rest: str, options: Mapping[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        source(rest, options, tmp_path)


def test_without_a_token_other_machines_may_post_where_that_is_said(tmp_path: Path) -> None:
    anywhere = source("//0.0.0.0:0/", {"anyone": True}, tmp_path)
    anywhere.start(None)
    try:
        assert isinstance(anywhere, HttpSource)
        url = anywhere.url.replace("//0.0.0.0:", "//127.0.0.1:")
        assert CLIENT.post(url, content=b"{}", headers=LINES | {"Host": "doors.models.svc"}).status_code == 200
    finally:
        anywhere.close()


def test_a_port_that_is_taken_is_told_and_the_log_is_free_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = source(f"//127.0.0.1:{taken.getsockname()[1]}/", {}, tmp_path)
        with pytest.raises(ConfigurationError, match="source: cannot listen"):
            busy.start(None)
        busy.close()
    resumed(tmp_path, 0).close()


def test_what_is_posted_at_once_by_many_is_there_once(shared: HttpSource) -> None:
    with ThreadPoolExecutor(16) as senders:
        answers = list(senders.map(lambda n: post(shared, f'{{"n":{n}}}').status_code, range(200)))
    assert answers == [200] * 200
    assert sorted(json.loads(line)["n"] for line in taken(shared)) == list(range(200))


def test_what_is_sent_again_under_its_key_or_as_the_same_cloud_event_counts_once(tmp_path: Path) -> None:
    key, event = LINES | {"Idempotency-Key": "batch-1"}, {"Content-Type": "application/cloudevents+json"}
    first = made(tmp_path)
    first.start(None)
    for _ in range(2):
        assert post(first, b"1", key).status_code == 200
        assert post(first, json.dumps(EVENT), event).status_code == 200
    assert post(first, b"2", LINES).status_code == 200
    assert len(taken(first)) == 3
    first.close()
    again = resumed(tmp_path, 0)
    assert post(again, b"1", key).status_code == 200
    batch = json.dumps([EVENT, EVENT | {"type": "another"}])
    assert post(again, batch, {"Content-Type": "application/cloudevents-batch+json"}).status_code == 200
    assert [json.loads(line) for line in taken(again)] == [1, EVENT, 2, EVENT | {"type": "another"}]
    again.close()


def test_reading_goes_on_from_any_record_and_after_any_batch(tmp_path: Path) -> None:
    first = made(tmp_path)
    first.start(None)
    for n in range(12):
        assert post(first, b"".join(b'{"n":%d,"m":%d}\n' % (n, m) for m in range(n % 4 + 1))).status_code == 200
    whole = list(batches(first))
    first.close()
    records = [record for batch in whole for record in batch.records]
    offsets = [int(offset) for batch in whole for offset in batch.offsets]
    assert len(records) == 30
    offsets.append(whole[-1].next_offset)
    for number in (0, 1, 8, 16, 29, 30):
        again = resumed(tmp_path, offsets[number])
        assert taken(again) == records[number:]
        again.close()


def test_a_log_that_was_cut_at_any_byte_holds_whole_posts_and_goes_on(tmp_path: Path) -> None:
    posts = [Posted(b"first\n", b"k"), Posted(b'{"second":2}\n'), Posted(b"third\nfourth\n")]
    whole = EventLog(tmp_path / "log", 1 << 20)
    whole.open(None)
    ends = []
    for each in posts:
        whole.append([each])
        ends.append(whole.end)
    whole.close()
    path = next((tmp_path / "log").glob("*.log"))
    data = path.read_bytes()
    for length in {*range(0, len(data), 5), *ends}:
        path.write_bytes(data[:length])
        cut = EventLog(tmp_path / "log", 1 << 20)
        assert cut.open(None) == 0
        left = sum(end <= length for end in ends)
        assert cut.end == ([0, *ends])[left]
        cut.append([Posted(b"after\n")])
        frames, _ = cut.read(0, 1 << 20)
        assert [frame.lines for frame in frames] == [*(each.lines for each in posts[:left]), b"after\n"]
        cut.close()


def test_a_full_log_refuses_until_what_was_read_is_committed(tmp_path: Path) -> None:
    source = made(tmp_path, max_log_bytes=400_000, max_body_bytes=100_000)
    source.start(None)
    answers: list[httpx.Response] = []
    while not answers or answers[-1].status_code == 200:
        answers.append(post(source, b"x" * 20_000))
    assert answers[-1].status_code == 429
    assert answers[-1].headers["Retry-After"] == "5"
    report = source.report().intake
    assert report is not None
    assert report.posts == {"accepted": len(answers) - 1, "full": 1}
    assert report.log_bytes <= report.log_limit_bytes == 400_000
    assert sum(path.stat().st_size for path in (tmp_path / "posted").iterdir()) <= 400_000
    read = list(batches(source))
    assert sum(len(batch.records) for batch in read) == len(answers) - 1
    last = read[-1].next_offset
    source.mark("posted", last)
    assert post(source, b"x" * 20_000).status_code == 429  # that commit may have failed
    assert list(source.poll(0.0)) == []  # it has not: there may never be another, as nothing is let in before
    assert post(source, b"x" * 20_000).status_code == 200
    source.close()
    with pytest.raises(ConnectorError, match="not the log that was read up to 0"):
        resumed(tmp_path, 0, max_log_bytes=400_000, max_body_bytes=100_000)


def test_a_log_that_is_gone_is_a_gap_and_begins_anew_where_it_was_read(tmp_path: Path) -> None:
    source = resumed(tmp_path, 1_000)
    assert post(source, b"1").status_code == 200
    gap, batch = [*source.poll(0.0), *source.poll(0.0)]
    assert (gap.skipped, len(gap.records), gap.next_offset) == (1, 0, 1_000)
    assert batch.offsets[0] > 1_000
    source.close()


def test_two_processes_cannot_have_one_log(opened: HttpSource, tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="another process has this log open"):
        resumed(tmp_path, 0)


def test_a_disk_that_fails_is_told_to_the_sender_and_nothing_of_the_post_is_there(
    opened: HttpSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(log.os, "fsync", failing)
        full.setattr(log.os, "ftruncate", failing)
        answer = post(opened, b"this is lost", LINES | {"Idempotency-Key": "k"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert post(opened, b"kept", LINES | {"Idempotency-Key": "k"}).status_code == 200
    assert taken(opened) == [b"kept"]


def test_a_damaged_log_is_told(tmp_path: Path) -> None:
    source = resumed(tmp_path, 0)
    for _ in range(2):
        post(source, b"record")
    path = next((tmp_path / "posted").glob("*.log"))
    data = path.read_bytes()
    path.write_bytes(data[:20] + b"X" + data[21:])
    with pytest.raises(ConnectorError, match="damaged at byte 0"):
        source.poll(0.0)
    source.close()


KINDS = (
    *("application/json", "application/x-ndjson", "application/cloudevents+json", "application/cloudevents-batch+json"),
    *("", "text/plain", "application/xml"),
)
NAMES = (b"ce-specversion", b"ce-id", b"ce-source", b"ce-type", b"idempotency-key", b"content-encoding")
VALUES = st.recursive(
    st.none() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=4
)


@given(
    kind=st.sampled_from(KINDS),
    headers=st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=8)),
    body=st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value, indent=1).encode()),
)
def test_whatever_is_posted_becomes_lines_or_is_refused_by_name(
    kind: str, headers: Mapping[bytes, bytes], body: bytes
) -> None:
    posts, refusal = judged({**headers, b"content-type": kind.encode()}, body)
    assert bool(posts) != (refusal is not None)
    assert refusal is None or (refusal.status, refusal.reason) in REFUSALS
    for each in posts:
        assert each.lines.endswith(b"\n")
        assert each.lines.count(b"\n") == 1 or kind in KINDS[:2]


REFUSALS = {(400, "unreadable"), (400, "empty"), (415, "unknown-type")}


def judged(headers: Mapping[bytes, bytes], body: bytes) -> tuple[Sequence[Posted], RefusedPostError | None]:
    try:
        return posted(headers, body), None
    except RefusedPostError as error:
        return (), error
