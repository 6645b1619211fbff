"""The base partition: the records of each stratum, cut into atoms that no release divides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config import Configuration
from anonspark.core.atom_reuse import PEOPLE, Soundness, Stratum
from anonspark.core.columns import ATOM, CLASS_ID, SUBJECT
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches
from anonspark.kernels.paths import child_path, root_path
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.prepare.snapshot import Snapshot, require_criteria
from anonspark.layers.publish.run_state import RunState
from anonspark.layers.publish.staging import Staging
from anonspark.models.model import Model
from anonspark.models.registry import create_model
from anonspark.pipeline.preparing import prepare
from anonspark.pipeline.rounds import StagedRounds, run_rounds
from anonspark.pipeline.tasks import generalizer_of, task_of
from anonspark.progress import Progress
from anonspark.sharing.ledger.joint_classes import PERSON, NumberPeople
from anonspark.sharing.recipients.source import FrozenSource, OpenFrozen
from anonspark.sharing.recipients.source_snapshot import PATTERN, column_of
from anonspark.staged.records import BYTES, PACKED, Packer, Records, unpack_batches

_PART = "part"

ATOMS = pa.schema([(SUBJECT, pa.binary()), (ATOM, pa.int64()), (PATTERN, pa.int64())])
"""The members of atoms, and the recipients of their records."""


def strata_of(
    frozen: FrozenSource, demand: Soundness, counts: Mapping[int, int]
) -> dict[int, Stratum]:
    """Return the strata of a source: records without an atom, by who may have them.

    ``demand`` has :data:`PEOPLE` if a person may have several records. ``counts`` are the records
    of each pattern. One job with a shuffle for each attribute of which several values are demanded.
    The different values of each stratum are collected, as hashes. Two jobs and shuffles for people,
    of whom only as many as decide are collected for each stratum.
    """
    values: dict[int, dict[str, set[int]]] = {pattern: {} for pattern in counts}
    for name, number in demand.diversity.items():
        if name == PEOPLE:
            for pattern, people in _few_people(frozen, number, counts).items():
                values[pattern][PEOPLE] = people
            continue
        column = column_of(frozen.columns.index(name))
        hashed = frozen.fresh(PATTERN, column).with_hashes({"value": [column]})
        for row in hashed.aggregate([PATTERN, "value"]).collect().to_pylist():
            values[row[PATTERN]].setdefault(name, set()).add(row["value"])
    return {
        pattern: Stratum(number, {name: frozenset(seen) for name, seen in values[pattern].items()})
        for pattern, number in counts.items()
        if pattern
    }


def _few_people(frozen: FrozenSource, number: int, patterns: Iterable[int]) -> dict[int, set[int]]:
    """Return the people of each stratum that has too few, and enough numbers for the others."""
    schema = pa.schema([(PATTERN, pa.int64()), (PERSON, pa.int64())])
    people = frozen.fresh(SUBJECT, PATTERN).map_batches(NumberPeople(schema), schema)
    people = people.aggregate([PATTERN, PERSON]).persist()
    try:
        counted = people.aggregate([PATTERN], count="people").collect().to_pylist()
        few = frozenset(row[PATTERN] for row in counted if row["people"] < number)
        members = people.select([PATTERN, PERSON]).map_batches(_OfPatterns(few), schema).collect()
    finally:
        people.unpersist()
    people_of: dict[int, set[int]] = {pattern: set(range(number)) for pattern in patterns}
    people_of |= {pattern: set() for pattern in few}
    for row in members.to_pylist():
        people_of[row[PATTERN]].add(row[PERSON])
    return people_of


@dataclass(frozen=True)
class _OfPatterns:
    """Yields the rows of some patterns."""

    patterns: frozenset[int]

    def __call__(self, batches: Batches) -> Batches:
        patterns = pa.array(sorted(self.patterns), pa.int64())
        for batch in batches:
            yield batch.filter(pc.is_in(batch.column(PATTERN), value_set=patterns))


@dataclass(frozen=True)
class PartitionMaker:
    """Makes base partitions.

    ``configuration`` is that of all requested quasi-identifiers, with what is demanded of joint
    classes, ``staging`` that of the plan. ``generation`` is the number of base partitions of the
    ledger.
    """

    engine: Engine
    configuration: Configuration
    staging: Staging
    progress: Progress
    generation: int = 0

    def snapshot(self, frozen: FrozenSource, becomes: Mapping[int, int] | None = None) -> Snapshot:
        """Stage what atoms are made of, of all records with a recipient. One pass over the source.

        The others have no part in it, or a range, and by it every loss, would show their values.
        ``becomes`` is that of :meth:`atoms`, or None if records keep their patterns.
        """
        directory = f"{self.staging.records}/base"
        self.engine.files.delete(directory)
        opened = OpenFrozen(frozen, None, with_patterns=True, becomes=becomes)
        snapshot = prepare(self.engine, self.configuration, directory, opened)
        return require_criteria(snapshot, self.configuration)

    def atoms(
        self, snapshot: Snapshot, becomes: Mapping[int, int], counts: Mapping[int, int]
    ) -> Table:
        """Cut every stratum into atoms: a table of :data:`ATOMS`. Lazy.

        Records of the snapshot that have an atom are skipped. ``becomes`` is that of
        :func:`anonspark.core.atom_reuse.join_strata`, and ``counts`` are the records of each
        pattern, also of that without recipients. A pass that divides the records among several
        strata, and the base's model over each of them.
        """
        rows: dict[int, int] = {}
        for pattern, new_pattern in becomes.items():
            if new_pattern:
                rows[new_pattern] = rows.get(new_pattern, 0) + counts[pattern]
        atoms = self.engine.table(ATOMS.empty_table())
        for pattern, records in self._divided(snapshot, becomes, rows).items():
            atoms = atoms.union(self._atoms_of(pattern, records, rows[pattern], snapshot))
        return atoms

    def _divided(
        self, snapshot: Snapshot, becomes: Mapping[int, int], rows: Mapping[int, int]
    ) -> dict[int, Records]:
        """Divide the records by stratum. One stratum of all records needs no pass."""
        if not rows:
            return {}
        if len(rows) == 1 and sum(rows.values()) == snapshot.rows:
            return dict.fromkeys(rows, snapshot.records)
        path = f"{self.staging.records}/strata"
        divide = _Divide(dict(becomes))
        schema = pa.schema([*PACKED, (_PART, pa.string())])
        divided = snapshot.records.packed.map_batches(divide, schema)
        divided.stage_parts(path, _PART, [str(row) for row in rows], [BYTES])
        return {
            pattern: Records(
                self.engine.staged([f"{path}/{_PART}={pattern}"], PACKED), snapshot.records.schema
            )
            for pattern in rows
        }

    def _atoms_of(self, pattern: int, records: Records, rows: int, snapshot: Snapshot) -> Table:
        """Cut one stratum into atoms."""
        generalizer = generalizer_of(self.configuration, snapshot.quasi_identifiers)
        task = task_of(self.configuration, generalizer, snapshot.criteria)
        model = create_model(self.configuration.model, task)
        stratum = replace(snapshot, records=records, rows=rows)
        rounds = self.run(model, stratum, generalizer, f"stratum-{pattern}")
        name = NameAtoms(self.generation, pattern)
        return rounds.finished.map_batches(name, ATOMS, [CLASS_ID, SUBJECT])

    def run(
        self, model: Model, snapshot: Snapshot, generalizer: Generalizer, name: str
    ) -> StagedRounds:
        """Run the rounds of a model over records, of which only the classes are used.

        ``snapshot`` has the records and the criteria, ``generalizer`` is that of the model, and
        ``name`` that of a directory for the rounds.
        """
        location = replace(self.staging.paths, private=f"{self.staging.records}/{name}")
        self.engine.files.make_private_directory(location.state)
        return run_rounds(
            model,
            snapshot,
            snapshot.criteria,
            generalizer.columns(),
            staging=Staging(location, RunState.claim(self.engine.files, location.state)),
            files=self.engine.files,
            progress=self.progress,
        )


@dataclass(frozen=True)
class _Divide:
    """Divides packed records among strata, in a task."""

    becomes: Mapping[int, int]

    def __call__(self, packed: Batches) -> Batches:
        packer = Packer()
        for _, records in unpack_batches(packed):
            patterns = records.column(PATTERN).to_numpy()
            targets = np.array([self.becomes.get(bits, 0) for bits in patterns.tolist()], np.int64)
            if ATOM in records.column_names:
                targets[records.column(ATOM).is_valid().to_numpy()] = 0
            for pattern in np.unique(targets[targets != 0]).tolist():
                part = records.filter(pa.array(targets == pattern))
                batch = pa.RecordBatch.from_pydict(packer.pack(part.combine_chunks()))
                yield batch.append_column(_PART, pa.repeat(str(pattern), len(batch)))


@dataclass(frozen=True)
class NameAtoms:
    """Names atoms so that those of different strata, and of different plans, have their own.

    ``generation`` is the number of base partitions of the ledger, ``pattern`` that of the stratum,
    or None if it is the third column.
    """

    generation: int
    pattern: int | None = None

    def __call__(self, batches: Batches) -> Batches:
        """Yield rows of :data:`ATOMS`, named by hashes of class, pattern and generation."""
        for batch in batches:
            classes = batch.column(CLASS_ID).to_numpy(zero_copy_only=False)
            if self.pattern is None:
                patterns = batch.column(2).to_numpy(zero_copy_only=False)
            else:
                patterns = np.full(len(batch), self.pattern, np.int64)
            atoms = np.empty(len(batch), np.int64)
            for pattern in np.unique(patterns).tolist():
                mask = patterns == pattern
                names, indices = np.unique(classes[mask], return_inverse=True)
                # Hashed twice: a sum of generation and pattern could be that of another pair.
                salt = root_path(np.uint64(pattern), self.generation)
                paths = [child_path(name, salt) for name in names.view(np.uint64)]
                atoms[mask] = np.array(paths, np.uint64).view(np.int64)[indices]
            arrays = [batch.column(SUBJECT), pa.array(atoms), pa.array(patterns)]
            yield pa.RecordBatch.from_arrays(arrays, schema=ATOMS)
