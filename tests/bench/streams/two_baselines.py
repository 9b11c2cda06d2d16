"""The picture of the guide to time-ordered data: every verdict on thirty years of weather, against both baselines.

    python -m tests.bench.streams.two_baselines --data FOLDER

Daily weather of fifty years at one place; a logistic regression of whether it rains; windows of 120 days; the first
fifth is trained on, the second is the hold-out, and the thirty years after it are drawn. Written to
deploy/guides/time-ordered-data.png.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from monitor.assessment import Assessment, RecentNormal, Verdict, against_recent, assess
from tests.bench.pictures import pyplot
from tests.bench.streams.cells import known
from tests.bench.streams.models import MODELS, trained
from tests.bench.streams.watched import Watched

PLACE = Path(__file__).parents[3] / "deploy" / "guides" / "time-ordered-data.png"
STREAM, BLOCK = "weather", 120


def followed(watched: Watched) -> list[Assessment]:
    """Every window with both baselines."""
    reference = watched.plain_reference(watched.held, "auto")
    normal: RecentNormal | None = None
    found = []
    for at in watched.windows:
        assessment, normal = against_recent(assess(watched.window(at), reference), reference, normal)
        found.append(assessment)
    return found


def draw(found: Sequence[Assessment], place: Path) -> None:
    """One strip for each baseline."""
    plt = pyplot()
    figure, strips = plt.subplots(2, 1, figsize=(9, 2.6), sharex=True, layout="constrained")
    names = ("against the reference", "against recent windows")
    for strip, name, title in zip(strips, ("reference", "recent"), names, strict=True):
        verdicts = [one.baselines[name].verdict for one in found]
        colours = [verdict.facts.colour for verdict in verdicts]
        strip.bar(range(len(found)), 1, width=1, align="edge", color=colours, edgecolor="white", linewidth=0.5)
        strip.set(yticks=[], ylim=(0, 1), xlim=(0, len(found)))
        strip.set_title(title, loc="left", fontsize=10)
    strips[1].set_xlabel("windows of 120 days after the hold-out")
    seen = {one.baselines[name].verdict for one in found for name in ("reference", "recent")}
    for verdict in sorted(seen, key=lambda verdict: verdict.rank):
        strips[0].bar(0, 0, color=verdict.facts.colour, label=str(verdict))
    figure.legend(loc="outside lower center", ncols=len(seen), frameon=False, fontsize=9)
    figure.savefig(place, dpi=110)


def main() -> None:
    """Draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    tables, _ = known(parser.parse_args().data)
    table = next(table for table, _ in tables if table.name == STREAM)
    found = followed(Watched.of(table, trained(MODELS["logistic"], table), BLOCK))
    draw(found, PLACE)
    for name in ("reference", "recent"):
        for number, one in enumerate(found, start=1):
            if (said := one.baselines[name]).verdict is not Verdict.STABLE:
                print(f"{name}, window {number}: {said.verdict}", *said.reasons, sep="\n  ")


if __name__ == "__main__":
    main()
