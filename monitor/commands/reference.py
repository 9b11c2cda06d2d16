"""`shiftwatch reference build|show|diff`. Only `add_parser` runs for `--help`; the rest is imported when it is used."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from monitor.errors import InputError
from monitor.recalibration import ScoreKind

if TYPE_CHECKING:
    from monitor.reference import FiledReference

BUILD = """\
The file holds labelled events that the model was not trained on: .jsonl with scored events and their `label`, or
.csv or .parquet with columns label, posteriors.<class> (or score) and features.<name> (or just their names).
Scores that are margins and no probabilities stand under scores.<class>, or are a score with --scores margin.
With `segment` (or columns segment.<name>) each segment is later held against its own events.
Events of a regressor carry `prediction` instead, and the true number as `label`.

  shiftwatch reference build holdout.jsonl --out fraud-v3.ref

Beside the reference go what was measured, as a page to read (fraud-v3.html) and as JSON (fraud-v3.json).
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Hang the command and its sub-commands into the command line."""
    reference = commands.add_parser("reference", help="what the model looked like on labelled data: build, show, diff")
    actions = reference.add_subparsers(title="actions", metavar="ACTION", required=True)

    build = actions.add_parser(
        "build",
        help="from labelled hold-out events to a reference, with a report on what can be trusted",
        epilog=BUILD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    build.add_argument("holdout", type=Path, help="labelled events: .jsonl, .csv or .parquet")
    build.add_argument("-o", "--out", type=Path, required=True, help="where the reference goes")
    build.add_argument("--stream", default="", help="name of the stream (default: what the events say)")
    build.add_argument("--classes", default="", metavar="A,B,...", help="classes in the order of unnamed posteriors")
    build.add_argument("--positive", default="", metavar="CLASS", help="the class a bare score speaks of")
    build.add_argument("--scores", choices=get_args(ScoreKind), help="what scores are (default: posterior)")
    build.add_argument(
        "--calibration", default="auto", help="a method, or auto (default): the simplest with about the lowest log loss"
    )
    build.add_argument("--estimator", metavar="NAME", help="see `shiftwatch estimators`, which names the default")
    meanings = {"category": "holds names, not numbers", "number": "holds numbers", "ignore": "is no feature"}
    for kind, meaning in meanings.items():
        help_text = f"a column that {meaning}; once for each"
        build.add_argument(f"--{kind}", action="append", default=[], metavar="NAME", help=help_text)
    build.add_argument(
        "--times", default="", help="how times are written, as in a stream's settings: seconds, utc, ..."
    )
    build.add_argument(
        "--block",
        metavar="LENGTH",
        help="the length of the windows to come: 5000 (events), 1d, or a configuration that says it; see "
        "deploy/guides/time-ordered-data.md",
    )
    build.add_argument(
        "--season",
        metavar="LENGTH",
        help="24h, 7d or 1y: hold the class mix against that of the same time of the day, week or year; with --block",
    )
    build.add_argument(
        "--season-inputs", action="store_true", help="hold features and scores against the same time too; with --season"
    )
    build.add_argument(
        "--lines", type=int, metavar="K", help="of a regressor: linear regressions in the relation (default: by BIC)"
    )
    build.add_argument("--lines-most", type=int, default=5, metavar="K", help="and the most that BIC may choose (5)")
    build.add_argument("--seed", type=_seed, default=0, help="for folds, samples and simulations (default: 0)")
    build.add_argument("--no-report", action="store_true", help="do not write the report")
    build.set_defaults(run=_build)

    show = actions.add_parser("show", help="explain a reference")
    show.add_argument("reference", type=Path, help="a reference file")
    show.set_defaults(run=_show)

    diff = actions.add_parser("diff", help="what changed from one reference to another; exit code 1 if anything did")
    diff.add_argument("old", type=Path, help="a reference file")
    diff.add_argument("new", type=Path, help="another one")
    diff.set_defaults(run=_diff)


def _build(given: argparse.Namespace) -> int:
    import json
    from datetime import UTC, datetime

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from monitor.priors import DEFAULT
    from monitor.reference import Kinds, LineCount, Seasonal, Wanted, build, build_regression, holds_predictions
    from monitor.web.preflight_page import page as render

    if given.season is not None and given.block is None:
        raise InputError("--season: say --block too, the length of the windows to come, such as 1h")
    if given.season_inputs and given.season is None:
        raise InputError("--season-inputs: say --season too, such as 24h")
    page, data = _report_places(given.holdout, given.out)
    classes = tuple(name.strip() for name in given.classes.split(",") if name.strip())
    kinds = Kinds(tuple(given.category), tuple(given.number), tuple(given.ignore))
    wanted = Wanted(given.stream, classes, given.positive, kinds, given.times, given.scores)
    facts = {"created": datetime.now(UTC).isoformat(timespec="seconds"), "source": given.holdout.name}
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=given.holdout.stat().st_size if given.holdout.exists() else None)

        def advance(read: int) -> None:
            progress.update(task, completed=read)

        def work(what: str, done: int, of: int) -> None:
            progress.update(task, description=what, completed=done, total=of)

        if holds_predictions(given.holdout):
            if given.season_inputs:
                raise InputError("--season-inputs: of classifiers only; a regressor's inputs are held against any time")
            lines = LineCount(given.lines, given.lines_most)
            regression = build_regression(
                given.holdout, wanted, seed=given.seed, lines=lines, facts=facts, advance=advance
            )
            regression.save(given.out)
            _print(_summary(regression, given.out) + _warnings(regression))
            return 0
        reference, report = build(
            given.holdout,
            wanted,
            seed=given.seed,
            calibration=given.calibration,
            estimator=given.estimator or DEFAULT,
            facts=facts,
            block=None if given.block is None else _block(given.block, given.stream),
            season=None if given.season is None else Seasonal(given.season, given.season_inputs),
            advance=advance,
            progress=work,
        )
    reference.save(given.out)
    _print(_summary(reference, given.out) + (_warnings(reference) if given.no_report else ""))
    if not given.no_report:
        _write(data, json.dumps(report, indent=1) + "\n")
        _write(page, render(report))
        words = {"good": "  good     ", "mind": "  mind this", "bad": "  problem  "}
        _print(
            "\n".join(f"{words[advice['verdict']]}  {advice['title']}: {advice['text']}" for advice in report["advice"])
        )
        _print(f"the report is in {page} and {data}")
    return 0


def _block(said: str, stream: str) -> int | str:
    """A number of events, a duration, or the window of a stream in a configuration."""
    from monitor.ports.options import duration_text
    from monitor.settings import load

    if not said.endswith(".toml"):
        return int(said) if said.removeprefix("-").isdigit() else said
    streams = load(Path(said)).streams
    if stream not in streams and (stream or len(streams) != 1):
        raise InputError(f"--block: {said} has the streams {', '.join(streams)}; say which one with --stream")
    window = streams[stream or next(iter(streams))].window
    return window.count if window.count is not None else duration_text(window.size or 0)


def _report_places(holdout: Path, out: Path) -> tuple[Path, Path]:
    """Where page and data of the report go; refused before the work if one file would be written over another."""
    page, data = out.with_suffix(".html"), out.with_suffix(".json")
    places = [path.resolve() for path in (holdout, out, page, data)]
    if len(set(places)) < len(places):
        raise InputError(f"--out: {out} or its report would be written over another file; want an ending like .ref")
    return page, data


def _seed(said: str) -> int:
    seed = int(said)
    if seed < 0:
        raise argparse.ArgumentTypeError(f"want a whole number from 0, got {said}")
    return seed


def _show(given: argparse.Namespace) -> int:
    from monitor.kinds import load_reference

    reference = load_reference(given.reference)
    _print(_summary(reference, given.reference) + _warnings(reference))
    return 0


def _diff(given: argparse.Namespace) -> int:
    from monitor.kinds import load_reference
    from monitor.reference import differences

    lines = differences(load_reference(given.old), load_reference(given.new))
    _print("\n".join(lines) if lines else "the references are the same")
    return 1 if lines else 0


def _summary(reference: "FiledReference", path: Path) -> str:
    from monitor.reference import explain

    return f"{path}\n{explain(reference)}"


def _warnings(reference: "FiledReference") -> str:
    return "".join(f"\n  mind this    {warning.text}" for warning in reference.warnings)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _print(text: str) -> None:
    print(text)  # this is what the command is for
