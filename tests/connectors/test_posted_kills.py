"""A source that is posted to and a sink beside it, killed again and again while somebody posts.

What the sender was answered 200 for is published, once, in its order, whatever the instant of the kill. Nothing but the
two connectors runs here, so that kills are many and lie anywhere; `tests/service/test_posted_kills.py` has the whole
service.
"""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import httpx
import pytest

from connectors.http import HttpSource
from connectors.http import source as open_source
from connectors.resultfiles import ResultFiles
from monitor.ports import Checkpoint, Message, Progress
from tests.processes import free_port, wait_until

TOGETHER = 20
OPTIONS = {"max_log_bytes": 200_000, "max_body_bytes": 40_000}


def copy(folder: Path, port: int) -> None:
    """Publish each record that is posted, with where it was read to; until killed."""
    sink = ResultFiles(folder / "results.jsonl")
    source = open_source(f"//127.0.0.1:{port}/", OPTIONS, folder)
    assert isinstance(source, HttpSource)
    source.start(sink.recover())
    while True:
        for batch in source.poll(0.05):
            for record in batch.records:
                sink.write(Message("results", b"", record or b""))
            sink.commit(
                Checkpoint({"posted": Progress(batch.next_offset, mark=source.mark("posted", batch.next_offset))})
            )


@contextmanager
def copying(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does so, killed at the end."""
    process = subprocess.Popen([sys.executable, "-m", "tests.connectors.test_posted_kills", str(folder), str(port)])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.chaos)])
def test_nothing_acknowledged_is_lost_and_nothing_is_there_twice(tmp_path: Path, kills: int) -> None:
    port, posts, again = free_port(), 0, 0  # as many were answered, and so many were not
    rng = random.Random(kills)
    with httpx.Client(timeout=5) as client:
        for _ in range(kills):
            with copying(tmp_path, port) as process:
                wait_until(lambda: posted(client, port, posts), "an answer")  # noqa: B023
                posts += 1
                Timer(rng.uniform(0.0, 0.2), process.kill).start()
                while process.poll() is None:
                    if posted(client, port, posts):
                        posts += 1
                    else:
                        again += 1
        with copying(tmp_path, port):
            wait_until(lambda: posted(client, port, posts), "the last post")
            results = tmp_path / "results.jsonl"
            wait_until(lambda: results.read_bytes().count(b"\n") >= (posts + 1) * TOGETHER, "the last record")
    assert results.read_bytes().splitlines() == [record for post in range(posts + 1) for record in records(post)]
    assert again > 0


def records(post: int) -> list[bytes]:
    return [b'{"n":%d,"pad":"%s"}' % (post * TOGETHER + n, b"x" * (n * 7 % 90)) for n in range(TOGETHER)]


def posted(client: httpx.Client, port: int, post: int) -> bool:
    """Whether a post was answered with 200."""
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"post-{post}"}
    try:
        answer = client.post(f"http://127.0.0.1:{port}/", content=b"\n".join(records(post)), headers=headers)
    except httpx.HTTPError:  # nobody there, or killed in the middle
        return False
    assert answer.status_code in (200, 429), answer.text
    return answer.status_code == 200


if __name__ == "__main__":
    copy(Path(sys.argv[1]), int(sys.argv[2]))
