"""The status page: what a person sees at `/`. Rendered on the server from one snapshot; a small script only asks for
it again and shows the values under the pointer. Without the script, everything can still be read.
"""

from importlib.resources import files

from monitor.assessment import Verdict
from monitor.web.page.choice import chosen
from monitor.web.page.document import document


def _style() -> bytes:
    """The page's own, what it shares with reports, and the colours of the verdicts from their table."""
    light = "".join(_coloured(verdict, verdict.facts.colour) for verdict in Verdict)
    dark = "".join(_coloured(verdict, verdict.facts.dark_colour) for verdict in Verdict)
    colours = f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"
    shared = files("monitor.pages").joinpath("templates", "distributions.css").read_bytes()
    return files(__package__).joinpath("style.css").read_bytes() + shared + colours.encode()


def _coloured(verdict: Verdict, colour: str) -> str:
    return f".v-{verdict} {{ fill: {colour}; background: {colour}; color: {_ink(colour)}; }}\n"


def _ink(colour: str) -> str:
    """Black or white, whichever can be read better on the colour (the contrast of WCAG 2)."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000" if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else "#fff"


ASSETS = {
    "style.css": ("text/css; charset=utf-8", _style()),
    "live.js": ("text/javascript; charset=utf-8", files(__package__).joinpath("live.js").read_bytes()),
}

__all__ = ["ASSETS", "chosen", "document"]
