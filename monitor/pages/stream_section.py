"""What a report tells of one stream: its episodes in words, and everything that is drawn of it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, nan
from typing import Protocol

from monitor.pages.distributions import Distribution, distribution
from monitor.pages.messages import MeasureRead, PerformanceRead, SharesRead, WindowRead
from monitor.pages.story import SILENT, Episode, StreamStory, worst_first
from monitor.pages.timelines import DAY, ColouredStretch, Drawing, Point, TimeSpan, strip, values
from monitor.pages.words import moment, number, percent

MOST_CLASSES = 3
MEASURES = ("cost", "roc_auc", "macro_roc_auc", "f1", "macro_f1", "accuracy")
"""Which of them are drawn first."""
MOST_MEASURES = 2
MOST_MOVED = 6
"""Features that are drawn for an episode."""
MOST_DRAWN = 24
"""Distributions of a stream's last window."""
MOST_REASONS = 4
MOST_NAMED = 3
"""Features that are named in a line."""
WORST = {
    "rejected": "rejected records",
    "missing": "missing values",
    "outside_range": "beyond the reference's range",
    "new_categories": "new categories",
}
FINDINGS = {
    "helped": "helped",
    "harmed": "made predictions worse",
    "not-told-apart": "cannot be told from none",
    "too-few-labels": "had too few labels to tell",
}
"""What labels say of corrections."""
EVENTS = {
    "used": "events used",
    "late": "came too late",
    "rejected": "rejected",
    "unusable": "without usable scores",
}


class Facts(Protocol):
    """What a person is shown of a verdict."""

    @property
    def headline(self) -> str: ...
    @property
    def meaning(self) -> str: ...
    @property
    def advice(self) -> str: ...
    @property
    def mark(self) -> str: ...
    @property
    def colour(self) -> str: ...
    @property
    def dark_colour(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SeriesChart:
    """A drawing over the period with its title."""

    title: str
    drawing: Drawing
    shares: bool
    """Whether its axis is said in percent."""

    @property
    def top(self) -> str:
        """What the upper edge stands for,"""
        return percent(self.drawing.high) if self.shares else number(self.drawing.high)

    @property
    def bottom(self) -> str:
        """and the lower."""
        return percent(self.drawing.low) if self.shares else number(self.drawing.low)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The distribution of one feature or score."""

    name: str
    chart: Distribution
    kind: str = ""
    words: str = ""


@dataclass(frozen=True)
class Section:
    """What is told of one stream."""

    story: StreamStory
    span: TimeSpan
    facts: Mapping[str, Facts]

    @property
    def name(self) -> str:
        """The stream, or the segment."""
        return self.story.segment or self.story.stream

    @property
    def shown(self) -> Episode | None:
        """The episode that stands for the stream: the last that lasts, else the longest."""
        return self.story.episodes[-1] if self.story.lasts else self.story.worst

    @property
    def verdict(self) -> str:
        """Of that episode."""
        return self.shown.verdict if self.shown else "stable" if self.story.watched else SILENT

    @property
    def state(self) -> str:
        """How it stands at the end, in a word."""
        if self.story.lasts:
            return "moved"
        if self.story.open_alarms:
            return "alarm"
        return "over" if self.story.episodes else "calm" if self.story.watched else "few"

    @cached_property
    def words(self) -> str:
        """What happened, in a sentence or two, and what alarms are open."""
        alarms = [
            f"In alarm since {self.at(alarm.begin)}: {f'{alarm.segment}, ' if alarm.segment else ''}{alarm.series}."
            for alarm in self.story.open_alarms
        ]
        return " ".join([self._moved, *alarms[:MOST_NAMED]])

    @property
    def _moved(self) -> str:
        if not self.story.watched:
            return "No window had events enough to tell anything."
        episodes = "; ".join(self.of_episode(episode) for episode in self.story.episodes[-3:])
        return f"{episodes}." if episodes else f"Nothing lasted. {self.alone}." if self.alone else "Nothing has moved."

    @property
    def alone(self) -> str:
        """Of windows that differed by themselves."""
        count = self.story.alone
        if not count:
            return ""
        differed = "1 window differed alone" if count == 1 else f"{count:,} windows differed alone"
        return f"{differed}, of {len(self.story.windows):,}: one in a hundred does by chance"

    def of_episode(self, episode: Episode) -> str:
        """One episode in words."""
        headline = self.facts[episode.verdict].headline if episode.verdict in self.facts else episode.verdict
        what = ", ".join([*self._mix_of(episode), *episode.shown.moved[:MOST_NAMED]])
        return f"{headline}{self._when(episode)}{f': {what}' if what else ''}"

    def _when(self, episode: Episode) -> str:
        """Since when, or from when to when; nothing where there is one window only."""
        if len(self.story.windows) == 1:
            return ""
        if episode is self.story.episodes[-1] and self.story.lasts:
            return f" since {self.at(episode.begin)}"
        return f" from {self.at(episode.begin)} to {self.at(episode.until)}"

    def _mix_of(self, episode: Episode) -> Sequence[str]:
        """The share of the class that moved furthest, where the verdict is about that."""
        if "prior" not in episode.verdict:
            return ()
        shares, names = episode.shown.prevalence, self.classes
        name = max(names, key=lambda each: abs(shares[each].estimate - shares[each].reference))
        return (f"{name} {percent(shares[name].reference)} to {percent(shares[name].estimate)}",)

    def at(self, time: int) -> str:
        """A time of the period, with its day where there are several."""
        return moment(time, "%H:%M" if self.span.length <= DAY else "%d %b %H:%M")

    def reasons(self, episode: Episode) -> Sequence[str]:
        """Why its window had that verdict."""
        return episode.shown.reasons[:MOST_REASONS]

    @cached_property
    def strip(self) -> Drawing:
        """The verdicts over time."""
        stretches = [ColouredStretch(window.begin, window.until, f"v-{window.told}") for window in self.story.windows]
        moved = sum(len(episode.windows) for episode in self.story.episodes)
        return strip(self.span, stretches, f"Verdicts of {len(stretches)} windows, {moved} of them in a lasting shift")

    @cached_property
    def classes(self) -> list[str]:
        """Of two classes the one that is looked for; of many those that moved furthest."""
        windows = [window for window in self.story.windows if window.prevalence]
        if not windows:
            return []
        names = list(windows[-1].prevalence)
        if len(names) == 2:
            scored = next((list(window.drawn.scores) for window in reversed(windows) if window.drawn.scores), [])
            return [scored[0] if scored and scored[0] in names else names[1]]

        def furthest(name: str) -> float:
            return max(abs(w.prevalence[name].estimate - w.prevalence[name].reference) for w in windows)

        return sorted(sorted(names, key=lambda name: -furthest(name))[:MOST_CLASSES], key=names.index)

    @cached_property
    def shares(self) -> list[SeriesChart]:
        """How much of each class over time."""
        charts = (self._share(name) for name in self.classes)
        return [chart for chart in charts if chart is not None]

    def _share(self, name: str) -> SeriesChart | None:
        shares = [(w, w.prevalence[name]) for w in self.story.windows if name in w.prevalence and w.verdict != SILENT]
        points = [
            Point(w.begin, w.until, share.estimate, share.lower, share.upper, _smoothed(w.smoothed, name))
            for w, share in shares
        ]
        truths = [
            ((outcome.begin + outcome.until) // 2, outcome.classes[name].realised)
            for outcome in self.story.outcomes.values()
            if name in outcome.classes and not outcome.selective
        ]
        drawing = values(self.span, points, truths, shares[-1][1].reference if shares else None, f"Share of {name}")
        return None if drawing is None else SeriesChart(name, drawing, shares=True)

    @cached_property
    def mix(self) -> list[tuple[str, SharesRead]]:
        """The shares of the last window, of the same classes."""
        latest = self.story.latest
        return [(name, latest.prevalence[name]) for name in self.classes if name in latest.prevalence]

    @cached_property
    def performances(self) -> list[SeriesChart]:
        """How good the model is over time: estimated for each window, and by labels where they came."""
        names = next((list(known.figures) for known in map(_known, reversed(self.story.windows)) if known.figures), [])
        drawn = sorted(names, key=lambda name: MEASURES.index(name) if name in MEASURES else len(MEASURES))
        return [chart for name in drawn[:MOST_MEASURES] if (chart := self._measure(name)) is not None]

    def _measure(self, name: str) -> SeriesChart | None:
        figures = [(window, _known(window).figures.get(name)) for window in self.story.windows]
        points = [
            Point(w.begin, w.until, figure.estimate, figure.lower, figure.upper)
            for w, figure in figures
            if figure is not None
        ]
        outcomes = [
            (outcome, outcome.performance[name])
            for outcome in self.story.outcomes.values()
            if name in outcome.performance
        ]
        truths = [((outcome.begin + outcome.until) // 2, measure.realised) for outcome, measure in outcomes]
        drawing = values(self.span, points, truths, None, name.replace("_", " "))
        return None if drawing is None else SeriesChart(name.replace("_", " "), drawing, shares=False)

    @property
    def measure_heads(self) -> list[str]:
        """What the columns of `measures` are."""
        if self.story.latest.relation is not None:
            return ["label minus prediction", "by labels", "on the hold-out"]
        return ["measure", "estimated without labels", "by labels"]

    @property
    def measures(self) -> list[tuple[str, str, str]]:
        """Each measure of the last window that has any, and by the last labels."""
        latest = next((known for known in map(_known, reversed(self.story.windows)) if known.figures), None)
        outcomes = sorted(self.story.outcomes.values(), key=lambda outcome: -outcome.begin)
        realised: Mapping[str, MeasureRead] = next(
            (outcome.performance for outcome in outcomes if outcome.performance), {}
        )
        if self.story.latest.relation is not None:
            return [
                (name, _with_interval(known, known.realised), _of_holdout(known)) for name, known in realised.items()
            ]
        names = [] if latest is None else list(latest.figures)
        rows = []
        for name in [*names, *(name for name in realised if name not in names)]:
            figure = None if latest is None else latest.figures.get(name)
            known = realised.get(name)
            rows.append(
                (
                    name.replace("_", " "),
                    "" if figure is None else _with_interval(figure, figure.estimate),
                    "" if known is None else _with_interval(known, known.realised),
                )
            )
        return rows

    @property
    def errors(self) -> list[SeriesChart]:
        """Of a regressor: the errors of its predictions, where there are labels."""
        known = [(w, w.relation) for w in self.story.windows if w.relation is not None and w.relation.error is not None]
        points = [Point(w.begin, w.until, relation.error or 0.0, nan, nan) for w, relation in known]
        usual = known[-1][1].reference_error if known else None
        spread = [
            Point(w.begin, w.until, middle, low, high)
            for w, relation in known
            if relation.residual_quantiles is not None
            for low, middle, high in [relation.residual_quantiles]
        ]
        later = [
            ((outcome.begin + outcome.until) // 2, outcome.performance["rmse"].realised)
            for outcome in self.story.outcomes.values()
            if "rmse" in outcome.performance
        ]
        drawn = {
            "root mean square": values(self.span, points, later, usual, "Error of the predictions"),
            "label minus prediction: middle, and eight of ten": values(
                self.span, spread, [], 0.0, "Label minus prediction", widest=inf
            ),
        }
        return [SeriesChart(name, chart, shares=False) for name, chart in drawn.items() if chart is not None]

    @property
    def corrections(self) -> str:
        """Of a regressor: what labels say of its corrections; empty where they have judged none."""
        outcomes = sorted(self.story.outcomes.values(), key=lambda outcome: outcome.begin)
        judged = [each.correction for each in outcomes if each.correction is not None]
        counted = Counter(correction.finding for correction in judged)
        said = [f"{words} in {counted[name]:,}" for name, words in FINDINGS.items() if counted[name]]
        return f"Corrections {', '.join(said)} of {len(judged):,} windows with labels" if said else ""

    @property
    def segments(self) -> list["Section"]:
        """The same of its segments, the worst first."""
        rank = {verdict: at for at, verdict in enumerate(self.facts)}
        return [Section(story, self.span, self.facts) for story in worst_first(self.story.segments, rank)]

    def moved(self, episode: Episode) -> list[Drawn]:
        """The features that moved in an episode, drawn as its window had them."""
        shown, drawn = episode.shown, episode.shown.drawn
        return [
            Drawn(name, distribution(drawn.features[name]), shown.features[name].kind, shown.features[name].reason)
            for name in shown.moved[:MOST_MOVED]
            if name in drawn.features
        ]

    @cached_property
    def everything(self) -> list[Drawn]:
        """The scores and features of the last window."""
        drawn = self.story.latest.drawn
        groups = [("score", drawn.scores), ("", drawn.features)]
        charts = [Drawn(name, distribution(sketch), kind) for kind, group in groups for name, sketch in group.items()]
        return charts[:MOST_DRAWN]

    @property
    def missing(self) -> list[tuple[str, str, str]]:
        """Features whose values were missing more than expected at some time: the largest share, and what is usual."""
        largest: dict[str, tuple[float, float]] = {}
        for window in self.story.windows:
            for name, feature in window.features.items():
                if feature.missing_rate > largest.get(name, (0.0, 0.0))[0]:
                    largest[name] = (feature.missing_rate, feature.expected_missing_rate)
        furthest = sorted(largest.items(), key=lambda item: item[1][1] - item[1][0])[:MOST_MOVED]
        return [(name, percent(most), percent(usual)) for name, (most, usual) in furthest]

    @property
    def totals(self) -> list[tuple[str, str]]:
        """What became of the events."""
        counts = [window.events for window in self.story.windows]
        sums = {
            name: sum(getattr(count, name) for count in counts) for name in ("used", "late", "rejected", "unusable")
        }
        total = max(sum(sums.values()), 1)
        words = {
            "used": "events used",
            "late": "came too late",
            "rejected": "rejected",
            "unusable": "without usable scores",
        }
        incomplete = sum(not window.complete for window in self.story.windows)
        rows = [(words[name], _of(count, total, name == "used")) for name, count in sums.items()]
        rows += [("incomplete windows", number(incomplete))] if incomplete else []
        return [*rows, *self._quality()]

    def _quality(self) -> Iterator[tuple[str, str]]:
        """The worst window in each respect."""
        windows = self.story.windows
        for name, words in WORST.items():
            yield f"{words} of a window, at most", percent(max(getattr(window.quality, name) for window in windows))
        constant = sorted({name for window in windows for name in window.quality.constant})
        if constant:
            yield "one value only", ", ".join(constant)
        if ratios := [window.volume.ratio for window in windows if window.volume is not None]:
            yield "events beside the same hour before", f"{number(min(ratios))} x to {number(max(ratios))} x"

    @property
    def emitted(self) -> str:
        """What the model gives."""
        return "scores" if self.story.latest.relation is None else "predictions"

    @property
    def notes(self) -> str:
        """By which method, against which reference."""
        latest = self.story.latest
        estimated = f"class mix by {latest.estimator}" if latest.estimator else "a regressor"
        resting = f", resting on {latest.based_on.replace('-', ' ')}" if latest.based_on else ""
        made = f"reference {latest.versions.reference[:8]}, shiftwatch {latest.versions.software}"
        return f"{estimated}{resting}; {made}; {len(self.story.windows):,} windows"


def _smoothed(levels: Mapping[str, SharesRead] | None, name: str) -> float:
    return nan if levels is None or name not in levels else levels[name].estimate


def _with_interval(known: MeasureRead, value: float) -> str:
    return f"{number(value)} ({number(known.lower)} to {number(known.upper)})"


def _of_holdout(known: MeasureRead) -> str:
    return "" if known.reference is None else number(known.reference)


def _known(window: WindowRead) -> PerformanceRead:
    return window.performance or PerformanceRead()


def _of(count: int, total: int, alone: bool) -> str:
    return number(count) if alone or not count else f"{number(count)} ({percent(count / total)})"
