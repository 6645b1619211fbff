"""Try models on a sample to find the one that loses least, for users who do not choose one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.config.models import (
    AutoOptions,
    MicroaggregationOptions,
    ModelOptions,
    MondrianOptions,
)
from anonspark.core.arrays import Figures, Integers
from anonspark.core.columns import ATOM, RECORD_HASH
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.queries import Domain, draw_queries
from anonspark.core.uniform_mass import spread_intervals
from anonspark.engine.protocol import TASK
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError
from anonspark.kernels.criteria import group_satisfies
from anonspark.kernels.paths import root_path
from anonspark.layers.generalize.figures import exact_sums
from anonspark.layers.partition.distribution import received_records
from anonspark.layers.partition.node import Leaf
from anonspark.models.blockwise import BlockwiseModel, Contents, FormGroups, Groups
from anonspark.models.model import Task
from anonspark.models.registry import create_model
from anonspark.staged.keys import is_coded, key_columns
from anonspark.staged.records import RECORDS, Records, pack_tables, unpack_batches

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Classes:
    """The classes of a release.

    ``order`` (int64, shape (n,)) holds the records class by class, and ``starts`` (classes + 1,)
    where each class begins in it.
    """

    order: Codes
    starts: Codes

    def __add__(self, other: Classes | Groups) -> Classes:
        starts = np.concatenate([self.starts, self.starts[-1] + other.starts[1:]])
        return Classes(np.concatenate([self.order, other.order]), starts)


def release_one_block(model: BlockwiseModel, contents: Contents) -> Classes:
    """Anonymize records in all rounds as one task would, if they were a table by themselves.

    The records satisfy the criteria together. The classes are those of
    :func:`anonspark.pipeline.rounds.run_rounds` over the same records. Costs ``rho`` times the
    model's kernels.
    """
    rows = np.arange(len(contents.codes))
    finished = Classes(np.zeros(0, np.int64), np.zeros(1, np.int64))
    lost, price = Decimal(0), 0.0
    best: tuple[Decimal, Classes] | None = None
    for number in range(1, model.rounds + 1):
        groups = _form_groups(model, contents, rows, number)
        refined = groups.refined or groups
        whole = _penalty(model, contents, refined)
        if best is None or not model.undoes_rounds or lost + whole < best[0]:
            best = lost + whole, finished + refined
        if number == 1:
            price = float(_penalty(model, contents, groups) / len(rows))
        separation = model.separation(price)
        if number == model.rounds or separation is None:
            break
        normal = separation.normal_records(contents.grouped(groups.order, groups.starts))
        rows = np.sort(groups.order[~normal])
        if not _may_have_a_round(contents, rows):
            break
        sizes = np.add.reduceat(normal, groups.starts[:-1], dtype=np.int64)
        classes = Classes(groups.order[normal], np.concatenate([[0], np.cumsum(sizes)]))
        lost += _penalty(model, contents, classes)
        finished += classes
    if best is None:
        raise ValueError("a model has at least one round")
    return best[1]


def _form_groups(model: BlockwiseModel, contents: Contents, rows: Codes, number: int) -> Groups:
    """Return the groups of a round, whole."""
    quasi_identifiers = model.task.generalizer.quasi_identifiers
    zeros = (0,) * len(quasi_identifiers)
    cells = [identifier.of_round(number).root_cell for identifier in quasi_identifiers]
    low, high = zip(*cells, strict=True)
    path = int(root_path(model.task.seed % 2**64, number))
    leaf = Leaf(0, path, len(rows), zeros, zeros, low, high)
    former = model.former_of_round(number)
    forming = FormGroups({0: leaf}, former, model.task.generalizer, model.task.criteria)
    return forming.groups(contents.take(rows), np.zeros(len(rows), np.int64)).among(rows)


def satisfy_together(contents: Contents) -> bool:
    """Return whether records could be one class."""
    return _may_have_a_round(contents, np.arange(len(contents.codes)))


def _may_have_a_round(contents: Contents, rows: Codes) -> bool:
    """Return whether records left over could be a class."""
    requirements = contents.requirements
    counts = np.zeros(len(requirements.shares), np.int64)
    return bool(
        group_satisfies(
            requirements, contents.values, rows, 0, len(rows), counts, np.empty_like(counts)
        )
    )


def _penalty(model: BlockwiseModel, contents: Contents, classes: Classes | Groups) -> Decimal:
    penalties = model.task.generalizer.penalty(contents.codes[classes.order], classes.starts)
    (total,) = exact_sums(penalties)
    return total


_CANDIDATES = (MondrianOptions(name="smondrian"), MondrianOptions(name="su-mondrian"))
"""The models that are tried, and after them microaggregation: the fastest first."""

_EQUAL_LOSS = 1.01
"""A faster model is taken where it loses at most 1% more than the best one."""

_SAMPLED = 50_000

_QUERIES = 500
_SELECTIVITY = 0.05
_SANITY_BOUND = 0.001
_MOST_QUANTILES = 1001

_SENT = pa.schema([(TASK, pa.int32()), (RECORDS, pa.binary())])
_TRIED = pa.schema([("candidate", pa.int32()), ("loss", pa.float64()), ("rows", pa.int64())])


@dataclass(frozen=True)
class Choice:
    """The model that was chosen, and why: the loss of each candidate on ``rows`` records."""

    options: ModelOptions
    objective: Literal["loss", "queries"]
    rows: int
    losses: tuple[float, ...]

    def describe(self) -> str:
        """Describe it in a line."""
        tried = ", ".join(
            f"{_words(options)} {loss:.4g}"
            for options, loss in zip(candidates(self.objective), self.losses, strict=True)
        )
        return f"chose {_words(self.options)}. {self.objective} of {self.rows:,} records: {tried}"

    def as_dict(self) -> dict[str, Any]:
        """Return it for the manifest."""
        return {
            "model": _settings_of(self.options),
            "objective": self.objective,
            "rows": self.rows,
            "tried": [
                {"model": _settings_of(options), "loss": loss}
                for options, loss in zip(candidates(self.objective), self.losses, strict=True)
            ],
        }


def candidates(objective: Literal["loss", "queries"]) -> tuple[ModelOptions, ...]:
    """Return the options of the models that are tried for an objective.

    >>> [options.name for options in candidates("loss")]
    ['smondrian', 'su-mondrian', 'microaggregation']
    """
    of_groups: Literal["gcp", "queries"] = "queries" if objective == "queries" else "gcp"
    return *_CANDIDATES, MicroaggregationOptions(name="microaggregation", objective=of_groups)


def _settings_of(options: ModelOptions) -> dict[str, object]:
    return {"name": options.name, **options.model_dump(exclude_defaults=True, exclude={"name"})}


def _words(options: ModelOptions) -> str:
    return " ".join(map(str, _settings_of(options).values()))


def choose_model(options: AutoOptions, task: Task, records: Records, rows: int) -> Choice:
    """Try every candidate on the same sample of a table, and choose the fastest of the best.

    These are the candidates whose loss is at most 1% above the smallest. ``records`` are staged,
    and ``rows`` is their number.

    Records are drawn by the keyed hash of their content, so the choice depends on the table and the
    seed, not on the cluster. The sample is the whole table up to 50,000 records, and about as many
    of a larger one. A sample has fewer people, so its classes are wider than in the release: losses
    show which model is best, not what the release loses. One pass over the records and one task, of
    some ten seconds.
    """
    tried = candidates(options.objective)
    losses, sampled = try_models(
        tried, task, records, share=_SAMPLED / rows, objective=options.objective
    )
    acceptable = min(losses) * _EQUAL_LOSS
    best = next(index for index, loss in enumerate(losses) if loss <= acceptable)
    return Choice(tried[best], options.objective, sampled, losses)


def try_models(
    tried: tuple[ModelOptions, ...],
    task: Task,
    records: Records,
    *,
    share: float,
    objective: Literal["loss", "queries"],
    only_if_satisfied: bool = False,
) -> tuple[tuple[float, ...], int]:
    """Compute the loss of each model on the same sample of a table, and the sample's size.

    The models can form the classes of one block. About a ``share`` of the records is drawn, or all
    from 1 on. With ``only_if_satisfied``, no model is tried on a sample that does not satisfy the
    criteria even as one class, because every model would form the same. The losses are empty if no
    model was tried. One pass over the records and one task.
    """
    names = key_columns(
        len(task.generalizer.quasi_identifiers), task.criteria, coded=is_coded(records.schema)
    )
    drawing = _Draw(min(share, 1.0), (*names, *({ATOM} & set(records.schema.names))))
    sample = records.packed.repartition(drawing, _SENT, tasks=1)
    trying = _TryModels(task, objective, tried, only_if_satisfied=only_if_satisfied)
    results = sample.map_batches(trying, _TRIED).collect()
    if not len(results):
        return (), 0
    losses = tuple(results.sort_by("candidate")["loss"].to_pylist())
    return losses, int(results["rows"][0].as_py())


@dataclass(frozen=True)
class _Draw:
    """Draws records by the hash of their content, with the columns that classes are formed by."""

    share: float
    names: tuple[str, ...]

    def __call__(self, packed: Batches) -> Batches:
        # Hashes are spread evenly over the signed integers of 64 bits.
        limit = np.iinfo(np.int64).min + self.share * 2.0**64
        for _, records in unpack_batches(packed, self.names):
            chosen = records.column(RECORD_HASH).to_numpy() < limit
            if self.share >= 1:
                chosen[:] = True
            if chosen.any():
                packed_records = pack_tables([records.filter(pa.array(chosen))])
                arrays = [pa.array([0], pa.int32()), packed_records]
                yield pa.RecordBatch.from_arrays(arrays, schema=_SENT)


@dataclass(frozen=True)
class _TryModels:
    """Anonymizes the sample with every candidate, in one task."""

    task: Task
    objective: Literal["loss", "queries"]
    tried: tuple[ModelOptions, ...]
    only_if_satisfied: bool

    def __call__(self, batches: Batches) -> Batches:
        """Measure what each candidate loses on the sample, which is one block.

        Yields nothing if the sample as a whole violates the criteria and only satisfied ones count.
        The contents are prepared once: they depend on the task, not on the candidate.
        """
        records = received_records(batches)
        if records is None:
            return
        generalizer = self.task.generalizer
        contents = None
        losses = []
        for options in self.tried:
            model = create_model(options, self.task)
            if not isinstance(model, BlockwiseModel):
                raise TypeError(f"{options.name} cannot be tried on one block")
            if contents is None:
                forming = FormGroups({}, model.group_former, generalizer, self.task.criteria)
                contents = forming.contents(records)
                if self.only_if_satisfied and not satisfy_together(contents):
                    return
            classes = release_one_block(model, contents)
            if self.objective == "queries":
                loss = query_error(contents, classes, generalizer.quasi_identifiers)
            else:
                codes = contents.codes[classes.order]
                penalties = generalizer.penalty(codes, classes.starts, by_sets=True)
                weights = sum(identifier.weight for identifier in generalizer.quasi_identifiers)
                loss = float(penalties.sum()) / (weights * records.num_rows)
            losses.append(loss)
        yield pa.RecordBatch.from_pydict(
            {
                "candidate": range(len(losses)),
                "loss": losses,
                "rows": [records.num_rows] * len(losses),
            },
            schema=_TRIED,
        )


def query_error(
    contents: Contents, classes: Classes, quasi_identifiers: Sequence[QuasiIdentifier]
) -> float:
    """Return the median relative error of counting queries over classes.

    It is computed as :mod:`anonspark.utility.workload` measures releases, with two differences: a
    missing value is a value after the largest, and queries use no sensitive attribute.
    """
    positions = contents.positions
    n = len(positions)
    domains = [
        _domain(positions[:, j], evenly=axis.is_category)
        for j, axis in enumerate(quasi_identifiers)
    ]
    queries = draw_queries(domains, [], count=_QUERIES, selectivity=_SELECTIVITY)
    true = np.zeros(_QUERIES)
    selected = np.empty(n, bool)
    for query in range(_QUERIES):
        selected[:] = True
        for j in np.flatnonzero(queries.asked[:, query]).tolist():
            column = positions[:, j]
            selected &= (queries.low[j, query] <= column) & (column <= queries.high[j, query])
        true[query] = selected.sum()
    sizes = np.diff(classes.starts).astype(np.float64)
    share = np.ones((len(sizes), _QUERIES))
    for j, identifier in enumerate(quasi_identifiers):
        low, high = _regions(contents.codes[classes.order, j], classes.starts, identifier)
        asked = np.flatnonzero(queries.asked[j])
        covered = spread_intervals(low, high, whole=identifier.step > 0)
        share[:, asked] *= covered.shares(queries.low[j, asked], queries.high[j, asked])
    estimated = sizes @ share
    errors = np.abs(estimated - true) / np.maximum(true, _SANITY_BOUND * n)
    return float(np.median(errors))


def _domain(positions: Figures, *, evenly: bool) -> Domain:
    """Return where ranges may begin and end: all values, or quantiles of many."""
    values = np.unique(positions)
    if len(values) > _MOST_QUANTILES:
        shares = np.linspace(0, 1, _MOST_QUANTILES)
        values = np.unique(np.quantile(positions, shares, method="inverted_cdf"))
    counts = np.bincount(
        np.searchsorted(values, positions, side="right") - 1, minlength=len(values)
    )
    return Domain(values, counts / len(positions), evenly)


def _regions(codes: Integers, starts: Integers, axis: QuasiIdentifier) -> tuple[Figures, Figures]:
    """Return the lowest and highest position that each class's published value covers."""
    low = np.minimum.reduceat(codes, starts[:-1])
    high = np.maximum.reduceat(codes, starts[:-1])
    if axis.hierarchy is not None:
        leaves = len(axis.categories)
        low, high = np.minimum(low, leaves - 1), np.minimum(high, leaves - 1)
        levels = axis.hierarchy.lowest_common_level(low, high)
        for level in np.unique(levels):
            chosen = np.flatnonzero(levels == level)
            nodes = axis.hierarchy.nodes(int(level), np.arange(leaves))
            ancestors = nodes[low[chosen]]
            low[chosen] = np.searchsorted(nodes, ancestors)
            high[chosen] = np.searchsorted(nodes, ancestors, side="right") - 1
    return axis.positions(low), axis.positions(high)


LEAST_ROWS = 5_000
"""Fewest records for a sample. For smaller tables all models can be compared in seconds."""

RIVALS: tuple[ModelOptions, ...] = (
    MondrianOptions(name="su-mondrian"),
    MicroaggregationOptions(name="microaggregation"),
)
"""Candidates in addition to a model: the default, and the one that usually loses least. More would
take longer than a line is worth."""

_MOST_SAMPLED = 20_000
_LEAST_SAMPLED = 1_000
_CLASSES = 20
_ONE_IN = 1_000

_MUCH_LESS = 0.8
"""Up to this share of the loss another model is worth a line."""


@dataclass(frozen=True)
class Alternative:
    """A model that loses much less than that of the run.

    ``override`` is the value of ``--set`` to use it, ``share`` its loss as a share of the run's
    loss on a sample of ``rows`` records.

    >>> Alternative("su-mondrian", "model.name=su-mondrian", 0.6, 2000).describe()
    'su-mondrian would lose about 40% less (tried on 2,000 records): --set model.name=su-mondrian'
    """

    model: str
    override: str
    share: float
    rows: int

    def describe(self) -> str:
        """Describe it in a line."""
        return (
            f"{self.model} would lose about {1 - self.share:.0%} less (tried on {self.rows:,} "
            f"records): --set {shlex.quote(self.override)}"
        )


def find_better_model(
    options: ModelOptions, task: Task, records: Records, rows: int
) -> Alternative | None:
    """Try the other models on a small sample, and return the one that loses least, or None.

    None is returned if no model loses much less than the run's, if a sample cannot be taken (the
    table is small, or k is large), or if the run's model optimizes another loss or forms no blocks.
    One pass over the records and one task, which gets :func:`records_to_try` of them. Keyed hashes
    of their content draw them, so the result only depends on the table and the seed.
    """
    sampled = records_to_try(rows, task.criteria.k)
    if not sampled or getattr(options, "objective", "gcp") != "gcp":
        return None
    if not _forms_blocks(options, task):
        return None
    others = [rival for rival in RIVALS if rival != options and _forms_blocks(rival, task)]
    tried = (options, *others)
    losses, drawn = try_models(
        tried, task, records, share=sampled / rows, objective="loss", only_if_satisfied=True
    )
    if not losses or losses[0] <= 0:
        return None
    loss, *rest = losses
    if not rest or min(rest) > _MUCH_LESS * loss:
        return None
    best = others[rest.index(min(rest))]
    return Alternative(best.name, _override(options, best), min(rest) / loss, drawn)


def records_to_try(rows: int, k: int) -> int:
    """Return how many records of a table the models are tried on.

    One in 1,000, at least 1,000 and 20 classes of k, and at most 20,000. 0 for a small table, and
    if 20 classes are more.

    >>> records_to_try(4_000, k=5), records_to_try(3_000_000, k=5), records_to_try(9_000, k=2_000)
    (0, 3000, 0)
    """
    least = max(_LEAST_SAMPLED, _CLASSES * k)
    if rows < LEAST_ROWS or least > _MOST_SAMPLED:
        return 0
    return min(max(least, rows // _ONE_IN), _MOST_SAMPLED)


def _forms_blocks(options: ModelOptions, task: Task) -> bool:
    """Return whether a model takes the task, and can be tried on one block."""
    try:
        return isinstance(create_model(options, task), BlockwiseModel)
    except ConfigurationError:
        return False


def _override(options: ModelOptions, other: ModelOptions) -> str:
    """Return the value of ``--set`` that replaces a model by another with other options."""
    settings = {"name": other.name, **other.model_dump(exclude_defaults=True, exclude={"name"})}
    replaces = options.model_dump(exclude_defaults=True).keys() - {"name"}
    if len(settings) == 1 and not replaces:
        return f"model.name={other.name}"
    return f"model={{{', '.join(f'{name}: {value}' for name, value in settings.items())}}}"
