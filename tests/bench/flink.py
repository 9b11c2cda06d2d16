"""Processor seconds a million events on a real cluster of Flink, beside `replay` and a member of a group in the same
environment.

    SHIFTWATCH_FLINK=FOLDER python -m tests.bench.flink    (`.ci/install-flink FOLDER`)

What starts and what windows cost is the same however many events there are: each figure is the slope between half a
million events and two and a half, and what is left over at none stands beside it. All of it is run twice, in turn: the
mean, and both runs. The cluster's seconds are those of its TaskManagers and their Python workers, from a topic that is
full, with deploy/flink/config.yaml; a job before all others warms it up. Java has its first compiler alone: the second
one works for longer than all of this takes. The member of the group is `shiftwatch run` on the same topic, all of which
it gets; of more streams each member would have some.
"""

import resource
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean

from tests.bench.options import options
from tests.bench.tables import markdown
from tests.flink.cluster import FlinkCluster, python, unavailable
from tests.flink.world import PARTITIONS, SpreadWorld, config
from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, read, unique

FEW, MANY = 500_000, 2_500_000
RUNS = 2
PARALLEL = (1, 2, 4)


def replayed(folder: Path) -> float:
    """Processor seconds of a replay."""
    (folder / "replay.toml").write_text(config('url = "jsonl:events"', 'url = "jsonl:unused.jsonl"'))
    before = _children()
    command = [str(python()), "-m", "monitor", "replay", "replay.toml", "-o", "want.jsonl", "--force"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return _children() - before


def run(kafka: Cluster, cluster: FlinkCluster, parallelism: int, folder: Path) -> float:
    """Processor seconds of a job that reads a whole topic."""
    path = written(kafka, folder)
    cluster.ready()
    before = cluster.processor_seconds()
    job = cluster.submit(path, "--parallelism", str(parallelism))
    wait_for_results(kafka, path)
    spent = cluster.processor_seconds() - before
    cluster.cancel(job)
    return spent


def grouped(kafka: Cluster, folder: Path) -> float:
    """Processor seconds of the one member of a group that reads a whole topic, and of its worker."""
    path, before = written(kafka, folder), _children()
    member = subprocess.Popen([str(python()), "-m", "monitor", "run", str(path)], stderr=subprocess.DEVNULL)
    wait_for_results(kafka, path)
    member.terminate()
    member.wait()
    return _children() - before


def written(kafka: Cluster, folder: Path) -> Path:
    """A configuration with topics of its own for the results."""
    broker, name = Broker(kafka), unique("job")
    broker.create(f"{name}-results", f"{name}-dead")
    source = f'url = "kafka://{kafka.bootstrap}/events-{folder.name}"\ngroup = "{name}"'
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


def measured(parallel: Sequence[int], runs: int) -> Mapping[str, list[tuple[float, float]]]:
    """By way: the seconds for few and for many events, of each run."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        kafka = Cluster(Path(name) / "kafka")
        cluster = FlinkCluster(Path(name) / "flink")
        try:
            few, many = (filled(kafka, Path(name) / f"{size}", SpreadWorld(size)) for size in (FEW, MANY))
            ways: dict[str, Callable[[Path], float]] = {
                "replay": replayed,
                "a member of a group": partial(grouped, kafka),
                **{f"Flink, parallelism {each}": partial(run, kafka, cluster, each) for each in parallel},
            }
            replayed(few)  # says how many results there will be
            run(kafka, cluster, max(parallel), few)  # Java compiles as it goes
            for _ in range(runs):
                for way, seconds in ways.items():
                    found[way].append((seconds(few), seconds(many)))
                    print(way, *found[way][-1], flush=True)
        finally:
            cluster.close()
            kafka.close()
    return found


def filled(kafka: Cluster, folder: Path, world: SpreadWorld) -> Path:
    """A folder with a world in files, and a topic of its name with the same."""
    folder.mkdir()
    world.save(folder)
    Broker(kafka).create(f"events-{folder.name}", partitions=PARTITIONS)
    Broker(kafka).produce(f"events-{folder.name}", world.records)
    return folder


def table(found: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """A row for each way."""
    slopes = {way: [(many - few) / (MANY - FEW) * 1e6 for few, many in runs] for way, runs in found.items()}
    replays = mean(slopes["replay"])
    rows = []
    for way, each in slopes.items():
        left = [few - slope * FEW / 1e6 for (few, _), slope in zip(found[way], each, strict=True)]
        spread = ", ".join(f"{slope:.1f}" for slope in each)
        rows.append((way, f"{mean(each):.1f} ({spread})", f"{mean(each) / replays:.1f}", f"{mean(left):.0f} s"))
    return markdown(["way", "processor seconds a million events", "x replay", "for starts and windows"], rows)


def main() -> None:
    """Print the table."""
    given = options(__doc__).parse_args()
    why = unavailable()
    if why is not None:
        raise SystemExit(why)
    found = table(measured(PARALLEL[:1], 1) if given.quick else measured(PARALLEL, RUNS))
    print(found)
    if given.report is not None:
        given.report.write_text("\n".join(["# flink", "", str(__doc__).strip(), "", found, ""]), encoding="utf-8")


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
