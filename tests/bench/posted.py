"""Events per second that are posted by HTTP, from the first post to the last answer, and to the last window's result.

python -m tests.bench.posted [--rounds 3]

The sender and a whole `shiftwatch run` share the machine: every answer waits for the disk, and windows are assessed.
"""

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.kafka import WINDOW_EVENTS, records, reference
from tests.bench.options import REPORTS, options
from tests.bench.tables import markdown
from tests.processes import children, free_port, wait_until

SHAPES = {"2 classes": (2, 0, 200_000), "10 classes, 10 features": (10, 10, 100_000)}
TOGETHER = (100, 1_000)
CONFIGURATION = """
[source]
url = "http://127.0.0.1:{port}/events"
[sink]
url = "jsonl:results.jsonl"
[streams.bench]
reference = "bench.ref"
window = {{ size = "10s", lateness = "1s" }}
"""
HEAD = """# Events that are posted by HTTP

Made by `python -m tests.bench.posted --rounds {rounds}`.

Events a second, medians (lowest and highest) of {rounds} round(s): one sender with one connection, which waits for each
answer, and a whole `shiftwatch run` with its worker on the same {cores} cores. *Acknowledged*: until the last post was
answered, each of them durable. *Assessed*: until the result of the last window that closes was there. Windows of
{window:,} events. The last column is the processor time of the service for an event, workers and assessments included:
it holds on a busy machine, too, as this one was (load average {load:.0f}).

"""


def posted(shape: tuple[int, int, int], together: int) -> tuple[float, float, float]:
    """Events a second to the last answer and to the last window, and the service's microseconds for each."""
    classes, features, count = shape
    lines = [record for _, record in records(classes, features, count)]
    bodies = [b"\n".join(lines[first : first + together]) + b"\n" for first in range(0, count, together)]
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        reference(classes, features).save(folder / "bench.ref")
        (folder / "run.toml").write_text(CONFIGURATION.format(port=port))
        process = subprocess.Popen(
            [sys.executable, "-m", "monitor", "run", str(folder / "run.toml")], stderr=subprocess.DEVNULL
        )
        try:
            wait_until(lambda: answers(port), "the door")
            before, started = processor(process), time.perf_counter()
            send(port, bodies)
            acknowledged = time.perf_counter() - started
            results = folder / "results.jsonl"
            # The last window stays open, and so does one whose lateness is not over.
            closed = (count - 1_000) // WINDOW_EVENTS
            wait_until(lambda: results.exists() and results.read_bytes().count(b"\n") >= closed, "the last window")
            assert json.loads(results.read_bytes().splitlines()[0])["events"]["used"] == WINDOW_EVENTS
            assessed = closed * WINDOW_EVENTS / (time.perf_counter() - started)
            return count / acknowledged, assessed, (processor(process) - before) / count * 1e6
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


def answers(port: int) -> bool:
    """Whether somebody listens."""
    try:
        send(port, [], "GET")
    except OSError:
        return False
    return True


def send(port: int, bodies: Sequence[bytes], method: str = "POST") -> None:
    """One after the other, each when the one before was answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.connect()
    for body in bodies:
        connection.request(method, "/events", body, {"Content-Type": "application/x-ndjson"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
    connection.close()


def spread(figures: Sequence[float]) -> str:
    return f"{statistics.median(figures):,.0f} ({min(figures):,.0f} to {max(figures):,.0f})"


def main() -> None:
    parser = options(__doc__, REPORTS / "posted.md")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.quick:
        given.rounds = 1
    rows = []
    for name, shape in SHAPES.items():
        for together in TOGETHER:
            acknowledged, assessed, spent = zip(*(posted(shape, together) for _ in range(given.rounds)), strict=True)
            rows.append((name, f"{together:,}", spread(acknowledged), spread(assessed), f"{min(spent):.1f}"))
    head = HEAD.format(
        rounds=given.rounds, cores=len(os.sched_getaffinity(0)), window=WINDOW_EVENTS, load=os.getloadavg()[0]
    )
    page = head + markdown(("events", "in each post", "acknowledged", "assessed", "us an event"), rows)
    print(page)
    given.report.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
