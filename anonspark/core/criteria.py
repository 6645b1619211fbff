"""What every class has to satisfy, as the models ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from anonspark.core.criterion import Criterion
from anonspark.core.sensitive import SensitiveAttribute
from anonspark.kernels import criteria as kernel
from anonspark.kernels.criteria import Requirements

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Criteria:
    """What every class of every round has to satisfy.

    Parameters
    ----------
    k : int
        Smallest class size.
    criteria : tuple of Criterion
    sensitive : tuple of SensitiveAttribute
        The attributes that the criteria are about, each once.
    """

    k: int
    criteria: tuple[Criterion, ...] = ()
    sensitive: tuple[SensitiveAttribute, ...] = ()

    @cached_property
    def first_value(self) -> Counts:
        """Where the values of each sensitive attribute begin when all are numbered through."""
        sizes = [len(attribute.values) for attribute in self.sensitive]
        return np.cumsum([0, *sizes]).astype(np.int64)

    @cached_property
    def requirements(self) -> Requirements:
        """The same for the kernels."""
        names = [attribute.name for attribute in self.sensitive]
        nodes = [len(attribute.parents) for attribute in self.sensitive]
        parts = [np.zeros(0), *(attribute.shares for attribute in self.sensitive)]
        parents = [np.zeros(0, np.int64), *(attribute.parents for attribute in self.sensitive)]
        heights = [np.zeros(0), *(attribute.heights for attribute in self.sensitive)]
        return Requirements(
            k=self.k,
            kinds=np.array([getattr(kernel, one.type.kernel) for one in self.criteria], np.int64),
            attributes=np.array([names.index(one.attribute) for one in self.criteria], np.int64),
            bounds=np.array([(one.bound, one.c) for one in self.criteria], float).reshape(-1, 2),
            first_value=self.first_value,
            shares=np.concatenate(parts),
            first_node=np.cumsum([0, *nodes]).astype(np.int64),
            parents=np.concatenate(parents),
            heights=np.concatenate(heights).astype(np.float64),
        )

    def satisfied_by(self, rows: int, counts: Sequence[Counts]) -> bool:
        """Return whether a group may be a class.

        Parameters
        ----------
        rows : int
            Its records.
        counts : sequence of int64 ndarray
            Its records with each value of each sensitive attribute.
        """
        return rows >= self.k and self.violated_by(rows, counts) is None

    def violated_by(self, rows: int, counts: Sequence[Counts]) -> Criterion | None:
        """Return the first criterion beyond k that a group of records violates, if any."""
        if not self.criteria or not rows:
            return None
        flat = np.concatenate([np.asarray(part, np.int64) for part in counts])
        present = np.zeros(len(flat), np.int64)
        found = np.flatnonzero(flat)
        present[: len(found)] = found
        place = kernel.first_unsatisfied(self.requirements, flat, present, len(found), rows)
        return None if place < 0 else self.criteria[place]
