"""A model's release of one block, in one process: what its tasks would do, without a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from anonspark.kernels.criteria import group_satisfies
from anonspark.kernels.paths import root_path
from anonspark.layers.generalize.figures import exact_sums
from anonspark.layers.partition.node import Leaf
from anonspark.models.blockwise import BlockwiseModel, Contents, FormGroups

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

    def __add__(self, other: Classes) -> Classes:
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
        whole = _penalty(model, contents, groups)
        if best is None or not model.undoes_rounds or lost + whole < best[0]:
            best = lost + whole, finished + groups
        if number == 1:
            price = float(whole / len(rows))
        separation = model.separation(price)
        if number == model.rounds or separation is None:
            break
        normal = separation.normal_records(
            contents.codes,
            contents.normalized,
            contents.values,
            groups.order,
            groups.starts,
            contents.requirements,
        )
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


def _form_groups(model: BlockwiseModel, contents: Contents, rows: Codes, number: int) -> Classes:
    """Return the groups of a round, whole; records are in canonical order in each."""
    quasi_identifiers = model.task.generalizer.quasi_identifiers
    nothing = (0,) * len(quasi_identifiers)
    cells = [one.of_round(number).root_cell for one in quasi_identifiers]
    low, high = zip(*cells, strict=True)
    path = int(root_path(model.task.seed % 2**64, number))
    leaf = Leaf(0, path, len(rows), nothing, nothing, low, high)
    forming = FormGroups({0: leaf}, model.group_former, model.task.generalizer, model.task.criteria)
    ((order, groups),) = forming.groups(contents.take(rows), np.zeros(len(rows), np.int64))
    return Classes(rows[order], groups.starts)


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


def _penalty(model: BlockwiseModel, contents: Contents, classes: Classes) -> Decimal:
    penalties = model.task.generalizer.penalty(contents.codes[classes.order], classes.starts)
    (total,) = exact_sums(penalties)
    return total
