"""The three models that score a stream, trained on its first fifth."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from monitor.arrays import Matrix
from tests.bench.streams.table import Table

TRAINED_ROWS = 20_000
"""Evenly spaced rows of the first fifth: more change little in these models, and cost time."""
RARE_ROWS = 200
"""Of each class so many are among them, the first ones, or all that there are."""
WIDEST = 20.0
"""Standardised inputs are cut here: a linear model would be certain of anything beyond."""

Model = Callable[[Matrix], Matrix]
"""From rows to posteriors."""

MODELS: Mapping[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(max_iter=300, C=1.0),
    "naive Bayes": lambda: GaussianNB(var_smoothing=1e-3),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=60, early_stopping=False, random_state=0),
}


def trained(make: Callable[[], Any], table: Table) -> Model:
    """A model for a stream."""
    labels = table.labels[: table.fifth]
    evenly = np.linspace(0, table.fifth - 1, min(table.fifth, TRAINED_ROWS)).astype(np.int64)
    rows = np.unique(
        np.concatenate([evenly, *(np.flatnonzero(labels == y)[:RARE_ROWS] for y in range(len(table.classes)))])
    )
    fitted = make_pipeline(_columns(table, table.rows[rows]), make()).fit(table.rows[rows], table.labels[rows])
    return lambda x: np.asarray(fitted.predict_proba(x), dtype=np.float64)


def _columns(table: Table, rows: Matrix) -> ColumnTransformer:
    """Numbers standardised with their median where they are missing; categories as indicators."""
    seen = [j for j in range(rows.shape[1]) if not np.isnan(rows[:, j]).all()]
    numbers = [j for j in seen if table.features[j].kind == "number"]
    categories = [j for j in seen if table.features[j].kind != "number"]
    standardised = make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), FunctionTransformer(_cut))
    indicators = make_pipeline(
        SimpleImputer(strategy="constant", fill_value=-1.0),
        OneHotEncoder(handle_unknown="ignore", max_categories=20, sparse_output=False),
    )
    return ColumnTransformer([("numbers", standardised, numbers), ("categories", indicators, categories)])


def _cut(x: Matrix) -> Matrix:
    return np.asarray(np.clip(x, -WIDEST, WIDEST))
