"""What it costs to know things over windows: advancing the states, and committing those that advanced.

    python -m tests.bench.states [--quick] [--report FILE]

Each of 1,000 streams has a window of 1,000 events, five features and three classes. The loop's own part, without
decoding, is to assess it and to write its result and recalibration. Then its concerns are shown the window, and what
has advanced is written to files and committed. In the last row only one stream in ten advances: only those are written.
"""

import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from connectors.resultfiles import ResultFiles
from monitor.assessment import assess, encode
from monitor.ports import Checkpoint
from monitor.service.stream_states import StreamStates
from monitor.state import Budget, Changed, StatePlan, WindowSeen, Written, concerns_of
from monitor.windows import WindowKey, WindowSummary
from tests.bench import tables, worlds
from tests.bench.options import options

EVENTS, FEATURES, CLASSES = 1_000, 5, 3
HOLD_OUT = 10_000
ROUNDS = 6
PLANS = {
    "alarms of 2 of 3 windows alone": StatePlan(remembered=0),
    "and the history of the page": StatePlan(),
    "and a budget of false alarms": StatePlan(budget=Budget.of(1e-4)),
}


def assessed(streams: int) -> tuple[list[WindowSeen], float]:
    """A window of each stream, and the seconds of one."""
    reference = worlds.reference(HOLD_OUT, FEATURES, CLASSES)
    window = worlds.window(EVENTS, FEATURES, CLASSES)
    found, began = [], time.process_time()
    for number in range(streams):
        keyed = replace(window, key=WindowKey(f"s{number}", "", 0, 60_000_000))
        assessment = assess(keyed, reference)
        written = Written(assessment, assessment.to_json(), encode(assessment.recalibration))
        found.append(WindowSeen(assessment, WindowSummary.of(keyed, CLASSES), 0.0, written=written))
    return found, (time.process_time() - began) / streams


def later(seen: WindowSeen, windows: int) -> WindowSeen:
    """The same, so many windows later."""
    start = windows * 60_000_000
    key = replace(seen.window.key, start=start, end=start + 60_000_000)
    return replace(seen, window=replace(seen.window, key=key))


def spent(plan: StatePlan, windows: Iterable[WindowSeen], folder: Path) -> Mapping[str, float]:
    """Of one window: seconds to advance, to write and commit, and bytes."""
    windows = list(windows)
    concerns = concerns_of(plan, worlds.reference(HOLD_OUT, FEATURES, CLASSES))
    sink = ResultFiles(folder / "results.jsonl")
    best = {"advance": float("inf"), "commit": float("inf")}
    with closing(sink):
        sink.recover()
        states = StreamStates({seen.window.key.stream: concerns for seen in windows}, sink)
        states.begin()
        for number in range(ROUNDS):
            changed: Changed = {}
            began = time.process_time()
            messages = [message for seen in windows for message in states.advance(later(seen, number), changed)[1]]
            advanced = time.process_time()
            for message in (*messages, *states.records(changed)):
                sink.write(message)
            sink.commit(Checkpoint())
            states.committed(changed)
            best["advance"] = min(best["advance"], (advanced - began) / len(windows))
            best["commit"] = min(best["commit"], (time.process_time() - advanced) / len(windows))
        size = sum(path.stat().st_size for path in folder.glob("*.states*")) / len(windows) / ROUNDS
    return best | {"bytes": size}


def main() -> None:
    """One row for each set of concerns."""
    given = options(__doc__).parse_args()
    streams = 100 if given.quick else 1_000
    windows, each = assessed(streams)
    rows = []
    cases = [(name, plan, windows) for name, plan in PLANS.items()]
    cases.append(("the same, one stream in ten", list(PLANS.values())[-1], windows[::10]))
    for name, plan, some in cases:
        with tempfile.TemporaryDirectory() as folder:
            one = spent(plan, some, Path(folder))
        micro = {part: f"{one[part] * 1e6:.0f}" for part in ("advance", "commit")}
        share = one["commit"] / (each + one["advance"] + one["commit"])
        rows.append((name, str(len(some)), *micro.values(), f"{one['bytes']:,.0f}", f"{share:.1%}"))
    columns = ("known", "streams", "to advance, us", "to commit, us", "bytes written", "commit, of the loop")
    text = (
        f"# What it costs to know things over windows\n\nMade by `python -m tests.bench.states`. To assess a window "
        f"and to write its messages takes {each * 1e3:.1f} ms; figures are of one window, best of {ROUNDS} rounds.\n\n"
        f"## States\n\n{tables.markdown(columns, rows)}"
    )
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
