"""Does it last? Sixty streams with segments and late labels, on files and on Apache Kafka, for as long as is asked.

    nice python -m tests.bench.soak --seconds 7200 [--folder FOLDER] [--report FILE]

The run is that of `tests/soak`, with its kills, outages, rotations and new references; here its record is kept: a page,
and a picture of the memory that the services took which were left alone. `--quick` is what CI runs.
"""

import sys
import tempfile
from pathlib import Path

from tests.bench import machine, tables
from tests.bench.options import options
from tests.bench.pictures import pyplot
from tests.kafka import apache
from tests.soak.level import growth_mb, usual
from tests.soak.plan import LABELS_LATE, Plan
from tests.soak.soaking import Soak, allowed_mb, run

MEDIA = ("files", "kafka")
QUICK = 240.0
COLUMNS = (
    "on",
    "kills",
    "MB in the middle",
    "MB at the end",
    "growth, MB",
    "MB per million events",
    "descriptors",
    "threads",
)


def page(soak: Soak, load: tuple[str, str]) -> str:
    """The record in words and figures."""
    plan, cores = soak.plan, machine.facts()["cores"]
    without_broker = sum(seconds for _, seconds in soak.outages)
    faults = "".join(f"- {fault}\n" for fault in soak.faults) or "So it was: nothing was lost, doubled or different.\n"
    memory = tables.markdown(COLUMNS, [_row(soak, medium) for medium in MEDIA])
    return f"""# Does it last?

Made by `python -m tests.bench.soak --seconds {plan.seconds:.0f}` at {machine.commit()}.

- {soak.seconds / 60:.0f} minutes. The load of the machine was {load[0]} at the beginning and {load[1]} at the end, on
  {cores} cores.
- {soak.events:,} events of {plan.streams} streams, {plan.rate:,} a second in all. Each stream has two segments, and
  labels up to {LABELS_LATE * plan.window:.0f} s late. Windows of {plan.window} s.
- On files and on Apache Kafka two services each. One was left alone, and scraped every 15 s; on Kafka it reads with
  `driver = "python"`. The other was killed again and again (SIGKILL); on Kafka it reads with `driver = "fast"`.
- The broker was killed {len(soak.outages)} times, and away for {without_broker:.0f} s in all, each time with a kill of
  the second service in the middle.
- Files rotated {len(soak.rotations)} times. After {soak.new_reference / 60:.0f} minutes all streams got new references.

Every window has to come once, with the events that arithmetic says, and every message of the service that was killed
has to be, byte for byte, that of the one left alone. There were {soak.windows:,} windows of streams and segments on
each medium, and {soak.messages:,} messages with their outcomes.

{faults}
## Memory, descriptors, threads

Of the process that was left alone and its worker, a sample a second, in the second half of the run:

{memory}
Of memory, {allowed_mb(soak):.0f} MB of growth are allowed at most, as the allocator has steps: twice what the upper
tenth of the last quarter lies above that of the third. Of descriptors and threads the table has the lower quartiles of
both: what is left open raises them. {soak.failed_scrapes} of {soak.scrapes} scrapes failed; services that are just
being restarted answer none.

![Memory over time](soak.png)
"""


def _row(soak: Soak, medium: str) -> list[str]:
    samples = soak.second_half(medium)
    tenth = max(1, len(samples) // 10)
    ends = [
        sum(one.footprint.loop_mb + one.footprint.workers_mb for one in part) / len(part)
        for part in (samples[:tenth], samples[-tenth:])
    ]
    millions = (samples[-1].events - samples[0].events) / 1e6
    quarters = soak.last_quarters(medium)
    growth = growth_mb(quarters)
    counts = [" and ".join(map(str, usual(quarters, what))) for what in ("descriptors", "threads")]
    figures = [f"{value:.1f}" for value in (*ends, growth, growth / millions)]
    return [medium, str(soak.kills.get(medium, 0)), *figures, *counts]


def picture(soak: Soak, path: Path) -> None:
    """Memory over time; outages are shaded."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(9, 4))
    for medium in MEDIA:
        own = [one for one in soak.samples if one.medium == medium]
        minutes = [one.seconds / 60 for one in own]
        axes.plot(minutes, [one.footprint.loop_mb for one in own], label=f"{medium}: loop")
        axes.plot(minutes, [one.footprint.workers_mb for one in own], label=f"{medium}: worker", linestyle="--")
    for at, seconds in soak.outages:
        axes.axvspan(at / 60, (at + seconds) / 60, color="0.85")
    axes.axvline(soak.new_reference / 60, color="0.5", linestyle=":")
    axes.set(xlabel="minutes (shaded: no broker; dotted: new references)", ylabel="resident MB", ylim=(0, None))
    axes.legend(ncols=2, loc="lower right")
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)


def main() -> None:
    """Run, print, and keep the record."""
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=7_200.0)
    parser.add_argument("--folder", type=Path, help="where the services work; kept")
    given = parser.parse_args()
    reason = apache.unavailable()
    if reason is not None:
        parser.error(f"Apache Kafka cannot run here: {reason}")
    plan, before = Plan.lasting(QUICK if given.quick else given.seconds), machine.load()
    with tempfile.TemporaryDirectory() as temporary:
        soak = run(plan, given.folder or Path(temporary))
    text = page(soak, (before, machine.load()))
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")
        picture(soak, given.report.with_suffix(".png"))
    sys.exit(bool(soak.faults))


if __name__ == "__main__":
    main()
