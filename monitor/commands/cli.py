"""The command. Each sub-command is a small function; what it needs is imported when it is called, so that
`shiftwatch --help` answers at once."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from monitor.errors import ConfigurationError, ShiftwatchError
from monitor.version import __version__

SUCCESS, FAILURE, BAD_CONFIGURATION, INTERRUPTED = 0, 1, 2, 130

DESCRIPTION = """\
Watches the scored events of a classifier in production. For every window of events it says, without labels,
whether anything moved, what moved, how much of each class is out there now, and how to correct the scores.
Of a regressor's events, and the few labels that come, it says whether the label still depends on the inputs as it did.

  shiftwatch demo                                    see it work, with nothing else installed
  shiftwatch reference build holdout.jsonl -o x.ref  what the model looked like on labelled data
  shiftwatch guess records.jsonl                     where do my records have their scores?
  shiftwatch check shiftwatch.toml                   what would a run do?
  shiftwatch run shiftwatch.toml                     watch, until stopped
  shiftwatch replay shiftwatch.toml -o results.jsonl the same over files, once, with a summary
  shiftwatch report results.jsonl -o report.html     what happened, as a page to send
"""

CONFIGURATION = """\
A configuration is one TOML file; `shiftwatch check` explains one and lists every problem in it:

  [source]
  url = "jsonl:events.jsonl"

  [sink]
  url = "jsonl:results.jsonl"

  [streams.fraud-v3]
  reference = "fraud-v3.ref"
  window = { size = "5m", lateness = "30s" }
"""


def parser() -> argparse.ArgumentParser:
    """All commands with their help."""
    top = argparse.ArgumentParser(
        prog="shiftwatch", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--version", action="version", version=f"shiftwatch {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    demo = _command(commands, "demo", "a synthetic stream with known shifts, and what is said about them")
    demo.add_argument("--out", type=Path, default=Path("shiftwatch-demo"), help="folder for everything it writes")
    demo.add_argument("--seed", type=int, default=1, help="draws another stream (default: 1)")
    demo.add_argument("--labels", action="store_true", help="a concept that changes, and labels that come later")
    demo.add_argument("--regression", action="store_true", help="a regressor's stream instead of a classifier's")
    demo.add_argument("--fast", action="store_true", help="do not slow down to a pace that can be watched")
    demo.set_defaults(run=_demo)

    run = _command(commands, "run", "watch the streams of a configuration until stopped", CONFIGURATION)
    run.add_argument("config", type=Path, help="a TOML file")
    run.set_defaults(run=_run)

    replay = _command(commands, "replay", "run over files once and write the results anew", CONFIGURATION)
    replay.add_argument("config", type=Path, help="a TOML file; its source must be files, its sink is not touched")
    replay.add_argument("-o", "--out", type=Path, required=True, help="where the results go (JSON lines)")
    replay.add_argument("--force", action="store_true", help="overwrite the results file")
    replay.set_defaults(run=_replay)

    check = _command(commands, "check", "explain what a configuration would do, or list its problems", CONFIGURATION)
    check.add_argument("config", type=Path, help="a TOML file")
    check.add_argument("--events", type=Path, help="a file of some records, to see how they are understood")
    check.set_defaults(run=_check)

    proposal = _command(commands, "guess", "propose where events' fields stand in records of another shape")
    proposal.add_argument("records", type=Path, help="a file with some records, one JSON value a line")
    proposal.set_defaults(run=_guess)

    names = _command(commands, "estimators", "the estimators of the class mix by name, and what each needs")
    names.set_defaults(run=_estimators)

    from monitor.commands import flink, report, state
    from monitor.commands.reference import add_parser

    add_parser(commands)
    report.add_parser(commands)
    state.add_parser(commands)
    flink.add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point; the exit code is 0 only if everything was published."""
    _one_thread()
    given = parser().parse_args(arguments)
    try:
        code: int = given.run(given)
    except ConfigurationError as error:
        print("shiftwatch: the configuration cannot be run:", file=sys.stderr)
        for problem in error.problems:
            print(f"  - {problem}", file=sys.stderr)
        return BAD_CONFIGURATION
    except (ShiftwatchError, OSError) as error:
        print(f"shiftwatch: {error}", file=sys.stderr)
        return FAILURE
    except KeyboardInterrupt:  # `run` and `replay` end by themselves; files of the others are whole or not there
        print("shiftwatch: interrupted", file=sys.stderr)
        return INTERRUPTED
    return code


def _one_thread() -> None:
    """Matrices are small here: the threads of a linear algebra library would burn time waiting for each other, and how
    many of them share a sum changes its last digit from machine to machine. Whoever sets a variable decides."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, summary: str, epilog: str | None = None
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _demo(given: argparse.Namespace) -> int:
    if given.labels:
        from monitor.commands.labels_demo import labels_demo

        return labels_demo(given.out, seed=given.seed, fast=given.fast)
    if given.regression:
        from monitor.commands.regression_demo import regression_demo

        return regression_demo(given.out, seed=given.seed, fast=given.fast)
    from monitor.commands.demo import demo

    return demo(given.out, seed=given.seed, fast=given.fast)


def _run(given: argparse.Namespace) -> int:
    from monitor.commands.run import run

    return run(given.config)


def _replay(given: argparse.Namespace) -> int:
    from monitor.commands.run import replay

    return replay(given.config, given.out, overwrite=given.force)


def _estimators(_given: argparse.Namespace) -> int:
    from monitor.commands.estimators import estimators

    return estimators()


def _guess(given: argparse.Namespace) -> int:
    from monitor.commands.guess import guessed

    return guessed(given.records)


def _check(given: argparse.Namespace) -> int:
    from monitor.commands.check import check

    return check(given.config, given.events)
