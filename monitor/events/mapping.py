"""[source.event]: where the fields of an event stand in records of another shape than ours. Pure.

    [source.event]
    timestamp = "meta.time"
    posteriors = { legit = "scores.0", fraud = "scores.1" }      # or one path, to a list or an object
    features = "request.inputs"
    segment = { country = "meta.country" }

A field that is not named here stands where it does in our own shape, under its own name; "" says that there is none.
Our own shape is the mapping that says nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

from monitor.errors import InputError
from monitor.events.paths import FieldPath, Step
from monitor.events.presets import PRESETS
from monitor.ports.schema import StreamSchema

Written = str | Mapping[str, str]
Located = FieldPath | Mapping[str, FieldPath]
"""The path to a whole field, or to each of its parts by name."""


@dataclass(frozen=True)
class EventMapping:
    """The settings as they are written."""

    preset: str = ""
    """The shape of a serving platform's records; what is said beside it counts before it."""
    stream: str | None = None
    id: str | None = None
    timestamp: str | None = None
    posteriors: Written | None = None
    """Of each class: a list in the reference's order, an object by class, or a path for each class. Margins, too."""
    score: str | None = None
    """The posterior of the positive class alone."""
    prediction: str | None = None
    features: Written | None = None
    """A list in the reference's order, an object by name, or a path for each feature."""
    feature_names: str | None = None
    """Where the names of the features stand, if these are lists."""
    label: str | None = None
    segment: Written | None = None

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if self.preset and self.preset not in PRESETS:
            yield f"there is no preset {self.preset!r}; there are {', '.join(PRESETS)}"
            return
        try:
            names = self.located.get("feature_names")
        except InputError as error:
            yield str(error)
            return
        if names is not None and isinstance(self.located.get("features"), Mapping | None):
            yield "`feature_names` are for `features` that are lists"

    @cached_property
    def located(self) -> Mapping[str, Located]:
        """The path of every field that there is; raises InputError."""
        return {field: _located(written) for field, written in self._written().items() if written}

    @cached_property
    def direct(self) -> bool:
        """Whether each record is one event, whose fields can be decoded straight from where they stand."""
        paths = [path for located in self.located.values() for path in _paths(located)]
        stream = self.located.get("stream")
        nested = isinstance(stream, FieldPath) and len(stream.steps) > 1
        plain = all(path.direct for path in paths) and not nested and "feature_names" not in self.located
        return plain and _apart([path.steps for path in paths])

    def located_of(self, *, margins: bool) -> Mapping[str, Located]:
        """The paths of a stream: in our own shape margins stand in `scores`."""
        own = not self.preset and self.posteriors is None and self.score is None
        return {**self.located, "posteriors": FieldPath.of("scores")} if margins and own else self.located

    def gaps(self, schema: StreamSchema, segment_fields: Sequence[str]) -> Iterator[str]:
        """What a stream wants that has no path."""
        answers = ("posteriors", "score") if schema.classes else ("prediction",)
        if not any(answer in self.located for answer in answers):
            yield f"want a path to {' or '.join(f'`{answer}`' for answer in answers)} for stream {schema.stream}"
        features = [feature.name for feature in schema.features]
        for field, wanted in (("posteriors", schema.classes), ("features", features), ("segment", segment_fields)):
            located = self.located.get(field)
            if located is None and field == "segment" and wanted:
                yield f"want a path to `segment`: stream {schema.stream} is watched by {', '.join(wanted)}"
            for name in () if not isinstance(located, Mapping) else [name for name in wanted if name not in located]:
                yield f"{field}: there is no path to {name!r}"

    def _written(self) -> dict[str, Written]:
        said = {each.name: value for each in fields(self) if (value := getattr(self, each.name)) is not None}
        del said["preset"]
        usual = PRESETS.get(self.preset, _OWN)
        if {"posteriors", "score"} & said.keys():  # either one takes the place of both
            usual = {field: path for field, path in usual.items() if field not in ("posteriors", "score")}
        return {**usual, **said}


_OWN: Mapping[str, Written] = {
    name: name
    for name in ("stream", "id", "timestamp", "posteriors", "score", "prediction", "features", "label", "segment")
}
OWN_SHAPE = EventMapping()


def _located(written: Written) -> Located:
    return FieldPath.of(written) if isinstance(written, str) else {key: FieldPath.of(at) for key, at in written.items()}


def _paths(located: Located) -> tuple[FieldPath, ...]:
    return (located,) if isinstance(located, FieldPath) else tuple(located.values())


def _apart(paths: Sequence[tuple[Step, ...]]) -> bool:
    """Whether none stands inside another, and nothing is taken for a list by one and for an object by another."""
    inside = any(a[: len(b)] == b for i, a in enumerate(paths) for j, b in enumerate(paths) if i != j)
    kinds: dict[tuple[Step, ...], set[type]] = defaultdict(set)
    for path in paths:
        for length, step in enumerate(path):
            kinds[path[:length]].add(type(step))
    return not inside and all(len(each) == 1 for each in kinds.values())
