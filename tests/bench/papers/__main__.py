"""The five papers again: each claim in one line, what is printed beside what is found, and why where it does not hold.

    python -m tests.bench.papers [--quick] [--data FOLDER] [--state FOLDER] [--report FILE] [PAPER ...]

PAPER is one or more of the papers below; without names all are run. Each writes a page with the tables behind its
claims, and the report is put together of all pages, of those that were not run as they stand. `--state` keeps measured
cells, so that a long run may be stopped and gone on with. Nothing is tuned to agree.
"""

import sys
import warnings
from importlib import import_module
from pathlib import Path

from tests.bench import machine
from tests.bench.options import REPORTS, options
from tests.bench.papers.cells import Cells
from tests.bench.papers.claims import Given, claimed, table
from tests.bench.tables import markdown

PAPERS = {
    "caelen": "Caelen, Quantification and learning algorithms to manage prior probability shift",
    "esuli": "Esuli et al., A critical reassessment of the Saerens-Latinne-Decaestecker algorithm",
    "dussap": "Dussap et al., Label shift quantification with robustness guarantees",
    "alotaibi": "Al-Otaibi et al., Versatile decision trees for learning over multiple contexts",
    "bouveyron": "Bouveyron and Jacques, Adaptive mixtures of regressions",
}
CANNOT_BE_HAD = """## What cannot be had

- Esuli et al.: Reuters' RCV1, for all of its tables. Topics that are made up take its place.
- Caelen: nine of the 25 data sets (Blood Transfusion, Breast Tissue, Default of credit card clients, Dermatology,
  HTRU2, Mice Protein, Occupancy Detection, Page Blocks, Seismic-bumps).
- Dussap et al.: the cytometry samples of figure 2. Its design is run on handwritten digits.
- Al-Otaibi et al.: Appendicitis (table 2), the patients of tables 3 and 4, IOP's program.
- Bouveyron and Jacques: emissions of CO2 against national product (section 4.4).
"""


def page_of(report: Path, name: str) -> Path:
    """The page with a paper's tables, beside the report."""
    return report.with_name(f"{report.stem}_{name}.md")


def write(name: str, given: Given, report: Path) -> None:
    """One paper."""
    module = import_module(f"tests.bench.papers.{name}")
    found = module.study(given)
    command = f"python -m tests.bench.papers{' --quick' if given.quick else ''} --data FOLDER {name}"
    _, _, about = module.__doc__.partition("\n\n")
    parts = [
        f"# {PAPERS[name]}\n",
        f"Made by `{command}` at commit {machine.commit()}.\n",
        about,
        "## Claims\n",
        table(found.claims),
        found.body,
    ]
    page_of(report, name).write_text("\n".join(part for part in parts if part), encoding="utf-8")


def assemble(report: Path) -> None:
    """The one page, of the claims of all pages that there are."""
    pages = {name: path.read_text(encoding="utf-8") for name in PAPERS if (path := page_of(report, name)).exists()}
    rows, parts = [], []
    for name, page in pages.items():
        claims = claimed(page)
        rows.append([PAPERS[name], f"{sum(row[3] == 'yes' for row in claims)} of {len(claims)}"])
        made = next(line for line in page.splitlines() if line.startswith("Made by"))
        link = f"The tables behind them: [{page_of(report, name).name}]({page_of(report, name).name})."
        columns = ["claim", "printed", "ours", "holds", "why not"]
        parts.append(f"## {PAPERS[name]}\n\n{made} {link}\n\n{markdown(columns, claims)}")
    head = (
        "# What five papers claim, and what is found here\n\n"
        "One line a claim: what is printed, what is found here, whether the claim holds. Where it does not, the last\n"
        "column has the experiment that says why. Claims that are not a paper's begin with (ours). Long runs are made\n"
        "in parts (`--state`): a figure is taken over from a part where the code that makes it is the same, or gave\n"
        "the same again.\n"
    )
    text = "\n".join([head, markdown(["paper", "claims that hold"], rows), *parts, CANNOT_BE_HAD])
    report.write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Run the papers, write their pages and the report."""
    parser = options(__doc__, REPORTS / "papers.md")
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument("--data", type=Path, help="a folder of UCI tables (CSV, class last)")
    parser.add_argument("--state", type=Path, help="a folder in which measured cells are kept")
    given = parser.parse_args(arguments)
    if unknown := set(given.papers) - set(PAPERS):
        parser.error(f"no such paper: {', '.join(sorted(unknown))}")
    if given.data is None and not given.quick:
        print("no folder of UCI tables given (--data): without them fewer data sets are compared", file=sys.stderr)
    for name in given.papers or PAPERS:
        print(f"{name} ...", flush=True)
        cells = Cells(given.state / f"{name}.jsonl" if given.state else None)
        with warnings.catch_warnings(action="ignore"):
            write(name, Given(cells, given.quick, given.data, given.report.parent), given.report)
    assemble(given.report)
    print(given.report.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
