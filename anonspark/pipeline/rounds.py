"""The rounds: a model anonymizes the table, then its outliers, then what is left over of these."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Flags, Integers
from anonspark.core.columns import (
    CLASS_ID,
    PART,
    PENALTY,
    RECORD_LOSS,
    ROUND,
    SIZE,
    WHOLE_PENALTY,
    WHOLE_SQUARES,
    Part,
)
from anonspark.core.criteria import Criteria, PeopleOfGroup
from anonspark.core.criterion import Criterion
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.files import Files
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.errors import GuaranteeError
from anonspark.layers.evaluate.metrics import RoundResult, weight_of
from anonspark.layers.generalize.classes import PublishedColumn
from anonspark.layers.generalize.figures import class_schema, losses_of_records
from anonspark.layers.prepare.sensitive import count_values
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.layers.prepare.unit_counts import count_people, has_units, satisfied_by_people
from anonspark.layers.publish.run_state import FinishedRound
from anonspark.layers.publish.staging import Staging
from anonspark.models.model import RESULT, Model, Round, finished_schema, result_batch
from anonspark.pipeline.warnings.release_warning import large_block_warnings, log_warnings
from anonspark.progress import Progress
from anonspark.staged.records import BYTES, PACKED, ROWS, Packer, Records, together

# Whole classes are left out, so that the others are as they were and satisfy every criterion.
# If records are counted, those left out satisfy every criterion but distances as one class: what
# figures reveal of them is what their labels would have shown. If people are counted, who may be
# in several classes, the caller must check.

_RANKED = pa.schema([("rank", pa.int64()), (SIZE, pa.int64())])

# Bits of a loss, and of a name, that do not rank classes: 12 bits of the fraction, and 16, are
# few enough ranks for the driver.
_BITS_OF_LOSS = 40
_BITS_OF_NAME = 48

_HIGHEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class _Classes:
    """Decides which classes are left out: by their loss and, on a tie, by their name.

    Classes with a rank by loss above ``loss`` are left out, and of those with that rank the ones
    with a rank by name above ``name``. ``weights`` are those of the quasi-identifiers.
    """

    weights: tuple[float, ...]
    loss: int = _HIGHEST
    name: int = _HIGHEST

    @property
    def columns(self) -> list[str]:
        """Return the columns of classes that ranks are computed from."""
        return [CLASS_ID, *(f"penalty_{index}" for index in range(len(self.weights)))]

    def ranks(self, batch: pa.RecordBatch | pa.Table) -> tuple[Integers, Integers]:
        """Return the ranks of classes, or of the classes of records, by loss and by name."""
        if RECORD_LOSS in batch.schema.names:
            losses = batch.column(RECORD_LOSS).to_numpy()
        else:
            penalties = [batch.column(name).to_numpy() for name in self.columns[1:]]
            losses = losses_of_records(penalties, self.weights)
        # Numbers from 0 on are ordered as their bits.
        by_loss = losses.view(np.int64) >> _BITS_OF_LOSS
        return by_loss, batch.column(CLASS_ID).to_numpy() >> _BITS_OF_NAME

    def leave(self, batch: pa.RecordBatch | pa.Table) -> Flags:
        """Return which classes, or which records, are left out."""
        by_loss, by_name = self.ranks(batch)
        leave: Flags = (by_loss > self.loss) | ((by_loss == self.loss) & (by_name > self.name))
        return leave


@dataclass(frozen=True)
class _Rank:
    """Yields the rank and the size of each class: by loss, or by name among those of one loss."""

    classes: _Classes
    among: int | None = None

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            ranks, by_name = self.classes.ranks(batch)
            sizes = batch.column(SIZE).to_numpy()
            if self.among is not None:
                chosen = ranks == self.among
                ranks, sizes = by_name[chosen], sizes[chosen]
            yield pa.RecordBatch.from_arrays([pa.array(ranks), pa.array(sizes)], schema=_RANKED)


@dataclass(frozen=True)
class _KeptClasses:
    """Yields the classes that stay, packed as they came."""

    classes: _Classes

    def __call__(self, batches: Batches) -> Batches:
        packer = Packer()
        for batch in batches:
            records = pa.Table.from_batches([batch]).filter(pa.array(~self.classes.leave(batch)))
            if records.num_rows:
                yield pa.RecordBatch.from_pydict(packer.pack(records))


@dataclass(frozen=True)
class _Divide:
    """Packs the records of a task: those of the classes that stay, and the others.

    ``names`` are the columns of either part.
    """

    classes: _Classes
    names: Mapping[Part, Sequence[str]]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        packer = Packer()
        for records in together(batches):
            leave = self.classes.leave(records)
            for part, mask in ((Part.FINISHED, ~leave), (Part.LEFT_OVER, leave)):
                if mask.any():
                    selected = records.select(self.names[part]).filter(pa.array(mask))
                    yield result_batch(part, packer.pack(selected))


@dataclass(frozen=True)
class Suppression:
    """The finished records and classes of all rounds, without those that are left out.

    ``results`` are those of the rounds of which classes stay, and ``finished`` the directories of
    the records that stay. ``left_out`` holds the other records and their number, or is None.
    """

    results: list[RoundResult]
    finished: list[str]
    classes: Records
    left_out: tuple[Records, int] | None


def suppress_classes(
    results: list[RoundResult],
    finished: Table,
    classes: Records,
    quasi_identifiers: Sequence[QuasiIdentifier],
    schemas: tuple[pa.Schema, pa.Schema],
    *,
    limit: float,
    path: str,
) -> Suppression:
    """Leave out the classes whose records lose most, up to a share of the records, ``limit`` < 1.

    ``finished`` are the packed records of all rounds, with their codes and :data:`RECORD_LOSS`.
    ``schemas`` are those of the records that stay, and of those that are left out. ``path`` is new.

    Classes are ranked by 12 bits of the fraction of their loss and by 16 bits of their name, and
    all classes of one rank are left out or none. Two jobs that count classes by rank, one that
    counts those that stay, and one that reads and writes all finished records. At most some 100,000
    counts are collected.
    """
    rows = results[0].rows
    weighed = _Classes(tuple(identifier.weight for identifier in quasi_identifiers))
    loss, most = _rank_that_exceeds(classes, _Rank(weighed), int(Decimal(str(limit)) * rows))
    # Classes that lose nothing are never left out.
    name, _ = _rank_that_exceeds(classes, _Rank(weighed, loss), most) if loss else (_HIGHEST, 0)
    weighed = replace(weighed, loss=loss, name=name)
    packed = classes.map_batches(_KeptClasses(weighed), PACKED)
    classes = Records(packed, classes.schema)
    sizes = classes.rows(ROUND, SIZE).aggregate([ROUND], sums=[SIZE]).collect().to_pylist()
    rows_by_round = {row[ROUND]: row[SIZE] for row in sizes}
    parts = (Part.FINISHED, Part.LEFT_OVER)
    names = {part: schema.names for part, schema in zip(parts, schemas, strict=True)}
    of_records = pa.schema([*schemas[1], (CLASS_ID, pa.int64()), (RECORD_LOSS, pa.float64())])
    divided = Records(finished, of_records).map_batches(_Divide(weighed, names), RESULT)
    taken = divided.stage_parts(path, PART, parts, [BYTES])[Part.FINISHED][BYTES]
    remaining: list[RoundResult] = []
    for result in results:
        if result.number in rows_by_round:
            left_over = rows - rows_by_round[result.number]
            # The bytes of all rounds are counted with the first one.
            round_bytes = 0 if remaining else int(taken or 0)
            remaining.append(
                replace(result, rows=rows, left_over=left_over, staged_bytes=round_bytes)
            )
            rows = left_over
    left_out = None
    if rows:
        packed = finished.engine.staged([f"{path}/{PART}={Part.LEFT_OVER}"], PACKED)
        left_out = Records(packed, schemas[1]), rows
    return Suppression(remaining, [f"{path}/{PART}={Part.FINISHED}"], classes, left_out)


def _rank_that_exceeds(classes: Records, rank: _Rank, limit: int) -> tuple[int, int]:
    """Find the rank at which leaving out whole ranks, highest first, exceeds a limit of records.

    Also return how much of the limit is left for the classes of that rank.
    """
    names = [SIZE, *rank.classes.columns]
    counted = classes.map_batches(rank, _RANKED, names).aggregate(["rank"], sums=[SIZE]).collect()
    by_rank = counted.sort_by([("rank", "descending")])
    left_out = np.cumsum(by_rank[SIZE].to_numpy())
    index = int(np.searchsorted(left_out, limit, side="right"))
    return by_rank["rank"][index].as_py(), limit - int(left_out[index - 1] if index else 0)


# Begins the names of the attempts' folders.
_ATTEMPT = "attempt"

# Ends the names of the folders of rounds that were run again.
_AGAIN = "-again"

_LOGGER = logging.getLogger("anonspark")


@dataclass(frozen=True)
class Residual:
    """Records that no round found a class for, as staged, with their raw values.

    ``counts`` (int64) says how often each value of each sensitive attribute of a criterion occurs
    among them. ``has_k_units`` is False if they are about fewer than k people. ``people`` is None
    unless criteria count people. ``labels`` is the class that they are published as, see
    :attr:`anonspark.models.model.Suppressed.labels`, or None if they are not published.
    ``staged_bytes`` is their published size before compression.
    """

    records: Records
    rows: int
    counts: list[Integers]
    has_k_units: bool = True
    people: PeopleOfGroup | None = None
    labels: pa.Table | None = None
    staged_bytes: int = 0

    @property
    def published(self) -> bool:
        """Return whether they are published, all their quasi-identifiers suppressed."""
        return self.labels is not None

    def violates(self, criteria: Criteria) -> Criterion | None:
        """Return the first criterion beyond k that they violate together, or None."""
        if self.people is not None:
            return criteria.violated_by_people(self.people)
        return criteria.violated_by(self.rows, self.counts)

    def may_show_values(self, criteria: Criteria) -> bool:
        """Return whether counts of their sensitive values may be published, if they are left out.

        They may if they are one class of at least k records that satisfies every criterion except
        distances, whose attacker knows the distribution of the whole input anyway (Li et al. 2007).
        """
        others = tuple(criterion for criterion in criteria.criteria if not criterion.is_distance)
        others_hold = self.violates(replace(criteria, criteria=others)) is None
        return self.rows >= criteria.k and others_hold and self.has_k_units


@dataclass(frozen=True)
class StagedRounds:
    """The joint result of all rounds, read from the staging directory.

    ``finished`` are the records to publish, of :func:`anonspark.models.model.finished_schema`, and
    ``classes`` those of :func:`anonspark.layers.generalize.figures.class_schema`. ``residual`` is
    None if every record found a class.
    """

    results: list[RoundResult]
    finished: Records
    classes: Records
    residual: Residual | None


def run_rounds(
    model: Model,
    snapshot: Snapshot,
    criteria: Criteria,
    columns: Sequence[PublishedColumn],
    *,
    staging: Staging,
    files: Files,
    progress: Progress,
    warns: bool = True,
) -> StagedRounds:
    """Run a model's rounds until no record is left over, or another round is not worth it.

    Records that together violate the criteria cannot have a round, unless the model may leave a
    residual. ``columns`` are the published ones of the quasi-identifiers. Rounds that an earlier
    attempt has finished are taken from ``staging``. With ``warns``, the log warns of a block that
    cannot be cut before a task gets it. Raises GuaranteeError if a residual that is to be published
    violates the criteria.

    See docs/algorithms.md, Rounds. A round is the passes of the model and one job that writes its
    result. With criteria beyond k one more job counts the sensitive values of the records left
    over. A round is run again as the last one if its records left over violate the criteria, or its
    gain is below the model's smallest. If a model undoes rounds, the round that loses least as the
    last one is run again as such, and the later ones are dropped. A model that leaves a residual
    gets rounds as long as they form classes.
    """
    rounds = _Rounds(model, snapshot, criteria, staging, files, progress, warns)
    try:
        rounds.run_all()
        rounds.end_with_best()
    finally:
        model.close()
    return rounds.staged(columns)


@dataclass
class _Rounds:
    """The rounds of one run, as far as they are done. See :func:`run_rounds`."""

    model: Model
    snapshot: Snapshot
    criteria: Criteria
    staging: Staging
    files: Files
    progress: Progress
    warns: bool
    results: list[RoundResult] = field(default_factory=list)
    tables: list[Round] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    """The staging directory of each round."""
    remaining: tuple[Records, int] | None = None
    """Records that no further round is for, and their number."""
    large_block: int = 0
    """Records of the largest block so far that cannot be cut."""

    def run_all(self) -> None:
        """Run rounds until no record is left over, or another round is not worth it."""
        table: Round | None = Round(
            self.snapshot.records,
            self.snapshot.rows,
            1,
            last=self.model.rounds == 1,
            trial=self.model.tries_first_round,
            report=self.progress.report_step,
            note_block=self._note_block,
        )
        while table is not None:
            finished = self._finished(table)
            if finished is None:
                self.remaining = table.records, table.rows
                return
            self.results.append(finished.result)
            is_trial = table.trial and not (finished.last or finished.path.endswith(_AGAIN))
            self.tables.append(replace(table, trial=is_trial))
            self.paths.append(self._path(table, finished.path))
            table = self._table_after(table, finished)

    def _note_block(self, rows: int) -> None:
        """Warn of a large block before its task runs out of memory, if it does."""
        if rows > self.large_block:
            self.large_block = rows
            if self.warns:
                log_warnings(large_block_warnings(rows))

    def _finished(self, table: Round) -> FinishedRound | None:
        """Return a round of an earlier attempt, or run it. None if it forms no class."""
        name = self._name(table)
        finished = self.staging.state.finished_round(table.number)
        if finished is not None:
            self.progress.skip(name, rows=table.rows)
            return finished
        with self.progress.stage(name, rows=table.rows):
            finished = self._run(table)
        if finished is not None:
            self.staging.state.finish_round(finished)
        return finished

    def _table_after(self, table: Round, finished: FinishedRound) -> Round | None:
        """Return the table of the next round, or None after the last one."""
        rows = finished.result.left_over
        if not rows:
            return None
        left_over = self._left_over(self.paths[-1])
        if finished.last or rows < self.criteria.k:
            self.remaining = left_over, rows
            return None
        penalty = sum(earlier.penalty for earlier in self.results)
        if self.model.undoes_rounds and penalty >= self._best.penalty_if_last:
            # All rounds from here on will be undone, whatever the next ones lose.
            return None
        return replace(
            table,
            records=left_over,
            rows=rows,
            number=table.number + 1,
            last=table.number + 1 == self.model.rounds,
            trial=False,
            price=self.results[0].price,
        )

    def _run(self, table: Round) -> FinishedRound | None:
        """Run a round, and again as the last one if its records left over require that.

        A round that will be undone stays the last one unchanged.
        """
        # Each attempt has a directory, because one that was thought dead may still be writing.
        path = self._path(table, self._attempt)
        result = self._stage(path, table)
        if result is None:
            return None
        is_last = self._is_last(result, path) if result.left_over else table.trial
        if is_last and not self.model.leaves_residual:
            table = replace(table, last=True)
            if not self._will_be_undone(result):
                self.files.delete(path)
                result = self._stage(path, table) or result
        return FinishedRound(result, table.last, self._attempt)

    def _is_last(self, result: RoundResult, path: str) -> bool:
        """Return whether a round gained too little, or its left-over records cannot have one."""
        if self.results and self.model.minimum_gain:
            # Had the run ended with the round before, it would have lost this.
            without = self.results[-1].penalty_if_last
            least = without * Decimal(str(self.model.minimum_gain))
            if without - result.penalty_if_last < least:
                return True
        left_over = self._left_over(path)
        if self.criteria.counts_people:
            return not satisfied_by_people(left_over, result.left_over, self.criteria)
        counts = count_values(left_over, self.criteria)
        return not (
            self.criteria.satisfied_by(result.left_over, counts)
            and has_units(left_over, result.left_over, self.criteria)
        )

    def _will_be_undone(self, result: RoundResult) -> bool:
        """Return whether a last round is undone anyway, because the release loses less without it.

        A round forms the same groups if it is run again as the last one, and so loses the same.
        """
        return self.model.undoes_rounds and any(
            earlier.penalty_if_last <= result.penalty_if_last for earlier in self.results
        )

    @property
    def _best(self) -> RoundResult:
        """Return the first of the rounds with which the release loses least as the last one."""
        return min(self.results, key=lambda result: result.penalty_if_last)

    def end_with_best(self) -> None:
        """Drop the rounds after the one with which the release loses least.

        Only for models that undo rounds. That round is run again as the last one, because a last
        round keeps its groups whole. If round 1 was a trial and the release needs a later one, too,
        round 1 is run again in earnest first. A killed attempt chooses the same round again.
        """
        results = self.results
        best = results.index(self._best)
        if best and self.tables[0].trial:
            later_results = results[1:]
            results.clear()
            again = self._run_again(replace(self.tables[0], trial=False), undone=[1])
            results += [again.result, *later_results]
            self.paths[0] = self._path(self.tables[0], again.path)
        if not self.model.undoes_rounds or not self._best.left_over:
            return
        table = replace(self.tables[best], last=True)
        _LOGGER.info(
            "the release loses least if it ends with round %d: gcp_total %.6g, with %d rounds "
            "%.6g. The rounds after it are undone",
            table.number,
            results[best].penalty_if_last,
            len(results),
            results[-1].penalty_if_last,
        )
        undone = [result.number for result in results[best:]]
        del results[best:], self.paths[best:]
        self.remaining = None
        again = self._run_again(table, undone)
        results.append(again.result)
        self.paths.append(self._path(table, again.path))

    def _run_again(self, table: Round, undone: Sequence[int]) -> FinishedRound:
        """Run a round again, and put it into the state instead of some rounds."""
        name = f"{self._attempt}{_AGAIN}"
        with self.progress.stage(self._name(table), rows=table.rows):
            result = self._stage(self._path(table, name), table)
            if result is None:
                raise TypeError(f"{type(self.model).__name__} made nothing of what it had made of")
            again = FinishedRound(result, last=table.last, path=name)
            for number in reversed(undone):
                self.staging.state.forget_round(number)
            self.staging.state.finish_round(again)
        return again

    def staged(self, columns: Sequence[PublishedColumn]) -> StagedRounds:
        """Return the joint result of all rounds, and stage the residual if it is published."""
        residual = None
        engine, schema = self.snapshot.records.engine, self.snapshot.records.schema
        paths = [f"{path}/{PART}={Part.CLASSES}" for path in self.paths]
        of_classes = class_schema(schema, len(self.snapshot.quasi_identifiers), columns)
        classes = Records(engine.staged(paths, PACKED), of_classes)
        records = [f"{path}/{PART}={Part.FINISHED}" for path in self.paths]
        # The path follows those of the rounds, and is read like them.
        number = self.results[-1].number + 1
        behind = f"{self.staging.rounds}/round={number}/{self._attempt}"
        path = f"{behind}/{PART}={Part.SUPPRESSED}"
        if limit := self.model.suppression_limit:
            # A round that was undone may have used that path.
            suppressed = self._suppress_classes(records, classes, limit, f"{behind}-suppressed")
            if suppressed.left_out is not None:
                residual = _stage_residual(self.model, *suppressed.left_out, self.criteria, path)
            self.results, classes = suppressed.results, suppressed.classes
            records = suppressed.finished
        elif self.remaining is not None:
            residual = _stage_residual(self.model, *self.remaining, self.criteria, path)
            records += [path] * residual.published
        finished = Records(engine.staged(records, PACKED), finished_schema(schema))
        return StagedRounds(self.results, finished, classes, residual)

    def _suppress_classes(
        self, paths: list[str], classes: Records, limit: float, path: str
    ) -> Suppression:
        """Leave out the classes that lose most, for a model that leaves no residual itself."""
        engine, schema = self.snapshot.records.engine, self.snapshot.records.schema
        with self.progress.stage("suppress"):
            return suppress_classes(
                self.results,
                engine.staged(paths, PACKED),
                classes,
                self.snapshot.quasi_identifiers,
                (finished_schema(schema), self.model.left_over_schema(schema)),
                limit=limit,
                path=path,
            )

    def _stage(self, path: str, table: Round) -> RoundResult | None:
        """Anonymize a round's table and write the result, or return None without classes."""
        anonymized = self.model.anonymize(table)
        if anonymized is None:
            return None
        sums = (ROWS, BYTES, PENALTY, WHOLE_PENALTY, WHOLE_SQUARES)
        parts = (Part.FINISHED, Part.LEFT_OVER, Part.CLASSES)
        try:
            parts_staged = anonymized.rows.stage_parts(path, PART, parts, sums)
        finally:
            anonymized.release()
        left_over = int(parts_staged[Part.LEFT_OVER][ROWS] or 0)
        classes = parts_staged[Part.CLASSES]
        if_last = sum(
            (result.penalty for result in self.results), classes[WHOLE_PENALTY] or Decimal(0)
        )
        if self.model.leaves_residual:
            # Were this the last round, its records left over would be suppressed.
            if_last += left_over * sum(map(weight_of, self.snapshot.quasi_identifiers))
        return RoundResult(
            number=table.number,
            rows=table.rows,
            left_over=left_over,
            penalty=classes[PENALTY] or Decimal(0),
            penalty_if_last=if_last,
            squares_if_whole=int(classes[WHOLE_SQUARES] or 0),
            levels=anonymized.levels,
            large_block=self.large_block,
            staged_bytes=int(parts_staged[Part.FINISHED][BYTES] or 0),
            price=anonymized.price,
        )

    def _left_over(self, path: str) -> Records:
        """Return the records that a staged round left over."""
        records = self.snapshot.records
        packed = records.engine.staged([f"{path}/{PART}={Part.LEFT_OVER}"], PACKED)
        return Records(packed, self.model.left_over_schema(records.schema))

    def _name(self, table: Round) -> str:
        return f"round {table.number} of {self.model.rounds}"

    def _path(self, table: Round, name: str) -> str:
        return f"{self.staging.rounds}/round={table.number}/{name}"

    @property
    def _attempt(self) -> str:
        return f"{_ATTEMPT}={self.staging.state.attempt}"


def _stage_residual(
    model: Model, records: Records, rows: int, criteria: Criteria, path: str
) -> Residual:
    """Stage the records without a class if they are published, or raise GuaranteeError.

    They are published as one class, which has to satisfy k and all criteria.
    """
    counts = count_values(records, criteria)
    has_k = rows >= criteria.k and has_units(records, rows, criteria)
    people = count_people(records, criteria) if criteria.counts_people else None
    residual = Residual(records, rows, counts, has_k, people)
    suppressed = model.suppress(records)
    if suppressed is None:
        return residual
    violated = residual.violates(criteria) if rows >= criteria.k else None
    if not has_k or violated is not None:
        if violated is not None:
            what = f"violate {violated.describe()} on attribute {violated.attribute!r}"
        elif rows < criteria.k:
            what = f"are fewer than k = {criteria.k}"
        else:
            what = f"are about fewer than k = {criteria.k} people"
        raise GuaranteeError(
            f"model.residual: the {rows:,} records that no round found a class for {what} "
            "together, so they cannot be published as a class of their own, not even suppressed. "
            "Set it to drop, or weaken the criteria. Nothing was published"
        )
    suppressed.records.packed.stage(path)
    staged = records.engine.staged([path], PACKED).aggregate([], sums=[BYTES]).collect()
    return replace(residual, labels=suppressed.labels, staged_bytes=staged[BYTES][0].as_py())
