"""The report's page, from the figures of all cells."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from monitor.assessment.verdict import Verdict, verdicts
from tests.bench import tables
from tests.bench.streams.claims import CHANCE, claims
from tests.bench.streams.injected import INJECTED
from tests.bench.streams.measures import Figures, Rule, Score
from tests.bench.streams.watched import Tally


def page(cells: Sequence[Figures], command: str, missing: Sequence[str], law: str) -> str:
    """Everything as Markdown."""
    lines = [
        "# Real streams",
        "",
        f"Made by `{command}`.",
        "",
        law,
        "",
        *(f"- Missing: {one}" for one in missing),
        *([""] if missing else []),
    ]
    if not cells:
        return "\n".join([*lines, "No stream could be used.", ""])
    return "\n".join(
        [
            *lines,
            tables.claims(claims(cells)),
            CHANCE,
            "",
            "## Streams",
            "",
            tables.markdown(
                ["stream", "rows", "classes", "features", "window", "hold-out blocks", "windows", "remarks"],
                _streams(cells),
            ),
            "## Verdicts",
            "",
            "Shares of the windows that could be judged, in percent.",
            "",
            tables.markdown(
                ["stream", "window", "model", "baseline", *map(str, SHOWN), "too few events"], _verdicts(cells)
            ),
            "## Calm blocks, and shifts on top",
            "",
            "Another verdict than `stable`, in percent of the windows; in brackets how often the touched",
            "feature is named, in percent.",
            "`calm`: blocks of the hold-out, each against a reference of the others. `on ...`: windows of the stream.",
            "",
            tables.markdown(
                ["stream", "window", "model", "where", "windows", "as it is", "unexplained", *INJECTED],
                _power(cells),
            ),
            "## Prevalence",
            "",
            "Mean absolute error over windows and classes; in brackets the coverage of 95 % intervals.",
            "",
            *(line for title, of in RULES.items() for line in _prevalence(cells, title, of)),
            "## Harm",
            "",
            "AUC for windows worse than the hold-out's 90 % block / Spearman's correlation with the Brier score.",
            "",
            *_harm(cells),
            "## Cost",
            "",
            tables.markdown(
                ["stream", "window", "model", "ms a window", "s a reference"],
                [
                    (*_name(one), f"{one.window_ms:.1f}" if one.windows else "-", f"{one.reference_s:.2f}")
                    for one in cells
                ],
            ),
        ]
    )


RULES: Mapping[str, Callable[[Figures], dict[str, Rule]]] = {
    "Without labels": lambda one: one.without_labels,
    "With labels two windows late": lambda one: one.with_labels,
}
SHOWN = tuple(verdict for verdict in verdicts(regression=False) if verdict is not Verdict.INSUFFICIENT_DATA)


def _name(one: Figures) -> tuple[str, str, str]:
    return one.stream, f"{one.block:,}", one.model


def _streams(cells: Sequence[Figures]) -> Iterable[tuple[str, ...]]:
    rows = (
        (
            one.stream,
            f"{one.rows:,}",
            f"{one.classes}",
            f"{one.features}",
            f"{one.block:,}",
            f"{one.held}",
            f"{one.windows}",
            "; ".join(one.remarks) or "-",
        )
        for one in cells
    )
    return dict.fromkeys(rows)


def _verdicts(cells: Sequence[Figures]) -> Iterable[tuple[str, ...]]:
    for one in cells:
        for baseline, counts in one.verdicts.items():
            tally = Tally(counts, 0)
            few = counts.get(str(Verdict.INSUFFICIENT_DATA), 0) / max(sum(counts.values()), 1)
            yield (*_name(one), baseline, *(_percent(tally.share(v)) for v in SHOWN), _percent(few))


def _power(cells: Sequence[Figures]) -> Iterable[tuple[str, ...]]:
    for one in cells:
        if one.calm:
            yield (*_name(one), "calm", *_calm(one.calm["as it is"]), *(_shift(one.calm[s], s) for s in INJECTED))
        for baseline, found in one.power.items():
            whole = Tally(one.verdicts[baseline], 0)
            yield (
                *_name(one),
                f"on the stream, {baseline}",
                *_calm(whole),
                *(_shift(found[s], s) if s in found else "-" for s in INJECTED),
            )


def _calm(tally: Tally) -> tuple[str, str, str]:
    return f"{tally.windows}", _percent(tally.moved), _percent(tally.share(Verdict.UNEXPLAINED))


def _shift(tally: Tally, shift: str) -> str:
    named = f" ({100 * tally.named / tally.windows:.0f})" if tally.windows and shift != "prior" else ""
    return _percent(tally.moved) + named


def _prevalence(cells: Sequence[Figures], title: str, of: Callable[[Figures], dict[str, Rule]]) -> list[str]:
    names = list(dict.fromkeys(name for one in cells for name in of(one)))
    rows = ((*_name(one), *(_rule(of(one).get(name)) for name in names)) for one in cells)
    return [f"### {title}", "", tables.markdown(["stream", "window", "model", *names], rows)]


def _rule(rule: Rule | None) -> str:
    if rule is None:
        return "-"
    return f"{rule.error:.3f}" + ("" if rule.coverage is None else f" ({rule.coverage:.2f})")


def _harm(cells: Sequence[Figures]) -> list[str]:
    names = list(dict.fromkeys(name for one in cells for name in one.harm))
    rows = [
        (*_name(one), _percent(one.harmed), *(_score(one.harm.get(name)) for name in names))
        for one in cells
        if one.harm
    ]
    judged = [one for one in cells if one.harm]
    means = [_mean([one.harm[name] for one in judged]) for name in names]
    return [tables.markdown(["stream", "window", "model", "worse %", *names], [*rows, ("mean", "", "", "", *means)])]


def _score(score: Score | None) -> str:
    if score is None:
        return "-"
    return " / ".join("-" if value is None else f"{value:.2f}" for value in (score.auc, score.spearman))


def _mean(scores: Sequence[Score]) -> str:
    def of(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    return _score(Score(of([one.auc for one in scores]), of([one.spearman for one in scores])))


def _percent(share: float | None) -> str:
    return "-" if share is None or share != share else f"{100 * share:.1f}"  # noqa: PLR0124 - not a number
