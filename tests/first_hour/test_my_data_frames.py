"""My data frames go in as they are: pandas or polars, words or numbers, in any order of columns."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from monitor import Reference, RegressionReference, Window, assess, assess_regression
from monitor.errors import InputError
from monitor.ports.schema import Feature
from tests.first_hour.shop import Shop, orders
from tests.pages import ROOT, blocks, page

README = page(ROOT / "README.md")


def as_pandas(frame: pd.DataFrame) -> Any:
    return frame


def as_polars(frame: pd.DataFrame) -> Any:
    return pl.DataFrame({name: [None if pd.isna(x) else x for x in frame[name]] for name in frame})


def as_pandas_with_its_own_types(frame: pd.DataFrame) -> Any:
    return frame.convert_dtypes().astype({"country": "category", "mcc": "category"})


def as_polars_with_its_own_types(frame: pd.DataFrame) -> Any:
    return as_polars(frame).with_columns(
        pl.col("country").cast(pl.Enum(["BE", "DE", "NL"])), pl.col("mcc").cast(pl.Categorical)
    )


def as_plain_columns(frame: pd.DataFrame) -> Any:
    return frame.to_dict("list")


FRAMES = [as_pandas, as_polars, as_pandas_with_its_own_types, as_polars_with_its_own_types, as_plain_columns]


@pytest.mark.parametrize("given", FRAMES)
def test_the_kinds_of_my_columns_are_what_they_are(my_shop: Shop, given: Callable[[pd.DataFrame], Any]) -> None:
    scores = my_shop.scores(my_shop.frame)
    reference = Reference.fit(scores, my_shop.labels, features=given(my_shop.frame))
    assert reference.schema.features == (
        Feature("amount"),
        Feature("age_days"),
        Feature("country", "category", ("BE", "DE", "NL")),
        Feature("mcc", "category", ("0742", "5411", "5732", "5812")),
        Feature("weekend", "boolean", ("false", "true")),
    )


@pytest.mark.parametrize("given", FRAMES)
def test_a_calm_day_is_stable_whatever_the_frame(
    my_shop: Shop, my_reference: Reference, given: Callable[[pd.DataFrame], Any]
) -> None:
    today, _ = orders(400, 3)
    found = assess(Window.of(my_shop.scores(today), features=given(today)), my_reference)
    assert found.verdict == "stable", found.reasons
    assert found.missing_values == today.isna().sum().sum()


def test_the_order_of_my_columns_does_not_matter(my_shop: Shop, my_reference: Reference) -> None:
    today, _ = orders(400, 3)
    scores = my_shop.scores(today)
    turned = today[today.columns[::-1]]
    assert (
        assess(Window.of(scores, features=turned), my_reference).to_json()
        == assess(Window.of(scores, features=today), my_reference).to_json()
    )


def test_a_renamed_column_is_said_and_not_stable(my_shop: Shop, my_reference: Reference) -> None:
    today, _ = orders(400, 3)
    renamed = today.rename(columns={"amount": "ammount"})
    found = assess(Window.of(my_shop.scores(today), features=renamed), my_reference)
    assert found.verdict == "covariate-shift"
    assert found.reasons[:3] == (
        "the data frame has no column amount: taken as missing in all events",
        "the reference does not know the columns ammount (is it amount?): left out",
        "amount is missing in all events",
    )


def test_words_where_numbers_were_are_said(my_shop: Shop, my_reference: Reference) -> None:
    today, _ = orders(400, 3)
    scores = my_shop.scores(today)
    found = assess(Window.of(scores, features=today.assign(amount="much")), my_reference)
    assert found.reasons[0] == "amount holds text where the reference has a number: taken as missing"
    found = assess(Window.of(scores, features=today.assign(weekend=7)), my_reference)
    assert (
        found.reasons[0]
        == "weekend holds numbers other than 0 and 1 where the reference has a boolean: taken as missing"
    )


def test_a_code_that_is_sent_as_a_number_is_the_same_code(my_shop: Shop, my_reference: Reference) -> None:
    today = orders(400, 3)[0].query("mcc != '0742'")
    scores = my_shop.scores(today)
    as_number = today.assign(mcc=today["mcc"].astype(float))
    words, numbers = (assess(Window.of(scores, features=f), my_reference).to_json() for f in (today, as_number))
    assert words == numbers


def test_a_frame_of_other_columns_is_refused_with_both_lists_of_names(my_reference: Reference) -> None:
    with pytest.raises(
        InputError, match=r"the reference knows \['amount', .* columns? of the data frame: \['a', 'b'\]"
    ):
        assess(Window.of(np.full((200, 2), 0.5), features=pd.DataFrame({"a": [1.0] * 200, "b": 2.0})), my_reference)


def test_a_frame_that_only_numbers_its_columns_goes_by_position() -> None:
    rng = np.random.default_rng(0)
    labels = rng.random(1_000) < 0.4
    x = rng.normal(size=(1_000, 2)) + labels[:, None]
    scores = 1 / (1 + np.exp(-2 * x.sum(axis=1) + 2))
    reference = Reference.fit(scores, labels, features=pd.DataFrame(x))
    assert [feature.name for feature in reference.schema.features] == ["x0", "x1"]
    by_array = assess(Window.of(scores[:300], features=x[:300]), reference).to_json()
    assert assess(Window.of(scores[:300], features=pd.DataFrame(x[:300])), reference).to_json() == by_array
    with pytest.raises(InputError, match="features: want 2 columns, got 1"):
        assess(Window.of(scores[:300], features=pd.DataFrame(x[:300, :1])), reference)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_posteriors_may_be_a_frame_with_a_column_for_each_class(my_shop: Shop, frame: Any) -> None:
    scores = my_shop.scores(my_shop.frame)
    named = frame({"legit": scores[:, 1], "fraud": scores[:, 0]})
    reference = Reference.fit(named, my_shop.labels)
    assert reference.classes == ("legit", "fraud")
    again = Reference.fit(scores, my_shop.labels, classes=["fraud", "legit"])
    assert again.class_counts.tolist() == reference.class_counts[::-1].tolist()
    by_name = assess(Window.of(named), again)
    assert by_name.to_json() == assess(Window.of(scores), again).to_json()
    with pytest.raises(
        InputError, match=r"want columns named as the classes \['fraud', 'legit'\], got \['legit', 'theft'\]"
    ):
        assess(Window.of(frame({"legit": scores[:, 1], "theft": scores[:, 0]})), again)


def test_labels_may_be_a_series_of_either_library(my_shop: Shop) -> None:
    scores = my_shop.scores(my_shop.frame)
    versions = {
        Reference.fit(scores, labels, classes=["fraud", "legit"]).version
        for labels in (my_shop.labels, pl.Series(my_shop.labels.tolist()), my_shop.labels.astype("category"))
    }
    assert len(versions) == 1


def test_dates_and_durations_are_numbers_of_seconds() -> None:
    moments = pd.Series(pd.to_datetime(["2026-01-01T00:00:00Z", None, "2026-01-02T12:00:00Z"]))
    frame = pd.DataFrame(
        {
            "naive": moments.dt.tz_localize(None),
            "utc": moments,
            "brussels": moments.dt.tz_convert("Europe/Brussels"),
            "day": moments.dt.date,
            "since": moments - moments[0],
        }
    )
    scores = [[0.1, 0.9], [0.8, 0.2], [0.4, 0.6]] * 20
    table = pd.concat([frame] * 20, ignore_index=True)
    for given in (table, as_polars(table)):
        reference = Reference.fit(scores, ["a", "b", "a"] * 20, features=given)
        assert {feature.kind for feature in reference.schema.features} == {"number"}
        spans = {p.feature.name: (p.values[0], p.values[-1]) for p in reference.features}
        new_year = 1_767_225_600.0
        whole = (new_year, new_year + 36 * 3_600)
        assert spans["naive"] == spans["utc"] == spans["brussels"] == whole
        assert spans["day"] == (new_year, new_year + 24 * 3_600)
        assert spans["since"] == (0.0, 36 * 3_600)


def test_a_regressor_takes_frames_too() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"area": rng.normal(100, 20, 1_000), "town": rng.choice(["Ghent", "Mons"], 1_000)})
    price = 3 * frame["area"] + rng.normal(size=1_000)
    reference = RegressionReference.fit(3 * frame["area"], price, features=frame)
    assert reference.input_names == ("area",)
    turned = frame[["town", "area"]]
    found = assess_regression(Window.of_predictions(3 * frame["area"], turned, price), reference)
    assert found.verdict == "stable"
    assert (
        assess_regression(Window.of_predictions(3 * frame["area"], turned.drop(columns="area"), price), reference)
        .reasons[0]
        .startswith("the data frame has no column area")
    )


def test_the_block_of_the_readme_runs_with_my_frame(
    my_shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    today, _ = orders(400, 3)
    space = {"model": my_shop.model, "X": my_shop.frame, "y": my_shop.labels, "X_today": today}
    build, use = blocks(README, "python")[:2]
    exec(build, space)  # noqa: S102 - our own README
    exec(use, space)  # noqa: S102
    assert space["assessment"].verdict == "stable"
