"""Measured cells, kept in a file, so that a long study may be stopped and gone on with.

A cell is kept with a digest of the code that made it. With other code it is measured again, so that all figures of a
page are what the code of the commit that the page names gives.
"""

import ast
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

Found = list[float]


class Cells:
    """Numbers by key; without a file nothing is kept."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._kept: dict[tuple[str, str], Found] = {}
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)  # before anything is measured for it
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                cell = json.loads(line)
                self._kept[cell["key"], cell["code"]] = cell["found"]

    def get(self, key: str, code: Sequence[ModuleType], measure: Callable[[], Sequence[float]]) -> Found:
        """The numbers of one cell: as kept with this `code` (modules and packages), or else measured now."""
        digest = "-".join(_digest(str(Path(module.__file__ or ""))) for module in code)
        if (key, digest) not in self._kept:
            found = self._kept[key, digest] = [float(number) for number in measure()]
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"key": key, "code": digest, "found": found}) + "\n")
        return self._kept[key, digest]


@cache
def _digest(file: str) -> str:
    """Of the code without comments and docstrings; of all modules of a package."""
    path = Path(file)
    files = sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]
    trees = (ast.dump(_Silent().visit(ast.parse(one.read_text(encoding="utf-8")))) for one in files)
    return hashlib.sha256("".join(trees).encode()).hexdigest()[:12]


class _Silent(ast.NodeTransformer):
    """Takes the docstrings out."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """A statement that is a text says nothing to the machine."""
        said = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if said else node
