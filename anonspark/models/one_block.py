"""A model's release of one block, in one process: what its tasks would do, without a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from anonspark.generalize.figures import exact_sums
from anonspark.kernels.paths import root_path
from anonspark.models.blockwise import BlockwiseModel, Contents, FormGroups
from anonspark.partition.growing import Leaf
from anonspark.privacy.criteria import Criteria

__all__ = ["Classes", "release_one_block"]

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


@dataclass(frozen=True)
class _Round:
    """What a round makes of its records: its groups whole, and what they keep of them."""

    whole: Classes
    kept: Classes
    left_over: Codes


def release_one_block(model: BlockwiseModel, contents: Contents) -> Classes:
    """Anonymize records as one task would anonymize a table of them alone, in all rounds.

    Parameters
    ----------
    model : BlockwiseModel
    contents : Contents
        Records that satisfy the criteria together.

    Notes
    -----
    The classes are those of :func:`anonspark.rounds.run_rounds` over the same records. ``rho``
    times the cost of the model's kernels.
    """
    rows = np.arange(len(contents.codes))
    finished = Classes(np.zeros(0, np.int64), np.zeros(1, np.int64))
    lost, price = Decimal(0), 0.0
    best: tuple[Decimal, Classes] | None = None
    for number in range(1, model.rounds + 1):
        found = _run_round(model, contents, rows, number, price)
        whole = _penalty(model, contents, found.whole)
        if number == 1 and model.undoes_rounds:
            price = float(whole / len(rows))
            found = _run_round(model, contents, rows, number, price)
        if best is None or not model.undoes_rounds or lost + whole < best[0]:
            best = lost + whole, finished + found.whole
        last = number == model.rounds or not _may_have_a_round(
            model.task.criteria, contents.values[found.left_over]
        )
        if last:
            break
        lost += _penalty(model, contents, found.kept)
        finished += found.kept
        rows = found.left_over
    if best is None:
        raise ValueError("a model has at least one round")
    return best[1]


def _run_round(
    model: BlockwiseModel, contents: Contents, rows: Codes, number: int, price: float
) -> _Round:
    quasi_identifiers = model.task.generalizer.quasi_identifiers
    d = len(quasi_identifiers)
    path = int(root_path(model.task.seed % 2**64, number))
    leaf = Leaf(0, path, len(rows), (0,) * d, (0,) * d, (None,) * d, (None,) * d)
    forming = FormGroups({0: leaf}, model.group_former, model.task.generalizer, model.task.criteria)
    own = contents.take(rows)
    ((order, groups),) = forming.groups(own, np.zeros(len(rows), np.int64))
    separation = model.separation(price)
    if separation is None:
        normal = np.ones(len(order), bool)
    else:
        normal = separation.normal_records(
            own.codes, own.normalized, own.values, order, groups.starts
        )
    sizes = np.add.reduceat(normal, groups.starts[:-1], dtype=np.int64)
    return _Round(
        Classes(rows[order], groups.starts),
        Classes(rows[order[normal]], np.concatenate([[0], np.cumsum(sizes)])),
        np.sort(rows[order[~normal]]),
    )


def _may_have_a_round(criteria: Criteria, values: Codes) -> bool:
    """Return whether records left over could be a class."""
    if len(values) < criteria.k:
        return False
    first = criteria.first_value
    counts = [
        np.bincount(values[:, place] - first[place], minlength=int(first[place + 1] - first[place]))
        for place in range(len(criteria.sensitive))
    ]
    return criteria.satisfied_by(len(values), counts)


def _penalty(model: BlockwiseModel, contents: Contents, classes: Classes) -> Decimal:
    penalties = model.task.generalizer.penalty(contents.codes[classes.order], classes.starts)
    (total,) = exact_sums(penalties)
    return total
