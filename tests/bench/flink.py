"""Processor seconds a million events on a real cluster of Flink, beside `replay` and a member of a group in the same
environment.

    SHIFTWATCH_FLINK=FOLDER python -m tests.bench.flink    (`.ci/install-flink FOLDER`)

What starts and what windows cost is the same however many events there are: each figure is the slope between two sizes.
The cluster's seconds are those of its TaskManagers and their Python workers, from a topic that is full. The member of
the group is `shiftwatch run` on the same topic, all of which it gets; of more streams each member would have some.
"""

import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.options import options
from tests.flink.cluster import FlinkCluster, python, unavailable
from tests.flink.world import PARTITIONS, SpreadWorld, config
from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, read, unique

FEW, MANY = 200_000, 1_200_000
PARALLEL = (1, 2, 4)


def replayed(folder: Path) -> float:
    """Processor seconds of a replay."""
    (folder / "replay.toml").write_text(config('url = "jsonl:events"', 'url = "jsonl:unused.jsonl"'))
    before = _children()
    command = [str(python()), "-m", "monitor", "replay", "replay.toml", "-o", "want.jsonl", "--force"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return _children() - before


def run(kafka: Cluster, cluster: FlinkCluster, folder: Path, topic: str, parallelism: int) -> float:
    """Processor seconds of a job that reads a whole topic."""
    path = written(kafka, folder, topic)
    cluster.ready()
    before = cluster.processor_seconds()
    job = cluster.submit(path, "--parallelism", str(parallelism))
    wait_for_results(kafka, path)
    spent = cluster.processor_seconds() - before
    cluster.cancel(job)
    return spent


def grouped(kafka: Cluster, folder: Path, topic: str) -> float:
    """Processor seconds of the one member of a group that reads a whole topic, and of its worker."""
    path, before = written(kafka, folder, topic), _children()
    member = subprocess.Popen([str(python()), "-m", "monitor", "run", str(path)], stderr=subprocess.DEVNULL)
    wait_for_results(kafka, path)
    member.terminate()
    member.wait()
    return _children() - before


def written(kafka: Cluster, folder: Path, topic: str) -> Path:
    """A configuration with topics of its own."""
    broker, name = Broker(kafka), unique("job")
    broker.create(f"{name}-results", f"{name}-dead")
    source = f'url = "kafka://{kafka.bootstrap}/{topic}"\ngroup = "{name}"'
    sink = f'url = "kafka://{kafka.bootstrap}/{name}-results"\ndead_letters = "{name}-dead"'
    path = folder / f"{name}.toml"
    path.write_text(config(source, sink))
    return path


def wait_for_results(kafka: Cluster, path: Path) -> None:
    """Until there are as many as the replay has without the window that nothing closes in a topic."""
    want = (path.parent / "want.jsonl").read_bytes().splitlines()
    expected = sum(b'"end-of-input"' not in result for result in want)
    while len(read(kafka.bootstrap, f"{path.stem}-results")) < expected:
        time.sleep(2)


def measured(parallel: Sequence[int]) -> dict[str, list[float]]:
    """By way: the seconds for few and for many events."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        kafka = Cluster(Path(name) / "kafka")
        cluster = FlinkCluster(Path(name) / "flink")
        try:
            for size in (FEW, MANY):
                world, folder = SpreadWorld(size), Path(name) / str(size)
                folder.mkdir()
                world.save(folder)
                Broker(kafka).create(f"events-{size}", partitions=PARTITIONS)
                Broker(kafka).produce(f"events-{size}", world.records)
                found.setdefault("replay", []).append(replayed(folder))
                member = grouped(kafka, folder, f"events-{size}")
                found.setdefault("a member of a group", []).append(member)
            run(kafka, cluster, Path(name) / str(FEW), f"events-{FEW}", max(parallel))  # Java compiles as it goes
            for parallelism in parallel:
                found[f"Flink, parallelism {parallelism}"] = [
                    run(kafka, cluster, Path(name) / str(size), f"events-{size}", parallelism) for size in (FEW, MANY)
                ]
        finally:
            cluster.close()
            kafka.close()
    return found


def main() -> None:
    """Print the table."""
    given = options(__doc__).parse_args()
    why = unavailable()
    if why is not None:
        raise SystemExit(why)
    found = measured(PARALLEL[:1] if given.quick else PARALLEL)
    slopes = {way: (many - few) / (MANY - FEW) * 1e6 for way, (few, many) in found.items()}
    rows = ["| way | processor seconds a million events | x replay | beside them, for starts and windows |"]
    rows.append("| --- | --- | --- | --- |")
    for way, slope in slopes.items():
        beside = found[way][0] - slope * FEW / 1e6
        rows.append(f"| {way} | {slope:.1f} | {slope / slopes['replay']:.1f} | {beside:.0f} s |")
    print("\n".join(rows))
    if given.report is not None:
        given.report.write_text("\n".join(["# flink", "", str(__doc__).strip(), "", *rows, ""]), encoding="utf-8")


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
