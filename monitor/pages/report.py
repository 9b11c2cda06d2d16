"""The report of a period: what happened to each stream, in words and drawings, as one page that needs nothing else.

Streams that have not come to rest come first. Everything is taken from published messages; which verdicts there are,
how they are called and what colour they have is said by whoever asks for the report.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING

from monitor.pages.messages import WindowRead
from monitor.pages.story import StreamStory, worst_first
from monitor.pages.stream_section import Facts, Section
from monitor.pages.templates import environment
from monitor.pages.timelines import TimeSpan
from monitor.pages.words import number, sentence, span

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_ALARMS = 4
"""Of a stream, in a chat."""


@dataclass(frozen=True)
class PeriodReport:
    """The streams of a period, those that have not come to rest first."""

    sections: tuple[Section, ...]
    span: TimeSpan
    rejects: tuple[tuple[str, str, int], ...] = ()
    """Dead letters: reason, stream or nothing, how many; the most common first."""

    @classmethod
    def of(
        cls,
        stories: Sequence[StreamStory],
        facts: Mapping[str, Facts],
        rejects: Mapping[tuple[str, str], int] = MappingProxyType({}),
    ) -> "PeriodReport":
        """The report of at least one stream; `facts` by verdict, the gravest last; `rejects` by stream and reason."""
        windows = [window for story in stories for window in story.windows]
        period = TimeSpan(min(window.begin for window in windows), max(window.until for window in windows))
        rank = {verdict: at for at, verdict in enumerate(facts)}
        counted = sorted(rejects.items(), key=lambda item: (-item[1], item[0]))
        return cls(
            tuple(Section(story, period, facts) for story in worst_first(stories, rank)),
            period,
            tuple((reason, stream, count) for (stream, reason), count in counted),
        )

    @property
    def period(self) -> str:
        """From when until when; empty where windows have no time, as those of arrays."""
        if not self.span.until:
            return ""
        return span(self.span.begin, self.span.until)

    @property
    def summary(self) -> str:
        """All streams in a sentence or two."""
        states = [section.state for section in self.sections]
        total = len(states)
        lasting, alarmed, over, few = (states.count(state) for state in ("moved", "alarm", "over", "few"))
        if total == 1:
            return self.sections[0].words
        verb = "has" if lasting == 1 else "have"
        parts = [f"{lasting} of {total} streams {verb} moved and not come back" if lasting else ""]
        parts += [f"{alarmed} {'is' if alarmed == 1 else 'are'} in alarm" if alarmed else ""]
        parts += [f"{over} moved and came back" if over else "", f"{few} had too few events to tell" if few else ""]
        said = [part for part in parts if part]
        calm = states.count("calm")
        rest = f"{'the other ' if said else 'all '}{calm} {'was' if calm == 1 else 'were'} calm" if calm else ""
        return "; ".join([*said, *([rest] if rest else [])]) + "."

    @property
    def verdicts(self) -> list[str]:
        """Those that came up."""
        seen = {window.told for section in self.sections for window in section.story.windows}
        return [verdict for verdict in self.sections[0].facts if verdict in seen]

    @property
    def windows(self) -> int:
        """How many there are, segments apart."""
        return sum(len(section.story.windows) for section in self.sections)

    @property
    def alarms(self) -> list[tuple[str, str, str, str]]:
        """Alarms of the period, the one that began first comes first: stream, since, until, in words."""
        found = sorted(
            ((alarm.begin, section, alarm) for section in self.sections for alarm in section.story.every_alarm),
            key=lambda entry: (entry[0], entry[1].name),
        )
        return [
            (
                f"{section.name}, {alarm.segment}" if alarm.segment else section.name,
                section.at(begin),
                "still on" if alarm.state != "resolved" else section.at(alarm.until),
                alarm.reason,
            )
            for begin, section, alarm in found
        ]

    def html(self, *, unfolded: bool = False) -> str:
        """One page; `unfolded` shows what is folded away, for paper."""
        return _templates().get_template("report.html").render(report=self, unfolded=unfolded)

    def in_frame(self) -> str:
        """The page within another, in a frame: neither's style touches the other's."""
        return f'<iframe style="width:100%;height:640px;border:0" srcdoc="{escape(self.html())}"></iframe>'

    def _repr_html_(self) -> str:
        return self.in_frame()

    def markdown(self) -> str:
        """The same in a few lines, for a chat."""
        return "\n".join(_markdown(self)) + "\n"


def of_window(window: WindowRead, facts: Mapping[str, Facts]) -> PeriodReport:
    """The report of one window alone."""
    return PeriodReport.of([StreamStory(window.stream, window.segment, (window,), {}, ())], facts)


def _markdown(report: PeriodReport) -> Iterator[str]:
    yield f"**Shiftwatch, {report.period}**" if report.period else "**Shiftwatch**"
    yield ""
    yield sentence(report.summary)
    for section in report.sections:
        if section.state == "calm" and len(report.sections) > 1:
            continue
        yield ""
        yield f"- **{section.name or 'this window'}**: {section.words}"
        if section.shown:
            yield from (f"  - {reason}" for reason in section.reasons(section.shown))
            yield f"  - {section.facts[section.verdict].advice}"
        opened = section.story.open_alarms
        yield from (
            f"  - {f'{alarm.segment}, ' if alarm.segment else ''}{alarm.reason}" for alarm in opened[:MOST_ALARMS]
        )
        if len(opened) > MOST_ALARMS:
            yield f"  - and {len(opened) - MOST_ALARMS} more alarms"
    if report.rejects:
        yield ""
        counted = (f"{reason} {number(count)}{f' of {of}' if of else ''}" for reason, of, count in report.rejects)
        yield f"Rejected records: {', '.join(counted)}."


@cache
def _templates() -> "Environment":
    return environment()
