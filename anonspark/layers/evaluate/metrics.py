"""Figures of a release, summed from its classes."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.columns import ROUND, SIZE, is_published
from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.labels import levels_text
from anonspark.engine.tasks import Batches
from anonspark.layers.generalize.figures import exact_sums
from anonspark.layers.generalize.full_domain import recode
from anonspark.layers.partition.lattice.domain import (
    AttributeGroups,
    Codes,
    Counts,
    Domain,
    Levels,
)
from anonspark.layers.partition.lattice.search import node_loss
from anonspark.layers.partition.lattice.tuples import Tuples
from anonspark.release.derived_figures import LossSums, Totals
from anonspark.staged.records import Records, bytes_of_each


@dataclass(frozen=True)
class RoundResult:
    """The figures of a round.

    Parameters
    ----------
    number : int
        Number of the round: 1, 2, ...
    rows : int
        Records of its table.
    left_over : int
        Records that went to the next round.
    penalty : Decimal
        ``gcp_total`` of the round's classes.
    penalty_if_last : Decimal
        ``gcp_total`` of the release, had the run ended with this round and its groups whole.
    squares_if_whole : int
        Sum of the squared sizes of the round's groups, as if they had been kept whole.
    levels : mapping of str to int or None
        Level that each quasi-identifier was recoded to, if it is one for the whole table.
    large_block : int
        Records of the largest block if it is far larger than usual, otherwise 0.
    staged_bytes : int
        Bytes of the records of the finished classes before they are compressed.
    price : float
        Price of :class:`anonspark.models.model.Anonymized`.
    """

    number: int
    rows: int
    left_over: int
    penalty: Decimal
    penalty_if_last: Decimal
    squares_if_whole: int
    levels: Mapping[str, int] | None = None
    large_block: int = 0
    staged_bytes: int = 0
    price: float = 0.0


_DECIMALS = pa.decimal128(38, 15)

_LABEL_BYTES = "label_bytes"


@dataclass(frozen=True)
class _SumUp:
    """Sums the classes of one task, by round and size."""

    quasi_identifiers: int

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the sums."""
        fields = [(ROUND, pa.int32()), (SIZE, pa.int64())]
        fields += [(name, pa.int64()) for name in ("classes", _LABEL_BYTES)]
        for index in range(self.quasi_identifiers):
            fields += [(f"{name}_{index}", _DECIMALS) for name in ("penalty", "loss")]
            fields += [(f"{name}_{index}", pa.int64()) for name in ("level", "generalized")]
        return pa.schema(fields)

    def __call__(self, batches: Batches) -> Batches:
        """Sum the classes of each batch by size. They are all of one round."""
        for batch in batches:
            sizes = batch.column(SIZE).to_numpy()
            order = np.argsort(sizes, kind="stable")
            different, starts = np.unique(sizes[order], return_index=True)
            columns: dict[str, pa.Array] = {
                ROUND: pa.repeat(batch.column(ROUND)[0], len(different)),
                SIZE: pa.array(different),
                "classes": pa.array(np.diff(np.append(starts, len(sizes)))),
            }
            published = [name for name in batch.schema.names if is_published(name)]
            label_bytes = sizes * sum(bytes_of_each(batch.column(name)) for name in published)
            columns[_LABEL_BYTES] = pa.array(np.add.reduceat(label_bytes[order], starts))
            for index in range(self.quasi_identifiers):
                for name in ("penalty", "loss"):
                    values = sizes * batch.column(f"{name}_{index}").to_numpy()
                    columns[f"{name}_{index}"] = pa.array(
                        exact_sums(values[order], starts), _DECIMALS
                    )
                levels = sizes * batch.column(f"level_{index}").to_numpy()
                wider = sizes * (batch.column(f"penalty_{index}").to_numpy() > 0)
                for name, values in (("level", levels), ("generalized", wider)):
                    columns[f"{name}_{index}"] = pa.array(np.add.reduceat(values[order], starts))
            yield pa.RecordBatch.from_pydict(columns, schema=self.schema)


def sum_up(classes: Records, quasi_identifiers: Sequence[QuasiIdentifier]) -> list[Totals]:
    """Sum staged classes, round by round. Rounds without a class are left out.

    One job, one shuffle of one row for each batch and class size, of which some hundreds differ.
    The result does not depend on the tasks.
    """
    summing = _SumUp(len(quasi_identifiers))
    summed = classes.map_batches(summing, summing.schema)
    names = [name for name in summing.schema.names if name not in (ROUND, SIZE)]
    rows = summed.aggregate([ROUND, SIZE], sums=names).collect().to_pylist()
    by_round: dict[int, Totals] = {}
    for row in rows:
        losses = tuple(
            _losses(row, identifier, index) for index, identifier in enumerate(quasi_identifiers)
        )
        pairs = zip(quasi_identifiers, losses, strict=True)
        totals = Totals(
            {row[SIZE]: row["classes"]},
            sum((weight_of(identifier) * lost.penalty for identifier, lost in pairs), Decimal(0)),
            losses,
            row[_LABEL_BYTES],
        )
        number = row[ROUND]
        by_round[number] = by_round[number] + totals if number in by_round else totals
    return [by_round[number] for number in sorted(by_round)]


def weight_of(quasi_identifier: QuasiIdentifier) -> Decimal:
    """Return the weight of an attribute in figures of all attributes together."""
    return Decimal(str(quasi_identifier.weight))


def _losses(row: Mapping[str, Any], quasi_identifier: QuasiIdentifier, index: int) -> LossSums:
    """Return the sums of an attribute."""
    penalty, iloss = row[f"penalty_{index}"], row[f"loss_{index}"]
    domain = quasi_identifier.domain_size
    return LossSums(
        row[f"generalized_{index}"],
        penalty,
        iloss,
        # ILoss has the whole domain in its denominator, this one all but one value.
        iloss * domain / max(domain - 1, 1) if quasi_identifier.is_category else penalty,
        Decimal(row[f"level_{index}"]) / quasi_identifier.height,
    )


MOST_NODES = 20
"""Nodes of a round that are published."""

# Classes that the driver merges, at some 50 bytes each.
_MOST_CLASSES = 2_000_000

_COUNT = "count"


@dataclass(frozen=True)
class _Encode:
    """Numbers the labels of the classes of one task, round by round."""

    attributes: tuple[AttributeGroups, ...]
    rounds: Mapping[int, Levels]

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the result."""
        groups = [(f"group_{index}", pa.int32()) for index in range(len(self.attributes))]
        return pa.schema([(ROUND, pa.int32()), *groups, (_COUNT, pa.int64())])

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            numbers = batch.column(ROUND).to_numpy()
            for number in np.unique(numbers).tolist():
                classes = batch.filter(pa.array(numbers == number))
                levels = self.rounds[number]
                groups = [
                    _groups(attribute, level, classes.column(f"lowest_{index}"))
                    for index, (attribute, level) in enumerate(
                        zip(self.attributes, levels, strict=True)
                    )
                ]
                columns = [classes.column(ROUND), *groups, classes.column(SIZE)]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _groups(attribute: AttributeGroups, level: int, labels: pa.Array) -> pa.Array:
    """Return the group of each label of a level."""
    if level == attribute.height:
        # One group, whatever its label.
        return pa.array(np.zeros(len(labels), np.int32))
    names = recode(attribute, level).labels
    return pc.index_in(labels.cast(pa.string()), value_set=names).cast(pa.int32())


@dataclass(frozen=True)
class _Loss:
    """Exact losses of nodes, from the published records in each group of the chosen node."""

    attributes: tuple[AttributeGroups, ...]
    levels: Levels
    records: Sequence[Counts]

    def of(self, levels: Levels) -> Fraction:
        """Return the loss of a node above the chosen one, from sums: no pass over the records."""
        counts_by_attribute = []
        for attribute, chosen_level, level, chosen_counts in zip(
            self.attributes, self.levels, levels, self.records, strict=True
        ):
            counts = np.zeros(attribute.number(level), np.int64)
            np.add.at(counts, attribute.between(chosen_level, level), chosen_counts)
            counts_by_attribute.append(counts)
        return node_loss(self.attributes, levels, counts_by_attribute)

    def ascending(self) -> Iterator[tuple[Fraction, Levels]]:
        """Yield the chosen node and all above it by loss, then by height.

        A step up never loses less, so the next best node is right above one that was yielded.
        """
        heights = [attribute.height for attribute in self.attributes]
        waiting = [(self.of(self.levels), sum(self.levels), self.levels)]
        seen = {self.levels}
        while waiting:
            loss, _, levels = heapq.heappop(waiting)
            yield loss, levels
            for index, level in enumerate(levels):
                above = (*levels[:index], level + 1, *levels[index + 1 :])
                if level < heights[index] and above not in seen:
                    seen.add(above)
                    heapq.heappush(waiting, (self.of(above), sum(above), above))


def node_rows(
    classes: Records,
    results: Sequence[RoundResult],
    quasi_identifiers: Sequence[QuasiIdentifier],
    number: int,
    *,
    shows_counts: bool,
) -> list[dict[str, object]]:
    """Describe the chosen node of each round, and the next best, for the table ``nodes``.

    ``classes`` and ``quasi_identifiers`` are what may be published, and ``number`` counts the
    classes. ``shows_counts`` says whether the release shows how many records it leaves out. There
    are no rows if the rounds have no levels, or for more than 2,000,000 classes.

    One job without a shuffle, which collects some numbers of each class. The driver merges the
    classes of 20 nodes a round, O(classes) each.
    """
    attributes = tuple(
        AttributeGroups(identifier, position)
        for position, identifier in enumerate(quasi_identifiers)
    )
    rounds = {
        result.number: tuple(result.levels[identifier.name] for identifier in quasi_identifiers)
        for result in results
        if result.levels is not None
    }
    if not rounds or number > _MOST_CLASSES:
        return []
    encode = _Encode(attributes, rounds)
    names = [ROUND, SIZE, *(f"lowest_{index}" for index in range(len(attributes)))]
    encoded = classes.map_batches(encode, encode.schema, names).collect()
    rows: list[dict[str, object]] = []
    for result in results:
        part = encoded.filter(pc.equal(encoded.column(ROUND), result.number))
        if part.num_rows:
            groups = [part.column(f"group_{index}").to_numpy() for index in range(len(attributes))]
            table = _tuples(attributes, rounds[result.number], groups, part[_COUNT].to_numpy())
            rows += _rows_of_round(result, table, shows_counts=shows_counts)
    return rows


def _tuples(
    attributes: tuple[AttributeGroups, ...], levels: Levels, groups: list[Codes], sizes: Counts
) -> Tuples:
    order = np.lexsort(groups[::-1])
    codes = np.column_stack(groups)[order].astype(np.int32)
    # Every class holds its records already: here it is a class that it has some.
    domain = Domain(attributes, Criteria(1))
    return Tuples(domain, levels, np.ascontiguousarray(codes), sizes[order])


def _rows_of_round(
    result: RoundResult, table: Tuples, *, shows_counts: bool
) -> Iterator[dict[str, object]]:
    """Yield the rows of the chosen node of a round and of the next best ones above it."""
    attributes = table.domain.attributes
    records = table.score(Criteria(1), by_group=True).groups
    bounds = np.cumsum(table.domain.groups(table.levels))[:-1]
    losses = _Loss(attributes, table.levels, np.split(records, bounds))
    for index, (loss_of_node, levels) in enumerate(islice(losses.ascending(), MOST_NODES), start=1):
        node = table.roll_up(levels)
        # A wider recoding would give some of the records left out a class: how many is secret.
        is_published = shows_counts and (index == 1 or not result.left_over)
        pairs = zip(table.domain.names, levels, strict=True)
        yield {
            "round": result.number,
            "node": index,
            "levels": levels_text(dict(pairs)),
            "height": sum(levels),
            "classes": node.tuples,
            "min_class_size": int(node.counts.min()),
            "suppressed": result.left_over if is_published else None,
            "loss": float(loss_of_node),
        }
