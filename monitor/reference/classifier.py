"""What the model looked like on labelled hold-out events: all that a window is ever compared with.

A reference is reduced once from the hold-out events and never changes. `Reference.fit` makes one from arrays,
`monitor.reference.building` from files of any size; both end in `reduce`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from monitor import calibration, priors
from monitor.arrays import Labels, Matrix, Vector, frozen_labels, frozen_matrix, frozen_vector
from monitor.calibration import Calibration, Selection
from monitor.errors import InputError
from monitor.limits import RARELY_READY, REFERENCES_READY, SAMPLE_ROWS
from monitor.ports.schema import Feature, StreamSchema
from monitor.priors import HoldOut, Statistics
from monitor.recalibration import CalibrationMap, ScoreKind
from monitor.reference import artefact, warnings
from monitor.reference.base import Arrays, FiledReference, Header
from monitor.reference.blocks import Block, Cut, Seasonal, calendar, cut, microseconds, summarised
from monitor.reference.column_notices import column_notices, likely_labels
from monitor.reference.earlier import estimator_now, scores_before
from monitor.reference.feature_columns import Kinds, read_features
from monitor.reference.segments import (
    Names,
    SegmentHoldOut,
    fields_of,
    named_segments,
    of_names,
    of_segment,
    profiles,
    usual_in,
)
from monitor.reference.steps import BuildProgress, counted, unseen
from monitor.reference.table import class_numbers, out_of_line, plain_list, read_scores
from monitor.reference.warnings import ReferenceWarning
from monitor.sampling import stratified_sample
from monitor.shifts import (
    Blocks,
    common_resolution,
    compact,
    comparable_posteriors,
    prepare,
)
from monitor.shifts.comparable import comparable
from monitor.windows import Segments, Window, WindowKey

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reference(FiledReference):
    """The hold-out events of a classifier. Satisfies `monitor.priors.estimate.ReferenceView`."""

    task: ClassVar[str | None] = None
    class_counts: Vector
    """All labelled events of each class, also those beyond the rows that were kept."""
    calibration: Calibration
    statistics: Mapping[str, Statistics]
    """By estimator: what its `summarise` kept of the hold-out events."""
    sample: HoldOut
    """At most `SAMPLE_ROWS` hold-out rows, classes in proportion, posteriors calibrated as those of windows are."""
    raw: Matrix
    """Their posteriors, or margins, as the model says them."""
    estimator: str
    """The estimator whose answer a window reports as its prevalence."""
    calendar: tuple[int, ...] = ()
    """The features that tell when an event was and not what: they are in no test."""
    ignored: tuple[int, ...] = ()
    """Those that a stream leaves out of all tests besides; not part of the file."""
    blocks: Blocks | None = None
    """How the hold-out varied over time; None where nobody said how long windows are."""
    segments: Segments | None = None
    """The segment of each row of the sample; None where the hold-out says nothing of segments."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, in the order of every posterior vector."""
        return self.schema.classes

    @property
    def events(self) -> int:
        """All labelled events that it was made from."""
        return int(self.class_counts.sum())

    @property
    def source_priors(self) -> Vector:
        """The class prevalence of the hold-out events, which is also the mean calibrated posterior."""
        return _source_priors(self)

    def prepare(self, window: Window) -> Window:
        """The window with calibrated posteriors: what the statistics were computed from."""
        window = self.matched(window)
        if window.posteriors.shape[1] != len(self.classes):
            raise InputError(
                f"window: want {len(self.classes)} columns of posteriors {list(self.classes)}, "
                f"got {window.posteriors.shape[1]}"
            )
        posteriors = comparable_posteriors(window.posteriors, self, common_resolution(window, self))
        return replace(window, posteriors=frozen_matrix(posteriors, "posteriors"))

    @property
    def segment_fields(self) -> frozenset[str]:
        own = frozenset() if self.segments is None else frozenset(fields_of(self.segments))
        return own | {feature.name for feature in self.schema.features}

    def ignoring(self, names: Collection[str]) -> "Reference":
        ignored = tuple(j for j, feature in enumerate(self.schema.features) if feature.name in names)
        return replace(self, ignored=ignored) if ignored else self

    def of_segment(self, window: Window) -> SegmentHoldOut:
        """What a segment's window is held against: the hold-out events of the same segment, where there are enough."""
        return of_segment(window, self)

    def timed(self, key: WindowKey) -> "Reference":
        """What a window is held against: without the season where it does not say when it was."""
        timeless = key.end <= key.start and self.blocks is not None and self.blocks.season is not None
        return _without_season(self) if timeless else self

    def usual_in(self, segment: str) -> "Reference":
        """What is usual in a segment; where the hold-out does not know it, or without a segment, in the whole."""
        return usual_in(segment, self)

    @property
    def margins(self) -> bool:
        """Whether the model says margins in place of posteriors."""
        return self.schema.margins

    @property
    def margin_map(self) -> CalibrationMap | None:
        return self.calibration.to_map() if self.margins else None

    def calibrated(self, posteriors: Matrix) -> Matrix:
        """Posteriors, or margins, as the model says them, calibrated on the hold-out events."""
        return self.calibration(posteriors)

    @classmethod
    def fit(
        cls,
        posteriors: Any,
        labels: ArrayLike,
        features: Any = None,
        *,
        classes: Iterable[Any] | None = None,
        feature_names: Iterable[str] | None = None,
        category: Iterable[str] = (),
        number: Iterable[str] = (),
        ignore: Iterable[str] = (),
        seed: int = 0,
        stream: str = "",
        positive: str | None = None,
        scores: ScoreKind = "posterior",
        calibration: Selection = "auto",
        estimator: str = priors.DEFAULT,
        times: ArrayLike | None = None,
        block: Block | None = None,
        season: str | None = None,
        season_inputs: bool = False,
        segments: Any = None,
        progress: BuildProgress = unseen,
    ) -> Self:
        """The reference of a fitted classifier, from its posteriors on a labelled set it was not trained on.

        `labels` are class names or class numbers. `classes` names the columns of `posteriors` (a scikit-learn
        model's `classes_`); without it they are the columns' names in a data frame, or the sorted labels. `features`
        is a matrix or a data frame; `category` and `number` name those of its columns whose values do not say what
        they are, `ignore` those that are no features. A vector of posteriors is that of the `positive` class, or of
        the second of `classes`. With `scores` "margin" they are margins, such as a `decision_function` has them.
        `estimator` is one of those that `shiftwatch estimators` lists.
        `block` is the length of the windows to come, as so many events or as a duration ("1d"): the hold-out events, in
        the order of `times` (datetimes or epoch milliseconds) or as they stand, are cut into blocks of that length, and
        windows are held against how much these differ. With `season` ("24h", "7d", "1y") the class mix is held against
        that of the same time of the day, week or year, with `season_inputs` features and scores are too. `segments` is
        a data frame of the fields that tell segments apart: each is then held against its own events. (A feature of the
        field's name does as well.) `progress` is told what is being worked out, and how many of how many steps are
        done; many classes take their time.
        """
        if scores not in get_args(ScoreKind):
            raise InputError(f"scores: want one of {get_args(ScoreKind)}, got {scores!r}")
        values, margins = plain_list(labels), scores == "margin"
        said = read_scores(posteriors, values, classes, positive, margins=margins)
        matrix = said.matrix
        if len(values) != matrix.shape[0]:
            raise InputError(f"labels: want one for each of the {matrix.shape[0]} events, got {len(values)}")
        kinds = Kinds(tuple(category), tuple(number), tuple(ignore))
        table = None if features is None else read_features(features, feature_names, kinds)
        if table is not None and table.values.shape[0] != matrix.shape[0]:
            raise InputError(
                f"features: want a row for each of the {matrix.shape[0]} events, got {table.values.shape[0]}"
            )
        if times is not None and block is None:
            raise InputError('times: say `block` too, the length of the windows to come, such as 5000 or "1d"')
        if season is not None and block is None:
            raise InputError('season: say `block` too, the length of the windows to come, such as "1h"')
        if season_inputs and season is None:
            raise InputError('season_inputs: say `season` too, such as "24h"')
        moments = None if times is None else microseconds(times, matrix.shape[0])
        seasonal = None if season is None else Seasonal(season, season_inputs)
        return cls.reduce(
            StreamSchema(stream, said.classes, () if table is None else table.features, said.positive, margins),
            matrix,
            class_numbers(values, said.classes),
            None if table is None else table.values,
            seed=seed,
            calibration=calibration,
            estimator=estimator,
            notices=[
                *out_of_line(labels=labels, features=features, posteriors=posteriors),
                *(() if table is None else column_notices(table.columns, table.features, kinds)),
            ],
            blocks=None if block is None else cut(block, matrix.shape[0], moments, seasonal),
            segments=None if segments is None else named_segments(segments, matrix.shape[0]),
            progress=progress,
        )

    @classmethod
    def reduce(
        cls,
        schema: StreamSchema,
        posteriors: Matrix,
        labels: Labels,
        features: Matrix | None,
        *,
        seed: int,
        calibration: Selection = "auto",
        estimator: str = priors.DEFAULT,
        class_counts: Vector | None = None,
        facts: Facts | None = None,
        notices: Iterable[str] = (),
        blocks: Cut | None = None,
        segments: Names | None = None,
        progress: BuildProgress = unseen,
    ) -> Self:
        """A reference from checked columns; `class_counts` when the rows are a sample of more events than these.

        `notices` are what a person should know of how the features were read, `blocks` which rows came together, and
        `segments` the name of each row's segment.
        """
        if estimator not in priors.ESTIMATORS:
            raise InputError(f"estimator: want one of {sorted(priors.ESTIMATORS)}, got {estimator!r}")
        priors.ESTIMATORS[estimator].check_applies(len(schema.classes), features is not None, "the hold-out events")
        usable = _usable(len(schema.classes), features is not None)
        step = counted(progress, len(usable) + (2 if blocks is None else 3))
        step("calibration")
        held_out, calibrated, log_losses = hold_out(schema, posteriors, labels, features, method=calibration, seed=seed)
        counts = np.bincount(labels, minlength=len(schema.classes)).astype(np.float64)
        counts = counts if class_counts is None else class_counts
        statistics = _statistics(held_out, usable, step)
        step("features")
        # Windows meet these rows in tests of their distribution: both have to come out of the same map.
        sample = sample_of(replace(held_out, posteriors=posteriors))
        cautions = warnings.of_scores(posteriors, labels, schema)
        remarks = (*notices, *likely_labels(schema.features, features, labels, len(schema.classes)))
        cautions += [ReferenceWarning("features", notice) for notice in remarks]
        described = profiles(schema.features, labels, features, counts)
        untested = {} if blocks is None or features is None else calendar(blocks, features, described)
        cautions += [ReferenceWarning("features", words) for words in untested.values()]
        if blocks is not None and (found := warnings.sorted_by_class(blocks.class_counts(labels, counts.size))):
            cautions.append(found)
        if blocks is not None and blocks.windows == 1:
            cautions.append(warnings.one_block(blocks.length))
        made = cls(
            schema=schema,
            class_counts=frozen_vector(counts, "class counts"),
            calibration=calibrated,
            statistics=statistics,
            features=described,
            sample=replace(sample, posteriors=frozen_matrix(calibrated(sample.posteriors), "posteriors")),
            raw=frozen_matrix(sample.posteriors, "posteriors"),
            estimator=estimator,
            facts={
                "events": int(np.sum(counts)),
                "rows": int(labels.size),
                "seed": seed,
                "log_loss": log_losses,
                **({"warnings": [asdict(warning) for warning in cautions]} if cautions else {}),
                **(facts or {}),
            },
            version="",
            calendar=tuple(untested),
            segments=None if segments is None else of_names(segments[_sampled(labels, seed)]),
        )
        if blocks is not None:
            step("blocks")
        if blocks is not None and blocks.number > 1:
            rows = replace(held_out, posteriors=posteriors)
            made = replace(made, blocks=_blocks(blocks, made, rows, held_out.posteriors))
        sealed = made.sealed()
        step("done")
        return sealed

    def header(self) -> Header:
        schema = self.schema
        return {
            "classes": list(schema.classes),
            "positive": schema.positive,
            **({"scores": "margin"} if schema.margins else {}),
            "calibration": self.calibration.method,
            "estimators": sorted(self.statistics),
            "estimator": self.estimator,
            "seed": self.sample.seed,
            **({"calendar": list(self.calendar)} if self.calendar else {}),
            **({"blocks": self.blocks.described()} if self.blocks is not None else {}),
            **({"segments": list(self.segments.names)} if self.segments is not None else {}),
        }

    def arrays(self) -> Arrays:
        sample = self.sample
        arrays: Arrays = {
            "class_counts": self.class_counts,
            "calibration/log_weights": self.calibration.log_weights,
            "sample/posteriors": sample.posteriors,
            "sample/raw": self.raw,
            "sample/labels": compact(sample.labels),
        }
        if sample.features is not None:
            arrays["sample/features"] = sample.features
        arrays |= artefact.placed("calibration/parameters", self.calibration.parameters)
        if self.blocks is not None:
            arrays |= artefact.placed("blocks", self.blocks.to_arrays())
        if self.segments is not None:
            arrays["sample/segments"] = self.segments.codes
        for estimator, statistics in self.statistics.items():
            arrays |= artefact.placed(f"statistics/{estimator}", statistics)
        return arrays

    @classmethod
    def fields_of(cls, header: Header, arrays: Arrays, features: tuple[Feature, ...]) -> dict[str, Any]:
        parameters = artefact.under(arrays, "calibration/parameters")
        fitted = Calibration(header["calibration"], parameters, arrays["calibration/log_weights"])
        scores = arrays.get("sample/raw")
        cut_up, named = header.get("blocks"), header.get("segments")
        known = [name for name in header["estimators"] if name in priors.ESTIMATORS]
        return {
            "schema": StreamSchema(
                header["stream"],
                tuple(header["classes"]),
                features,
                header["positive"],
                margins=header.get("scores") == "margin",
            ),
            "class_counts": arrays["class_counts"],
            "calibration": fitted,
            "statistics": {name: artefact.under(arrays, f"statistics/{name}") for name in known},
            "sample": HoldOut(
                arrays["sample/posteriors"],
                frozen_labels(arrays["sample/labels"], "labels"),
                arrays.get("sample/features"),
                header["seed"],
            ),
            "raw": scores_before(arrays["sample/posteriors"], fitted) if scores is None else scores,
            "estimator": estimator_now(header["estimator"]),
            "segments": None if named is None else Segments(arrays["sample/segments"], tuple(named)),
            "calendar": tuple(header.get("calendar", ())),
            "blocks": None if cut_up is None else Blocks.from_arrays(cut_up, artefact.under(arrays, "blocks")),
        }


@lru_cache(maxsize=REFERENCES_READY)
def _source_priors(reference: Reference) -> Vector:
    return frozen_vector(reference.class_counts / reference.class_counts.sum(), "source priors")


@lru_cache(maxsize=RARELY_READY)
def _without_season(reference: Reference) -> Reference:
    blocks = reference.blocks
    return reference if blocks is None else replace(reference, blocks=replace(blocks, season=None, seasonal=None))


def hold_out(
    schema: StreamSchema,
    posteriors: Matrix,
    labels: Labels,
    features: Matrix | None,
    *,
    method: Selection,
    seed: int,
) -> tuple[HoldOut, Calibration, dict[str, float]]:
    """The hold-out events with out-of-sample calibrated posteriors, the calibration, and the log losses compared."""
    counts = np.bincount(labels, minlength=len(schema.classes))
    scarce = [f"{name} has {n}" for name, n in zip(schema.classes, counts, strict=True) if n < 2]
    if scarce:
        raise InputError(f"labels: every class needs at least two events; {', '.join(scarce)}")
    fitted, log_losses = calibration.choose(posteriors, labels, method, seed, margins=schema.margins)
    held_out = HoldOut(
        frozen_matrix(fitted.posteriors, "posteriors"),
        frozen_labels(labels, "labels"),
        None if features is None else frozen_matrix(features, "features"),
        seed,
    )
    return held_out, fitted.calibration, log_losses


def _blocks(blocks: Cut, reference: Reference, rows: HoldOut, unseen: Matrix) -> Blocks:
    """What is kept of the blocks; `rows` with posteriors as the model says them, `unseen` calibrated out of fold."""
    ready = prepare(reference)
    at = comparable(rows, reference, ready.resolution)

    def estimate(window: Window) -> Vector:
        return priors.ESTIMATORS[reference.estimator].estimate(window, reference).priors

    raw = unseen if reference.margins else rows.posteriors
    return summarised(blocks, ready, at, raw, unseen, sampled=_sampled(rows.labels, rows.seed), estimate=estimate)


def _sampled(labels: Labels, seed: int, rows: int = SAMPLE_ROWS) -> Labels:
    """The rows of a seeded sample with the classes in proportion; all when they are fewer."""
    return stratified_sample(labels, rows, seed)


def sample_of(held_out: HoldOut, rows: int = SAMPLE_ROWS) -> HoldOut:
    """A seeded sample with the classes in proportion; all rows when they are fewer."""
    if held_out.labels.size <= rows:
        return held_out
    picked = _sampled(held_out.labels, held_out.seed, rows)
    return HoldOut(
        frozen_matrix(held_out.posteriors[picked], "posteriors"),
        frozen_labels(held_out.labels[picked], "labels"),
        None if held_out.features is None else frozen_matrix(held_out.features[picked], "features"),
        held_out.seed,
    )


def _usable(classes: int, features: bool) -> dict[str, priors.Estimator]:
    """Every estimator that such a stream can use."""
    return {name: each for name, each in priors.ESTIMATORS.items() if each.applies_to(classes, features)}


def _statistics(
    held_out: HoldOut, usable: Mapping[str, priors.Estimator], step: Callable[[str], None]
) -> dict[str, Statistics]:
    """What each of these estimators keeps of the hold-out events."""
    statistics, rows = dict[str, Statistics](), held_out.labels.size
    for name, estimator in usable.items():
        step(f"estimator {name}")
        made = estimator.summarise(sample_of(held_out, estimator.most_rows or rows))
        # In the order in which a file gives them back: products of matrices differ by it in their last bits.
        statistics[name] = {key: np.asarray(values, order="C") for key, values in made.items()}
    return statistics
