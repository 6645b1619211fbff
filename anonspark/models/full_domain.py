"""Full-domain recoding and rho-Gain: one level per attribute, the outliers again (Vural 2017)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config.models import EXHAUSTIVE_NODES, FullDomainOptions
from anonspark.core.columns import CLASS_ID, Part
from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.kernels.paths import root_path
from anonspark.layers.generalize.figures import published_fields
from anonspark.layers.generalize.full_domain import FullDomainRecoding
from anonspark.layers.partition.lattice.distributed import (
    DistributedTuples,
    Packing,
    count_tuples,
    word_names,
)
from anonspark.layers.partition.lattice.domain import Domain, Levels, domain_of
from anonspark.layers.partition.lattice.lattice import Lattice
from anonspark.layers.partition.lattice.objectives import create_objective
from anonspark.layers.partition.lattice.search import (
    NodePreview,
    Optimum,
    Problem,
    WatchedProblem,
    best_of,
    describe_node,
    search_exhaustively,
    search_pruned,
)
from anonspark.layers.partition.lattice.tuples import Tuples, TupleTable
from anonspark.layers.prepare.sensitive import count_values
from anonspark.models.model import (
    RESULT,
    Anonymized,
    Model,
    Round,
    Suppressed,
    Task,
    class_batch,
    finished_schema,
    result_batch,
    suppressed_class,
)
from anonspark.staged.records import PACKED, Packer, Records, together

_MOST_NODES = 1_000_000

# Squares of class sizes stay below 2^64.
_MOST_ROWS = 2**32 - 1

# Classes that every task gets a copy of, instead of a shuffle of all records.
_BROADCAST_CLASSES = 1_000_000

_SECONDS_BETWEEN_NODES = 0.1


@dataclass(frozen=True)
class _Recode:
    """Adds, to staged records, the words of their class."""

    domain: Domain
    recoding: FullDomainRecoding
    packing: Packing

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            groups = self.domain.encode_groups(batch, self.recoding.levels)
            words = [pa.array(word) for word in self.packing.pack(groups)]
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *words],
                [*batch.schema.names, *word_names(self.packing.words)],
            )


@dataclass(frozen=True)
class _NameClasses:
    """Adds, to the words and sizes of classes, the labels that name them."""

    recoding: FullDomainRecoding
    packing: Packing

    def __call__(self, batches: Batches) -> Batches:
        names = word_names(self.packing.words)
        for batch in batches:
            groups = self.packing.unpack([batch.column(name).to_numpy() for name in names])
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *self.recoding.names(groups)],
                [*batch.schema.names, *_name_columns(self.recoding.levels)],
            )


def _name_columns(levels: Levels) -> list[str]:
    """Return the columns of the labels that name classes."""
    return [f"name_{index}" for index in range(len(levels))]


@dataclass(frozen=True)
class _DescribeClasses:
    """Yields batches of classes from their words and sizes."""

    recoding: FullDomainRecoding
    packing: Packing
    number: int

    def __call__(self, batches: Batches) -> Batches:
        packer = Packer()
        in_order = sorted(self.recoding.attributes, key=lambda item: item.position)
        weights = [item.quasi_identifier.weight for item in in_order]
        names = word_names(self.packing.words)
        for classes in together(batches):
            groups = self.packing.unpack([classes.column(name).to_numpy() for name in names])
            figures = self.recoding.figures(groups, classes.column("size").to_numpy())
            identifiers = classes.column(CLASS_ID).combine_chunks()
            published = self.recoding.publish(groups)
            yield class_batch(packer, self.number, identifiers, figures, published, weights)


@dataclass(frozen=True)
class _PackResult:
    """Packs the records of one task: those with a class, and those without one.

    ``left_over`` and ``finished`` are the columns of either.
    """

    left_over: Sequence[str]
    finished: Sequence[str]

    def __call__(self, batches: Batches) -> Batches:
        packer = Packer()
        for records in together(batches):
            has_class = records.column(CLASS_ID).is_valid()
            for part, names, mask in (
                (Part.LEFT_OVER, self.left_over, pc.invert(has_class)),
                (Part.FINISHED, self.finished, has_class),
            ):
                selected = records.select(names).filter(mask)
                if selected.num_rows:
                    yield result_batch(part, packer.pack(selected))


@dataclass(frozen=True)
class _PackClass:
    """Packs the records of a task, which all belong to the class ``name``."""

    name: int

    def __call__(self, batches: Batches) -> Batches:
        packer = Packer()
        for records in together(batches):
            names = pa.repeat(pa.scalar(self.name, pa.int64()), len(records))
            packed = packer.pack(records.add_column(0, CLASS_ID, names))
            yield pa.RecordBatch.from_pydict(packed)


class FullDomain(Model):
    """One level of its hierarchy for every quasi-identifier, searched in the lattice of all.

    Raises ConfigurationError if an attribute's hierarchy lacks a level, or it is too large.
    """

    options_class = FullDomainOptions

    def __init__(self, options: FullDomainOptions, task: Task) -> None:
        self.options = options
        self.task = task
        self._domain = domain_of(task.generalizer.quasi_identifiers, task.criteria)
        self._lattice = _lattice(options, self._domain)
        self._levels = _given_levels(options, self._domain)
        _require_searchable(self._lattice, self.rounds - len(self._levels))

    @property
    def rounds(self) -> int:
        """The first round, and ρ more for rho-gain."""
        return self.options.most_rounds

    @property
    def leaves_residual(self) -> bool:
        """True: the records that the last round suppresses have no class."""
        return True

    @property
    def nodes(self) -> int:
        """Nodes of the lattice, of which a pruned search scores some."""
        return self._lattice.size

    def keeps(self, criterion: Criterion) -> bool:
        """Return False for t-closeness that is measured against each round's records."""
        # The first round's records are the whole input.
        by_round = self.options.t_reference == "round" and self.rounds > 1
        return not (by_round and criterion.is_distance)

    def anonymize(self, table: Round) -> Anonymized | None:
        """Recode one round's table at the best node. See :meth:`Model.anonymize`.

        Eager: one pass over narrow columns that counts the distinct tuples, with ``t_reference:
        round`` one that counts the sensitive values of later rounds, and the search, on the driver
        or, for more tuples than it takes, in one or two jobs a node. Lazy: one shuffle of the
        records if there are too many classes to copy to every task, otherwise none. Raises
        GuaranteeError if no node of the first round has a class, or all suppress too much.
        """
        with self._counted(table) as (bottom, problem):
            best = self._search(bottom, problem, table)
            if best is not None:
                return self._recode(table, bottom, best.levels, problem.criteria)
        if table.number > 1:
            return None
        raise GuaranteeError(
            "model: no recoding allowed has a class that satisfies the criteria and suppresses at "
            f"most {problem.most_suppressed:,} of the {table.rows:,} records. Allow higher levels "
            "in model.maximum_levels, raise model.suppression_limit, or weaken the criteria. "
            "Nothing was published"
        )

    def preview(self, table: Round) -> list[NodePreview]:
        """Report up to 20 nodes that the search considers, the best first, and anonymize nothing.

        See :func:`anonspark.layers.partition.lattice.search.best_of`. No node is chosen if none is
        allowed. Costs those of :meth:`anonymize` without the recoding, and for each reported node
        one score for each criterion. The figures are exact: they are for people who have the table.
        """
        with self._counted(table) as (bottom, problem):
            watched = WatchedProblem.of(problem)
            best = self._search(bottom, watched, table)
            return [
                describe_node(bottom, self._domain, problem.criteria, node, best)
                for node in best_of(watched.seen, best)
            ]

    @contextmanager
    def _counted(self, table: Round) -> Iterator[tuple[TupleTable, Problem]]:
        """Count the distinct tuples of a round's table, and define the search in them."""
        if table.rows > _MOST_ROWS:
            raise DataError(
                f"model: a round of {table.rows:,} records, expected at most {_MOST_ROWS:,}. "
                "Anonymize parts of the table, or use another model"
            )
        criteria = self._criteria(table)
        lattice = self._lattice
        if table.number <= len(self._levels):
            levels = self._levels[table.number - 1]
            lattice = Lattice(levels, levels)
        bottom = count_tuples(
            table.records, self._domain, lattice.lowest, self.options.driver_tuples
        )
        try:
            yield bottom, self._problem(bottom, lattice, criteria, table)
        finally:
            bottom.release()

    def suppress(self, records: Records) -> Suppressed | None:
        """Return the records with every quasi-identifier suppressed, or None to drop them."""
        if self.options.residual == "drop":
            return None
        schema = finished_schema(records.schema)
        staged = [name for name in schema.names if name != CLASS_ID]
        recoding = self._recoding(self._domain.heights)
        everything = np.zeros((1, len(self._domain.attributes)), np.int32)
        name = suppressed_class(self.task.seed)
        packed = records.map_batches(_PackClass(name), PACKED, staged)
        fields = published_fields(self.task.generalizer.columns())
        labels = pa.Table.from_arrays(
            [pa.array([name]), *recoding.publish(everything)],
            schema=pa.schema([(CLASS_ID, pa.int64()), *fields]),
        )
        return Suppressed(Records(packed, schema), labels)

    def _criteria(self, table: Round) -> Criteria:
        """Return the criteria of a round. Its records may be the reference of t-closeness."""
        criteria = self.task.criteria
        if self.options.t_reference == "round" and table.number > 1 and criteria.sensitive:
            counts = count_values(table.records, criteria)
            sensitive = zip(criteria.sensitive, counts, strict=True)
            criteria = replace(
                criteria,
                sensitive=tuple(replace(item, counts=number) for item, number in sensitive),
            )
        return criteria

    def _problem(
        self, bottom: TupleTable, lattice: Lattice, criteria: Criteria, table: Round
    ) -> Problem:
        # All classes count, to get the records in each group.
        groups = bottom.score(Criteria(1), by_group=True).groups
        bounds = np.cumsum(self._domain.groups(lattice.lowest))[:-1]
        records = np.split(groups, bounds)
        return Problem(
            lattice,
            criteria,
            create_objective(self.options.objective, self._domain, lattice.lowest, records),
            rows=table.rows,
            most_suppressed=int(Decimal(str(self.options.largest_share)) * table.rows),
        )

    def _search(self, bottom: TupleTable, problem: Problem, table: Round) -> Optimum | None:
        """Search the lattice for the best node, all of it if it is small, and report progress."""
        nodes = problem.lattice.size

        last_time = 0.0

        def report(scored: int) -> None:
            nonlocal last_time
            # Scoring a node may take less time than reporting it.
            if time.monotonic() - last_time > _SECONDS_BETWEEN_NODES:
                table.report(f"search: {scored:,} of {nodes:,} nodes")
                last_time = time.monotonic()

        exhaustive = self.options.search == "exhaustive" or (
            self.options.search is None and nodes <= EXHAUSTIVE_NODES
        )
        search = search_exhaustively if exhaustive else search_pruned
        return search(bottom, problem, report)

    def _recode(
        self, table: Round, bottom: TupleTable, levels: Levels, criteria: Criteria
    ) -> Anonymized:
        chosen = bottom.roll_up(levels)
        try:
            rows = self._rows(table, chosen, levels, criteria)
        except BaseException:
            chosen.release()
            raise
        by_name = dict(zip(self._domain.names, levels, strict=True))
        in_order = {
            item.name: by_name[item.name] for item in self.task.generalizer.quasi_identifiers
        }
        return Anonymized(rows, in_order, chosen.release)

    def _rows(self, table: Round, chosen: TupleTable, levels: Levels, criteria: Criteria) -> Table:
        """Build a result of the records and classes of a round, as rows of the result's schema."""
        packing = Packing(tuple(self._domain.groups(levels)))
        names = word_names(packing.words)
        path = np.uint64(root_path(self.task.seed % 2**64, table.number))
        classes, few = self._classes(table, chosen, criteria)
        # The path is as secret as the seed, from which it derives, and keys the names.
        classes = classes.with_hashes({CLASS_ID: _name_columns(levels)}, int(path.view(np.int64)))
        classes = classes.select([*names, "size", CLASS_ID])
        joined = self._with_words(table.records, levels).join(classes, names, small=few)
        staged = table.records.schema
        finished = finished_schema(staged)
        pack = _PackResult(staged.names, finished.names)
        columns = dict.fromkeys([*staged.names, *finished.names])
        records = joined.select([*columns]).map_batches(pack, RESULT)
        describe = _DescribeClasses(self._recoding(levels), packing, table.number)
        return records.union(classes.map_batches(describe, RESULT))

    def _classes(self, table: Round, tuples: TupleTable, criteria: Criteria) -> tuple[Table, bool]:
        """Return the words, size and labels of every utility class, and whether they are few."""
        packing = Packing(tuple(self._domain.groups(tuples.levels)))
        recoding, labels_of = self._recoding(tuples.levels), _name_columns(tuples.levels)
        labels = [pa.field(name, pa.string()) for name in labels_of]
        if isinstance(tuples, DistributedTuples):
            rows = tuples.utility_class_rows(criteria)
            schema = pa.schema([*rows.schema, *labels])
            return rows.map_batches(_NameClasses(recoding, packing), schema), False
        if not isinstance(tuples, Tuples):
            raise TypeError(f"unknown table of tuples: {type(tuples).__name__}")
        groups, sizes = tuples.utility_classes(criteria)
        words = zip(word_names(packing.words), packing.pack(groups), strict=True)
        numbers = {**{name: pa.array(word) for name, word in words}, "size": pa.array(sizes)}
        columns = pa.table(numbers | dict(zip(labels_of, recoding.names(groups), strict=True)))
        schema = pa.schema([*(pa.field(name, pa.int64(), False) for name in numbers), *labels])
        return table.records.engine.table(columns.cast(schema)), len(sizes) <= _BROADCAST_CLASSES

    def _recoding(self, levels: Levels) -> FullDomainRecoding:
        columns = tuple(self.task.generalizer.columns())
        return FullDomainRecoding(self._domain.attributes, levels, columns)

    def _with_words(self, records: Records, levels: Levels) -> Table:
        """Return staged records with the words of their class."""
        packing = Packing(tuple(self._domain.groups(levels)))
        words = ((name, pa.int64()) for name in word_names(packing.words))
        schema = pa.schema([*records.schema, *words])
        return records.map_batches(_Recode(self._domain, self._recoding(levels), packing), schema)


def _given_levels(options: FullDomainOptions, domain: Domain) -> list[Levels]:
    problems = []
    for index, levels in enumerate(options.levels):
        for name, height in zip(domain.names, domain.heights, strict=True):
            if levels[name] > height:
                problems.append(_no_such_level(f"levels.{index}.{name}", levels[name], height))
    if problems:
        raise ConfigurationError(*problems)
    return [tuple(levels[name] for name in domain.names) for levels in options.levels]


def _no_such_level(key: str, level: int, height: int) -> str:
    return (
        f"model.{key}: found {level}, but the hierarchy of the attribute has the levels 0 to "
        f"{height}. Correct it"
    )


def _lattice(options: FullDomainOptions, domain: Domain) -> Lattice:
    problems = []
    bounds = {"minimum_levels": [0] * len(domain.names), "maximum_levels": list(domain.heights)}
    for key, bound in bounds.items():
        for name, level in getattr(options, key).items():
            index = domain.names.index(name)
            height = domain.heights[index]
            if level > height:
                problems.append(_no_such_level(f"{key}.{name}", level, height))
            bound[index] = level
    if problems:
        raise ConfigurationError(*problems)
    return Lattice(tuple(bounds["minimum_levels"]), tuple(bounds["maximum_levels"]))


def _require_searchable(lattice: Lattice, searches: int) -> None:
    if searches < 0:
        raise ConfigurationError(
            f"model.levels: found levels of {-searches:,} rounds more than there are. Expected one "
            "mapping a round at most. Remove the last ones, or raise model.rho"
        )
    if searches and lattice.size > _MOST_NODES:
        raise ConfigurationError(
            f"model.minimum_levels: the lattice has {lattice.size:,} nodes, expected at most "
            f"{_MOST_NODES:,}. Bound the levels of more quasi-identifiers, or use hierarchies of "
            "fewer levels"
        )
