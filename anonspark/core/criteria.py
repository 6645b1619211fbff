"""What every class has to satisfy, as the models ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from anonspark.core.criterion import Criterion
from anonspark.core.sensitive import SensitiveAttribute
from anonspark.core.units import Units
from anonspark.kernels import criteria as kernel
from anonspark.kernels.criteria import Requirements

Counts = npt.NDArray[np.int64]

_NEVER = np.iinfo(np.int64).max


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
    units : Units or None
        Of people, of whom a class has to have k, where they have several records; None where
        records are counted.
    """

    k: int
    criteria: tuple[Criterion, ...] = ()
    sensitive: tuple[SensitiveAttribute, ...] = ()
    units: Units | None = None

    @property
    def has_more_than_k(self) -> bool:
        """Whether a class has to satisfy more than to have k records."""
        return bool(self.criteria) or self.units is not None

    @cached_property
    def first_value(self) -> Counts:
        """Where the values of each sensitive attribute begin when all are numbered through."""
        sizes = [len(attribute.values) for attribute in self.sensitive]
        return np.cumsum([0, *sizes]).astype(np.int64)

    @cached_property
    def requirements(self) -> Requirements:
        """The same for the kernels, but for what is said of people."""
        return self._requirements(None)

    def requirements_among(self, units: int) -> Requirements:
        """Return the same for the kernels, for records of so many people.

        Parameters
        ----------
        units : int
            Those of the records, numbered behind all sensitive values.
        """
        return self.requirements if self.units is None else self._requirements(units)

    def _requirements(self, units: int | None) -> Requirements:
        names = [attribute.name for attribute in self.sensitive]
        nodes = [len(attribute.parents) for attribute in self.sensitive]
        parts = [np.zeros(0), *(attribute.shares for attribute in self.sensitive)]
        parents = [np.zeros(0, np.int64), *(attribute.parents for attribute in self.sensitive)]
        heights = [np.zeros(0), *(attribute.heights for attribute in self.sensitive)]
        kinds = [getattr(kernel, one.type.kernel) for one in self.criteria]
        attributes = [names.index(one.attribute) for one in self.criteria]
        bounds = [(float(one.bound), one.c) for one in self.criteria]
        certain = [_NEVER] * len(kinds)
        if self.units is not None and units is not None:
            # k people are k different values of what tells them apart.
            kinds.append(kernel.DISTINCT)
            attributes.append(len(names))
            bounds.append((float(self.k), 0.0))
            certain.append(self.units.of_fewer_than_k)
            nodes.append(0)
            parts.append(np.zeros(units))
        sizes = [len(part) for part in parts[1:]]
        return Requirements(
            k=self.k,
            kinds=np.array(kinds, np.int64),
            attributes=np.array(attributes, np.int64),
            bounds=np.array(bounds, float).reshape(-1, 2),
            certain=np.array(certain, np.int64),
            first_value=np.cumsum([0, *sizes]).astype(np.int64),
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
