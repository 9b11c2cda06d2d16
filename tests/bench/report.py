"""The one report, made from what report.json keeps: nothing in it is written by hand."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench import tables

HEAD = """# Figures

Made by `python -m tests.bench`; every section says in which mode and at which commit, and links its whole page.
One thread; processor time, unless a table says otherwise. Where a bench was run several times, each in a process of its
own and in turn with the others, a figure is the median, with the lowest and the highest run in brackets; figures
without brackets came out the same every time.
"""


def text(sections: Mapping[str, Mapping[str, Any]], folder: Path) -> str:
    """The whole report as Markdown."""
    parts = [HEAD, _machines(sections), _overview(sections)]
    parts += [_section(name, section, folder) for name, section in sections.items()]
    return "\n".join(parts)


def _machines(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """The facts once, if all sections come from the same machine; else each set with its sections."""
    kinds: dict[str, list[str]] = {}
    for name, section in sections.items():
        facts = ", ".join(f"{key} {fact}" for key, fact in section["machine"].items()) or "as its page says"
        kinds.setdefault(facts, []).append(name)
    lines = [f"- {'Everything' if len(kinds) == 1 else ', '.join(names)}: {facts}" for facts, names in kinds.items()]
    return "\n".join(["## The machine", "", *lines, ""])


def _overview(sections: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        (
            f"[{name}](#{name})",
            section["says"],
            section["mode"],
            section["commit"],
            section["repeats"],
            f"{section['seconds']:.0f}" if section["seconds"] else "",
            "; ".join([*section["missing"], *filter(None, [section["failed"]])]) or "nothing",
        )
        for name, section in sections.items()
    ]
    return "## What ran\n\n" + tables.markdown(["", "says", "mode", "commit", "runs", "s", "missing or failed"], rows)


def _section(name: str, section: Mapping[str, Any], folder: Path) -> str:
    """The first table of a bench, its pictures, and the way to the rest."""
    found = [tables.markdown(one["columns"], one["rows"]) for one in section["tables"]]
    page = folder / f"{name}.md"
    parts = [f"## {name}", "", f"{section['says'][0].upper()}{section['says'][1:]}."]
    if page.exists():
        parts[-1] += f" [The whole page]({page.name})."
    parts += ["", found[0] if found else "It did not run here.", ""]
    parts += [f"![{path.stem}]({path.name})\n" for path in sorted(folder.glob(f"{name}*.png"))]
    return "\n".join(parts)
