"""Types that msgspec decodes into, generated so that names, lengths and kinds are checked in C."""

from collections.abc import Iterator, Mapping, Sequence
from types import GenericAlias
from typing import Any, Literal

import msgspec

from monitor.events.paths import FieldPath, Step
from monitor.ports.schema import Feature

FEATURE_TYPES: Mapping[str, Any] = {
    "number": float | None,
    "boolean": bool | Literal[0, 1] | None,
    "category": str | bool | int | float | None,
}
SEGMENT_VALUE: Any = str | bool | int | float | None


def generated(
    leaves: Mapping[str, tuple[FieldPath, Any]], tags: tuple[str, ...], tag_field: str | None
) -> tuple[type[msgspec.Struct], Mapping[str, str]]:
    """A type for an object with these values inside, and how each is reached from it, such as "x0.timestamp".

    Objects and lists on the way are types of their own, in which all may be missing. The member `tag_field` has to be
    one of the tags: of one alone it says which of several types in a union it is, of more it is read as `stream`.
    """
    tree: dict[Step, Any] = {}
    for name, (path, accepts) in leaves.items():
        branch = tree
        for step in path.steps[:-1]:
            branch = branch.setdefault(step, {})
        branch[path.steps[-1]] = (name, accepts)
    event = _branch(tree, tags, tag_field) if tag_field else _branch(tree)
    return event, {name: ".".join(_reached(tree, path.steps)) for name, (path, _) in leaves.items()}


def _branch(tree: Mapping[Step, Any], tags: tuple[str, ...] = (), tag_field: str = "") -> type[msgspec.Struct]:
    names = _names(tree)
    fields = {
        step: (names[step], _branch(inside) | None if isinstance(inside, dict) else inside[1], None)
        for step, inside in tree.items()
    }
    if tags or isinstance(next(iter(tree)), str):
        keys = {name: str(step) for step, name in names.items()}
        if len(tags) > 1:
            one_of_them: list[Any] = [("stream", Literal[tags])]
            keys |= {"stream": tag_field}
            return msgspec.defstruct("Event", [*one_of_them, *fields.values()], rename=keys, gc=False)
        options: Mapping[str, Any] = {"tag": tags[0], "tag_field": tag_field} if tags else {}
        return msgspec.defstruct("Event", list(fields.values()), rename=keys, gc=False, **options)
    length = max(step for step in tree if isinstance(step, int)) + 1
    in_order = [fields.get(index, (f"skipped{index}", Any, None)) for index in range(length)]
    return msgspec.defstruct("Event", in_order, array_like=True, gc=False)


def _names(tree: Mapping[Step, Any]) -> dict[Step, str]:
    """Of attributes: a value has its own name, what is on the way a number."""
    return {
        step: f"x{number}" if isinstance(inside, dict) else inside[0]
        for number, (step, inside) in enumerate(tree.items())
    }


def _reached(tree: Any, steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        yield _names(tree)[step]
        tree = tree[step]


def posteriors_type(classes: Sequence[str]) -> Any:
    """A list in class order, or an object with exactly the classes' names."""
    keyed = keyed_struct("Posteriors", classes, [float] * len(classes), forbid_unknown_fields=True)
    return GenericAlias(tuple, (float,) * len(classes)) | keyed | None


def features_type(features: Sequence[Feature]) -> Any:
    """A list in feature order, or an object in which features may be missing and strangers are ignored."""
    types = [FEATURE_TYPES[feature.kind] for feature in features]
    keyed = keyed_struct("Features", [feature.name for feature in features], types, default=None)
    return GenericAlias(tuple, tuple(types)) | keyed | None


def segment_type(names: Sequence[str]) -> Any:
    types = [SEGMENT_VALUE] * len(names)
    return keyed_struct("Segment", names, types, default=None) | None


def keyed_struct(
    kind: str,
    names: Sequence[str],
    types: Sequence[Any],
    *,
    default: Any = msgspec.NODEFAULT,
    forbid_unknown_fields: bool = False,
) -> type[msgspec.Struct]:
    """A struct for an object with these keys, whatever characters they are made of."""
    attributes = [f"x{number}" for number in range(len(names))]
    return msgspec.defstruct(
        kind,
        [(attribute, accepted, default) for attribute, accepted in zip(attributes, types, strict=True)],
        rename=dict(zip(attributes, names, strict=True)),
        forbid_unknown_fields=forbid_unknown_fields,
        gc=False,
    )
