"""Cells of a long bench that are done: what the file holds is not done again, so that a run may be cut short."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Kept:
    """Answers by the cell that they are of, in a file of JSON lines; without a file every cell is done."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        self._known = {tuple(line["cell"]): line["answer"] for line in map(json.loads, lines)}

    def answer(self, cell: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What is known of a cell, or what `make` says, as JSON gives it back."""
        if cell not in self._known:
            line = json.dumps({"cell": cell, "answer": make()})
            self._known[cell] = json.loads(line)["answer"]
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
        return self._known[cell]
