"""The status page: what a person sees at `/`. Rendered on the server from one snapshot; a small script only asks for
it again and shows the values under the pointer. Without the script, everything can still be read.
"""

from importlib.resources import files

from monitor.web.page.document import document

ASSETS = {
    "style.css": ("text/css; charset=utf-8", files(__package__).joinpath("style.css").read_bytes()),
    "live.js": ("text/javascript; charset=utf-8", files(__package__).joinpath("live.js").read_bytes()),
}

__all__ = ["ASSETS", "document"]
