"""Several releases of one original, each measured as ``anonspark evaluate`` measures one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anonspark.engine.protocol import Engine, Table
from anonspark.release.manifest import read_manifest
from anonspark.release.regions import published_attributes
from anonspark.utility.association import Association
from anonspark.utility.evaluation import Evaluation, look_at
from anonspark.utility.learning import describe_target
from anonspark.utility.models import Learning, Tested
from anonspark.utility.workload import WorkloadError


@dataclass(frozen=True)
class Measured:
    """The worth of a release, as :class:`anonspark.utility.evaluation.Utility`.

    Parameters
    ----------
    workload : WorkloadError or None
        None where no queries were asked.
    association : Association
    learning : Learning
        Tested on held-out records.
    """

    workload: WorkloadError | None
    association: Association
    learning: Learning


class SideBySide:
    """Measures releases of one original, which is looked at once, as its models are trained once.

    The releases have to be of the same attributes. :meth:`close` frees what is kept meanwhile:
    the held-out records and what the original's models predict of them.

    Parameters
    ----------
    engine : Engine
    original, holdout : Table
    target : str
        A column that is published as it is.
    missing_markers : sequence of str

    Raises
    ------
    ConfigurationError
        If the target is no category of 2 to 100 values.
    DataError
        If the original lacks it.

    Notes
    -----
    One job.
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
        """Measure a release. Errors: :func:`anonspark.utility.evaluation.evaluate`.

        Parameters
        ----------
        release : str
            Its directory.
        queries : bool
            Whether counts are compared.

        Notes
        -----
        Of the first release all that ``evaluate`` costs. Of the others the description of the
        original and the training of its models are not done again.
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
        """Free what is kept."""
        if self._tested is not None:
            self._tested.table.unpersist()
        self._tested = None

    def _open(self, release: str) -> Evaluation:
        manifest = read_manifest(self._engine.files, release)
        if self._first is None:
            first = look_at(self._engine, release, manifest, self._original, self._holdout)
            self._first = replace(first, target=self._target)
            return self._first
        published = {one.name: one for one in published_attributes(manifest)}
        return replace(
            self._first,
            release=self._engine.published(f"{release}/data", manifest.data_format),
            quasi_identifiers=tuple(
                replace(axis, published=published[axis.name])
                for axis in self._first.quasi_identifiers
            ),
        )

    def _of_originals(self, opened: Evaluation) -> Tested:
        """Return the test with what the original's models predict of it."""
        if self._tested is None:
            examples = opened.examples(self._target)
            test = examples.of_records(self._holdout, "--holdout")
            learned = opened.tested(test, self._target).with_models(
                examples.of_records(self._original, "--original"), "original", opened.records
            )
            self._tested = replace(learned, table=learned.table.persist())
        return self._tested
