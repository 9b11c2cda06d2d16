"""What it costs to know things over windows: advancing the states, and committing those that advanced.

    python -m tests.bench.states [--quick] [--report FILE]

Each of 1,000 streams has windows of 1,000 events, five features and three classes. The loop's own part, without
decoding, is to assess one and to write its result and recalibration. Then its concerns are shown the window, and what
has advanced is written to files and committed. In the row of one stream in ten only one in ten advances: only those are
written.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from connectors.resultfiles import ResultFiles
from monitor.arrays import UNLABELLED
from monitor.assessment import assess, encode
from monitor.labels import Settlement
from monitor.labels.learning import Settled
from monitor.ports import Checkpoint
from monitor.reference.classifier import Reference
from monitor.service.stream_states import StreamStates
from monitor.state import Budget, Changed, Seen, StatePlan, WindowSeen, Written, concerns_of, examined
from monitor.windows import WindowKey, WindowSummary
from tests.bench import tables, worlds
from tests.bench.options import options

EVENTS, FEATURES, CLASSES = 1_000, 5, 3
HOLD_OUT = 20_000
ROUNDS = 6
WINDOWS = 40
"""That differ; every stream has them in another order."""
MINUTE = 60_000_000
LIMIT = 100
"""Microseconds a window that all concerns together are to take on the loop."""


@dataclass(frozen=True)
class Case:
    """A set of concerns."""

    name: str
    plan: StatePlan
    of: int = 1
    """One stream in so many advances."""
    block: int | None = None
    """Of a hold-out that was cut up: the stream then has a recent normal."""
    taught: bool = False
    """Whether labels have come before."""


BUDGET = Budget.of(1e-4)
CASES = (
    Case("alarms of 2 of 3 windows alone", StatePlan(remembered=0)),
    Case("and the history of the page", StatePlan()),
    Case("and changes by Page-Hinkley", StatePlan(changes="page-hinkley")),
    Case("and a budget of false alarms", StatePlan(budget=BUDGET)),
    Case("the same, one stream in ten", StatePlan(budget=BUDGET), of=10),
    Case("history and the recent normal", StatePlan(), block=EVENTS),
    Case("history, recent normal and budget", StatePlan(budget=BUDGET), block=EVENTS),
    Case("history and live correction", StatePlan(live=True)),
    Case("history and late labels, before the first", StatePlan(awaiting=True)),
    Case("history and late labels that have taught", StatePlan(awaiting=True), taught=True),
)


def assessed(reference: Reference) -> tuple[list[WindowSeen], float]:
    """Windows, and the seconds that one takes to assess and to write."""
    windows = [worlds.window(EVENTS, FEATURES, CLASSES, seed=10 + number) for number in range(WINDOWS)]
    concerns, found = concerns_of(StatePlan(), reference), []
    assess(windows[0], reference)
    began = time.process_time()
    for window in windows:
        assessment = assess(window, reference)
        written = Written(assessment, assessment.to_json(), encode(assessment.recalibration))
        kept = examined(concerns, window, assessment)
        found.append(WindowSeen(assessment, WindowSummary.of(window, CLASSES), 0.0, examined=kept, written=written))
    return found, (time.process_time() - began) / WINDOWS


def of_stream(seen: WindowSeen, stream: str, number: int) -> WindowSeen:
    """The window as one of a stream."""
    key = WindowKey(stream, "", number * MINUTE, (number + 1) * MINUTE)
    return replace(seen, window=replace(seen.window, key=key))


def lesson(reference: Reference, stream: str) -> Settlement:
    """The labels of half of the events of an earlier window."""
    posteriors, _, labels = worlds.scored(EVENTS, FEATURES, CLASSES, 5)
    labels = np.where(np.arange(EVENTS) % 2, labels, UNLABELLED)
    settled = Settled(f"{stream}//-2/-1", posteriors, labels, ())
    return Settlement(stream, -2 * MINUTE, -MINUTE, reference.version, settled)


def spent(case: Case, reference: Reference, windows: Sequence[WindowSeen], streams: int) -> Mapping[str, float]:
    """Of one window: seconds to advance, to write and commit, and bytes."""
    names = [f"s{number}" for number in range(0, streams, case.of)]
    concerns = concerns_of(case.plan, reference)
    best = {"advance": float("inf"), "commit": float("inf")}
    with tempfile.TemporaryDirectory() as folder, closing(ResultFiles(Path(folder) / "results.jsonl")) as sink:
        sink.recover()
        states = StreamStates(dict.fromkeys(names, concerns), sink)
        states.begin()
        if case.taught:
            for name in names:
                states.advance(of_stream(windows[0], name, -1), {})
                states.advance(lesson(reference, name), {})
        for number in range(ROUNDS):
            changed: Changed = {}
            shown: list[Seen] = [
                of_stream(windows[(place + number) % WINDOWS], name, number) for place, name in enumerate(names)
            ]
            began = time.process_time()
            messages = [message for seen in shown for message in states.advance(seen, changed)[1]]
            advanced = time.process_time()
            for message in (*messages, *states.records(changed)):
                sink.write(message)
            sink.commit(Checkpoint())
            states.committed(changed)
            best["advance"] = min(best["advance"], (advanced - began) / len(names))
            best["commit"] = min(best["commit"], (time.process_time() - advanced) / len(names))
        size = sum(path.stat().st_size for path in Path(folder).glob("*.states*")) / len(names) / ROUNDS
    return best | {"bytes": size, "streams": len(names)}


def settling(reference: Reference) -> float:
    """Seconds to learn from the labels of a window."""
    states = StreamStates({"s": concerns_of(StatePlan(awaiting=True), reference)}, sink=ResultFiles(Path("unused")))
    settlement = lesson(reference, "s")
    began = time.process_time()
    for _ in range(WINDOWS):
        states.advance(settlement, {})
    return (time.process_time() - began) / WINDOWS


def main() -> None:
    """One row for each set of concerns."""
    given = options(__doc__).parse_args()
    streams = 100 if given.quick else 1_000
    references = {block: worlds.reference(HOLD_OUT, FEATURES, CLASSES, block) for block in (None, EVENTS)}
    known = {block: assessed(reference) for block, reference in references.items()}
    rows, a_second = [], 0.0
    for case in CASES:
        windows, each = known[case.block]
        one = spent(case, references[case.block], windows, streams)
        micro = {part: one[part] * 1e6 for part in ("advance", "commit")}
        share = one["commit"] / (each + one["advance"] + one["commit"])
        over = "" if micro["advance"] <= LIMIT else f"{micro['advance'] / LIMIT:.1f} x"
        figures = (f"{one['streams']:,.0f}", *(f"{value:,.0f}" for value in micro.values()), f"{one['bytes']:,.0f}")
        rows.append((case.name, *figures, f"{share:.1%}", over))
        if case.plan.budget and case.block:
            a_second = 1 / one["advance"]
    columns = (
        "known",
        "streams",
        "to advance, us",
        "to commit, us",
        "bytes",
        "commit, of the loop",
        f"over {LIMIT} us",
    )
    explained = EXPLAINED.format(limit=LIMIT, taught=settling(references[None]) * 1e3, a_second=a_second)
    text = (
        f"# What it costs to know things over windows\n\nMade by `python -m tests.bench.states`. To assess a window "
        f"and to write its messages takes {known[None][1] * 1e3:.1f} ms, with a recent normal "
        f"{known[EVENTS][1] * 1e3:.1f} ms; figures are of one window, best of {ROUNDS} rounds.\n\n"
        f"## States\n\n{tables.markdown(columns, rows)}\n\n{explained}"
    )
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")


EXPLAINED = """\
All concerns together are to take at most {limit} microseconds a window on the loop. What depends on the window alone is
worked out where it is assessed. These are above the limit, because they have to see windows one after the other:

- What the class mix is now takes some sixty, in every row: four filters a class, one window after the other.
- A budget of false alarms: a dozen series, each with evidence of its own, an alarm that may be open, and a threshold.
- The recent normal judges a window by all windows before it: some forty small operations of numpy, of about a
  microsecond each. Of the result only the baselines are written anew.
- Late labels that have taught: the pool is another one for every window, and the decision thresholds of the feed are
  found by forty halvings of its scores. Learning itself, once a window when its labels have come, takes {taught:.1f}
  ms: Newton steps over all labelled events, which the next window's correction needs.

Beside the assessment of a window, which workers do in parallel, none of it is much: a loop that does nothing else
advances {a_second:,.0f} windows a second with history, recent normal and budget.
"""


if __name__ == "__main__":
    main()
