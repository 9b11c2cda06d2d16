"""The one configuration: a TOML file, read once into frozen values. Every default of the service stands here.

[source]
url = "jsonl:events.jsonl"        # what else a connector can be told stands in its module

[sink]
url = "jsonl:results.jsonl"

[streams.fraud-v3]
reference = "fraud-v3.ref"
window = { size = "5m", lateness = "30s" }
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from scipy.special import bdtrc

from monitor.assessment import AdaptBy, ClassRule, MixRule
from monitor.errors import ConfigurationError, InputError
from monitor.events import JOINS, OWN_SHAPE, EventMapping, JoinRule, TimeReading
from monitor.labels import Awaited
from monitor.limits import (
    COMMIT_EVERY,
    IDLE_AFTER,
    MOST_WAITING,
    SEGMENTS_WATCHED,
)
from monitor.performance import Decisions, Limit
from monitor.ports.options import Duration, duration, duration_text, read, substituted
from monitor.recalibration import May, ScoreKind
from monitor.service import Corrected, DeadLetterLimits, Spread
from monitor.settings.looking_on import OtlpSettings, ServerSettings
from monitor.state import Budget
from monitor.tolerances import MIX_FACTOR, MIX_FLOOR, VERDICT_LEVEL
from monitor.windows import CountPlan, Plan, TimePlan

_COMMIT = Duration(COMMIT_EVERY)
_IDLE = Duration(IDLE_AFTER)


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """How a stream is cut: by event time (`size`, `lateness`, maybe `slide`) or by number of events (`count`)."""

    size: Duration | None = None
    slide: Duration | None = None
    """How far apart windows start; by default `size`, so that they do not overlap."""
    lateness: Duration | None = None
    """How much older than the newest event of its partition an event may be. It delays every window by as much."""
    count: int | None = None
    max_events: int = 1_000_000
    """A window keeps at most this many, drawn by a seeded hash of their content; the rest is counted."""
    seed: int = 0

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if (self.size is None) == (self.count is None):
            yield "want either `size` (with `lateness`) or `count`"
        if self.count is not None and (self.count < 1 or self.slide is not None or self.lateness is not None):
            yield "want `count` of at least 1, and neither `slide` nor `lateness` beside it"
        if self.size is not None:
            if self.lateness is None:
                yield "`lateness` must be said: 0s closes windows soonest, but counts every event out of order as late"
            if self.size < 1 or self.slide == 0 or self.size % (self.slide or self.size):
                yield "want `size` above zero, and a whole multiple of `slide`"
        if self.max_events < 1:
            yield "want `max_events` of at least 1"
        if not 0 <= self.seed < 2**64:
            yield f"want `seed` from 0 to 2^64 - 1, got {self.seed}"

    @property
    def words(self) -> str:
        """The rules as a person reads them."""
        if self.count is not None:
            return f"every {self.count:,} events"
        slide = f", one every {duration_text(self.slide)}" if self.slide else ""
        return f"{duration_text(self.size or 0)} long{slide}, closed {duration_text(self.lateness or 0)} later"

    @property
    def plan(self) -> Plan:
        """The rules for `monitor.windows.assembly`."""
        if self.count is not None:
            return CountPlan(self.count)
        assert self.size is not None  # noqa: S101 - problems() has been asked
        return TimePlan(self.size, self.slide or self.size, self.lateness or 0, self.max_events, self.seed)


@dataclass(frozen=True, slots=True)
class LabelSettings:
    """Labels that come later than their events."""

    wait: Duration
    """How long after a window's end its labels are waited for, in event time."""
    store: Path = Path("labels.sqlite")
    """Where windows and labels wait: a file on a local disk that survives restarts. Streams may share it."""
    max_events: int = 5_000_000
    """Events that wait at most, and labels at most; beyond it the oldest go. An event takes 50 to 150 bytes."""

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if self.wait < 1:
            yield "want `wait` above zero"
        if self.max_events < 1:
            yield "want `max_events` of at least 1"

    @property
    def awaited(self) -> Awaited:
        """The same for `monitor.labels`."""
        return Awaited(wait=self.wait, most=self.max_events, store=self.store)


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """[alarms]: how many false alarms there may be. With it evidence is gathered over windows."""

    false: str = ""
    """Such as "1 per 30d": of all streams together, which share it alike. Streams may have a budget of their own."""

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if self.false and _per_microsecond(self.false) is None:
            yield f'want `false` like "1 per 30d", got {self.false!r}'


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """One window in a hundred is a false alarm by design; an alarm waits for more of them."""

    windows: int = 2
    """So many of the last `of` windows with another verdict than `stable` raise the alarm; fewer end it."""
    of: int = 3
    """By chance alone 2 of 3 come about once in 3,300 windows, 3 of 5 once in 100,000. 1 of 1: every verdict alarms."""
    level: float = VERDICT_LEVEL
    """The share of windows without a shift that may get another verdict than `stable`."""
    floor: float = MIX_FLOOR
    """How much a class mix has to move to count: Cohen's w, 0.1 is small and 0.3 medium."""
    factor: float = MIX_FACTOR
    """Or by which factor the share of one class has to change, up or down."""
    false: str = ""
    """How many false alarms the evidence gathered over windows may bring, such as "1 per 30d": a budget of the stream's
    own, beside the one of [alarms]."""
    classes: Mapping[str, ClassRule] = field(default_factory=dict)
    """By class: `may = "fall"` (or "rise") if such a move is nobody's business, a `factor` or `level` of its own."""

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if not 1 <= self.windows <= self.of:
            yield f"want `windows` from 1 to `of`, got {self.windows} of {self.of}"
        if not 0 < self.level < 1:
            yield f"want `level` between 0 and 1, got {self.level}"
        if self.false and _per_microsecond(self.false) is None:
            yield f'want `false` like "1 per 30d", got {self.false!r}'
        if self.floor < 0 or self.factor <= 1:
            yield f"want `floor` of at least 0 and `factor` above 1, got {self.floor} and {self.factor}"

    @property
    def mix_rule(self) -> MixRule:
        """What counts as a move of the class mix."""
        return MixRule(self.level, self.floor, self.factor, self.classes)

    @property
    def by_chance(self) -> float:
        """The chance of an alarm without a shift, at any window."""
        return float(bdtrc(self.windows - 1, self.of, self.level))


@dataclass(frozen=True, slots=True)
class PerformanceSettings(Decisions):
    """What is decided by the scores, and limits such as `roc_auc = { below = 0.8 }`: beyond one there is an alarm. Of a
    regressor, limits of its errors, which labels tell."""

    accuracy: Limit | None = None
    brier: Limit | None = None
    log_loss: Limit | None = None
    f1: Limit | None = None
    roc_auc: Limit | None = None
    average_precision: Limit | None = None
    cost: Limit | None = None
    """Of an event, where mistakes were given one."""
    macro_f1: Limit | None = None
    macro_roc_auc: Limit | None = None
    macro_average_precision: Limit | None = None
    rmse: Limit | None = None
    mae: Limit | None = None
    bias: Limit | None = None
    """Label minus prediction, on average."""

    @property
    def decisions(self) -> Decisions:
        """What is decided by the scores."""
        return Decisions(**{each.name: getattr(self, each.name) for each in fields(Decisions)})

    @property
    def limits(self) -> Mapping[str, Limit]:
        """Those that are set, by measure."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: limit for name, limit in own.items() if isinstance(limit, Limit)}


@dataclass(frozen=True, slots=True)
class FeatureSettings:
    """What the values of one feature cannot show."""

    may: May | None = None
    """rescale: it may change its unit, so that along a line its values are taken back to the reference's. remap: along
    any curve that keeps their order. Without it a moved feature is taken for other events, and never corrected."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """One stream: what it is compared with, and its windows."""

    reference: Path
    window: WindowSettings
    segments: tuple[str, ...] = ()
    """Fields of an event's `segment` that are watched apart, beside the whole stream."""
    max_segments: int = SEGMENTS_WATCHED
    """The biggest ones of each window; the rest is watched together as "(other)"."""
    scores: ScoreKind | None = None
    """What events say of each class: its "posterior", or a "margin", which is no probability. The reference knows it;
    where it is said here too, a reference of the other kind is a problem."""
    times: str = ""
    """How events write times that do not say it themselves: "seconds", "microseconds" or "nanoseconds" for numbers
    since the epoch ("milliseconds" also takes those before 2000, which are otherwise rejected as a mistaken unit);
    "utc", or a zone such as "Europe/Brussels", for texts without an offset."""
    dead_letter_late: bool = False
    """Whether late events also go to the dead letters, not only into their counter."""
    spread: Spread = "refuse"
    """What becomes of a window of which other members of the group have events, because the topic is not keyed by
    stream. refuse: it is not published. parts: each member publishes its part, marked as such, under a key of its own;
    nothing is recommended by it."""
    alarm: AlarmSettings = field(default_factory=AlarmSettings)
    """When windows that moved become an alarm."""
    changes: Literal["adwin", "page-hinkley", "kswin", "prior-shift"] | None = None
    """What looks for changes of level: the first three in the share of each class and the distance of each feature, one
    value a window; `prior-shift` tests the class mix of the last 1,000 events, at most 250 of each window."""
    labels: LabelSettings | None = None
    """Whether, and for how long, windows wait for labels to compare their estimates, or predictions, with."""
    corrected: Corrected = "no"
    """window: when a window closes its events are published once more, corrected by its own estimate. live: each event
    is as it comes, corrected by the latest recalibration; wants `events` and `recalibrations` in [sink]."""
    target: Literal["window", "smoothed"] = "window"
    """Which class mix the feed corrects towards, in windows that call for a correction: their own, or the smoothed one
    of all windows so far, which is steadier for small windows."""
    performance: PerformanceSettings | None = None
    """What is decided by the scores, for how good the model is said to be (by default the class with the highest), and
    how good it has to be."""
    sketches: bool = True
    """Whether results carry small sketches of the distributions of features and scores, for page and reports; false
    where such counts must not leave."""
    ignore: tuple[str, ...] = ()
    """Features left out of all tests: a date, an identifier, what is known to change. Events still have them."""
    outline: Path | None = None
    """Of a model that is a versatile tree or forest: the JSON of its `outline()`. The feed then carries the thresholds
    that follow from each window's input corrections."""
    may: Literal["change-mix"] | None = None
    """change-mix: nothing but the class mix of this stream may change, inputs of a class do not move. Scores are then
    corrected wherever the mix has moved; else only where the window tells that from a shift of the inputs, which takes
    features, or large windows that moved far."""
    features: Mapping[str, FeatureSettings] = field(default_factory=dict)
    """By name; only those of which there is something to say."""
    evidence: Duration | None = None
    """Of a regression stream: how far back labels count where one window has too few of them, and how much later than
    its event a label may come and still join it by its id. A restart reads as far back. By default only labels that
    events of the window carry themselves count."""

    adapt: AdaptBy | None = None
    """Of a regression stream whose relation changed: how the one of now is estimated. "bic" (the default) or "press":
    by the link to the reference's that has the smallest; "bayes": as the posterior mean, given the reference's."""

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if self.evidence is not None and (self.window.size is None or self.evidence % self.window.size):
            yield "want `evidence` as a whole multiple of the window's `size` (not of a `count`)"
        if self.evidence == 0:
            yield "want `evidence` above zero"
        try:
            TimeReading.of(self.times)
        except InputError as error:
            yield str(error)

    def has(self, setting: str) -> bool:
        """Whether a setting (`setting`, or `setting = "value"`) was made."""
        name, _, value = setting.partition(" = ")
        said = getattr(self, name)
        return said == value.strip('"') if value else said not in (None, "no", {}, ())


@dataclass(frozen=True, slots=True)
class PaceSettings:
    """How long the service waits for what."""

    commit: Duration = _COMMIT
    """Progress is committed at least this often while records arrive, even when no window closes."""
    idle: Duration = _IDLE
    """A partition with nothing to read for this long no longer holds windows open; "0s": it always does."""
    max_waiting_events: int = MOST_WAITING
    """Events in open windows; beyond it only the partitions that windows wait for are read. It is what a reader that
    catches up comes to use: clients read some partitions faster than others, and what is ahead waits in memory."""
    workers: int = 1
    """Processes that assess windows beside the loop, which meanwhile goes on reading. 0: the loop assesses them, which
    is as fast with one core, and faster for a replay of a few dozen windows; results are the same bytes."""

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if not 0 <= self.workers <= 64:
            yield f"want `workers` from 0 to 64, got {self.workers}"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is written to standard error. Never event contents, never secrets."""

    format: Literal["auto", "text", "json"] = "auto"
    """auto: a live table in a terminal, text elsewhere."""
    level: Literal["debug", "info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that a run needs to know."""

    source: Mapping[str, Any]
    sink: Mapping[str, Any]
    streams: Mapping[str, StreamSettings]
    pace: PaceSettings = field(default_factory=PaceSettings)
    dead_letters: DeadLetterLimits = field(default_factory=DeadLetterLimits)
    log: LogSettings = field(default_factory=LogSettings)
    server: ServerSettings | None = None
    otlp: OtlpSettings | None = None
    alarms: BudgetSettings = field(default_factory=BudgetSettings)
    event: EventMapping = OWN_SHAPE
    """[source.event]: where the fields of events stand in records of another shape than ours."""
    join: JoinRule | None = None
    """[source.join]: by what the two records of an event are joined, where request and response come apart."""

    @property
    def remembered(self) -> int:
        """How many windows of each stream are remembered for whoever looks on; a collector is sent the last."""
        return self.server.windows if self.server is not None else int(self.otlp is not None)

    def budget(self, name: str) -> Budget | None:
        """How many false alarms a window of this stream may bring; None where nothing is said."""
        stream = self.streams[name]
        sharing = [each for each in self.streams.values() if not each.alarm.false]
        rate = _per_microsecond(stream.alarm.false or self.alarms.false)
        if rate is None or stream.window.size is None:
            return None
        share = 1 if stream.alarm.false else 1 / len(sharing)
        return Budget.of(rate * share * stream.window.size, stream.max_segments + 1 if stream.segments else 0)

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        for name, table in (("source", self.source), ("sink", self.sink)):
            if not isinstance(table.get("url"), str):
                yield f'[{name}] needs a `url`, such as "jsonl:events.jsonl"'
        if len(self.streams) > 1 and "stream" not in self.event.located:
            yield "source.event: want a path to `stream`, as there are several streams"
        if not self.streams:
            yield "there is no stream: want at least one table [streams.NAME]"
        for name, stream in self.streams.items():
            if (stream.alarm.false or self.alarms.false) and stream.window.size is None:
                yield f"streams.{name}: a budget of false alarms wants windows by time"
        missing = [f"`{option}`" for option in ("events", "recalibrations") if option not in self.sink]
        for name, stream in self.streams.items():
            if stream.corrected == "live" and missing:
                yield f'streams.{name}: `corrected = "live"` wants {" and ".join(missing)} in [sink]'


def _per_microsecond(false: str) -> float | None:
    """Of alarms like "1 per 30d"."""
    count, _, period = (part.strip() for part in false.partition(" per "))
    try:
        length = duration(period, "false")
    except InputError:
        return None
    return float(count) / length if length and re.fullmatch(r"\d*[1-9]\d*", count) else None


def load(
    path: Path,
    environment: Mapping[str, str] = os.environ,
    further: Callable[[Mapping[str, Any], Sequence[str]], Sequence[str]] = lambda _, __: (),
) -> Config:
    """The configuration in a file, or a ConfigurationError with every problem. Paths in it are relative to it.

    If there are any, `further` is given the table and the problems, and may add others that it knows how to find.
    """
    problems: list[str] = []
    try:
        table = substituted(tomllib.loads(path.read_text(encoding="utf-8")), "", problems, environment)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError([f"cannot read the configuration {path}: {error}"]) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError([f"{path} is not TOML: {error}"]) from error
    source, event, join = _apart(table.get("source"), problems)
    apart = {**table, "source": source, "event": event} | ({} if join is None else {"join": join})
    config = read(Config, apart if "source" in table else table, "", problems)
    if config is None or problems:
        raise ConfigurationError([*problems, *further(table, problems)])
    streams = {
        name: replace(
            stream,
            reference=path.parent / stream.reference,
            outline=None if stream.outline is None else path.parent / stream.outline,
            labels=_beside(path, stream.labels),
        )
        for name, stream in config.streams.items()
    }
    return replace(config, streams=streams)


def _apart(source: Any, problems: list[str]) -> tuple[Any, EventMapping, JoinRule | None]:
    """What the connector is told, where the fields of events stand, and how they are joined."""
    if not isinstance(source, Mapping):
        return source, OWN_SHAPE, None
    tables = {name: source[name] for name in ("event", "join") if isinstance(source.get(name), Mapping)}
    event = read(EventMapping, tables.get("event", {}), "source.event", problems) or OWN_SHAPE
    join = {**JOINS.get(event.preset, {}), **tables.get("join", {})}
    rule = read(JoinRule, join, "source.join", problems) if join else None
    return {name: value for name, value in source.items() if name not in tables}, event, rule


def _beside(path: Path, labels: LabelSettings | None) -> LabelSettings | None:
    return None if labels is None else replace(labels, store=path.parent / labels.store)
