"""Nested releases: all are made of atoms, groups that no release of a plan divides."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config.models import FullDomainOptions
from anonspark.core.atom_reuse import (
    OUTSIDE,
    PEOPLE,
    AtomDemand,
    Soundness,
    divide_atom,
    join_strata,
)
from anonspark.core.columns import (
    ATOM,
    CLASS_ID,
    SUBJECT,
    payload_column,
    quasi_identifier_column,
)
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy, Level
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches
from anonspark.kernels.paths import child_path
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.layers.publish.staging import Staging
from anonspark.models.atoms import MergedAtoms
from anonspark.models.full_domain import FullDomain
from anonspark.models.model import Model, Task
from anonspark.pipeline.tasks import ModelMaker, generalizer_of, task_of
from anonspark.progress import Progress
from anonspark.sharing.ledger.chain import SUBJECT_BYTES, Key
from anonspark.sharing.ledger.check import members_of
from anonspark.sharing.ledger.joint_classes import Signatures, read_kept, value_column
from anonspark.sharing.ledger.ledger import Ledger
from anonspark.sharing.recipients.base_partition import ATOMS, NameAtoms, PartitionMaker, strata_of
from anonspark.sharing.recipients.plan import Plan
from anonspark.sharing.recipients.source import FrozenSource, OpenFrozen, rows_of
from anonspark.sharing.recipients.source_snapshot import PATTERN, column_of
from anonspark.sharing.recipients.strategy import ReleaseSource, too_few_left
from anonspark.staged.records import PACKED, PackRecords, Records

_COUNTED = "counted"
_TASKS = 64


def reused_atoms(
    engine: Engine,
    ledger: Ledger,
    frozen: FrozenSource,
    demand: Soundness,
    recipients: int,
    hash_key: int,
    *,
    generation: int,
    repeated: bool = False,
) -> Table | None:
    """Return the atoms of a ledger for a new plan, or None if the ledger has none. Lazy.

    The table of :data:`~.base_partition.ATOMS` has a row for each person who was ever in an atom
    that is not forgotten. The pattern is 0 for those without a recipient now. ``demand`` is that of
    joint classes, ``recipients`` the number in the new plan, ``hash_key`` that of sensitive values,
    and ``generation`` the number of the base partition. With ``repeated`` a person may have several
    records.

    A shuffle of the members of all releases that count, two of the atoms' persons, and one that
    brings the persons of an atom together. An atom without such a member is forgotten.
    """
    if not generation or not ledger.counted:
        return None
    base = read_kept(engine, ledger.layout.base(generation), [SUBJECT, ATOM])
    signatures = Signatures.of(
        [members_of(engine, ledger, release) for release in ledger.counted], list(demand.diversity)
    )
    earlier_values = {
        value_column(position, name): number
        for position, release in enumerate(ledger.counted)
        for name, number in demand.diversity.items()
        if name in release.sensitive
    }
    table = signatures.table.select([SUBJECT, *earlier_values])
    table = table.map_batches(_Mark(_COUNTED), pa.schema([*table.schema, (_COUNTED, pa.int64())]))
    people = base.join(table, [SUBJECT], small=False)
    new_values = {f"now_{index}": number for index, number in enumerate(demand.diversity.values())}
    columns = [column_of(frozen.columns.index(name)) for name in demand.diversity]
    source = frozen.records.rows(SUBJECT, PATTERN, *columns)
    for name, column in zip(new_values, columns, strict=True):
        source = source.with_hashes({name: [column]}, hash_key)
    people = people.join(source.select([SUBJECT, PATTERN, *new_values]), [SUBJECT], small=False)
    divide = _DivideAtoms(AtomDemand(demand.k, recipients, earlier_values, new_values), repeated)
    return people.group([ATOM], _TASKS).map_batches(divide, ATOMS)


@dataclass(frozen=True)
class _Mark:
    """Adds a column of ones."""

    name: str

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            yield batch.append_column(self.name, pa.array(np.ones(len(batch), np.int64)))


@dataclass(frozen=True)
class _DivideAtoms:
    """Divides the atoms of one task."""

    demand: AtomDemand
    repeated: bool

    def __call__(self, batches: Batches) -> Batches:
        """Divide the atoms that may not stay whole, and drop those without a counted record."""
        tables = [pa.Table.from_batches([batch]) for batch in batches if len(batch)]
        if not tables:
            return
        rows = pa.concat_tables(tables).combine_chunks()
        atoms = rows.column(ATOM).to_numpy()
        order = np.argsort(atoms, kind="stable")
        rows, atoms = rows.take(pa.array(order)), atoms[order]
        patterns = rows.column(PATTERN).fill_null(OUTSIDE).to_numpy().copy()
        counted = rows.column(_COUNTED).is_valid().to_numpy()
        names, starts = np.unique(atoms, return_index=True)
        stops = np.append(starts[1:], len(atoms))
        new, named = patterns.copy(), atoms.copy()
        stays = np.ones(len(atoms), bool)
        for name, start, stop in zip(names.tolist(), starts.tolist(), stops.tolist(), strict=True):
            if not counted[start:stop].any():
                stays[start:stop] = False
                continue
            part = patterns[start:stop]
            if not self._stays(part):
                new[start:stop] = self._divided(rows.slice(start, stop - start), part)
            named[start:stop] = _names(name, new[start:stop])
        arrays = [rows.column(SUBJECT).combine_chunks(), pa.array(named), pa.array(new)]
        result = pa.RecordBatch.from_arrays(arrays, schema=ATOMS)
        yield result if stays.all() else result.filter(pa.array(stays))

    def _stays(self, patterns: np.ndarray) -> bool:
        """Return whether an atom is known to stay whole."""
        if (patterns == OUTSIDE).all():
            return True
        uniform = (patterns == patterns[0]).all() and len(patterns) >= self.demand.k
        return bool(uniform) and not (self.demand.now or self.demand.then or self.repeated)

    def _divided(self, rows: pa.Table, patterns: np.ndarray) -> np.ndarray:
        """Return the new pattern of each record of an atom."""
        names: Mapping[str, int] = {**self.demand.then, **self.demand.now}
        values: dict[str, Sequence[int | None]] = {
            name: rows.column(name).to_pylist() for name in names
        }
        keys = rows.column(SUBJECT).to_pylist()
        people = [key[:SUBJECT_BYTES] for key in keys] if self.repeated else None
        return divide_atom(patterns, keys, values, self.demand, people)


def _names(atom: int, patterns: np.ndarray) -> np.ndarray:
    """Name the part of an atom that each record is in. An atom in one part keeps its name.

    >>> _names(5, np.array([1, 1])).tolist(), len(set(_names(5, np.array([1, 2])).tolist()))
    ([5, 5], 2)
    """
    distinct, indices = np.unique(patterns, return_inverse=True)
    if len(distinct) == 1:
        return np.full(len(patterns), atom, np.int64)
    path = np.array([atom], np.int64).view(np.uint64)[0]
    names = [child_path(path, np.uint64(pattern)) for pattern in distinct.tolist()]
    return np.array(names, np.uint64).view(np.int64)[indices]


_STRATUM = "stratum"


@dataclass(frozen=True)
class BaseLevels:
    """The best node of all strata together.

    ``levels`` are those of every quasi-identifier. ``atoms``, of :data:`~.base_partition.ATOMS`,
    are its classes, each of one stratum. What the node suppresses is withheld from everyone.
    """

    levels: Mapping[str, int]
    atoms: Table


@dataclass(frozen=True)
class AboveBaseMaker:
    """Makes the model of a release: the best node at or above the levels of the base."""

    options: FullDomainOptions
    levels: Mapping[str, int]

    def __call__(self, task: Task) -> Model:
        """Return the model for the quasi-identifiers of a release."""
        names = [identifier.name for identifier in task.generalizer.quasi_identifiers]
        least = dict(self.options.minimum_levels)
        least = {name: max(self.levels[name], least.get(name, 0)) for name in names}
        most = {name: level for name, level in self.options.maximum_levels.items() if name in least}
        changed = {"minimum_levels": least, "maximum_levels": most, "levels": []}
        return FullDomain(self.options.model_copy(update=changed), task)


def base_levels(
    maker: PartitionMaker,
    options: FullDomainOptions,
    snapshot: Snapshot,
    becomes: Mapping[int, int],
) -> BaseLevels:
    """Find the best node for all strata together, in one lattice.

    ``options`` are those of the base, ``snapshot`` is that of
    :meth:`anonspark.sharing.recipients.base_partition.PartitionMaker.snapshot`, and ``becomes`` the
    new pattern of each stratum. A pass that finds the stratum of each record, and the passes of
    :class:`anonspark.models.full_domain.FullDomain`. Raises GuaranteeError if no node has a class
    that satisfies the demand of joint classes, or all suppress too much.
    """
    dimensions = len(snapshot.quasi_identifiers)
    payload = sum(name.startswith(payload_column(0)[:-1]) for name in snapshot.records.schema.names)
    patterns = sorted({become for become in becomes.values() if become})
    stratum = _axis(snapshot, [str(pattern) for pattern in patterns])
    quasi_identifiers = (*snapshot.quasi_identifiers, stratum)
    fields = list(snapshot.records.schema)
    schema = pa.schema(
        [
            *fields,
            (quasi_identifier_column(dimensions), pa.string()),
            (payload_column(payload), pa.int64()),
        ]
    )
    add_stratum = _AddStratum(dict(becomes), schema)
    packed = snapshot.records.map_batches(_Packed(add_stratum), PACKED)
    path = f"{maker.staging.records}/strata"
    packed.stage(path)
    records = Records(maker.engine.staged([path], PACKED), schema)
    rows = sum(records.packed.select(["rows"]).collect()["rows"].to_pylist())
    divided = replace(snapshot, records=records, rows=rows, quasi_identifiers=quasi_identifiers)
    generalizer = generalizer_of(maker.configuration, quasi_identifiers)
    task = task_of(maker.configuration, generalizer, snapshot.criteria)
    changed = {
        "residual": "drop",
        "maximum_levels": options.maximum_levels | {stratum.name: 0},
        "levels": [level | {stratum.name: 0} for level in options.levels],
    }
    model = FullDomain(options.model_copy(update=changed), task)
    rounds = maker.run(model, divided, generalizer, "levels")
    names = [CLASS_ID, SUBJECT, payload_column(payload)]
    atoms = rounds.finished.map_batches(NameAtoms(maker.generation), ATOMS, names)
    levels = dict(rounds.results[0].levels or {})
    del levels[stratum.name]
    return BaseLevels(levels, atoms)


def _axis(snapshot: Snapshot, patterns: list[str]) -> QuasiIdentifier:
    """Return strata as a quasi-identifier that is never recoded."""
    name = _STRATUM
    while name in (identifier.name for identifier in snapshot.quasi_identifiers):
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
class _AddStratum:
    """Yields the records with a recipient and without an atom, with their strata."""

    becomes: Mapping[int, int]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            patterns = batch.column(PATTERN).to_numpy(zero_copy_only=False)
            new_patterns = np.array(
                [self.becomes.get(pattern, 0) for pattern in patterns.tolist()], np.int64
            )
            if ATOM in batch.schema.names:
                new_patterns[batch.column(ATOM).is_valid().to_numpy(zero_copy_only=False)] = 0
            rows = batch.filter(pa.array(new_patterns != 0))
            strata = pa.array(new_patterns[new_patterns != 0])
            arrays = [*rows.columns, strata.cast(pa.string()), strata]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@dataclass(frozen=True)
class _Packed:
    """Packs what a function yields."""

    function: _AddStratum

    def __call__(self, batches: Batches) -> Batches:
        return PackRecords()(self.function(batches))


_GROUPED = "grouped"
_ATOMS = "atoms"
_NOW = "pattern_now"


@dataclass(frozen=True)
class Nested:
    """Releases that are all made of atoms.

    ``grouped`` are the records of the source, those with a recipient with their atoms.
    ``requested`` and ``granted`` count the records of each pattern, ``described`` have the ranges
    of all records with a recipient. ``atoms`` say who is in which atom, for the ledger.
    """

    grouped: FrozenSource
    requested: Mapping[int, int]
    granted: Mapping[int, int]
    described: tuple[QuasiIdentifier, ...]
    atoms: Table
    make_model: ModelMaker

    def source(self, index: int) -> ReleaseSource:
        """Return the recipient's records and their atoms as the source of a release."""
        requested = rows_of(self.requested, index)
        return ReleaseSource(
            OpenFrozen(self.grouped, index),
            requested,
            requested - rows_of(self.granted, index),
            self.make_model,
            self.described,
        )


@dataclass(frozen=True)
class NestedMaker:
    """Cuts a source into atoms, for a plan with its staging and its ledger.

    ``key`` is that of the hashes of sensitive values.
    """

    engine: Engine
    plan: Plan
    staging: Staging
    progress: Progress
    key: Key
    ledger: Ledger | None
    run_id: str

    def make(self, frozen: FrozenSource, counts: Mapping[int, int]) -> Nested:
        """Join the records of a source with their atoms. ``counts`` are those of each pattern.

        One pass over the source that stages what atoms are made of. Atoms of a ledger cost as
        :func:`anonspark.sharing.recipients.nested.reused_atoms`, others as
        :meth:`~.base_partition.PartitionMaker.atoms`. Then one shuffle of the source, or two with
        atoms of a ledger.
        """
        generation = 0 if self.ledger is None else self.ledger.generation_before(self.run_id)
        maker = PartitionMaker(
            self.engine, self.plan.partition, self.staging, self.progress, generation
        )
        described = None
        if self.staging.state.facts_of(_GROUPED) is None:
            snapshot = self._group(frozen, maker)
            described = snapshot.quasi_identifiers
        document = json.loads(self.staging.state.facts_of(_GROUPED) or "{}")
        root = self.staging.paths.shared
        grouped = FrozenSource.again(self.engine, f"{root}/{_GROUPED}", document)
        granted = {int(pattern): number for pattern, number in document["given"].items()}
        if described is None or isinstance(self.plan.base.model, FullDomainOptions):
            # A full-domain base withholds more records, which changes the ranges.
            described = maker.snapshot(grouped).quasi_identifiers
        atoms = self.engine.staged([f"{root}/{_ATOMS}"], ATOMS)
        make_model: ModelMaker = MergedAtoms
        options = self.plan.base.model
        if isinstance(options, FullDomainOptions):
            make_model = AboveBaseMaker(options, document["levels"])
        return Nested(grouped, counts, granted, described, atoms, make_model)

    def _group(self, frozen: FrozenSource, maker: PartitionMaker) -> Snapshot:
        """Stage the atoms, and the records with their atoms."""
        demand = Soundness(self.plan.demand.k, self.plan.demand.diversity)
        people = {PEOPLE: demand.k} if self.plan.file.record else {}
        of_strata = Soundness(demand.k, {**demand.diversity, **people})
        root, files = self.staging.paths.shared, self.engine.files
        reused = self._reused(frozen, demand, maker.generation)
        tagged = frozen
        if reused is not None:
            with self.progress.stage("atoms of the ledger"):
                path = f"{self.staging.records}/reused"
                reused.stage(path)
                reused = self.engine.staged([path], ATOMS)
                path = f"{self.staging.records}/tagged"
                tagged = _with_atoms(self.engine, frozen, reused, path, keeps_patterns=True)
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
                # An attempt may have been stopped between the two notes below.
                self.staging.state.forget(name)
                files.delete(f"{root}/{name}")
            atoms.stage(f"{root}/{_ATOMS}")
            atoms = self.engine.staged([f"{root}/{_ATOMS}"], ATOMS)
            path = f"{root}/{_GROUPED}"
            grouped = _with_atoms(self.engine, frozen, atoms, path, keeps_patterns=False)
            granted = grouped.strata()
        self.staging.state.keep(_ATOMS, "")
        self.staging.state.keep(
            _GROUPED, json.dumps(grouped.as_dict() | {"given": granted, "levels": dict(levels)})
        )
        return snapshot

    def _reused(self, frozen: FrozenSource, demand: Soundness, generation: int) -> Table | None:
        """Return the atoms that earlier plans recorded in the ledger, or None to make all anew.

        ``demand`` is what joint classes must satisfy with the new plan, and ``generation`` numbers
        the base partition whose atoms are read.
        """
        if self.ledger is None or not self.plan.file.base_partition.reuse:
            return None
        if isinstance(self.plan.base.model, FullDomainOptions):
            # The levels are chosen anew for these records, and finer ones may divide old atoms.
            # Whether the releases may stand together is left to the joint check.
            return None
        recipients = len(self.plan.recipients)
        return reused_atoms(
            self.engine,
            self.ledger,
            frozen,
            demand,
            recipients,
            self.key.of_values,
            generation=generation,
            repeated=bool(self.plan.file.record),
        )


def _has_atoms(tagged: FrozenSource, without: Mapping[int, int]) -> bool:
    """Return whether a recipient gets records of an atom, by the numbers of those without one."""
    return any(
        pattern and number > without.get(pattern, 0) for pattern, number in tagged.strata().items()
    )


def _with_atoms(
    engine: Engine, frozen: FrozenSource, atoms: Table, path: str, *, keeps_patterns: bool
) -> FrozenSource:
    """Write the records of a source with their atoms and patterns to a new private directory.

    With ``keeps_patterns`` records without an atom keep their patterns, otherwise they get no
    recipient. One shuffle of the source, and one write.
    """
    names = [name for name in frozen.records.schema.names if name not in (PATTERN, ATOM)]
    rows = frozen.records.rows(*names, PATTERN).join(
        atoms.select({SUBJECT: SUBJECT, ATOM: ATOM, _NOW: PATTERN}), [SUBJECT], small=False
    )
    schema = pa.schema(
        [
            *(frozen.records.schema.field(name) for name in names),
            (PATTERN, pa.int64()),
            (ATOM, pa.int64()),
        ]
    )
    rows = rows.map_batches(_TakePatterns(schema, keeps_patterns), schema)
    rows.map_batches(PackRecords(), PACKED).stage(path)
    return replace(frozen, records=Records(engine.staged([path], PACKED), schema))


@dataclass(frozen=True)
class _TakePatterns:
    """Gives records the patterns of their atoms."""

    schema: pa.Schema
    new: bool

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            without = batch.column(PATTERN) if self.new else 0
            new_patterns = pc.if_else(batch.column(ATOM).is_valid(), batch.column(_NOW), without)
            changed = {PATTERN: new_patterns.cast(pa.int64())}
            arrays = [
                changed[field.name] if field.name in changed else batch.column(field.name)
                for field in self.schema
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
