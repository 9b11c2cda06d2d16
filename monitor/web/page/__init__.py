"""The status page: what a person sees at `/`. Rendered on the server from one snapshot; a small script only asks for
it again and shows the values under the pointer. Without the script, everything can still be read.
"""

from importlib.resources import files

from monitor.assessment import Verdict
from monitor.web.page.document import document


def _style() -> bytes:
    """Everything but the colours of the verdicts, and these from their table."""
    light = "".join(_coloured(verdict, verdict.facts.colour) for verdict in Verdict)
    dark = "".join(_coloured(verdict, verdict.facts.dark_colour) for verdict in Verdict)
    colours = f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"
    return files(__package__).joinpath("style.css").read_bytes() + colours.encode()


def _coloured(verdict: Verdict, colour: str) -> str:
    return f".v-{verdict} {{ fill: {colour}; background: {colour}; }}\n"


ASSETS = {
    "style.css": ("text/css; charset=utf-8", _style()),
    "live.js": ("text/javascript; charset=utf-8", files(__package__).joinpath("live.js").read_bytes()),
}

__all__ = ["ASSETS", "document"]
