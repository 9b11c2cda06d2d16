"""One train-and-test run of Esuli et al., section 3, on documents that are made up.

The paper's Reuters documents cannot be had. 37 topics take their place: a topic's words are a mixture of its own
distribution (Dirichlet) and one that is common to all topics; the less its own, the harder it is to tell from others.
Two classes are a topic against all the others, as in section 3.2.1.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import ClassifierMixin, clone
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
)  # fmt: skip
MONITORED = (
    "NAE counted", "NAE of SLD", "NAE of em", "NAE published",
    "Brier before", "Brier of SLD", "Brier of the feed", "applied",
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


def _columns(scores: Matrix) -> Matrix:
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


@dataclass(frozen=True, slots=True)
class World:
    """Documents to train on and to test on; and a hold-out for the monitor, as large as and of the mix of the first."""

    train: sparse.csr_matrix
    test: sparse.csr_matrix
    held: sparse.csr_matrix
    labels: tuple[Labels, Labels, Labels]

    @classmethod
    def draw(cls, mix: float, classes: int, seed: int) -> "World":
        """Of the topics the first so many in a random order; with two classes the first against all others."""
        rng = np.random.default_rng([classes, seed])
        distributions = topics(mix)[rng.permutation(TOPICS)]
        trained, tested = shares(classes, rng), shares(classes, rng)
        drawn = [documents(distributions, share, rng) for share in (trained, tested, trained)]
        rows = (tfidf(counts, drawn[0][0]) for counts, _ in drawn)
        return cls(*rows, tuple(labels for _, labels in drawn))


@dataclass(frozen=True, slots=True)
class Said:
    """A fitted learner, and its scores of the documents that it did not see."""

    model: ClassifierMixin
    test: Matrix
    held: Matrix


def fitted(world: World) -> dict[str, Said]:
    """All learners."""
    found = {}
    for name, (learner, method) in LEARNERS.items():
        model = clone(learner).fit(world.train, world.labels[0])
        found[name] = Said(model, *(_columns(getattr(model, method)(rows)) for rows in (world.test, world.held)))
    return found


LEARNERS: dict[str, tuple[ClassifierMixin, str]] = {  # and what gives its scores
    "LR": (LogisticRegression(max_iter=300), "predict_proba"),
    "MNB": (MultinomialNB(), "predict_proba"),
    "RF": (RandomForestClassifier(100, oob_score=True, random_state=0), "predict_proba"),
    "SVM": (LinearSVC(), "decision_function"),
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


def run(mix: float, classes: int, seed: int) -> Vector:
    """All measures of all versions of the learners on the same documents, one version after the other."""
    world = World.draw(mix, classes, seed)
    scores = {name: Scores(said.test, unseen(name, said.model, world), world.labels[0], world.labels[1])
              for name, said in fitted(world).items()}  # fmt: skip
    found = []
    for version in VERSIONS:
        name, _, calibrated = version.partition(", ")
        found.append(measures(platt(scores[name]) if calibrated else scores[name]))
    return np.ravel(found)


def unseen(name: str, model: ClassifierMixin, world: World) -> Matrix:
    """Scores of the training documents by models that did not see them.

    A forest's are from its trees that did not see a document: ten forests a run would take half of all time.
    """
    if name == "RF":
        return np.nan_to_num(model.oob_decision_function_, nan=1.0 / model.n_classes_)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return _columns(cross_val_predict(model, world.train, world.labels[0], cv=folds, method=LEARNERS[name][1]))


def measures(scores: Scores) -> list[float]:
    """What SLD does to priors and posteriors, against classify-and-count and the posteriors as they were."""
    g = scores.test / scores.test.sum(axis=1, keepdims=True)
    source, true = (np.bincount(y, minlength=g.shape[1]) / y.size for y in (scores.unseen_labels, scores.test_labels))
    before, after = counting.predictions(g).sum(axis=0) / EVENTS, em.sld(g, source)
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


def monitored(mix: float, classes: int, seed: int) -> Vector:
    """MONITORED of each of LEARNERS: SLD with Platt's calibration on the hold-out, and the monitor with the same."""
    world = World.draw(mix, classes, seed)
    return np.ravel(
        [
            _with_hold_out(Scores(said.test, said.held, world.labels[2], world.labels[1]), margins=name == "SVM")
            for name, said in fitted(world).items()
        ]
    )


def _with_hold_out(scores: Scores, *, margins: bool) -> list[float]:
    calibrated = platt(scores)
    posteriors = calibrated if margins else scores
    held, g = (side / side.sum(axis=1, keepdims=True) for side in (posteriors.unseen, posteriors.test))
    assessment = assess(Window.of(g), Reference.fit(held, scores.unseen_labels, seed=0))
    source, true = (np.bincount(y, minlength=g.shape[1]) / y.size for y in (scores.unseen_labels, scores.test_labels))
    after, feed = em.sld(calibrated.test, source).priors, assessment.recalibration
    priors = (
        counting.predictions(g).sum(axis=0) / EVENTS,
        after,
        assessment.estimates["em"].priors,
        assessment.prevalence.priors,
    )
    moved = (g, bayes.correct(calibrated.test, source, after), corrected_rows(g, feed))
    return [
        *(quality.normalised_absolute_error(true, p) for p in priors),
        *(quality.brier(q, scores.test_labels) for q in moved),
        float(feed.apply),
    ]
