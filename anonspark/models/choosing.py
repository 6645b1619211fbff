"""Trying models on a sample: which one loses least, for those who leave the choice to us."""

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

    Parameters
    ----------
    order : int64 ndarray of shape (n,)
        Records, class by class.
    starts : int64 ndarray of shape (classes + 1,)
        Where each class begins in ``order``.
    """

    order: Codes
    starts: Codes

    def __add__(self, other: Classes | Groups) -> Classes:
        starts = np.concatenate([self.starts, self.starts[-1] + other.starts[1:]])
        return Classes(np.concatenate([self.order, other.order]), starts)


def release_one_block(model: BlockwiseModel, contents: Contents) -> Classes:
    """Anonymize records as one task would anonymize a table of them alone, in all rounds.

    Parameters
    ----------
    model : BlockwiseModel
    contents : Contents
        Records that satisfy the criteria together.

    Notes
    -----
    The classes are those of :func:`anonspark.pipeline.rounds.run_rounds` over the same records.
    ``rho`` times the cost of the model's kernels.
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
        kept = Classes(groups.order[normal], np.concatenate([[0], np.cumsum(sizes)]))
        lost += _penalty(model, contents, kept)
        finished += kept
    if best is None:
        raise ValueError("a model has at least one round")
    return best[1]


def _form_groups(model: BlockwiseModel, contents: Contents, rows: Codes, number: int) -> Groups:
    """Return the groups of a round, whole."""
    quasi_identifiers = model.task.generalizer.quasi_identifiers
    nothing = (0,) * len(quasi_identifiers)
    cells = [one.of_round(number).root_cell for one in quasi_identifiers]
    low, high = zip(*cells, strict=True)
    path = int(root_path(model.task.seed % 2**64, number))
    leaf = Leaf(0, path, len(rows), nothing, nothing, low, high)
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
    """The model that was chosen, and why.

    Parameters
    ----------
    options : ModelOptions
        Of the model that is taken.
    objective : str
    rows : int
        Records that models were tried on.
    losses : tuple of float
        Loss of each candidate.
    """

    options: ModelOptions
    objective: Literal["loss", "queries"]
    rows: int
    losses: tuple[float, ...]

    def describe(self) -> str:
        """Describe it in a line."""
        tried = ", ".join(
            f"{_words(one)} {loss:.4g}"
            for one, loss in zip(candidates(self.objective), self.losses, strict=True)
        )
        return f"chose {_words(self.options)}. {self.objective} of {self.rows:,} records: {tried}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as the manifest has it."""
        return {
            "model": _settings_of(self.options),
            "objective": self.objective,
            "rows": self.rows,
            "tried": [
                {"model": _settings_of(one), "loss": loss}
                for one, loss in zip(candidates(self.objective), self.losses, strict=True)
            ],
        }


def candidates(objective: Literal["loss", "queries"]) -> tuple[ModelOptions, ...]:
    """Return the options of the models that are tried for an objective."""
    of_groups: Literal["gcp", "queries"] = "queries" if objective == "queries" else "gcp"
    return *_CANDIDATES, MicroaggregationOptions(name="microaggregation", objective=of_groups)


def _settings_of(options: ModelOptions) -> dict[str, object]:
    return {"name": options.name, **options.model_dump(exclude_defaults=True, exclude={"name"})}


def _words(options: ModelOptions) -> str:
    return " ".join(map(str, _settings_of(options).values()))


def choose_model(options: AutoOptions, task: Task, records: Records, rows: int) -> Choice:
    """Try every candidate on the same sample of a table, and take the best one.

    The best one is the fastest of those whose loss is at most 1% above the smallest loss.

    Parameters
    ----------
    options : AutoOptions
    task : Task
    records : Records
        As staged.
    rows : int
        Their number.

    Returns
    -------
    Choice

    Notes
    -----
    Records are drawn by the keyed hash of their content, so the choice depends on the table and the
    seed, not on the cluster. The sample is the whole table up to 50,000 records. Of larger ones
    about so many are drawn. In a sample people are fewer, so classes are wider than in the release:
    losses show which model is best, not what the release loses. One pass over the records and one
    task, of some ten seconds.
    """
    tried = candidates(options.objective)
    losses, sampled = try_models(
        tried, task, records, share=_SAMPLED / rows, objective=options.objective
    )
    enough = min(losses) * _EQUAL_LOSS
    best = next(place for place, loss in enumerate(losses) if loss <= enough)
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
    """Return what models lose on the same sample of a table, and how many records it has.

    Parameters
    ----------
    tried : tuple of ModelOptions
        Of models that can form the classes of one block.
    task : Task
    records : Records
        As staged.
    share : float
        Of the records, about so many are drawn. From 1 on all are.
    objective : str
        What the losses are.
    only_if_satisfied : bool
        Whether nothing is tried on a sample that does not satisfy the criteria even as one class,
        of which every model makes the same.

    Returns
    -------
    losses : tuple of float
        Empty where no record was drawn, or nothing was tried.
    rows : int

    Notes
    -----
    One pass over the records and one task.
    """
    names = key_columns(
        len(task.generalizer.quasi_identifiers), task.criteria, coded=is_coded(records.schema)
    )
    drawing = _Draw(min(share, 1.0), (*names, *({ATOM} & set(records.schema.names))))
    sample = records.packed.repartition(drawing, _SENT, tasks=1)
    trying = _TryModels(task, objective, tried, only_if_satisfied=only_if_satisfied)
    found = sample.map_batches(trying, _TRIED).collect()
    if not len(found):
        return (), 0
    losses = tuple(found.sort_by("candidate")["loss"].to_pylist())
    return losses, int(found["rows"][0].as_py())


@dataclass(frozen=True)
class _Draw:
    """Draws records by the hash of their content, and of them what classes are formed by."""

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
                own = pack_tables([records.filter(pa.array(chosen))])
                arrays = [pa.array([0], pa.int32()), own]
                yield pa.RecordBatch.from_arrays(arrays, schema=_SENT)


@dataclass(frozen=True)
class _TryModels:
    """Anonymizes the sample with every candidate, in one task."""

    task: Task
    objective: Literal["loss", "queries"]
    tried: tuple[ModelOptions, ...]
    only_if_satisfied: bool

    def __call__(self, batches: Batches) -> Batches:
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
                weights = sum(one.weight for one in generalizer.quasi_identifiers)
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

    As :mod:`anonspark.utility.workload` measures releases, with two differences: a missing value
    is one behind the largest, and queries ask for no sensitive attribute.
    """
    positions = contents.positions
    n = len(positions)
    domains = [
        _domain(positions[:, j], evenly=one.is_category) for j, one in enumerate(quasi_identifiers)
    ]
    queries = draw_queries(domains, [], count=_QUERIES, selectivity=_SELECTIVITY)
    true = np.zeros(_QUERIES)
    selected = np.empty(n, bool)
    for query in range(_QUERIES):
        selected[:] = True
        for j in np.flatnonzero(queries.asked[:, query]).tolist():
            own = positions[:, j]
            selected &= (queries.low[j, query] <= own) & (own <= queries.high[j, query])
        true[query] = selected.sum()
    sizes = np.diff(classes.starts).astype(np.float64)
    share = np.ones((len(sizes), _QUERIES))
    for j, one in enumerate(quasi_identifiers):
        low, high = _regions(contents.codes[classes.order, j], classes.starts, one)
        asked = np.flatnonzero(queries.asked[j])
        covered = spread_intervals(low, high, whole=one.step > 0)
        share[:, asked] *= covered.shares(queries.low[j, asked], queries.high[j, asked])
    estimated = sizes @ share
    errors = np.abs(estimated - true) / np.maximum(true, _SANITY_BOUND * n)
    return float(np.median(errors))


def _domain(positions: Figures, *, evenly: bool) -> Domain:
    """Return where ranges may begin and end: all values, or quantiles of many."""
    values = np.unique(positions)
    if len(values) > _MOST_QUANTILES:
        places = np.linspace(0, 1, _MOST_QUANTILES)
        values = np.unique(np.quantile(positions, places, method="inverted_cdf"))
    counts = np.bincount(
        np.searchsorted(values, positions, side="right") - 1, minlength=len(values)
    )
    return Domain(values, counts / len(positions), evenly)


def _regions(codes: Integers, starts: Integers, one: QuasiIdentifier) -> tuple[Figures, Figures]:
    """Return the lowest and highest position that each class's published value covers."""
    low = np.minimum.reduceat(codes, starts[:-1])
    high = np.maximum.reduceat(codes, starts[:-1])
    if one.hierarchy is not None:
        leaves = len(one.categories)
        low, high = np.minimum(low, leaves - 1), np.minimum(high, leaves - 1)
        levels = one.hierarchy.lowest_common_level(low, high)
        for level in np.unique(levels):
            own = np.flatnonzero(levels == level)
            nodes = one.hierarchy.nodes(int(level), np.arange(leaves))
            ancestors = nodes[low[own]]
            low[own] = np.searchsorted(nodes, ancestors)
            high[own] = np.searchsorted(nodes, ancestors, side="right") - 1
    return one.positions(low), one.positions(high)


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

    Parameters
    ----------
    model : str
    override : str
        What ``--set`` takes to have it.
    share : float
        Of the run's loss on the sample.
    rows : int
        Records of the sample.
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
    """Try the other models beside that of a run, on a small sample.

    Parameters
    ----------
    options : ModelOptions
        Of the model of the run.
    task : Task
    records : Records
        As staged.
    rows : int
        Their number.

    Returns
    -------
    Alternative or None
        The one with the smallest loss. None if none loses much less, the model has another
        objective or forms no blocks, or the table is small or k is large for a sample.

    Notes
    -----
    One pass over the records and one task, which is given :func:`records_to_try` of them, by the
    keyed hash of their content, so that it depends on the table and the seed alone.
    """
    sampled = records_to_try(rows, task.criteria.k)
    if not sampled or getattr(options, "objective", "gcp") != "gcp":
        return None
    if not _forms_blocks(options, task):
        return None
    others = [one for one in RIVALS if one != options and _forms_blocks(one, task)]
    tried = (options, *others)
    losses, drawn = try_models(
        tried,
        task,
        records,
        share=sampled / rows,
        objective="loss",
        only_if_satisfied=True,
    )
    if not losses or losses[0] <= 0:
        return None
    own, *rest = losses
    if not rest or min(rest) > _MUCH_LESS * own:
        return None
    best = others[rest.index(min(rest))]
    return Alternative(best.name, _override(options, best), min(rest) / own, drawn)


def records_to_try(rows: int, k: int) -> int:
    """Return how many records of a table the models are tried on.

    Parameters
    ----------
    rows : int
        Records of the table.
    k : int

    Returns
    -------
    int
        One in 1,000, but 1,000 and 20 classes at least and 20,000 at most. 0 of a small table, and
        where 20 classes are more.
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


def _override(own: ModelOptions, other: ModelOptions) -> str:
    """Return what replaces a model by another one, whose options the first may not have."""
    given = {"name": other.name, **other.model_dump(exclude_defaults=True, exclude={"name"})}
    replaces = own.model_dump(exclude_defaults=True).keys() - {"name"}
    if len(given) == 1 and not replaces:
        return f"model.name={other.name}"
    return f"model={{{', '.join(f'{name}: {value}' for name, value in given.items())}}}"
