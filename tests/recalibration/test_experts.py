"""A pool of experts: with arrays, with lists, in another order and at thresholds the same; what a message may hold."""

import subprocess
import sys
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.recalibration import Expert, Recalibration, expert_rows, pooled_rows, settled
from monitor.recalibration.applying import pooled_row
from monitor.recalibration.decoding import decoded, parsed
from tests.recalibration.test_calibrated import fitted, overconfident
from tests.recalibration.test_client import CLASSES, client_of, message


def pool() -> tuple[Expert, ...]:
    numbers = fitted("temperature").to_map()
    return (
        Expert(0.5),
        Expert(0.2, numbers, (0.2, 2 / 3, 3.5)),
        Expert(0.3, numbers, (), 0.7, (0.3, -0.1, -0.2)),
    )


def pooled() -> Recalibration:
    return replace(message(), experts=pool())


def test_arrays_lists_and_another_order_of_classes_are_pooled_alike() -> None:
    scored = overconfident(200, 3)[0]
    expected = sum(one.weight * expert_rows(scored, one) for one in pool())
    np.testing.assert_allclose(np.sum(expected, axis=1), 1)
    np.testing.assert_allclose(client_of(pooled()).apply(scored), expected, rtol=1e-9)
    np.testing.assert_allclose(client_of(pooled()).apply(scored.tolist()), expected, rtol=1e-9)
    order = [2, 0, 1]
    other = client_of(pooled(), classes=[CLASSES[y] for y in order])
    np.testing.assert_allclose(other.apply(scored[:, order]), expected[:, order], rtol=1e-9)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda row: sum(row) > 1e-3))
def test_a_row_is_pooled_as_rows_are(row: list[float]) -> None:
    np.testing.assert_allclose(pooled_row(row, pool()), pooled_rows(np.array([row]), pool())[0], rtol=1e-9, atol=1e-12)


def test_rows_that_are_not_of_numbers_stay_as_they_are() -> None:
    rows = np.array([[np.nan, 0.5, 0.5], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(pooled_rows(rows, pool()), rows)
    np.testing.assert_array_equal([pooled_row(row, pool()) for row in rows.tolist()], rows)


def test_an_expert_without_steps_is_the_scores_as_they_were_to_the_last_bit() -> None:
    scored = overconfident(50, 4)[0]
    np.testing.assert_array_equal(expert_rows(scored, Expert(1.0)), scored)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("wanted", [0.2, 0.5, 0.9])
def test_a_threshold_is_where_the_pooled_posterior_reaches_it(name: str, wanted: float) -> None:
    said = pooled()
    y, at = CLASSES.index(name), client_of(said).threshold(name, wanted)
    rest = 1 - said.source_priors[y]
    row = [at if c == y else (1 - at) * p / rest for c, p in enumerate(said.source_priors)]
    assert client_of(said).apply(row)[y] == pytest.approx(wanted, abs=1e-9)


def test_a_pool_is_in_force_whether_or_not_the_window_itself_would_be_corrected() -> None:
    said = replace(pooled(), apply=False, multipliers=(1.0, 1.0, 1.0))
    client = client_of(said)
    assert client.status().correcting
    assert not np.allclose(client.apply([0.2, 0.3, 0.5]), [0.2, 0.3, 0.5])


def test_a_pool_speaks_for_itself_and_is_not_kept_when_it_ends() -> None:
    before, now = pooled(), message(window="w2")
    assert settled(message(), pooled()) == pooled()
    assert settled(before, now) == now
    unsure = replace(now, apply=False, multipliers=(1.0,) * 3, cause=now.cause.STABLE, target_priors=now.source_priors)
    assert settled(before, replace(unsure, target_errors=(1.0,) * 3)).experts == ()


def test_a_message_comes_back_as_it_was_sent() -> None:
    assert decoded(parsed(msgspec.json.encode(pooled()))) == pooled()
    plain = msgspec.json.decode(msgspec.json.encode(message()))
    del plain["experts"]
    assert decoded(plain) == message()


@pytest.mark.parametrize(
    "change",
    [
        {"weight": 0.9},
        {"weight": -0.5},
        {"weight": "half"},
        {"multipliers": [1.0, 2.0]},
        {"multipliers": [1.0, -2.0, 1.0]},
        {"intercepts": [0.1]},
        {"intercepts": [0.0, 0.0, None]},
        {"slope": None},
    ],
)
def test_a_pool_with_numbers_that_nobody_can_apply_is_refused(change: dict[str, object]) -> None:
    table = msgspec.json.decode(msgspec.json.encode(pooled()))
    table["experts"][0] |= change
    with pytest.raises(ValueError, match="not a recalibration message"):
        decoded(table)


def test_lists_are_pooled_without_numpy() -> None:
    scored = overconfident(5, 5)[0]
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "from monitor.recalibration.client import RecalibrationClient\n"
        "from monitor.recalibration.decoding import decoded, parsed\n"
        "message = decoded(parsed(sys.stdin.buffer.read()))\n"
        "client = RecalibrationClient(lambda: message, 's'); client.refresh()\n"
        f"print(client.apply({scored.tolist()}), client.threshold('a'), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=msgspec.json.encode(pooled()), capture_output=True, check=True
    )
    rows, threshold = done.stdout.splitlines()
    np.testing.assert_allclose(msgspec.json.decode(rows), client_of(pooled()).apply(scored), rtol=1e-9)
    assert float(threshold) == pytest.approx(client_of(pooled()).threshold("a"))
