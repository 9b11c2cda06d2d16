"""The example for engines in deploy/README.md: however a window's rows are spread, the answer is the same bytes."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor import Reference
from tests.deploy.parts import DEPLOY


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    labels = np.array([0, 0, 1] * 500)
    fraud = np.clip(rng.beta(2, 5, 1_500) + 0.3 * labels, 0, 1)
    inputs = rng.normal(size=(1_500, 2)) + labels[:, None]
    names = ["amount", "age_days"]
    posteriors = np.column_stack([1 - fraud, fraud])
    Reference.fit(posteriors, labels, inputs, classes=["legit", "fraud"], feature_names=names).save(
        tmp_path / "fraud-v3.ref"
    )
    monkeypatch.chdir(tmp_path)
    names_of_the_example: dict[str, Any] = {"__name__": "__main__"}
    exec(code()[0].replace("1_000_000", "700"), names_of_the_example)  # noqa: S102 - our own documentation
    return names_of_the_example


def code() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DEPLOY / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def scored() -> list[dict[str, float]]:
    rng = np.random.default_rng(2)
    table = np.column_stack([rng.beta(2, 5, 1_000), rng.normal(size=(1_000, 2))]).tolist()
    return [{"legit": 1 - share, "fraud": share, "amount": a, "age_days": b} for share, a, b in table]


def test_the_answer_is_the_same_bytes_however_the_rows_are_spread(example: dict[str, Any]) -> None:
    rows, rng = scored(), np.random.default_rng(2)
    whole = example["verdict"]([example["part"](rows)])
    for tasks in (2, 7):
        spread = [rows[number::tasks] for number in rng.permutation(tasks)]
        assert example["verdict"]([example["part"](some) for some in spread]) == whole


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # PySpark leaves sockets to the collector
def test_spark_gives_the_same_bytes_over_parquet(
    example: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="no PySpark: pip install pyspark, and Java")
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows, folder = scored(), Path("scored/day=2026-11-18")
    folder.mkdir(parents=True)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    for number in range(3):
        parquet.write_table(arrow.Table.from_pylist(rows[number::3]), folder / f"{number}.parquet")
    settings = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = (
        settings.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    )
    try:
        exec(code()[1], example | {"spark": spark})  # noqa: S102 - our own documentation
    finally:
        spark.stop()
    assert capsys.readouterr().out.strip().encode() == str(example["verdict"]([example["part"](rows)])).encode()
