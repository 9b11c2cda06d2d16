"""The engine of every page: templates of packages, in which whatever is put is text and cannot become markup.

Jinja2 is imported here and nowhere else, and with the first page: only a process that makes some loads it.
"""

from typing import TYPE_CHECKING

from monitor.pages import words

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(*packages: str) -> "Environment":
    """A new one for the templates of these packages and of this one; a value that a template asks for and does not get
    is an error."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - see above

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, "monitor.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    for phrase in (words.percent, words.number, words.seconds, words.moment, words.span, words.sentence, words.p_value):
        made.filters[phrase.__name__] = phrase
    return made
