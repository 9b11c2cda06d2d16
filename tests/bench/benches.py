"""Every bench that `python -m tests.bench` runs: one line each. What a bench does stands in its own file."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from tests.flink import cluster
from tests.kafka import apache

PEERS = {
    "quapy": "import quapy, quadprog",
    "evidently": "import evidently",
    "nannyml": "import nannyml",
    "alibi-detect": "import alibi_detect",
}
"""What has to work in the interpreter that is given for a peer; each lives in an environment of its own."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A module `tests.bench.NAME` that prints Markdown tables and knows `--quick` and `--report`."""

    name: str
    says: str
    repeats: int = 1
    """Processes in full mode: several where time is measured, one where a seed decides every figure."""
    peers: tuple[str, ...] = ()
    """Each given to it as `--peer NAME=PYTHON`."""
    data: bool = False
    """Whether it takes `--data`, a folder of UCI tables."""
    missing: Callable[[], str | None] = lambda: None
    """Why it cannot run here, in words."""


BENCHES = (
    Bench("ingest", "from JSONL bytes to closed windows, against the bare decode of the same lines", 3),
    Bench("parsers", "whether another JSON parser would bring lines to columns sooner", 3),
    Bench("shapes", "events from records of another shape, and from tables, against our own shape", 3),
    Bench("formats", "Avro and Protobuf from a registry's serializers, against the libraries' bare readers", 3),
    Bench("ratios", "the hot paths against bare loops: what CI compares with the last report"),
    Bench("window", "what assessing a window costs", 3, peers=("evidently", "nannyml", "alibi-detect")),
    Bench("priors", "the speed of the prior estimators", 3, peers=("quapy",)),
    Bench("reference_build", "building a reference from a large file", 3),
    Bench("growth", "how the cost grows with everything that can grow"),
    Bench("states", "what it costs to know things over windows"),
    Bench("profiles", "where the time goes on the hot paths, and how far each is from its limit"),
    Bench("kafka", "events per second from a real topic", missing=apache.unavailable),
    Bench("flink", "processor seconds a million events on Apache Flink", missing=cluster.unavailable),
    Bench("fan_in", "what both stages of a job cost that gets a million events a second from 1,000 partitions"),
    Bench("posted", "events per second that are posted by HTTP"),
    Bench("accuracy", "the error of `em-debiased` and others", peers=("quapy",)),
    Bench("priors_coverage", "whether the 95 % intervals hold the truth"),
    Bench(
        "accuracy_small",
        "the error and the intervals of `em-debiased` on small hold-outs",
        peers=("quapy",),
        data=True,
    ),
    Bench("verdicts", "how often the verdict is right"),
    Bench("verdicts_rough", "the same on columns of zeros and atoms, rare classes and small hold-outs"),
    Bench("first_hour", "whether a monitor stays calm with the models and producers that people begin with"),
    Bench("quality", "alarms on data quality: false ones, and how soon a fault is told of"),
    Bench("volume", "why volume has no part of the budget, and what Prometheus tells of it"),
    Bench("smoothing", "how well the class mix is known now, by all windows so far"),
    Bench("alarms", "how soon a shift is noticed over windows, and how many alarms are false"),
    Bench("feed", "whether corrected scores are better, and never worse"),
    Bench("feed_tables", "whether scores alone may be corrected, on real tables"),
    Bench("streams", "whether it is right on real streams, in time order", data=True),
    Bench("exchangeable", "what blocks cost where windows do not differ by nature"),
    Bench("labels", "what a correction that is learned from late labels does to scores", data=True),
    Bench(
        "performance", "how right the performance is that is estimated without labels", peers=("nannyml",), data=True
    ),
    Bench("regression", "adaptive mixtures of regressions"),
    Bench("regression_streams", "how often the verdict on a regression stream is wrong, and how soon it is right"),
    Bench("trees", "versatile decision trees", data=True),
    Bench("papers", "what five papers claim, and whether it holds here", data=True),
)


def chosen(names: list[str]) -> list[Bench]:
    """The benches of these names in the order of the list; all of them without names."""
    unknown = set(names) - {bench.name for bench in BENCHES}
    if unknown:
        raise SystemExit(f"no such bench: {', '.join(sorted(unknown))}; there are {', '.join(b.name for b in BENCHES)}")
    return [bench for bench in BENCHES if not names or bench.name in names]


def lacking(peer: str, interpreter: str | None) -> str | None:
    """Why a peer cannot take part."""
    if interpreter is None:
        return f"{peer}: no interpreter was given (--peer {peer}=PYTHON)"
    try:
        done = subprocess.run([interpreter, "-c", PEERS[peer]], check=False, capture_output=True)
    except OSError:
        return f"{peer}: the interpreter that was given cannot be started"
    return f"{peer}: the interpreter that was given fails at `{PEERS[peer]}`" if done.returncode else None
