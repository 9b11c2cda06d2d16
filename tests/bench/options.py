"""The command line that every bench has, so that `python -m tests.bench` can run them all."""

import argparse
from pathlib import Path

REPORTS = Path(__file__).parent / "reports"


def pythons(pairs: list[str]) -> dict[str, str]:
    """Interpreters by the peer that they have, from NAME=PYTHON."""
    return dict(pair.split("=", 1) for pair in pairs)


def options(doc: str | None, report: Path | None = None) -> argparse.ArgumentParser:
    """`--quick` and `--report`; a bench adds its own. Tables go to standard output in any case."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs and roughly how it does")
    parser.add_argument("--report", type=Path, default=report, help="write the Markdown here, pictures beside it")
    return parser
