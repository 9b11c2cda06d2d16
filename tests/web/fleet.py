"""Sixty streams that never were, with as many windows as one likes, in no time: for the page of all streams."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from zlib import crc32

from monitor.assessment import Verdict
from monitor.kinds import AnyReading
from monitor.observers import History, StreamFacts
from monitor.service import Clock, Remembered
from monitor.state import WINDOWS, AlarmState, EvidenceState, Known, OpenAlarm, Ring
from monitor.windows import WindowKey
from tests.web.made_up import MINUTE, START, Story, facts

NOW = START + 4_000 * MINUTE
MODELS = ("card-fraud", "churn", "claims-triage", "credit-risk", "email-intent", "lead-score", "spam", "support-topic",
          "parcel-delay", "price-tier", "returns", "reviews")  # fmt: skip
REGIONS = ("be", "de", "fr", "nl", "uk")
LENGTHS = (5, 10, 15, 30)
"""Minutes of a window, from stream to stream."""


@dataclass(frozen=True)
class Trouble:
    """What is wrong with one of the streams."""

    verdict: Verdict = Verdict.STABLE
    why: str = ""
    lasting: int = 6
    """So many of its last windows have this verdict."""
    ended: int = 0
    """So many minutes ago its last window ended."""
    alarm: str = ""
    """The series of an open alarm."""
    silent: bool = False
    """It has never had a window."""


TROUBLES: Mapping[str, Trouble] = {
    "card-fraud-be": Trouble(Verdict.PRIOR_SHIFT, "fraud 4.1 % to 9.3 % (8.5 % to 10.1 %)", 40),
    "churn-de": Trouble(
        Verdict.COVARIATE_SHIFT, "age_days was multiplied by 24: hours in the place of days?", 15, alarm="age_days"
    ),
    "claims-triage-nl": Trouble(Verdict.UNKNOWN_CLASS, "6.2 % of the events look like no known class", 9),
    "credit-risk-uk": Trouble(alarm="share of default rises"),
    "email-intent-fr": Trouble(Verdict.UNEXPLAINED, "the window differs, and no known shift says how", 2),
    "reviews-fr": Trouble(Verdict.CONCEPT_SHIFT, "labels are flatter than the scores say", 30),
    "spam-be": Trouble(Verdict.PRIOR_AND_COVARIATE_SHIFT, "spam 31.0 % to 44.8 %, and 3 inputs moved", 1),
    "parcel-delay-uk": Trouble(ended=600),
    "returns-de": Trouble(silent=True),
}


def fleet(windows: int = 1_000, others: Mapping[str, History] | None = None) -> History:
    """Sixty streams with so many windows each, as after a restart; the clock stands at `NOW`. Others are put in their
    places by name."""
    streams = [f"{model}-{region}" for model, region in product(MODELS, REGIONS)]
    models = dict(_templates())
    told = {stream: facts(stream, 2, 4) for stream in streams}
    known = dict[str, Mapping[str, Known]]()
    for number, stream in enumerate(streams):
        trouble = TROUBLES.get(stream, Trouble())
        if not trouble.silent:
            length = LENGTHS[number % len(LENGTHS)] * MINUTE
            last = (NOW - trouble.ended * MINUTE) // length * length
            ends = range(last - (windows - 1) * length, last + 1, length)
            known[stream] = {"": _known(tuple(_readings(stream, ends, trouble, models)), trouble)}
    for name, history in (others or {}).items():
        snapshot = history.snapshot
        told[name] = snapshot.facts[name]
        known[name] = {segment: track.known for segment, track in snapshot.tracks[name].items()}
    return _remembering(told, known)


def _remembering(told: Mapping[str, StreamFacts], known: Mapping[str, Mapping[str, Known]]) -> History:
    """Each was heard of when its last window ended."""
    clock = [NOW - 1_440 * MINUTE]
    history = History(told, clock=Clock(now=lambda: clock[0], elapsed=lambda: clock[0] / 1e6))
    heard = dict[str, Mapping[str, Known]]()
    for stream, tracks in sorted(known.items(), key=lambda item: item[1][""].until):
        heard[stream] = tracks
        clock[0] = tracks[""].until
        history(Remembered(dict(heard)))
    clock[0] = NOW
    return history


def _templates() -> Iterator[tuple[Verdict, AnyReading]]:
    """A window with each verdict."""
    for verdict in Verdict:
        story = Story(classes=2)
        story.window(verdict)
        yield verdict, story.history.snapshot.tracks[story.stream][""].latest


def _readings(stream: str, ends: range, trouble: Trouble, models: Mapping[Verdict, AnyReading]) -> Iterator[AnyReading]:
    """Calm, but for a chance verdict now and then and the trouble at the end."""
    for number, end in enumerate(ends):
        chance = Verdict.COVARIATE_SHIFT if (number * 7919 + crc32(stream.encode())) % 331 == 17 else Verdict.STABLE
        ours = trouble.why and number >= len(ends) - trouble.lasting
        model = models[trouble.verdict if ours else chance]
        why = (trouble.why,) if ours else model.reasons
        yield replace(model, key=WindowKey(stream, "", end - ends.step, end), reasons=why)


def _known(readings: Sequence[AnyReading], trouble: Trouble) -> Known:
    flags = tuple(reading.verdict.moved for reading in readings[-3:])
    since = readings[-20].key.start
    opened = {trouble.alarm: OpenAlarm(since, 20, 23.0, 1e3)} if trouble.alarm else {}
    states = {"alarms": AlarmState(flags=flags, alarm=sum(flags) > 1), "evidence": EvidenceState(alarms=opened)}
    return Known("0123456789abcdef", readings[-1].key.end, states, {WINDOWS: Ring(tuple(readings), len(readings))})
