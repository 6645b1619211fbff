"""Releases of one block, made in memory: their classes, and what they lose by the definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from counted_tables import Records
from pydantic import TypeAdapter
from references import may_be_a_group

from anonspark.config.models import ModelOptions, options_classes
from anonspark.core.criteria import Criteria
from anonspark.layers.generalize.classes import Generalizer
from anonspark.models.blockwise import BlockwiseModel, Contents
from anonspark.models.choosing import release_one_block
from anonspark.models.model import Task
from anonspark.models.registry import create_model


@dataclass(frozen=True)
class Release:
    """The sizes of a release's classes and what it loses."""

    sizes: np.ndarray
    gcp_total: float

    @property
    def classes(self) -> int:
        return len(self.sizes)

    @property
    def dm(self) -> int:
        return int((self.sizes**2).sum())

    @property
    def figures(self) -> dict[str, float]:
        """Figures by the names of the table ``summary``."""
        return {"classes": self.classes, "dm": self.dm, "gcp_total": self.gcp_total}


def options_of(model: Mapping[str, Any]) -> ModelOptions:
    """Read the section ``model`` of a configuration."""
    return TypeAdapter(options_classes()[model["name"]]).validate_python(dict(model))


def release(records: Records, criteria: Criteria, options: ModelOptions, seed: int = 1) -> Release:
    """Anonymize all records and check that each has a class and every class may be one."""
    generalizer = Generalizer(records.quasi_identifiers, "interval", shows_missing=True)
    model = create_model(options, Task(generalizer, criteria, seed=seed, task_rows=10**9))
    assert isinstance(model, BlockwiseModel)
    contents = Contents(
        records.codes,
        records.hashes,
        records.values,
        criteria.requirements,
        records.quasi_identifiers,
    )
    classes = release_one_block(model, contents)
    assert (np.sort(classes.order) == np.arange(len(records))).all()
    sizes = np.diff(classes.starts)
    if criteria.criteria:
        for members in np.split(classes.order, classes.starts[1:-1]):
            assert may_be_a_group(criteria, records.values, members.tolist())
    else:
        assert sizes.min() >= criteria.k
    own, starts = records.positions[classes.order], classes.starts[:-1]
    spans = np.maximum.reduceat(own, starts) - np.minimum.reduceat(own, starts)
    return Release(sizes, float((sizes * (spans / records.units).sum(axis=1)).sum()))
