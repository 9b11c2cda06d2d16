"""One train-and-test run of Esuli et al., section 3, on documents that are made up.

The paper's Reuters documents cannot be had. 37 topics take their place: a topic's words are a mixture of its own
distribution (Dirichlet) and one that is common to all topics; the less its own, the harder it is to tell from others.
Two classes are a topic against all the others, as in section 3.2.1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC

from monitor import Reference, Window, assess, quality
from monitor.arrays import Labels, Matrix, Vector
from monitor.priors import bayes, counting, em
from monitor.quality import Bins
from monitor.recalibration.applying import corrected_rows

TOPICS, VOCABULARY, WORDS = 37, 500, 60
EVENTS, FOLDS, BINS = 1_000, 10, 10
CONCENTRATION = 0.05
KINDS: tuple[Bins, ...] = ("isometric", "isomeric")
PARTS = ("BS", "CE", "RE")
MEASURES = (
    "shift", "NAE before", "NAE after", "NAE at the maximum", "NAE of mean posterior", "steps", "capped",
    "entropy true", "entropy before", "entropy after", "Brier before", "Brier after",
    *(f"{part} {when} {kind}" for when in ("before", "after") for kind in KINDS for part in PARTS),
    "NAE of SLD, hold-out", "Brier of SLD, hold-out", "NAE of auto", "NAE published", "Brier of the feed", "applied",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scores:
    """What a fitted learner says of the documents that it is tested on, and of labelled ones that it did not see."""

    test: Matrix
    unseen: Matrix
    unseen_labels: Labels
    test_labels: Labels


def topics(mix: float) -> Matrix:
    """Word distributions of the topics; a share `mix` of each is its own."""
    own = np.random.default_rng(0).dirichlet(np.full(VOCABULARY, CONCENTRATION), TOPICS)
    return np.asarray(own * mix + (1 - mix) / VOCABULARY)


def shares(classes: int, rng: np.random.Generator) -> Vector:
    """As footnote 12 draws them: uniform numbers, normalised."""
    drawn = rng.random(classes)
    return np.asarray(drawn / drawn.sum())


def documents(distributions: Matrix, share: Vector, rng: np.random.Generator) -> tuple[Matrix, Labels]:
    """Word counts under these class shares; every class has at least two documents, which cross-validation needs."""
    classes = share.size
    drawn = rng.choice(classes, EVENTS - 2 * classes, p=share)
    labels = np.concatenate([np.tile(np.arange(classes), 2), drawn])
    topic = np.where(labels == 0, 0, rng.integers(1, TOPICS, EVENTS)) if classes == 2 else labels
    return rng.multinomial(WORDS, distributions[topic]).astype(np.float64), labels


def tfidf(counts: Matrix, training: Matrix) -> sparse.csr_matrix:
    """Eq 13, with log(1 + count), as log(count) drops all words that occur once; cosine-normalised."""
    weights = np.log1p(counts) * np.log(len(training) / np.maximum((training > 0).sum(axis=0), 1))
    return sparse.csr_matrix(weights / np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), 1e-12))


def _crossed(learner: object, method: str) -> Callable[..., tuple[Matrix, Matrix]]:
    def scores(x: sparse.csr_matrix, y: Labels, test: sparse.csr_matrix) -> tuple[Matrix, Matrix]:
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        unseen = cross_val_predict(learner, x, y, cv=folds, method=method)
        return _columns(getattr(learner.fit(x, y), method)(test)), _columns(unseen)  # type: ignore[attr-defined]

    return scores


def _forest(x: sparse.csr_matrix, y: Labels, test: sparse.csr_matrix) -> tuple[Matrix, Matrix]:
    """Unseen scores from the trees that did not see a document: ten forests a run would take half of all time."""
    model = RandomForestClassifier(100, oob_score=True, random_state=0).fit(x.toarray(), y)
    unseen = np.nan_to_num(model.oob_decision_function_, nan=1.0 / model.n_classes_)
    return model.predict_proba(test.toarray()), unseen


def _columns(scores: Matrix) -> Matrix:
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


LEARNERS: dict[str, Callable[..., tuple[Matrix, Matrix]]] = {
    "LR": _crossed(LogisticRegression(max_iter=300), "predict_proba"),
    "MNB": _crossed(MultinomialNB(), "predict_proba"),
    "RF": _forest,
    "SVM": _crossed(LinearSVC(), "decision_function"),
}
VERSIONS = ("LR", "MNB", "RF", "SVM, calibrated", "LR, calibrated", "MNB, calibrated", "RF, calibrated")


def platt(scores: Scores) -> Scores:
    """Eq 14: a logistic curve for each class, fitted to its unseen scores; rows are then normalised."""
    columns = []
    for y, (unseen, test) in enumerate(zip(scores.unseen.T, scores.test.T, strict=True)):
        curve = LogisticRegression(C=1e6).fit(unseen[:, None], scores.unseen_labels == y)
        slope, intercept = curve.coef_[0, 0], curve.intercept_[0]
        columns.append((expit(slope * unseen + intercept), expit(slope * test + intercept)))
    unseen, test = (np.column_stack(side) for side in zip(*columns, strict=True))
    normalised = (
        np.maximum(side, 1e-12) / np.maximum(side, 1e-12).sum(axis=1, keepdims=True) for side in (test, unseen)
    )
    return Scores(*normalised, scores.unseen_labels, scores.test_labels)


def run(mix: float, classes: int, seed: int, product: bool) -> Vector:
    """All measures of all versions of the learners on the same documents, one version after the other.

    The monitor's reference is a hold-out of as many documents again as the model was trained on, of the same mix.
    """
    rng = np.random.default_rng([classes, seed])
    distributions = topics(mix)[rng.permutation(TOPICS)]
    trained, tested = shares(classes, rng), shares(classes, rng)
    (train, train_y), (test, test_y), (held, held_y) = (
        documents(distributions, share, rng) for share in (trained, tested, trained)
    )
    x, z = tfidf(train, train), tfidf(np.vstack([test, held]), train)
    crossed, hold_out = {}, {}
    for name, learner in LEARNERS.items():
        said, unseen = learner(x, train_y, z)
        crossed[name] = Scores(said[:EVENTS], unseen, train_y, test_y)
        hold_out[name] = Scores(said[:EVENTS], said[EVENTS:], held_y, test_y)
    found = []
    for version in VERSIONS:
        name, _, calibrated = version.partition(", ")
        found.append(measures(platt(crossed[name]) if calibrated else crossed[name]))
        has_product = product and (name == "SVM" or not calibrated)
        found[-1] += with_hold_out(hold_out[name], margins=name == "SVM") if has_product else [np.nan] * 6
    return np.ravel(found)


def measures(scores: Scores) -> list[float]:
    """What SLD does to priors and posteriors, against classify-and-count and the posteriors as they were."""
    g = scores.test / scores.test.sum(axis=1, keepdims=True)
    source, true = (np.bincount(y, minlength=g.shape[1]) / y.size for y in (scores.unseen_labels, scores.test_labels))
    before, after = counting.counts(g) / EVENTS, em.sld(g, source)
    moved = bayes.correct(g, source, after.priors)
    best, mean = em.maximum_likelihood(g, source).priors, g.mean(axis=0)
    found = [quality.normalised_absolute_error(source, true)]
    found += [quality.normalised_absolute_error(true, p) for p in (before, after.priors, best, mean)]
    found += [after.iterations, float(after.stop_reason == "iteration cap")]
    found += [quality.entropy(p) for p in (true, before, after.priors)]
    found += [quality.brier(q, scores.test_labels) for q in (g, moved)]
    for q in (g, moved):
        for kind in KINDS:
            parts = quality.brier_parts(q, scores.test_labels, BINS, kind)
            ce, re = parts.printed_calibration_error, parts.printed_refinement_error
            found += [ce + re, ce, re]
    return found


def with_hold_out(scores: Scores, *, margins: bool) -> list[float]:
    """SLD after Platt's calibration on the hold-out; and the monitor, and what its feed makes of the posteriors."""
    calibrated = platt(scores)
    posteriors = calibrated if margins else scores
    unseen, g = (side / side.sum(axis=1, keepdims=True) for side in (posteriors.unseen, posteriors.test))
    assessment = assess(Window.of(g), Reference.fit(unseen, scores.unseen_labels, seed=0))
    source, true = (np.bincount(y, minlength=g.shape[1]) / y.size for y in (scores.unseen_labels, scores.test_labels))
    after = em.sld(calibrated.test, source).priors
    feed = assessment.recalibration
    errors = [after, assessment.estimates["auto"].priors, assessment.prevalence.priors]
    sld, auto, published = (quality.normalised_absolute_error(true, priors) for priors in errors)
    moved = (bayes.correct(calibrated.test, source, after), corrected_rows(g, feed))
    brier_sld, brier = (quality.brier(q, scores.test_labels) for q in moved)
    return [sld, brier_sld, auto, published, brier, float(feed.apply)]
