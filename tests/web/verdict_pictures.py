"""What each verdict rests on, drawn from windows that were really assessed: `python -m tests.web.verdict_pictures`.

Writes `deploy/guides/verdicts.svg`: for each window the class mix with its interval, one input, and the scores.
"""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from connectors.worlds import BLOCK, Period, Timetable, World
from monitor.assessment import Assessment, Verdict, assess
from monitor.pages import DrawnPath, distribution
from monitor.reference import Reference
from monitor.windows import Window

PICTURE = Path(__file__).parents[2] / "deploy" / "guides" / "verdicts.svg"
WORLD = World(stream="s", classes=("legit", "fraud"), priors=(0.8, 0.2), features=("amount", "age_days"), seed=4)
WINDOWS = {
    Verdict.STABLE: Period("nothing has happened", 2 * BLOCK),
    Verdict.PRIOR_SHIFT: Period("fraud doubles", 2 * BLOCK, priors=(0.6, 0.4)),
    Verdict.COVARIATE_SHIFT: Period("age_days in another unit", 2 * BLOCK, linear={"age_days": (1.7, 0.0)}),
    Verdict.PRIOR_AND_COVARIATE_SHIFT: Period("both", 2 * BLOCK, priors=(0.6, 0.4), linear={"age_days": (1.7, 0.0)}),
    Verdict.UNKNOWN_CLASS: Period("a tenth is of a new kind", 2 * BLOCK, unknown=0.1),
}
STYLE = """text { font: 13px system-ui, sans-serif; fill: #1d2126; }
.b { font-weight: 600; } .m { fill: #596069; font-size: 12px; }
.now-bars { fill: #2563a8; opacity: .5; } .reference { fill: none; stroke: #596069; } .expected { fill: none;
stroke: #1d2126; stroke-width: 1.5; stroke-dasharray: 4 3; } path { vector-effect: non-scaling-stroke; }"""
ROW, WIDE, PLOT, TALL = 132, 980, 260, 74


def assessed() -> dict[Verdict, Assessment]:
    """By what a perfect monitor would say."""
    held = WORLD.holdout(4_000)
    reference = Reference.fit(
        held.posteriors,
        held.labels,
        held.features,
        classes=WORLD.classes,
        feature_names=WORLD.features,
        positive="fraud",
    )
    timetable = Timetable(WORLD, [WINDOWS[verdict] for verdict in WINDOWS])
    found = {}
    for number, verdict in enumerate(WINDOWS):
        blocks = [timetable.block(2 * number + at).population for at in range(2)]
        window = Window.of(
            [row for block in blocks for row in block.posteriors], [row for block in blocks for row in block.features]
        )
        found[verdict] = assess(window, reference)
    return found


def picture(found: dict[Verdict, Assessment]) -> str:
    """All of them, one below the other."""
    height = ROW * len(found) + 34
    rows = [line for at, (verdict, one) in enumerate(found.items()) for line in _row(at, verdict, one)]
    key = "bars: the window · thin: the reference · dashed: the reference at the window's class mix"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {height}" width="{WIDE}">',
            f"<style>{STYLE}</style>",
            f'<rect width="{WIDE}" height="{height}" fill="#fff"/>',
            *rows,
            f'<text class="m" x="20" y="{height - 12}">{key}</text>',
            "</svg>\n",
        ]
    )


def _row(at: int, verdict: Verdict, found: Assessment) -> Iterator[str]:
    top = at * ROW + 26
    mix, source = found.prevalence, found.source_priors[1]
    yield f'<text class="b" x="20" y="{top}">{verdict}</text>'
    yield f'<text class="m" x="20" y="{top + 19}">{escape(WINDOWS[verdict].name)}</text>'
    yield f'<text x="20" y="{top + 46}">fraud {mix.priors[1]:.1%}, reference {source:.1%}</text>'
    yield f'<text class="m" x="20" y="{top + 63}">between {mix.lower[1]:.1%} and {mix.upper[1]:.1%}</text>'
    assert found.sketches is not None
    for column, (name, sketch) in enumerate(
        (("age_days", found.sketches.features["age_days"]), ("score of fraud", found.sketches.scores["fraud"]))
    ):
        left = 320 + column * (PLOT + 60)
        yield f'<text class="m" x="{left}" y="{top}">{name}</text>'
        yield f'<g transform="translate({left} {top + 8}) scale({PLOT / 1000} {TALL / 100})">'
        yield from map(_mark, distribution(sketch).marks)
        yield "</g>"


def _mark(mark: DrawnPath) -> str:
    return f'<path class="{mark.style}" d="{mark.path}"/>'


if __name__ == "__main__":
    PICTURE.write_text(picture(assessed()), encoding="utf-8")
