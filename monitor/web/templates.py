"""Pages from the templates beside this file. Whatever is put into one is text: it cannot become markup.

Jinja2 is imported here and nowhere else, so that only a process that makes pages loads it.
"""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from monitor.web import words
from monitor.web.paths import in_path


def render(template: str, **values: Any) -> str:
    """A page; a value that a template asks for and does not get is an error."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("monitor.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters["in_path"] = in_path
    for phrase in (words.percent, words.number, words.seconds, words.moment, words.span, words.sentence, words.p_value):
        environment.filters[phrase.__name__] = phrase
    return environment
