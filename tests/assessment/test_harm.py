"""Whether the model is likely worse than on its hold-out, without a label."""

import json

import numpy as np
import yaml

from monitor import Reference, quality
from monitor.assessment import assess
from monitor.tolerances import HARMED
from monitor.windows.window import Window
from tests.assessment import worlds
from tests.assessment.test_prevalence import BLOCK, reference, weeks
from tests.bench.streams.measures import auc
from tests.deploy.parts import DEPLOY


def scored(x):
    found = assess(Window.of(worlds.posteriors(x), x), reference()).harm
    assert found is not None
    return found


def test_the_score_ranks_windows_by_how_wrong_the_model_is() -> None:
    rng = np.random.default_rng(4)
    scores, losses = [], []
    for far in np.repeat([0.0, 0.5, 1.0, 1.5], 15):
        x, y = weeks(1, int(rng.integers(1_000_000)))
        x = x + far * (np.array([1.0, 1.0, 0.0, 0.0]) - worlds.CENTRES[y])  # classes come closer to each other
        scores.append(scored(x).score)
        losses.append(quality.brier(worlds.posteriors(x), y))
    assert auc(np.array(scores), np.array(losses) > np.median(losses)) > 0.8


def test_calm_windows_stay_below_the_score_of_the_alert() -> None:
    x, _ = weeks(40, 11)
    calm = [scored(x[k * BLOCK : (k + 1) * BLOCK]).score for k in range(40)]
    assert max(calm) < HARMED
    assert abs(np.mean(calm)) < 1


def test_strange_inputs_take_belief_in_the_shares_that_scores_speak_of() -> None:
    x, _ = weeks(1, 5)
    usual = scored(x)
    posteriors = worlds.posteriors(x)
    strange = assess(Window.of(posteriors, x + np.array([0.0, 0.0, 9.0, 9.0])), reference()).harm
    assert strange is not None
    assert strange.confidence == usual.confidence
    assert strange.departure > usual.departure
    assert strange.score > usual.score


def test_without_blocks_there_is_no_score_and_the_message_says_null() -> None:
    x, _ = weeks(1, 5)
    found = assess(Window.of(worlds.posteriors(x), x), reference(blocks=False))
    assert found.harm is None
    assert json.loads(found.to_json())["harm"] is None
    message = json.loads(assess(Window.of(worlds.posteriors(x), x), reference()).to_json())["harm"]
    assert set(message) == {"score", "confidence", "departure", "shares", "expected_brier", "usual_brier"}


def test_strange_inputs_have_a_message_where_blocks_differ_no_more_than_samples() -> None:
    x, y = worlds.draw(2_000, 1)
    calm = Reference.fit(worlds.posteriors(x), y, x, block=200)
    found = assess(Window.of(worlds.posteriors(x[:300]), x[:300] + 1.0), calm)
    assert found.harm is not None
    assert found.harm.departure > 1
    assert json.loads(found.to_json())["harm"]["departure"] == found.harm.departure


def test_the_alert_has_the_number_of_the_page() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus" / "shiftwatch.rules.yml").read_text(encoding="utf-8"))
    every = [rule for group in rules["groups"] for rule in group["rules"]]
    (alert,) = (rule for rule in every if rule["alert"] == "ShiftwatchHarm")
    assert float(alert["expr"].rsplit(">", 1)[1]) == HARMED
