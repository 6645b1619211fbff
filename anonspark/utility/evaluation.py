"""``anonspark evaluate``: how useful a release is, compared with its original."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from anonspark.config.problems import did_you_mean
from anonspark.core.arrays import Figures
from anonspark.engine.hierarchies import read_hierarchy_files
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import Reading, require_read
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError
from anonspark.labels.axes import Axis
from anonspark.labels.regions import leaves_by_label, published_attributes
from anonspark.progress import report_step
from anonspark.release.manifest import Manifest, read_manifest
from anonspark.release.originals import open_original, original_records
from anonspark.utility.association import Association, measure_association
from anonspark.utility.learning import LABEL, Target, describe_target
from anonspark.utility.models import Learning, Tested
from anonspark.utility.original import HASH, describe_original, drawn, with_record_hash
from anonspark.utility.records import (
    as_comparable,
    published_columns,
    read_published,
    read_values,
    readings_of,
    value_column,
)
from anonspark.utility.workload import (
    KeptScore,
    WorkloadError,
    describe_usefulness,
    kept_of,
    measure_workload,
)

_EXAMPLES = pa.schema([("features", pa.list_(pa.float64())), (LABEL, pa.float64())])


@dataclass(frozen=True)
class FeatureSpace:
    """The features of a record.

    A number, day or time is one feature: the value, or the middle of the values that a class
    covers. A text is one feature for each of the 100 most frequent texts of the original: 1 for the
    text itself, or, for a class that covers several values, the share of each, 1 / values. An
    attribute with missing values in the original has one more feature, the share of missing. A
    missing number is the middle of the original's range. ``others`` are published as they are.
    """

    quasi_identifiers: tuple[Axis, ...]
    others: tuple[Axis, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All attributes, quasi-identifiers first."""
        return (*self.quasi_identifiers, *self.others)

    def of_value(self, axis: Axis, values: pa.Array) -> Figures:
        """Return the features of raw values, of shape (rows, features of the axis)."""
        position = axis.positions(values)
        missing = np.isnan(position)
        if axis.scale == "text":
            features = (position[:, None] == axis.frequent).astype(np.float64)
        else:
            features = np.where(missing, axis.middle, position)[:, None]
        return np.column_stack([features, missing]) if axis.missing else features

    def of_region(self, axis: Axis, columns: Sequence[pa.Array]) -> Figures:
        """Return the features of published values, of shape (rows, features of the axis)."""
        spread, numbers = axis.spread(columns)
        if axis.scale == "text":
            features = spread.shares(axis.frequent, axis.frequent)
        else:
            centers = spread.centers()
            features = np.where(np.isnan(centers), axis.middle, centers)[:, None]
        of_region = np.column_stack([features, spread.missing]) if axis.missing else features
        return of_region[numbers]


@dataclass(frozen=True)
class Examples:
    """The source of examples to learn from, or to test on. Records without a class are left out."""

    space: FeatureSpace
    target: Target
    missing_markers: tuple[str, ...]

    def of_records(self, table: Table, what: str) -> Table:
        """Encode raw records as examples for :meth:`anonspark.engine.protocol.Engine.learn`. Lazy.

        Messages call the table ``what``. Raises DataError if columns are absent, or have a type
        with other values than the original's. No shuffle.
        """
        readings = [*self._readings(table, what), self.target.reading(table)]
        return self._encode(read_values(table, readings))

    def parts_of_original(self, original: Table, test_share: float) -> tuple[Table, Table]:
        """Divide the original into examples to learn from, and about a share of them to test on.

        Equal records are in one part. Costs and errors are those of :meth:`of_records`.
        """
        readings = sorted(self._readings(original, "--original"), key=lambda source: source.column)
        readings.append(self.target.reading(original))
        numbers = as_comparable(read_values(original, readings), readings, self.target)
        hashed = with_record_hash(numbers, numbers.schema.names)
        learned = self._encode(hashed, test_share=test_share, test=False)
        return learned, self._encode(hashed, test_share=test_share, test=True)

    def of_release(self, release: Table) -> Table:
        """Encode published records as examples. Costs and errors: :meth:`of_records`."""
        axes, others = self.space.quasi_identifiers, self.space.others
        readings = readings_of(release, others, self.missing_markers, "release", len(axes))
        records = read_published(
            release, [axis.columns for axis in axes], [*readings, self.target.reading(release)]
        )
        return self._encode(records, published=len(axes))

    def _readings(self, table: Table, what: str) -> list[Reading]:
        return readings_of(table, self.space.axes, self.missing_markers, what)

    def _encode(self, records: Table, **options: Any) -> Table:
        return records.map_batches(_Encode(self.space, self.target, **options), _EXAMPLES)


@dataclass(frozen=True)
class _Encode:
    """Encodes a task's records.

    The first ``published`` attributes of the space are described by published columns.
    ``test_share`` is the share of the records that is for testing, or None to take all records;
    ``test`` chooses the records of that share, or the others.
    """

    space: FeatureSpace
    target: Target
    published: int = 0
    test_share: float | None = None
    test: bool = False

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            labels = self.target.numbers(batch.column(LABEL))
            chosen = np.asarray(labels.is_valid())
            if self.test_share is not None:
                chosen &= drawn(batch.column(HASH), self.test_share) == self.test
            mask = pa.array(chosen)
            features = np.concatenate(list(self._features(batch.filter(mask))), axis=1)
            offsets = np.arange(len(features) + 1, dtype=np.int32) * features.shape[1]
            lists = pa.ListArray.from_arrays(offsets, features.reshape(-1))
            yield pa.record_batch([lists, labels.filter(mask)], schema=_EXAMPLES)

    def _features(self, batch: pa.RecordBatch) -> Iterator[Figures]:
        for index, axis in enumerate(self.space.axes):
            if index < self.published:
                columns = [
                    batch.column(name) for name in published_columns(index, len(axis.columns))
                ]
                yield self.space.of_region(axis, columns)
            else:
                yield self.space.of_value(axis, batch.column(value_column(index)))


TEST_SHARE = 0.3
"""Share of the original's records for testing where nothing was held out."""

TRAINED_ON = ("original", "original_with_test", "release")
"""The data that models are trained on."""


@dataclass(frozen=True)
class Utility:
    """The usefulness of a release.

    Parameters
    ----------
    records : int
        Records of the original.
    workload : WorkloadError
        Errors of counting queries.
    association : Association or None
        Association of quasi-identifiers with the target, or None without a target.
    learning : Learning or None
        Scores of models, or None without a target.
    """

    records: int
    workload: WorkloadError
    association: Association | None
    learning: Learning | None

    @property
    def sentence(self) -> str:
        """Return how useful the release is, in one sentence without a full stop."""
        return describe_usefulness(self.workload, self.learning)

    @property
    def kept(self) -> KeptScore | None:
        """Return the share of the original's score that the release keeps, or None."""
        return kept_of(self.learning)

    def as_dict(self) -> dict[str, object]:
        """Return all figures, the sentence first."""
        score = None if self.kept is None else asdict(self.kept)
        return {"sentence": self.sentence, "kept": score, **asdict(self)}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A release and its original, opened, with the axes of their attributes.

    ``holdout`` are records like the original's that were not anonymized. ``others`` are published
    as they are, and ``sensitive`` names the sensitive ones among them. ``records`` counts those of
    the original. With ``drops_missing``, records with a missing value were not to be published.
    """

    release: Table
    original: Table
    holdout: Table | None
    quasi_identifiers: tuple[Axis, ...]
    others: tuple[Axis, ...]
    sensitive: tuple[str, ...]
    records: int
    target: Target | None
    missing_markers: tuple[str, ...]
    drops_missing: bool

    def workload(self) -> WorkloadError:
        """Compare counts. See :func:`~anonspark.utility.workload.measure_workload`."""
        report_step("answering counts")
        return measure_workload(
            self.release,
            self.original,
            self.quasi_identifiers,
            [axis for axis in self.others if axis.name in self.sensitive],
            self.records,
            self.missing_markers,
        )

    def association(self) -> Association | None:
        """Compare the association with the target, or return None without a target.

        See :func:`~anonspark.utility.association.measure_association`.
        """
        if self.target is None:
            return None
        report_step("comparing the information that attributes have about the target")
        return measure_association(
            self.release,
            self.original,
            [axis.published for axis in self.quasi_identifiers if axis.published is not None],
            {axis.name: axis.leaves for axis in self.quasi_identifiers if axis.leaves is not None},
            self.target,
            self.missing_markers,
            drops_missing=self.drops_missing,
        )

    def learning(self, trained_on: Sequence[str] = TRAINED_ON) -> Learning | None:
        """Train models and test them on originals, or return None without a target.

        ``trained_on`` selects models of :class:`~anonspark.utility.models.Learning`. Raises
        DataError without records to train with or to test on.
        """
        if self.target is None:
            return None
        examples = self.examples(self.target)
        test, trainings = self._divided(examples)
        persisted = test.persist()
        try:
            tested = self.tested(persisted, self.target)
            for name, training in trainings.items():
                if name in trained_on:
                    report_step(f"training models on the {name.replace('_', ' ')}")
                    tested = tested.with_models(training, name, self.records)
            report_step("scoring models")
            return tested.figures()
        finally:
            persisted.unpersist()

    def tested(self, test: Table, target: Target) -> Tested:
        """Count test records. See :meth:`anonspark.utility.models.Tested.of`."""
        left_out = 0 if self.holdout is None else target.count_others(self.holdout)
        return Tested.of(test, target, held_out=self.holdout is not None, left_out=left_out)

    def examples(self, target: Target) -> Examples:
        """Return the encoder of records as examples."""
        others = tuple(axis for axis in self.others if axis.name != target.name)
        return Examples(FeatureSpace(self.quasi_identifiers, others), target, self.missing_markers)

    def _divided(self, examples: Examples) -> tuple[Table, dict[str, Table]]:
        """Return the test examples, and the training examples by their names."""
        everything = examples.of_records(self.original, "--original")
        trainings = {"original": everything}
        if self.holdout is not None:
            test = examples.of_records(self.holdout, "--holdout")
        else:
            trainings["original"], test = examples.parts_of_original(self.original, TEST_SHARE)
            trainings["original_with_test"] = everything
        trainings["release"] = examples.of_release(self.release)
        return test, trainings


def evaluate(
    engine: Engine,
    release: str,
    original: str | Table,
    target: str | None = None,
    holdout: str | Table | None = None,
) -> Utility:
    """Measure how useful a release is.

    Parameters
    ----------
    engine : Engine
    release : str
        The directory that ``output.path`` named.
    original : str or Table
        The table that it was made of, or its path, which is opened as the manifest says.
    target : str or None
        A category that is published as it is: models learn to predict it.
    holdout : str, Table or None
        Records like the original's that were not anonymized, or their path: models are tested on
        them. Without it they are tested on about 30% of the original, chosen by a hash of the
        content.

    Returns
    -------
    Utility
        The same queries and test records for every release of one original.

    Raises
    ------
    ConfigurationError
        If the target is no category that is published as it is, or a hierarchy's file cannot be
        used.
    DataError
        If there is no complete release, or a table cannot be read or lacks columns.

    Notes
    -----
    Jobs and costs are those of :func:`~anonspark.utility.original.describe_original`,
    :func:`~anonspark.utility.workload.measure_workload`,
    :func:`~anonspark.utility.association.measure_association` and
    :class:`~anonspark.utility.models.Tested`.
    """
    paths = [path for path in (original, holdout) if isinstance(path, str)]
    sources = (f"{release.rstrip('/')}/data", *paths)
    with engine.reading(sources, key=""):
        opened = open_evaluation(engine, release, original, target, holdout)
        return Utility(opened.records, opened.workload(), opened.association(), opened.learning())


def require_holdout_used(target: str | None, holdout: object) -> None:
    """Raise ConfigurationError for a holdout without a target: no model would be tested on it.

    >>> require_holdout_used("income", "holdout.csv")
    """
    if target is None and holdout is not None:
        raise ConfigurationError("--holdout: models are tested on it. Name what to learn: --target")


def open_evaluation(
    engine: Engine,
    release: str,
    original: str | Table,
    target: str | None = None,
    holdout: str | Table | None = None,
) -> Evaluation:
    """Open a release and its original. Parameters and errors: :func:`evaluate`.

    Costs the jobs of :func:`~anonspark.utility.original.describe_original`, and one for the target.
    """
    report_step("describing the original")
    release = release.rstrip("/")
    manifest = read_manifest(engine.files, release)
    if target is not None:
        _require_target(target, manifest)
    require_holdout_used(target, holdout)
    table = open_original(engine, original, manifest) if isinstance(original, str) else original
    held_out = (
        open_original(engine, holdout, manifest, "--holdout")
        if isinstance(holdout, str)
        else holdout
    )
    opened = open_tables(engine, release, manifest, table, held_out)
    if target is None:
        return opened
    return replace(opened, target=describe_target(table, target, manifest.missing_markers))


def open_tables(
    engine: Engine, release: str, manifest: Manifest, original: Table, holdout: Table | None
) -> Evaluation:
    """Open a release and its original without a target. Errors: :func:`evaluate`.

    Costs the jobs of :func:`~anonspark.utility.original.describe_original`.
    """
    configured, markers = manifest.attributes, manifest.missing_markers
    generalized = published_attributes(manifest)
    hierarchies = read_hierarchy_files(
        engine.files,
        {
            attribute.name: configured[attribute.name]["hierarchy"]
            for attribute in generalized
            if isinstance(configured[attribute.name].get("hierarchy"), str)
        },
    )
    used = [*(attribute.name for attribute in generalized), *manifest.with_role(*_AS_IT_IS)]
    require_read(original.schema, used, "--original: ")
    original = original_records(original, manifest)
    quasi_identifiers, others, records = describe_original(
        original,
        generalized,
        manifest.with_role(*_AS_IT_IS),
        {name: leaves_by_label(hierarchy) for name, hierarchy in hierarchies.items()},
        markers,
    )
    if holdout is not None:
        # Refused now, not after a long measurement.
        require_read(holdout.schema, used, "--holdout: ")
        readings_of(holdout, [*quasi_identifiers, *others], markers, "--holdout")
    return Evaluation(
        release=engine.published(f"{release}/data", manifest.data_format),
        original=original,
        holdout=holdout,
        quasi_identifiers=tuple(quasi_identifiers),
        others=tuple(others),
        sensitive=manifest.with_role("sensitive"),
        records=records,
        target=None,
        missing_markers=markers,
        drops_missing=manifest.drops_missing,
    )


_AS_IT_IS = ("sensitive", "insensitive")


def _require_target(target: str, manifest: Manifest) -> None:
    as_is = manifest.with_role(*_AS_IT_IS)
    if target not in as_is:
        raise ConfigurationError(
            f"--target: {target!r} is not published as it is. Expected a sensitive or insensitive "
            f"attribute of the release: {', '.join(map(repr, as_is)) or 'it has none'}. "
            f"{did_you_mean(target, as_is, 'Name another one, or leave it out')}"
        )


@dataclass(frozen=True)
class Measured:
    """The usefulness of a release, see :class:`anonspark.utility.evaluation.Utility`.

    ``workload`` is None if no queries were asked. ``learning`` is tested on held-out records.
    """

    workload: WorkloadError | None
    association: Association
    learning: Learning


class ReleaseEvaluator:
    """Measures releases of one original, which is described once, as its models are trained once.

    The releases must be of the same attributes. ``target`` is a column that is published as it is.
    :meth:`close` frees what stays in memory: the held-out records and what the original's models
    predict of them. Raises ConfigurationError if the target is no category of 2 to 100 values, and
    DataError if the original lacks it. One job.
    """

    def __init__(
        self,
        engine: Engine,
        original: Table,
        holdout: Table,
        target: str,
        missing_markers: Sequence[str],
    ) -> None:
        self._engine = engine
        self._original, self._holdout = original, holdout
        self._target = describe_target(original, target, missing_markers)
        self._first: Evaluation | None = None
        self._tested: Tested | None = None

    def measure(self, release: str, *, queries: bool) -> Measured:
        """Measure a release, with counting queries if ``queries``. Errors: :func:`evaluate`.

        The first release costs all that ``evaluate`` costs. Later ones do not describe the original
        or train its models again.
        """
        opened = self._open(release)
        workload = opened.workload() if queries else None
        association = opened.association()
        if association is None:
            raise TypeError("an evaluation without a target")
        tested = self._of_originals(opened)
        examples = opened.examples(self._target).of_release(opened.release)
        learning = tested.with_models(examples, "release", opened.records).figures()
        return Measured(workload, association, learning)

    def close(self) -> None:
        """Free the test records."""
        if self._tested is not None:
            self._tested.table.unpersist()
        self._tested = None

    def _open(self, release: str) -> Evaluation:
        manifest = read_manifest(self._engine.files, release)
        if self._first is None:
            first = open_tables(self._engine, release, manifest, self._original, self._holdout)
            self._first = replace(first, target=self._target)
            return self._first
        published = {attribute.name: attribute for attribute in published_attributes(manifest)}
        return replace(
            self._first,
            release=self._engine.published(f"{release}/data", manifest.data_format),
            quasi_identifiers=tuple(
                replace(axis, published=published[axis.name])
                for axis in self._first.quasi_identifiers
            ),
        )

    def _of_originals(self, opened: Evaluation) -> Tested:
        """Return the test records with the predictions of the original's models."""
        if self._tested is None:
            examples = opened.examples(self._target)
            test = examples.of_records(self._holdout, "--holdout")
            learned = opened.tested(test, self._target).with_models(
                examples.of_records(self._original, "--original"), "original", opened.records
            )
            self._tested = replace(learned, table=learned.table.persist())
        return self._tested
