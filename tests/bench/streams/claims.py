"""What is wanted of the monitor on real streams, and whether it holds: over all cells, and in each but for chance."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, t

from monitor.arrays import Vector
from monitor.assessment.verdict import Verdict
from tests.bench.streams.measures import Figures, Rule
from tests.bench.streams.watched import Tally

CALM_MOVED = 0.03
"""Of calm windows may have another verdict than `stable`."""
UNEXPLAINED = 0.03
UNNAMED = 0.4
"""Of the windows in which a feature's unit is another, held against the reference."""
WITH_LABELS = 1.05
WITHOUT_LABELS = 1.3
"""Times the error of the best simple rule."""
COVERAGE = 0.9
LEVEL = 0.05
"""Of calling any cell beyond chance where none is."""
CHANGES = "made up: regime change"
"""Not calm: that its regime changes has to be told."""

CHANCE = f"""Cells within the bound are counted as they are. A claim holds where the figure of all cells together is
within the bound and no cell is beyond it by more than chance, which is at {LEVEL:.0%} over all cells: the exact
binomial test of its windows; of prevalence Student's test of the windows' differences from the bound. A cell's best
simple rule is chosen afterwards, by its errors in these windows."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One cell's figure, and how easily chance makes one so far beyond the bound that is in truth at it."""

    figure: float
    chance: float
    cell: Figures
    weight: int
    """Windows."""


def claims(cells: Sequence[Figures]) -> Iterable[tuple[str, bool, str]]:
    """What is claimed, whether it holds, and the figures."""
    calm = [(one.calm["as it is"], one) for one in cells if one.calm]
    yield _shares(f"calm blocks: at most {CALM_MOVED:.0%} not stable", calm, _moved, CALM_MOVED)
    yield _shares(f"calm blocks: at most {UNEXPLAINED:.0%} unexplained", calm, _unexplained, UNEXPLAINED)
    lately = [(Tally(one.verdicts["recent"], 0), one) for one in cells if "recent" in one.verdicts]
    lasting = [(tally, one) for tally, one in lately if one.stream != CHANGES]
    yield _shares(f"stream against the recent normal: at most {CALM_MOVED:.0%} not stable", lasting, _moved, CALM_MOVED)
    changed = [_moved(tally) > 0 for tally, one in lately if one.stream == CHANGES]
    if changed:
        yield "a made-up change of regime: told by the recent normal", all(changed), f"{sum(changed)} of {len(changed)}"
    units = [(one.power["reference"]["unit"], one) for one in cells if one.power["reference"]["unit"].windows]
    yield _shares(
        f"a changed unit: unnamed in at most {UNNAMED:.0%}", units, lambda tally: tally.windows - tally.named, UNNAMED
    )
    yield _harm(cells)
    yield _ratios(
        f"prevalence without labels: at most {WITHOUT_LABELS} x the best simple rule",
        [(one.without_labels, one) for one in cells],
        WITHOUT_LABELS,
    )
    yield _ratios(
        f"prevalence with labels two windows late: at most {WITH_LABELS} x the best simple rule",
        [(_simple(one.without_labels) | one.with_labels, one) for one in cells],
        WITH_LABELS,
    )
    covered: dict[str, Callable[[Figures], dict[str, Rule]]] = {
        "without labels": lambda one: one.without_labels,
        "with labels two windows late": lambda one: one.with_labels,
    }
    for title, of in covered.items():
        known = [(of(one)["published"].coverage, one) for one in cells if of(one)]
        yield _coverage(f"prevalence {title}: coverage at least {COVERAGE}", known)


def _moved(tally: Tally) -> int:
    return sum(tally.verdicts.values()) - sum(
        tally.verdicts.get(str(v), 0) for v in (Verdict.STABLE, Verdict.INSUFFICIENT_DATA)
    )


def _unexplained(tally: Tally) -> int:
    return tally.verdicts.get(str(Verdict.UNEXPLAINED), 0)


def _shares(
    claim: str, tallies: Sequence[tuple[Tally, Figures]], count: Callable[[Tally], int], limit: float
) -> tuple[str, bool, str]:
    judged = []
    for tally, one in tallies:
        if tally.windows:
            counted = count(tally)
            chance = float(binom.sf(counted - 1, tally.windows, limit))
            judged.append(Judged(counted / tally.windows, chance, one, tally.windows))
    return _stated(claim, judged, limit)


def _ratios(claim: str, cells: Sequence[tuple[dict[str, Rule], Figures]], limit: float) -> tuple[str, bool, str]:
    """Of the error of what is published to that of the best other rule."""
    judged = []
    for rules, one in cells:
        best = min(_simple(rules).values(), key=lambda rule: rule.error, default=None)
        if best is not None and best.error > 0:
            published = rules["published"]
            above = np.subtract(published.errors, limit * np.array(best.errors))
            judged.append(Judged(published.error / best.error, _by_chance(above), one, len(published.errors)))
    return _stated(claim, judged, limit)


def _by_chance(above: Vector) -> float:
    """P(a mean as large | it is 0 in truth), by Student's test."""
    spread = float(above.std(ddof=1)) if above.size > 1 else 0.0
    if spread == 0.0:
        return float(above.mean() <= 0)
    return float(t.sf(above.mean() / (spread / np.sqrt(above.size)), above.size - 1))


def _stated(claim: str, judged: Sequence[Judged], limit: float) -> tuple[str, bool, str]:
    if not judged:
        return claim, False, "no stream could say"
    together = float(np.average([one.figure for one in judged], weights=[one.weight for one in judged]))
    beyond = [one for one in judged if one.figure > limit and one.chance < LEVEL / len(judged)]
    worst = max(judged, key=lambda one: one.figure)
    figures = (
        f"all together {together:.3g}; {sum(one.figure <= limit for one in judged)} of {len(judged)} cells; "
        f"beyond chance {len(beyond)}; the worst is {worst.figure:.3g} ({_name(worst.cell)}), by chance in "
        f"{worst.chance:.2g}"
    )
    return claim, together <= limit and not beyond, figures


def _coverage(claim: str, known: Sequence[tuple[float | None, Figures]]) -> tuple[str, bool, str]:
    judged = [(value, one) for value, one in known if value is not None]
    if not judged:
        return claim, False, "no stream could say"
    held = sum(value >= COVERAGE for value, _ in judged)
    value, one = min(judged, key=lambda pair: pair[0])
    return claim, held == len(judged), f"{held} of {len(judged)} cells; the worst is {value:.3g} ({_name(one)})"


def _harm(cells: Sequence[Figures]) -> tuple[str, bool, str]:
    """Over the cells in which every score has an AUC."""
    claim = "harm: a larger mean AUC than CBPE, KS counts and the fit's effect"
    judged = [one.harm for one in cells if one.harm and all(score.auc is not None for score in one.harm.values())]
    if not judged:
        return claim, False, "no stream could say"
    means = {name: sum(harm[name].auc or 0.0 for harm in judged) / len(judged) for name in judged[0]}
    best = max(means, key=lambda name: means[name])
    return claim, best == "harm", ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())


def _simple(rules: dict[str, Rule]) -> dict[str, Rule]:
    """Those that are not the monitor's own."""
    return {name: rule for name, rule in rules.items() if name != "published"}


def _name(one: Figures) -> str:
    return f"{one.stream}, {one.block:,}, {one.model}"
