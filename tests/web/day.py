"""A day of many streams, assessed: classifiers of the made-up worlds, to most of which nothing happens."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

from connectors.synthetic import START
from connectors.worlds import BLOCK, Period, Timetable, World
from monitor.assessment import assess
from monitor.reference import Reference
from monitor.windows import Window, WindowKey

DAY = 86_400_000_000
REGIONS = ("be", "de", "fr", "nl", "uk")
MODELS: Mapping[str, tuple[tuple[str, ...], tuple[float, ...], tuple[str, ...]]] = {
    "card-fraud": (("legit", "fraud"), (0.97, 0.03), ("amount", "age_days", "velocity", "distance")),
    "churn": (("stays", "leaves"), (0.85, 0.15), ("tenure", "calls", "invoice")),
    "claims-triage": (("simple", "review", "expert"), (0.6, 0.3, 0.1), ("amount", "delay", "documents", "history")),
    "credit-risk": (("good", "default"), (0.93, 0.07), ("income", "debt", "age", "accounts", "inquiries")),
    "email-intent": (("question", "order", "complaint", "other"), (0.4, 0.3, 0.2, 0.1), ("e1", "e2", "e3", "e4", "e5")),
    "lead-score": (("cold", "warm"), (0.8, 0.2), ("visits", "pages", "minutes")),
    "spam": (("ham", "spam"), (0.7, 0.3), ("links", "caps", "length", "sender_age")),
    "support-topic": (("billing", "delivery", "returns"), (0.6, 0.3, 0.1), ("t1", "t2", "t3", "t4")),
    "parcel-delay": (("in-time", "late"), (0.9, 0.1), ("weight", "hops", "distance")),
    "price-tier": (("low", "middle", "high"), (0.5, 0.35, 0.15), ("size", "rooms", "year", "garden")),
    "returns": (("kept", "returned"), (0.75, 0.25), ("price", "discount", "size_gap")),
    "reviews": (("bad", "fair", "good"), (0.2, 0.3, 0.5), ("r1", "r2", "r3", "r4")),
}


def _events(windows: float) -> int:
    return round(windows) * BLOCK


def periods(stream: str, windows: int) -> tuple[Period, ...]:
    """What happens to a stream in its day: mostly nothing."""
    part = windows / 8
    calm, then = Period("calm", _events(4 * part)), _events(windows) - _events(4 * part)
    happens = {
        "card-fraud-be": (calm, Period("fraud triples", then, priors=(0.91, 0.09))),
        "churn-de": (calm, Period("invoice in another unit", then, linear={"invoice": (1.6, 0.8)})),
        "claims-triage-nl": (calm, Period("claims of a new kind", then, unknown=0.12)),
        "credit-risk-uk": (
            calm,
            Period("mix and debt move", _events(2 * part), priors=(0.8, 0.2), linear={"debt": (1.0, 0.9)}),
            Period("calm again", then - _events(2 * part)),
        ),
        "spam-be": (calm, Period("spam wave", _events(part), priors=(0.4, 0.6)), Period("calm", then - _events(part))),
        "returns-de": (calm, Period("size_gap goes missing", then, missing={"size_gap": 0.3})),
        "reviews-fr": (calm, Period("length is squeezed", then, monotone=("r2",))),
    }
    return happens.get(stream, (Period("calm", _events(windows)),))


@cache
def _model(name: str) -> tuple[World, Reference]:
    classes, priors, features = MODELS[name]
    world = World(stream=name, classes=classes, priors=priors, features=features, seed=len(name))
    held = world.holdout(10_000)
    made = Reference.fit(
        held.posteriors,
        held.labels,
        held.features,
        classes=world.classes,
        feature_names=world.features,
        stream=name,
        positive=classes[1] if len(classes) == 2 else None,
    )
    return world, made


STREAMS = tuple(f"{model}-{region}" for model, region in product(MODELS, REGIONS))


def day(streams: Sequence[str] = STREAMS, windows: int = 96) -> Iterator[bytes]:
    """The results of a day, stream after stream; each window holds a thousand events."""
    for stream in streams:
        world, reference = _model(stream.rpartition("-")[0])
        world = replace(world, stream=stream, seed=100 + STREAMS.index(stream))
        reference = replace(reference, schema=replace(reference.schema, stream=stream))
        timetable = Timetable(world, periods(stream, windows))
        for at in range(windows):
            drawn = timetable.block(at).population
            start = START + DAY * at // windows
            key = WindowKey(stream, "", start, START + DAY * (at + 1) // windows)
            yield assess(replace(Window.of(drawn.posteriors, drawn.features), key=key), reference).to_json()
