"""A small shop with fraud, as an ordinary data frame with an ordinary model: numbers, codes, words, times, gaps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

WORDS = ["country", "mcc"]


def orders(rows: int, seed: int, fraud: float = 0.2) -> tuple[pd.DataFrame, pd.Series]:
    """Orders as a data frame, and whether each is fraud, as words."""
    rng = np.random.default_rng(seed)
    bad = rng.random(rows) < fraud
    frame = pd.DataFrame(
        {
            "amount": np.round(rng.lognormal(3 + bad, 0.6), 2),
            "age_days": np.where(rng.random(rows) < 0.1, np.nan, rng.integers(0, 2_000, rows) * (1 - 0.7 * bad)),
            "country": rng.choice(["BE", "DE", "NL"], rows, p=[0.5, 0.3, 0.2]),
            "mcc": np.where(bad, rng.choice(["5411", "5732"], rows), rng.choice(["5411", "5812", "0742"], rows)),
            "weekend": rng.random(rows) < 2 / 7,
        }
    )
    return frame, pd.Series(np.where(bad, "fraud", "legit"))


@dataclass(frozen=True)
class Shop:
    """A model, and the orders that it was not trained on."""

    model: Any
    frame: pd.DataFrame
    labels: pd.Series

    def scores(self, frame: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(frame)


def shop(rows: int = 4_000) -> Shop:
    """A boosted model of scikit-learn's, trained on other orders."""
    encode = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), WORDS), remainder="passthrough"
    )
    model = make_pipeline(encode, HistGradientBoostingClassifier(max_iter=40, random_state=0))
    model.fit(*orders(4_000, 1))
    return Shop(model, *orders(rows, 2))
