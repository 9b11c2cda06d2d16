"""The client: corrects while a correction is in force, and lets scores pass unchanged whenever none is to be had."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.worlds import World
from monitor.priors import bayes
from monitor.recalibration import (
    CalibrationMap,
    Cause,
    InputCorrection,
    Recalibration,
    RecalibrationClient,
    Validity,
    identity,
)
from monitor.reference.classifier import Reference
from tests.deploy.parts import running, until
from tests.processes import free_port

SOURCE = (0.5, 0.3, 0.2)
CLASSES = ("a", "b", "c")


def message(target: tuple[float, ...] = (0.1, 0.2, 0.7), window: str = "w1", stream: str = "s") -> Recalibration:
    multipliers = tuple(t / s for t, s in zip(target, SOURCE, strict=True))
    return replace(
        identity(CLASSES, np.array(SOURCE)),
        target_priors=target,
        multipliers=multipliers,
        log_multipliers=tuple(float(np.log(m)) for m in multipliers),
        inputs={"amount": InputCorrection("linear", 2.0, 1.0, apply=True)},
        validity=Validity(stream=stream, window=window),
        apply=True,
        reason="the mix moved",
    )


@dataclass
class FakeFeed:
    """A feed that says what it is told to, or fails."""

    says: list[Recalibration | Exception | None] = field(default_factory=list)

    def __call__(self) -> Recalibration | None:
        said = self.says[0] if len(self.says) == 1 else self.says.pop(0)
        if isinstance(said, Exception):
            raise said
        return said


def client_of(*says: Recalibration | Exception | None, **options: object) -> RecalibrationClient:
    client = RecalibrationClient(FakeFeed(list(says)), "s", **options)  # type: ignore[arg-type]
    client.refresh()
    return client


posteriors = st.lists(
    st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3).map(lambda row: [value / sum(row) for value in row]),
    min_size=1,
    max_size=5,
)


@given(posteriors)
def test_arrays_lists_and_the_bayes_correction_agree(rows: list[list[float]]) -> None:
    client = client_of(message())
    expected = bayes.correct(np.array(rows), np.array(SOURCE), np.array([0.1, 0.2, 0.7]))
    np.testing.assert_allclose(client.apply(np.array(rows)), expected, rtol=1e-12)
    np.testing.assert_allclose(client.apply(rows), expected, rtol=1e-12)
    assert isinstance(client.apply(rows), list)


@given(posteriors)
def test_intercepts_move_as_posteriors_do(rows: list[list[float]]) -> None:
    client = client_of(message())
    moved = np.exp(client.adjust_intercepts(np.log(np.array(rows))))
    np.testing.assert_allclose(moved / moved.sum(axis=1, keepdims=True), client.apply(np.array(rows)), rtol=1e-9)


@given(st.floats(0.01, 0.99))
def test_a_moved_threshold_decides_as_the_corrected_posterior_would(wanted: float) -> None:
    client = RecalibrationClient(FakeFeed([_binary()]), "s")
    client.refresh()
    moved = client.threshold("yes", wanted)
    at_threshold = client.apply(np.array([[1 - moved, moved]]))[0, 1]
    assert at_threshold == pytest.approx(wanted, abs=1e-9)


def _binary() -> Recalibration:
    plain = identity(("no", "yes"), np.array([0.8, 0.2]))
    return replace(
        plain,
        target_priors=(0.5, 0.5),
        multipliers=(0.625, 2.5),
        apply=True,
        validity=Validity(stream="s", window="w"),
    )


def test_the_service_may_have_its_classes_in_another_order() -> None:
    plain, other = client_of(message()), client_of(message(), classes=("c", "a", "b"))
    rows = np.array([[0.2, 0.3, 0.5]])
    np.testing.assert_allclose(other.apply(rows[:, [2, 0, 1]]), plain.apply(rows)[:, [2, 0, 1]])


def test_classes_of_another_model_are_refused_and_scores_pass_unchanged() -> None:
    client = client_of(message(), classes=("x", "y", "z"))
    assert not client.status().correcting
    assert "the service has ['x', 'y', 'z']" in client.status().reason


@pytest.mark.parametrize("trouble", [OSError("connection refused"), ValueError("not JSON"), None])
def test_without_a_message_scores_pass_unchanged_and_the_status_says_why(trouble: Exception | None) -> None:
    client = client_of(trouble)
    rows = [[0.2, 0.3, 0.5]]
    assert client.apply(rows) == rows
    assert client.threshold("a", 0.3) == 0.3
    np.testing.assert_array_equal(client.correct_input("amount", [5.0]), [5.0])
    assert not client.status().correcting
    assert (str(trouble) if trouble else "no message") in client.status().reason


def test_a_message_that_is_not_to_be_applied_changes_nothing() -> None:
    client = client_of(replace(identity(CLASSES, np.array(SOURCE)), reason="the verdict is stable"))
    np.testing.assert_array_equal(client.apply(np.array([[0.2, 0.3, 0.5]])), [[0.2, 0.3, 0.5]])
    assert client.status().reason == "the verdict is stable"


def test_a_correction_outlives_its_monitor_until_it_expires() -> None:
    now = [0.0]
    client = client_of(message(), OSError("gone"), expires_after=100.0, now=lambda: now[0])
    now[0] = 99.0
    assert client.refresh().correcting
    now[0] = 101.0
    status = client.refresh()
    assert not status.correcting
    assert "expired" in status.reason
    assert "gone" in status.reason


def test_inputs_are_taken_back_along_the_line_or_the_knots() -> None:
    np.testing.assert_allclose(client_of(message()).correct_input("amount", [5.0, 1.0]), [2.0, 0.0])
    curve = InputCorrection("monotone", 1.0, 10.0, window=(0.0, 1.0, 4.0), reference=(0.0, 1.0, 2.0), apply=True)
    bent = client_of(replace(message(), inputs={"amount": curve}))
    np.testing.assert_allclose(bent.correct_input("amount", [0.5, 2.5, 20.0]), [0.5, 1.5, 10.0])


def test_a_row_with_all_its_mass_on_classes_that_are_gone_is_left_alone() -> None:
    gone = client_of(message(target=(0.0001, 0.2999, 0.7)))
    gone_for_good = client_of(replace(message(), multipliers=(0.0, 1.0, 4.0)))
    row = [[1.0, 0.0, 0.0]]
    assert gone.apply(row) == row
    assert gone_for_good.apply(row) == row
    np.testing.assert_array_equal(gone_for_good.apply(np.array(row)), row)


def test_a_file_is_followed_line_by_line_for_one_stream(tmp_path: Path) -> None:
    path = tmp_path / "recalibrations.jsonl"
    path.write_bytes(msgspec.json.encode(message()) + b"\n" + msgspec.json.encode(message(stream="other")) + b"\n")
    client = RecalibrationClient(path, "s")
    assert client.refresh().recalibration == message()
    later = message(target=(0.3, 0.3, 0.4), window="w2")
    with path.open("ab") as file:
        whole = msgspec.json.encode(later) + b"\n"
        file.write(whole[:20])
        file.flush()
        assert client.refresh().recalibration == message()
        file.write(whole[20:])
    assert client.refresh().recalibration == later
    path.write_bytes(b"no message\n")
    status = client.refresh()
    assert status.recalibration == later
    assert status.correcting


MANGLED = [
    lambda table: 5,
    lambda table: [],
    lambda table: table | {"multipliers": [1.0]},
    lambda table: table | {"multipliers": [None] * 3},
    lambda table: table | {"source_priors": "abc"},
    lambda table: (
        table | {"inputs": {"x": {"kind": "monotone", "alpha": 1, "beta": 0, "window": [1], "reference": []}}}
    ),
    lambda table: (
        table | {"inputs": {"x": {"kind": "linear", "alpha": 1, "beta": None, "window": [], "reference": []}}}
    ),
]


@pytest.mark.parametrize("mangle", MANGLED)
def test_a_mangled_message_leaves_the_correction_in_force(tmp_path: Path, mangle: Callable[[Any], Any]) -> None:
    path = tmp_path / "recalibrations.jsonl"
    path.write_bytes(msgspec.json.encode(message()) + b"\n")
    client = RecalibrationClient(path, stream="s")
    before = client.refresh()
    assert before.correcting
    with path.open("a") as file:
        file.write(json.dumps(mangle(json.loads(msgspec.json.encode(message(window="w2"))))) + "\n")
    after = client.refresh()
    assert "cannot be read" in after.trouble
    assert after.recalibration == before.recalibration


def test_many_threads_may_score_while_messages_change() -> None:
    one, two = message(), message(target=(0.3, 0.3, 0.4), window="w2")
    client = RecalibrationClient(FakeFeed([one, two] * 500), "s")
    client.refresh()
    rows = np.array([[0.2, 0.3, 0.5]])
    allowed = [bayes.correct(rows, np.array(SOURCE), np.array(m.target_priors)) for m in (one, two)]
    wrong: list[np.ndarray] = []

    def score() -> None:
        for _ in range(300):
            found = client.apply(rows)
            if not any(np.allclose(found, one) for one in allowed):
                wrong.append(found)

    threads = [threading.Thread(target=score) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(500):
        client.refresh()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_scoring_service_goes_on_with_corrected_scores_after_its_monitor_was_killed(tmp_path: Path) -> None:
    world = World(priors=SOURCE, classes=CLASSES)
    holdout = world.holdout(10_000)
    Reference.fit(
        holdout.posteriors,
        holdout.labels,
        holdout.features,
        classes=CLASSES,
        feature_names=world.features,
    ).save(tmp_path / "world.ref")
    port = free_port()
    (tmp_path / "shiftwatch.toml").write_text(
        f"""
[source]
url = "synthetic:"
interval = "1ms"
rate = 2000
world = {{ stream = "s", classes = {json.dumps(CLASSES)}, priors = {list(SOURCE)} }}
periods = [{{ name = "moved", events = 200_000, priors = [0.1, 0.2, 0.7] }}]

[sink]
url = "jsonl:results.jsonl"

[server]
port = {port}

[streams.s]
reference = "world.ref"
window = {{ size = "1s", lateness = "0s" }}
""",
        encoding="utf-8",
    )
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "monitor", "run", str(tmp_path / "shiftwatch.toml")]
    with running(command, tmp_path / "log") as process:
        until(lambda: httpx.get(f"{address}/api/streams/s/recalibration").status_code == 200, 60, "a window")
        with RecalibrationClient(address, "s", every=0.1) as client:
            assert until(lambda: client.status().correcting, 90, "a correction")
            process.kill()
            process.wait()
            until(lambda: "cannot be read" in client.status().trouble, 90, "the client to notice")
            corrected = client.apply(np.array([[0.5, 0.3, 0.2]]))
    np.testing.assert_allclose(corrected, [[0.1, 0.2, 0.7]], atol=0.06)


@pytest.mark.parametrize("cost_ratio", [0.2, 1.0, 8.0])
def test_the_threshold_of_a_cost_ratio_costs_least_when_the_mix_has_moved(cost_ratio: float) -> None:
    rng = np.random.default_rng(3)
    source, target, events = 0.3, 0.1, 200_000
    labels = rng.random(events) < target
    evidence = rng.normal(loc=2.0 * labels - 1.0, scale=1.0)
    odds = source / (1 - source) * np.exp(2.0 * evidence)
    scores = odds / (1 + odds)
    said = replace(
        message(),
        classes=("no", "yes"),
        source_priors=(1 - source, source),
        target_priors=(1 - target, target),
        multipliers=((1 - target) / (1 - source), target / source),
        log_multipliers=(0.0, 0.0),
    )

    def cost(threshold: float) -> float:
        alarms = scores >= threshold
        return float(np.mean(alarms & ~labels) + cost_ratio * np.mean(~alarms & labels))

    chosen = client_of(said).threshold("yes", cost_ratio=cost_ratio)
    assert cost(chosen) <= min(cost(threshold) for threshold in np.linspace(0.01, 0.99, 99)) * 1.01
    assert cost(chosen) < cost(client_of(OSError("down")).threshold("yes", cost_ratio=cost_ratio))


def test_a_service_without_numpy_corrects_lists_and_is_told_what_wants_it(tmp_path: Path) -> None:
    scaled = CalibrationMap("scaled", 1e-7, (0.1, 0.0, 0.0), slopes=(0.5, 0.5, 0.5))
    told = replace(message(), calibration=scaled)
    (tmp_path / "feed.jsonl").write_bytes(msgspec.json.encode(told) + b"\n")
    program = """
import sys
sys.modules["numpy"] = None
from monitor.recalibration import RecalibrationClient
client = RecalibrationClient("feed.jsonl", "s")
assert client.refresh().correcting, client.status()
print(client.apply([[0.5, 0.3, 0.2]]), client.threshold("c"))
for method, arguments in (
    ("apply", ((0.5, 0.3, 0.2),)),
    ("adjust_intercepts", ([0.0, 0.0, 0.0],)),
    ("correct_input", ("amount", [1.0])),
    ("correct_predictions", ([1.0],)),
):
    try:
        getattr(client, method)(*arguments)
    except ModuleNotFoundError as error:
        assert str(error).startswith(f"{method}: ") and "numpy, which is not installed" in str(error), error
    else:
        raise AssertionError(method)
assert client.tree() is None
assert not any(name.startswith(("scipy", "sklearn", "msgspec", "kafka")) for name in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows, threshold = done.stdout.split("]] ")
    expected = np.sqrt([0.5, 0.3, 0.2]) * np.exp([0.1, 0.0, 0.0]) * told.multipliers
    assert json.loads(rows + "]]")[0] == pytest.approx((expected / expected.sum()).tolist())
    assert float(threshold) == pytest.approx(client_of(told).threshold("c"))


def test_estimates_that_labels_have_shown_to_be_off_end_a_correction_that_was_in_force() -> None:
    unsure = replace(message(window="w2"), apply=False, cause=Cause.WITHIN_CHANCE)
    assert client_of(message(), unsure).refresh().correcting
    off = unsure.withheld(Cause.LABELS_DISAGREE, "labels show that the estimate was off")
    status = client_of(message(), off).refresh()
    assert (status.correcting, status.reason) == (False, "labels show that the estimate was off")
