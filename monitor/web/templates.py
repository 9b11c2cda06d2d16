"""The pages of the server, from the templates beside this file."""

from functools import cache
from typing import Any

from jinja2 import Environment

from monitor.pages.templates import environment
from monitor.web.paths import in_path


def render(template: str, **values: Any) -> str:
    """A page; a value that a template asks for and does not get is an error."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    made = environment("monitor.web")
    made.filters["in_path"] = in_path
    return made
