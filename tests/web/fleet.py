"""A whole house of streams that never were, with as many windows as one likes, in no time: for the overview."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from zlib import crc32

from monitor.assessment import Verdict
from monitor.kinds import AnyReading
from monitor.observers import Snapshot, Track
from monitor.state import WINDOWS, AlarmState, Known, OpenAlarm, Ring
from monitor.state.evidence import EvidenceState
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


def fleet(windows: int = 1_000, troubles: Mapping[str, Trouble] = TROUBLES) -> Snapshot:
    """Sixty streams with so many windows each; the clock stands at `NOW`."""
    streams = [f"{model}-{region}" for model, region in product(MODELS, REGIONS)]
    models = dict(_templates())
    tracks = {}
    for number, stream in enumerate(streams):
        trouble = troubles.get(stream, Trouble())
        if not trouble.silent:
            length = LENGTHS[number % len(LENGTHS)] * MINUTE
            last = (NOW - trouble.ended * MINUTE) // length * length
            ends = range(last - (windows - 1) * length, last + 1, length)
            readings = tuple(_readings(stream, ends, trouble, models))
            tracks[stream] = {"": _track(stream, readings, trouble)}
    return Snapshot(NOW / 1e6 - 86_400, {stream: facts(stream, 2, 4) for stream in streams}, tracks)


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


def _track(stream: str, readings: Sequence[AnyReading], trouble: Trouble) -> Track:
    flags = tuple(reading.verdict.moved for reading in readings[-3:])
    since = readings[-20].key.start
    opened = {trouble.alarm: OpenAlarm(since, 20, 23.0, 1e3)} if trouble.alarm else {}
    states = {
        "alarms": AlarmState(flags=flags, alarm=sum(flags) > 1, since=since if sum(flags) > 1 else 0),
        "evidence": EvidenceState(alarms=opened),
    }
    known = Known("0123456789abcdef", readings[-1].key.end, states, {WINDOWS: Ring(tuple(readings), len(readings))})
    return Track(known, readings[-1].key.end / 1e6 + 1)
