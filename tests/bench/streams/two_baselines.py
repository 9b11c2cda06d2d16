"""The picture of the guide to time-ordered data: every verdict on fifty years of weather, against both baselines.

    python -m tests.bench.streams.two_baselines --data FOLDER

Daily weather of one station; a logistic regression of rain; windows of 120 days; the first fifth is trained on, the
second is the hold-out. Written to deploy/guides/time-ordered-data.png.
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
DAYS_A_YEAR = 365.25


def followed(watched: Watched) -> list[Assessment]:
    """Every window with both baselines."""
    reference = watched.plain_reference(watched.held, "auto")
    normal: RecentNormal | None = None
    found = []
    for at in watched.windows:
        assessment, normal = against_recent(assess(watched.window(at), reference), reference, normal)
        found.append(assessment)
    return found


def draw(found: Sequence[Assessment], years: float, place: Path) -> None:
    """One strip for each baseline."""
    plt = pyplot()
    figure, strips = plt.subplots(2, 1, figsize=(9, 2.6), sharex=True, layout="constrained")
    names = ("against the reference", "against recent windows")
    for strip, name, title in zip(strips, ("reference", "recent"), names, strict=True):
        verdicts = [one.baselines[name].verdict for one in found]
        at = [k * years for k in range(len(found))]
        strip.bar(at, 1, width=years, align="edge", color=[verdict.facts.colour for verdict in verdicts])
        strip.set(yticks=[], ylim=(0, 1), xlim=(0, len(found) * years))
        strip.set_title(title, loc="left", fontsize=10)
    strips[1].set_xlabel("years after the hold-out")
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
    table, block = next((table, block) for table, block in tables if table.name == "weather")
    found = followed(Watched.of(table, trained(MODELS["logistic"], table), block))
    draw(found, block / DAYS_A_YEAR, PLACE)
    for k, one in enumerate(found):
        if one.baselines["recent"].verdict is not Verdict.STABLE:
            print(f"year {k * block / DAYS_A_YEAR:.1f}:", *one.baselines["recent"].reasons, sep="\n  ")


if __name__ == "__main__":
    main()
