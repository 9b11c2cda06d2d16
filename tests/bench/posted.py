"""Events per second that are posted by HTTP, from the first post to the last answer, and to the last window's result.

python -m tests.bench.posted [--rounds 3]

The senders and a whole `shiftwatch run` share the machine: every answer waits for the disk, and windows are assessed.
Beside it, in the same round, the same posts go to a bare application of uvicorn that writes each body and calls fsync.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from threading import Lock

import uvicorn

from tests.bench.kafka import WINDOW_EVENTS, records, reference
from tests.bench.machine import load
from tests.bench.options import REPORTS, options
from tests.bench.tables import markdown
from tests.processes import children, free_port, wait_until

SHAPES = {"2 classes": (2, 0), "10 classes, 10 features": (10, 10)}
POSTS = {1: 2_000, 10: 2_000, 100: 2_000, 1_000: 300}
"""How many, by the events in each."""
SENDERS = (1, 8)
LATENESS_S = 20
"""What several senders post overtakes each other by less."""
CONFIGURATION = """
[source]
url = "http://127.0.0.1:{port}/events"
[sink]
url = "jsonl:results.jsonl"
[streams.bench]
reference = "{reference}"
window = {{ size = "10s", lateness = "{lateness}s" }}
"""
HEAD = """# Events that are posted by HTTP

Made by `python -m tests.bench.posted --rounds {rounds}`.

Events a second, medians (lowest and highest) of {rounds} round(s): senders with a connection each, which wait for each
answer, and a whole `shiftwatch run` with its worker on the same {cores} cores. *Acknowledged*: until the last post was
answered, each of them durable. *Beside bare*: that, beside what a bare application of uvicorn that writes each body and
calls fsync does with the same posts in the same round. *Assessed*: until the result of the last window that closes was
there, windows of {window:,} events; empty where none closes. *us an event*, *us a post*: processor time of the
service, workers and assessments included, and that of the bare application in brackets; the least of the rounds. They
hold on a busy machine, too; load average {load}.

"""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one round: posts a second, events a second until they were assessed, processor seconds a post."""

    posts: float
    assessed: float | None
    spent: float


def to_the_service(kept: Path, bodies: Sequence[bytes], together: int, senders: int) -> Figures:
    """A whole `shiftwatch run`."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        (folder / "run.toml").write_text(CONFIGURATION.format(port=port, lateness=LATENESS_S, reference=kept))
        with running("monitor", "run", str(folder / "run.toml")) as process:
            wait_until(lambda: listens(port), "the source")
            wait_until(lambda: waits(process), "the worker")
            before, started = processor(process), time.perf_counter()
            send(port, bodies, senders)
            acknowledged = time.perf_counter() - started
            results = folder / "results.jsonl"
            # Those that end within the lateness stay open.
            closed = max(0, (len(bodies) * together - 1_000 * LATENESS_S - 1) // WINDOW_EVENTS)
            wait_until(
                lambda: not closed or (results.exists() and results.read_bytes().count(b"\n") >= closed),
                "the last window",
            )
            assessed = closed * WINDOW_EVENTS / (time.perf_counter() - started)
            spent = (processor(process) - before) / len(bodies)
            return Figures(len(bodies) / acknowledged, assessed or None, spent)


def to_a_bare_application(bodies: Sequence[bytes], senders: int) -> Figures:
    """One that only keeps what it is sent."""
    with tempfile.TemporaryDirectory() as name:
        port = free_port()
        with running("tests.bench.posted", "--bare", str(port), "--report", str(Path(name) / "kept")) as process:
            wait_until(lambda: listens(port), "the bare application")
            before, started = processor(process), time.perf_counter()
            send(port, bodies, senders)
            acknowledged = time.perf_counter() - started
            return Figures(len(bodies) / acknowledged, None, (processor(process) - before) / len(bodies))


def keep(port: int, path: Path) -> None:
    """The bare application, until killed."""
    with path.open("wb", buffering=0) as file:

        async def application(_scope: object, receive: object, send: object) -> None:
            more = True
            while more:
                message = await receive()  # type: ignore[operator]
                file.write(message["body"])
                more = message["more_body"]
            os.fsync(file.fileno())
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})  # type: ignore[operator]
            await send({"type": "http.response.body"})  # type: ignore[operator]

        uvicorn.run(application, port=port, log_level="error", access_log=False, lifespan="off")  # type: ignore[arg-type]


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A module in a process of its own."""
    process = subprocess.Popen([sys.executable, "-m", *arguments], stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def processor(process: subprocess.Popen[bytes]) -> float:
    """Seconds of a process and its workers."""
    whole = 0
    for pid in [process.pid, *children(process)]:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        whole += int(fields[11]) + int(fields[12])
    return whole / os.sysconf("SC_CLK_TCK")


def waits(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has its worker, and neither wants to do anything for a while: imports are not what is measured."""
    for _ in range(10):
        time.sleep(0.1)
        known = [process.pid, *children(process)]
        threads = [path.read_text() for pid in known for path in Path(f"/proc/{pid}/task").glob("*/stat")]
        if len(known) < 3 or any(thread.rsplit(")", 1)[1].split()[0] != "S" for thread in threads):
            return False
    return True


def listens(port: int) -> bool:
    """Whether somebody does."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def send(port: int, bodies: Sequence[bytes], senders: int) -> None:
    """Each sender posts the next body when its last one was answered."""
    left, taking = iter(bodies), Lock()

    def post() -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                with taking:
                    body = next(left, None)
                if body is None:
                    return
                connection.sendall(HEADERS % len(body) + body)
                answer = b""
                while not answer.endswith(b"\r\n\r\n"):
                    answer += connection.recv(4096)
                assert answer.startswith(b"HTTP/1.1 200 "), answer

    with ThreadPoolExecutor(senders) as pool:
        for each in [pool.submit(post) for _ in range(senders)]:
            each.result()


HEADERS = b"""POST /events HTTP/1.1\r
Host: 127.0.0.1\r
Accept: */*\r
Accept-Encoding: identity\r
User-Agent: bench\r
Content-Type: application/x-ndjson\r
Content-Length: %d\r
\r
"""


def spread(figures: Sequence[float]) -> str:
    return f"{statistics.median(figures):,.0f} ({min(figures):,.0f} to {max(figures):,.0f})"


def row(name: str, together: int, senders: int, rounds: int, kept: Path) -> tuple[str, ...]:
    """What is measured of some posts; `kept` is the reference."""
    lines = [record for _, record in records(*SHAPES[name], together * POSTS[together])]
    bodies = [b"\n".join(lines[first : first + together]) + b"\n" for first in range(0, len(lines), together)]
    ours, bare = [], []
    for _ in range(rounds):
        ours.append(to_the_service(kept, bodies, together, senders))
        bare.append(to_a_bare_application(bodies, senders))
    assessed = [each.assessed for each in ours if each.assessed is not None]
    beside = statistics.median(mine.posts / plain.posts for mine, plain in zip(ours, bare, strict=True))
    spent, spent_bare = (min(each.spent for each in figures) * 1e6 for figures in (ours, bare))
    return (
        name,
        f"{together:,}",
        str(senders),
        spread([each.posts * together for each in ours]),
        f"{beside:.2f}",
        spread(assessed) if assessed else "",
        f"{spent / together:.1f} ({spent_bare / together:.1f})",
        f"{spent:,.0f} ({spent_bare:,.0f})",
    )


COLUMNS = ("events", "in each post", "senders", "acknowledged", "beside bare", "assessed", "us an event", "us a post")


def main() -> None:
    parser = options(__doc__, REPORTS / "posted.md")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bare", type=int, metavar="PORT", help="be the bare application")
    given = parser.parse_args()
    if given.bare:
        keep(given.bare, given.report)
        return
    rounds = 1 if given.quick else given.rounds
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in list(SHAPES)[:1] if given.quick else SHAPES:
            kept = Path(folder) / "bench.ref"
            reference(*SHAPES[name]).save(kept)
            for together, senders in product(POSTS, SENDERS):
                rows.append(row(name, together, senders, rounds, kept))
                print(*rows[-1], sep="  ", flush=True)
    head = HEAD.format(rounds=rounds, cores=len(os.sched_getaffinity(0)), window=WINDOW_EVENTS, load=load())
    page = head + markdown(COLUMNS, rows)
    print(page)
    given.report.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
