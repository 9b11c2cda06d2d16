"""`shiftwatch estimators`: the names that `reference build --estimator` takes, and what each needs."""

from rich.console import Console
from rich.table import Table

from monitor.priors import DEFAULT, ESTIMATORS


def estimators() -> int:
    """Print them in the order of the registry."""
    table = Table(title="estimators of the class mix", title_justify="left")
    for heading in ("name", "needs", "remark"):
        table.add_column(heading)
    for name, estimator in ESTIMATORS.items():
        remark = "the default" if name == DEFAULT else ""
        table.add_row(name, " and ".join(estimator.needs) or "posteriors", remark)
    Console(markup=False, width=120).print(table)
    return 0
