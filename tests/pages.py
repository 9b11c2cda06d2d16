"""The blocks of code on a page of documentation, as a reader would copy them."""

import re
from pathlib import Path
from typing import Any

from monitor.commands.cli import main

ROOT = Path(__file__).parent.parent
GUIDES = ROOT / "deploy" / "guides"


def page(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Every block of this language, in the page's order."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def followed(text: str, space: dict[str, Any]) -> None:
    """A page's blocks in turn, as somebody would who follows it in the working directory."""
    for language, block in re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL):
        if language == "python":
            exec(block, space)  # noqa: S102 - our own guides
        elif language == "toml":
            Path("shiftwatch.toml").write_text(block, encoding="utf-8")
        else:
            for line in block.splitlines():
                assert main(line.split()[1:]) == 0, line
