"""The shape of the house: what stands at its top level, how its modules are connected, and how things are named."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = sorted(path for package in ("monitor", "connectors") for path in (ROOT / package).rglob("*.py"))
ROOMS = sorted(path.parent for path in (ROOT / "monitor").glob("*/__init__.py"))

TOP_LEVEL = {
    "README.md", "__init__.py", "__main__.py", "arrays.py", "calibration.py", "errors.py", "limits.py",
    "py.typed", "processes.py", "quality.py", "sampling.py", "tolerances.py", "version.py",
}  # fmt: skip
FOUNDATION = {f"monitor.{name}" for name in ("arrays", "errors", "limits", "tolerances", "version")}
"""Words that every module uses: types of arrays, errors, and numbers that have a name."""


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module(path) for path in SOURCES}


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module that it names in an import at run time: `from a import b` is b where b is a module, and a if not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        yield from imported(node)


@cache
def trees() -> dict[Path, ast.Module]:
    """Every source file, read once, when it is first asked for: each process that collects tests imports this file."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}


@cache
def edges() -> dict[str, set[str]]:
    return {module(path): {name for name in imported(tree) if name in MODULES} for path, tree in trees().items()}


def test_nothing_stands_at_the_top_level_but_the_rooms_and_what_all_of_them_use() -> None:
    assert {path.name for path in (ROOT / "monitor").iterdir() if path.is_file()} == TOP_LEVEL


def test_every_room_has_a_door_that_says_what_it_is_for_on_one_page() -> None:
    for room in [*ROOMS, ROOT / "connectors"]:
        lines = (room / "README.md").read_text(encoding="utf-8").splitlines()
        assert 10 <= len(lines) <= 60, f"{room.name}: {len(lines)} lines"


def test_no_module_imports_itself_through_others() -> None:
    TopologicalSorter(edges()).prepare()  # raises a CycleError that names the modules


def test_a_module_imports_few_others() -> None:
    """The foundation apart, and what doors list of their own rooms."""
    doors = {module(path) for path in SOURCES if path.name == "__init__.py"}
    beyond = [targets - FOUNDATION for name, targets in edges().items() if name not in doors]
    assert sum(map(len, beyond)) / len(beyond) <= 3.5


def test_each_class_name_stands_in_one_module() -> None:
    where: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                where[node.name.lstrip("_")].add(module(path))
    assert {name: sorted(places) for name, places in where.items() if len(places) > 1} == {}


def test_exceptions_from_the_linter_are_few_and_each_has_its_reason() -> None:
    lines = [line for path in SOURCES for line in path.read_text(encoding="utf-8").splitlines()]
    exceptions = [line for line in lines if "# noqa" in line]
    assert [line.strip() for line in exceptions if not re.search(r"# noqa: [A-Z0-9, ]+ - \w", line)] == []
    assert 1_000 * len(exceptions) / len(lines) <= 1.5


def test_no_test_imports_what_is_private_to_a_module() -> None:
    private = [
        f"{path.relative_to(ROOT)} imports {alias.name} from {node.module}"
        for path in ROOT.joinpath("tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in {"monitor", "connectors"}
        for alias in node.names
        if alias.name.startswith("_") and alias.name != "__version__"
    ]
    assert private == []
