"""The worked examples of CONTRIBUTING.md, as they stand on the page."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(heading: str) -> dict[str, tuple[str, str]]:
    """By the file that is named above it: each block of an example, with its language."""
    example = TEXT.split(f"\n### {heading}\n")[1].split("\n## ")[0].split("\n### ")[0]
    named = re.findall(r"^`([^`\n]+)`\n\n```(\w+)\n(.*?)```", example, re.DOTALL | re.MULTILINE)
    return {path: (language, code) for path, language, code in named}
