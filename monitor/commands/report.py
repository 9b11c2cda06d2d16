"""`shiftwatch report`: published results as a report for people: one page, a few lines for a chat, or paper."""

import argparse
import gzip
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.errors import InputError

if TYPE_CHECKING:
    from monitor.pages.messages import AlarmRead, Message, OutcomeRead, WindowRead

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PRINT = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-pdf-header-footer")
PRINTING_SECONDS = 120
SUFFIXES = (".html", ".md", ".pdf")

EPILOG = """\
RESULTS are JSON lines as the sink wrote them, also compressed (.gz): results, and beside them alarms and dead letters,
if there are any.
From Kafka: kafka-console-consumer --topic shiftwatch-results --from-beginning --timeout-ms 5000 > results.jsonl

  shiftwatch report results.jsonl -o report.html                     one page that needs no network
  shiftwatch report results.jsonl alarms.jsonl --from 2026-01-01 -o report.md      for a chat
  shiftwatch report results.jsonl -o report.pdf                      for paper, where a Chromium or Chrome is installed
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Its arguments."""
    parser = commands.add_parser(
        "report",
        help="what happened in a period, as a page to send, for a chat or for paper",
        description="What happened to every stream in a period, from its published results.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", type=Path, nargs="+", help="files of results (JSON lines, also .gz)")
    parser.add_argument("--from", dest="begin", type=_time, help="only windows that end after this time (UTC)")
    parser.add_argument("--to", dest="until", type=_time, help="only windows that begin before this time (UTC)")
    parser.add_argument("-o", "--out", type=Path, required=True, help="report.html, report.md or report.pdf")
    parser.set_defaults(run=lambda given: report(given.results, given.out, begin=given.begin, until=given.until))


def report(results: Sequence[Path], out: Path, *, begin: int | None = None, until: int | None = None) -> int:
    """Write the report that the suffix of `out` asks for."""
    from monitor.assessment.verdict import facts_by_name
    from monitor.pages.messages import DeadLetterRead
    from monitor.pages.report import PeriodReport
    from monitor.pages.story import Gathering

    if out.suffix not in SUFFIXES:
        raise InputError(f"{out}: want a name that ends in {', '.join(SUFFIXES)}")
    gathering = Gathering()
    for message in _messages(results):
        if isinstance(message, DeadLetterRead) or _within(message, begin, until):  # they have no time
            gathering.add(message)
    stories = gathering.stories()
    if not stories:
        raise InputError(f"{', '.join(map(str, results))}: no result of a window lies between --from and --to")
    made = PeriodReport.of(stories, facts_by_name(), gathering.rejects)
    if out.suffix == ".pdf":
        _print(made.html(unfolded=True), out)
    else:
        out.write_text(made.markdown() if out.suffix == ".md" else made.html(), encoding="utf-8")
    print(f"{out}: {made.summary}")
    return 0


def _messages(paths: Iterable[Path]) -> "Iterator[Message]":
    import msgspec

    from monitor.pages.messages import read

    for path in paths:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    message = read(line) if line.strip() else None
                except msgspec.DecodeError as error:
                    if not line.endswith(b"\n"):  # a run is writing it just now
                        break
                    raise InputError(f"{path}, line {number}: not a result of shiftwatch: {error}") from error
                if message is not None:
                    yield message


def _within(message: "WindowRead | OutcomeRead | AlarmRead", begin: int | None, until: int | None) -> bool:
    """Of alarms, those that lasted into the period."""
    ends_late = begin is None or message.until > begin
    return ends_late and (until is None or message.begin < until)


def _time(text: str) -> int:
    """RFC 3339, or a date; microseconds."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"want a time such as 2026-01-01T09:00:00Z or a date, got {text!r}") from error
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6)


def _print(html: str, out: Path) -> None:
    """By a browser's print style."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise InputError(
            f"{out}: none of {', '.join(BROWSERS)} is installed; write report.html and print that from any browser: it "
            "has a style for paper"
        )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        page.write_text(html, encoding="utf-8")
        command = [
            browser,
            *PRINT,
            f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={out.resolve()}",
            page.as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PRINTING_SECONDS)  # noqa: S603 - the browser by its path
    if done.returncode or not out.exists():
        raise InputError(f"{out}: {browser} could not print it: {done.stderr.strip()[-500:]}")
