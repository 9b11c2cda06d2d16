"""The blocks of code on a page of documentation, as a reader would copy them."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
GUIDES = ROOT / "deploy" / "guides"


def page(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Every block of this language, in the page's order."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
