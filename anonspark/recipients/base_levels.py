"""The base of full-domain releases: levels that no release goes below, and classes as atoms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anonspark.config.models import FullDomainOptions
from anonspark.core.columns import (
    ATOM,
    CLASS_ID,
    SUBJECT,
    payload_column,
    quasi_identifier_column,
)
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy, Level
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.models.full_domain import FullDomain
from anonspark.models.model import Model, Task
from anonspark.pipeline.tasks import generalizer_of, task_of
from anonspark.recipients.base_partition import ATOMS, NameAtoms, PartitionMaker
from anonspark.recipients.freezing import PATTERN
from anonspark.staged.records import PACKED, PackRecords, Records

_STRATUM = "stratum"


@dataclass(frozen=True)
class BaseLevels:
    """The best node of all strata together.

    Parameters
    ----------
    levels : mapping of str to int
        Of every quasi-identifier.
    atoms : Table
        Of :data:`anonspark.recipients.base_partition.ATOMS`: its classes, each of one stratum.
        What the node suppresses is in none, and withheld from everybody.
    """

    levels: Mapping[str, int]
    atoms: Table


@dataclass(frozen=True)
class AboveBase:
    """Makes the model of a release: the best node at or above the base's.

    Parameters
    ----------
    options : FullDomainOptions
    levels : mapping of str to int
        Of the base.
    """

    options: FullDomainOptions
    levels: Mapping[str, int]

    def __call__(self, task: Task) -> Model:
        """Return the model for the quasi-identifiers of a release."""
        own = [one.name for one in task.generalizer.quasi_identifiers]
        least = dict(self.options.minimum_levels)
        least = {name: max(self.levels[name], least.get(name, 0)) for name in own}
        most = {name: own for name, own in self.options.maximum_levels.items() if name in least}
        changed = {"minimum_levels": least, "maximum_levels": most, "levels": []}
        return FullDomain(self.options.model_copy(update=changed), task)


def base_levels(
    maker: PartitionMaker,
    options: FullDomainOptions,
    snapshot: Snapshot,
    becomes: Mapping[int, int],
) -> BaseLevels:
    """Find the best node for all strata together, in one lattice.

    Parameters
    ----------
    maker : PartitionMaker
    options : FullDomainOptions
        Of the base.
    snapshot : Snapshot
        Of :meth:`anonspark.recipients.base_partition.PartitionMaker.snapshot`.
    becomes : mapping of int to int
        What the pattern of each stratum becomes.

    Raises
    ------
    GuaranteeError
        If no node has a class that satisfies what is demanded of joint classes, or all suppress
        too much.

    Notes
    -----
    A pass that tells the stratum of each record, and the passes of
    :class:`anonspark.models.full_domain.FullDomain`.
    """
    d = len(snapshot.quasi_identifiers)
    payload = sum(name.startswith(payload_column(0)[:-1]) for name in snapshot.records.schema.names)
    patterns = sorted({one for one in becomes.values() if one})
    stratum = _axis(snapshot, [str(one) for one in patterns])
    quasi_identifiers = (*snapshot.quasi_identifiers, stratum)
    fields = list(snapshot.records.schema)
    schema = pa.schema(
        [
            *fields,
            (quasi_identifier_column(d), pa.string()),
            (payload_column(payload), pa.int64()),
        ]
    )
    tell = _TellStrata(dict(becomes), schema)
    packed = snapshot.records.map_batches(_Packed(tell), PACKED)
    path = f"{maker.staging.records}/strata"
    packed.stage(path)
    records = Records(maker.engine.staged([path], PACKED), schema)
    rows = sum(records.packed.select(["rows"]).collect()["rows"].to_pylist())
    own = replace(snapshot, records=records, rows=rows, quasi_identifiers=quasi_identifiers)
    generalizer = generalizer_of(maker.configuration, quasi_identifiers)
    task = task_of(maker.configuration, generalizer, snapshot.criteria)
    changed = {
        "residual": "drop",
        "maximum_levels": options.maximum_levels | {stratum.name: 0},
        "levels": [one | {stratum.name: 0} for one in options.levels],
    }
    model = FullDomain(options.model_copy(update=changed), task)
    rounds = maker.run(model, own, generalizer, "levels")
    names = [CLASS_ID, SUBJECT, payload_column(payload)]
    atoms = rounds.finished.map_batches(NameAtoms(maker.generation), ATOMS, names)
    levels = dict(rounds.results[0].levels or {})
    del levels[stratum.name]
    return BaseLevels(levels, atoms)


def _axis(snapshot: Snapshot, patterns: list[str]) -> QuasiIdentifier:
    """Return strata as a quasi-identifier that is never recoded."""
    name = _STRATUM
    while name in (one.name for one in snapshot.quasi_identifiers):
        name += "_"
    hierarchy = Hierarchy(tuple(patterns), (Level((0,), ("*",)),))
    return QuasiIdentifier(
        name,
        "category",
        pa.string(),
        0,
        len(patterns) - 1,
        categories=tuple(patterns),
        hierarchy=hierarchy,
    )


@dataclass(frozen=True)
class _TellStrata:
    """Yields the records that somebody gets and that have no atom, with their strata."""

    becomes: Mapping[int, int]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            patterns = batch.column(PATTERN).to_numpy(zero_copy_only=False)
            now = np.array([self.becomes.get(one, 0) for one in patterns.tolist()], np.int64)
            if ATOM in batch.schema.names:
                now[batch.column(ATOM).is_valid().to_numpy(zero_copy_only=False)] = 0
            kept = batch.filter(pa.array(now != 0))
            strata = pa.array(now[now != 0])
            arrays = [*kept.columns, strata.cast(pa.string()), strata]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@dataclass(frozen=True)
class _Packed:
    """Packs what a function yields."""

    function: _TellStrata

    def __call__(self, batches: Batches) -> Batches:
        return PackRecords()(self.function(batches))
