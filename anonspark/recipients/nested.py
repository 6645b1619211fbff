"""Nested releases: all are made of atoms, groups that no release of a plan divides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config.models import FullDomainOptions
from anonspark.core.columns import ATOM, SUBJECT
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.strata import PEOPLE, Soundness, join_strata
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.layers.publish.staging import Staging
from anonspark.ledger.key import Key
from anonspark.ledger.ledger import Ledger
from anonspark.models.atoms import MergedAtoms
from anonspark.pipeline.choosing import ModelMaker
from anonspark.progress import Progress
from anonspark.recipients.base_levels import AboveBase, base_levels
from anonspark.recipients.base_partition import ATOMS, PartitionMaker, strata_of
from anonspark.recipients.freezing import PATTERN
from anonspark.recipients.frozen_input import OpenFrozen
from anonspark.recipients.frozen_source import FrozenSource, rows_of
from anonspark.recipients.making import too_few_left
from anonspark.recipients.plan import Plan
from anonspark.recipients.reuse import reused_atoms
from anonspark.recipients.strategy import Making
from anonspark.staged.records import PACKED, PackRecords, Records

_GROUPED = "grouped"
_ATOMS = "atoms"
_NOW = "pattern_now"


@dataclass(frozen=True)
class Nested:
    """Releases that are all made of atoms.

    Parameters
    ----------
    grouped : FrozenSource
        The records of the source, those that anybody gets with their atoms.
    requested, given : mapping of int to int
        Records of each pattern, as asked for and as given.
    described : tuple of QuasiIdentifier
        With the ranges of all records that are given to anybody.
    atoms : Table
        Who is in which atom, for the ledger.
    make_model : callable
        Makes the models of releases.
    """

    grouped: FrozenSource
    requested: Mapping[int, int]
    given: Mapping[int, int]
    described: tuple[QuasiIdentifier, ...]
    atoms: Table
    make_model: ModelMaker

    def making(self, place: int) -> Making:
        """Return what a release is made of: the recipient's records and their atoms."""
        requested = rows_of(self.requested, place)
        return Making(
            OpenFrozen(self.grouped, place),
            requested,
            requested - rows_of(self.given, place),
            self.make_model,
            self.described,
        )


@dataclass(frozen=True)
class NestedMaker:
    """Cuts a source into atoms.

    Parameters
    ----------
    engine : Engine
    plan : Plan
    staging : Staging
        Of the plan.
    progress : Progress
    key : Key
        Of the hashes of sensitive values.
    ledger : Ledger or None
    """

    engine: Engine
    plan: Plan
    staging: Staging
    progress: Progress
    key: Key
    ledger: Ledger | None

    def make(self, frozen: FrozenSource, counts: Mapping[int, int]) -> Nested:
        """Bring the records of a source together with their atoms.

        Parameters
        ----------
        frozen : FrozenSource
        counts : mapping of int to int
            Records of each pattern.

        Notes
        -----
        One pass over the source that stages what atoms are made of; those of a ledger cost as
        :func:`anonspark.recipients.reuse.reused_atoms`, others as
        :meth:`anonspark.recipients.base_partition.PartitionMaker.atoms`; then one shuffle of the
        source, two where there are atoms of a ledger.
        """
        generation = 0 if self.ledger is None else self.ledger.generation
        maker = PartitionMaker(
            self.engine, self.plan.partition, self.staging, self.progress, generation
        )
        described = None
        if self.staging.state.kept(_GROUPED) is None:
            snapshot = self._group(frozen, maker)
            described = snapshot.quasi_identifiers
        told = json.loads(self.staging.state.kept(_GROUPED) or "{}")
        place = f"{self.staging.place.kept}"
        grouped = FrozenSource.again(self.engine, f"{place}/{_GROUPED}", told)
        given = {int(pattern): number for pattern, number in told["given"].items()}
        if described is None or isinstance(self.plan.base.model, FullDomainOptions):
            # Of which the base withholds more.
            described = maker.snapshot(grouped).quasi_identifiers
        atoms = self.engine.staged([f"{place}/{_ATOMS}"], ATOMS)
        make_model: ModelMaker = MergedAtoms
        options = self.plan.base.model
        if isinstance(options, FullDomainOptions):
            make_model = AboveBase(options, told["levels"])
        return Nested(grouped, counts, given, described, atoms, make_model)

    def _group(self, frozen: FrozenSource, maker: PartitionMaker) -> Snapshot:
        """Stage the atoms, and the records with their atoms."""
        demand = Soundness(self.plan.demand.k, self.plan.demand.diversity)
        people = {PEOPLE: demand.k} if self.plan.record else {}
        of_strata = Soundness(demand.k, {**demand.diversity, **people})
        place, files = self.staging.place.kept, self.engine.files
        reused = self._reused(frozen, demand)
        tagged = frozen
        if reused is not None:
            with self.progress.stage("atoms of the ledger"):
                path = f"{self.staging.records}/reused"
                reused.stage(path)
                reused = self.engine.staged([path], ATOMS)
                tagged = _with_atoms(
                    self.engine, frozen, reused, f"{self.staging.records}/tagged", new=True
                )
        counts = tagged.strata(without_atom=True)
        with self.progress.stage("strata"):
            strata = strata_of(tagged, of_strata, counts)
            becomes = join_strata(strata, of_strata, len(self.plan.recipients))
        if not any(becomes.values()) and not _has_atoms(tagged, counts):
            first = self.plan.recipients[0]
            rows = rows_of(frozen.strata(), 0)
            k = first.configuration.privacy.k
            raise too_few_left(rows, rows, k, f"recipients.{first.name}: ")
        snapshot = maker.snapshot(tagged, becomes)
        levels: Mapping[str, int] = {}
        options = self.plan.base.model
        if isinstance(options, FullDomainOptions):
            base = base_levels(maker, options, snapshot, becomes)
            fresh, levels = base.atoms, base.levels
        else:
            fresh = maker.atoms(snapshot, becomes, counts)
        atoms = fresh if reused is None else reused.union(fresh)
        with self.progress.stage("group the records"):
            for name in (_ATOMS, _GROUPED):
                files.delete(f"{place}/{name}")
            atoms.stage(f"{place}/{_ATOMS}")
            atoms = self.engine.staged([f"{place}/{_ATOMS}"], ATOMS)
            grouped = _with_atoms(self.engine, frozen, atoms, f"{place}/{_GROUPED}", new=False)
            given = grouped.strata()
        self.staging.state.keep(_ATOMS, "")
        self.staging.state.keep(
            _GROUPED, json.dumps(grouped.told() | {"given": given, "levels": dict(levels)})
        )
        return snapshot

    def _reused(self, frozen: FrozenSource, demand: Soundness) -> Table | None:
        if self.ledger is None or not self.plan.reuse:
            return None
        if isinstance(self.plan.base.model, FullDomainOptions):
            # Nodes of other records may divide them: the joint check decides.
            return None
        recipients = len(self.plan.recipients)
        return reused_atoms(
            self.engine,
            self.ledger,
            frozen,
            demand,
            recipients,
            self.key.of_values,
            repeated=bool(self.plan.record),
        )


def _has_atoms(tagged: FrozenSource, without: Mapping[int, int]) -> bool:
    """Return whether somebody gets records of an atom, given the numbers of those without one."""
    return any(
        pattern and number > without.get(pattern, 0) for pattern, number in tagged.strata().items()
    )


def _with_atoms(
    engine: Engine, frozen: FrozenSource, atoms: Table, path: str, *, new: bool
) -> FrozenSource:
    """Write the records of a source with their atoms, and who gets them.

    Parameters
    ----------
    engine : Engine
    frozen : FrozenSource
    atoms : Table
        Of :data:`anonspark.recipients.base_partition.ATOMS`.
    path : str
        A new directory, private.
    new : bool
        Whether records without an atom keep their patterns; else nobody gets them.

    Notes
    -----
    One shuffle of the source, and one write.
    """
    own = [name for name in frozen.records.schema.names if name not in (PATTERN, ATOM)]
    rows = frozen.records.rows(*own, PATTERN).join(
        atoms.select({SUBJECT: SUBJECT, ATOM: ATOM, _NOW: PATTERN}), [SUBJECT], small=False
    )
    schema = pa.schema(
        [
            *(frozen.records.schema.field(name) for name in own),
            (PATTERN, pa.int64()),
            (ATOM, pa.int64()),
        ]
    )
    rows = rows.map_batches(_TakePatterns(schema, new), schema)
    rows.map_batches(PackRecords(), PACKED).stage(path)
    return FrozenSource(Records(engine.staged([path], PACKED), schema), frozen.columns)


@dataclass(frozen=True)
class _TakePatterns:
    """Gives records the patterns of their atoms."""

    schema: pa.Schema
    new: bool

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            without = batch.column(PATTERN) if self.new else 0
            now = pc.if_else(batch.column(ATOM).is_valid(), batch.column(_NOW), without)
            own = {PATTERN: now.cast(pa.int64())}
            arrays = [
                own[field.name] if field.name in own else batch.column(field.name)
                for field in self.schema
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
