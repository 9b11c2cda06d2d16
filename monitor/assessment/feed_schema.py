"""The JSON Schema of the recalibration feed: the message's own types, with what their source says about each field.

A client in another language has nothing but this to go by, so that a field's docstring becomes its description.
"""

import ast
import inspect
from typing import Any

import msgspec

from monitor.assessment.message import in_order
from monitor.recalibration import (
    CalibrationMap,
    Cause,
    Expert,
    InputCorrection,
    Recalibration,
    RegressionRecalibration,
    RelationCorrection,
    RelationParameters,
    Validity,
)

DESCRIBED = (
    CalibrationMap,
    Expert,
    InputCorrection,
    Recalibration,
    RegressionRecalibration,
    RelationCorrection,
    RelationParameters,
    Validity,
)


def json_schema() -> dict[str, Any]:
    """The published JSON Schema: of a classifier's message, or of a regressor's, which has a relation."""
    kinds = (RegressionRecalibration, Recalibration)
    references, definitions = msgspec.json.schema_components(kinds)
    for described in DESCRIBED:
        properties = definitions[described.__name__]["properties"]
        for name, text in field_docstrings(described).items():
            properties[name] = {**properties[name], "description": text}
    definitions[Cause.__name__]["description"] = inspect.cleandoc(Cause.__doc__ or "")
    schema: dict[str, Any] = in_order({"anyOf": references, "$defs": definitions})
    return schema


def field_docstrings(described: type) -> dict[str, str]:
    """The docstring of each field: the string that follows its declaration, for the class and those it derives from."""
    descriptions: dict[str, str] = {}
    for each in reversed(described.__mro__[:-1]):
        (tree,) = ast.parse(inspect.getsource(each)).body
        assert isinstance(tree, ast.ClassDef)  # noqa: S101 - the source of a class is one
        for declared, following in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(declared, ast.AnnAssign) and isinstance(following, ast.Expr):
                text = ast.literal_eval(following.value)
                descriptions[ast.unparse(declared.target)] = inspect.cleandoc(text).replace("\n", " ")
    return descriptions
