"""All figures by one command: every bench in a process of its own, one thread, repeats interleaved; one report.

    python -m tests.bench [--quick] [--peer NAME=PYTHON ...] [--data FOLDER] [NAME ...]

Writes README.md, and the page and pictures of every bench that ran, to tests/bench/reports (with --quick to
tests/bench/reports/quick). All figures go to report.json beside them; that file and the quick figures are made, and not
kept in git. With report.json, sections of benches that were not chosen stay as they are, so that a long full run can be
made in parts; without it they are shown as their own pages stand. What is missing is named in the report.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.bench import machine, report, tables
from tests.bench.benches import BENCHES, PEERS, Bench, chosen, lacking
from tests.bench.options import REPORTS, pythons

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(slots=True)
class Collected:
    """What the runs of one bench gave."""

    bench: Bench
    arguments: list[str]
    missing: list[str]
    repeats: int
    runs: list[list[tables.Table]] = field(default_factory=list)
    seconds: float = 0.0
    failed: str = ""

    def run(self, page: Path) -> None:
        """Once, in a process of its own, with its page and pictures in the folder of `page`."""
        command = [sys.executable, "-m", f"tests.bench.{self.bench.name}", *self.arguments, "--report", str(page)]
        began = time.perf_counter()
        done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False)
        self.seconds += time.perf_counter() - began
        if done.returncode:
            self.failed = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        else:
            self.runs.append(tables.tables(page.read_text(encoding="utf-8") if page.exists() else done.stdout))

    def section(self, mode: str) -> dict[str, object]:
        """As it is kept in report.json."""
        return {
            "says": self.bench.says,
            "mode": mode,
            "commit": machine.commit(),
            "machine": machine.facts(),
            "repeats": len(self.runs),
            "seconds": round(self.seconds, 1),
            "missing": self.missing,
            "failed": self.failed,
            "tables": [asdict(table) for table in (tables.joined(self.runs) if self.runs else [])],
        }


def collect(benches: Sequence[Bench], given: argparse.Namespace, folder: Path) -> list[Collected]:
    """Every bench, round after round, so that what is slow for a minute does not hit all repeats of one."""
    collected = [_prepared(bench, given) for bench in benches]
    able = [one for one in collected if not one.bench.missing()]
    turns = [(number, one) for number in range(max((o.repeats for o in able), default=0)) for one in able]
    turns = [(number, one) for number, one in turns if number < one.repeats]
    for place, (number, one) in enumerate(turns, 1):
        if one.failed:
            continue
        print(f"[{place}/{len(turns)}] {one.bench.name}, {number + 1} of {one.repeats} ...", end=" ", flush=True)
        before = one.seconds
        one.run(folder / f"{one.bench.name}.md")
        print(f"{one.seconds - before:.0f} s {one.failed}", flush=True)
    return collected


def _prepared(bench: Bench, given: argparse.Namespace) -> Collected:
    arguments = ["--quick"] if given.quick else []
    missing = [reason] if (reason := bench.missing()) else []
    interpreters = pythons(given.peer)
    for peer in bench.peers:
        reason = lacking(peer, interpreters.get(peer))
        missing += [reason] if reason else []
        arguments += [] if reason else ["--peer", f"{peer}={interpreters[peer]}"]
    if bench.data:
        missing += [] if given.data else ["UCI tables: no folder was given (--data FOLDER)"]
        arguments += ["--data", str(given.data)] if given.data else []
    return Collected(bench, arguments, missing, 1 if given.quick else given.repeats or bench.repeats)


PAGE = {"mode": "its own page", "machine": {}, "repeats": 1, "seconds": 0.0, "missing": [], "failed": ""}
"""A section of a bench that was run alone."""


def _from_page(bench: Bench, page: Path) -> dict[str, object]:
    found = [asdict(table) for table in tables.tables(page.read_text(encoding="utf-8"))]
    return {"says": bench.says, **PAGE, "commit": machine.changed(page), "tables": found}


def parser() -> argparse.ArgumentParser:
    """The command line; the peers' options come from the list of peers."""
    made = argparse.ArgumentParser(
        "python -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("names", nargs="*", metavar="NAME", help=", ".join(bench.name for bench in BENCHES))
    made.add_argument("--quick", action="store_true", help="small sizes, once each: some three minutes in all")
    made.add_argument(
        "--repeats", type=int, help="processes a bench; three for timings and one for studies if not given"
    )
    made.add_argument("--no-runs", action="store_true", help="only write the report anew from what is there")
    made.add_argument("--data", type=Path, help="a folder of UCI tables")
    made.add_argument("--out", type=Path, help="where the report goes")
    made.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON", help=f"one of {', '.join(PEERS)}")
    return made


def main() -> int:
    """Run, and write; fails if a bench did."""
    given = parser().parse_args()
    out = given.out or (REPORTS / "quick" if given.quick else REPORTS)
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "report.json"
    sections = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        collected = collect([] if given.no_runs else chosen(given.names), given, Path(folder))
        for one in collected:
            sections[one.bench.name] = one.section("quick" if given.quick else "full")
        for path in Path(folder).iterdir():
            shutil.copyfile(path, out / path.name)
    for bench in BENCHES:
        if (page := out / f"{bench.name}.md").exists() and sections.get(bench.name, PAGE)["mode"] == PAGE["mode"]:
            sections[bench.name] = _from_page(bench, page)
    ordered = {bench.name: sections[bench.name] for bench in BENCHES if bench.name in sections}
    kept.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    (out / "README.md").write_text(report.text(ordered, out), encoding="utf-8")
    print(f"the report is in {out}")
    return int(any(one.failed for one in collected))


if __name__ == "__main__":
    sys.exit(main())
