"""The same people again: the atoms of a ledger go on in a new plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonspark.core.atom_reuse import OUTSIDE, AtomDemand, divide_atom
from anonspark.core.columns import ATOM, SUBJECT
from anonspark.core.strata import Soundness
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches
from anonspark.kernels.paths import child_path
from anonspark.ledger.check import members_of
from anonspark.ledger.joint_classes import Signatures, value_column
from anonspark.ledger.key import SUBJECT_BYTES
from anonspark.ledger.ledger import Ledger
from anonspark.ledger.members import kept
from anonspark.recipients.base_partition import ATOMS
from anonspark.recipients.freezing import PATTERN, column_of
from anonspark.recipients.frozen_source import FrozenSource

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
    repeated: bool = False,
) -> Table | None:
    """Return the atoms of a ledger as they are in a new plan; None where it has none.

    Parameters
    ----------
    engine : Engine
    ledger : Ledger
    frozen : FrozenSource
        Of the new plan.
    demand : Soundness
        Of joint classes.
    recipients : int
        Of the new plan.
    hash_key : int
        Of the hashes of sensitive values.
    repeated : bool
        Whether somebody may have several records.

    Returns
    -------
    Table or None
        Of :data:`anonspark.recipients.base_partition.ATOMS`, a row for each person who was ever in
        an atom that is not forgotten; the pattern is 0 for those who are given to nobody now. Lazy.

    Notes
    -----
    A shuffle of the members of all releases that count, two of the atoms' persons, and one that
    brings the persons of an atom together. An atom nobody of which is in a release that counts is
    forgotten.
    """
    if not ledger.generation or not ledger.counted:
        return None
    base = kept(engine, ledger.layout.base(ledger.generation), [SUBJECT, ATOM])
    signatures = Signatures.of(
        [members_of(engine, ledger, one) for one in ledger.counted], list(demand.diversity)
    )
    then = {
        value_column(place, name): number
        for place, one in enumerate(ledger.counted)
        for name, number in demand.diversity.items()
        if name in one.sensitive
    }
    known = signatures.table.select([SUBJECT, *then])
    known = known.map_batches(_Mark(_COUNTED), pa.schema([*known.schema, (_COUNTED, pa.int64())]))
    people = base.join(known, [SUBJECT], small=False)
    now = {f"now_{index}": number for index, number in enumerate(demand.diversity.values())}
    columns = [column_of(frozen.columns.index(name)) for name in demand.diversity]
    source = frozen.records.rows(SUBJECT, PATTERN, *columns)
    for name, column in zip(now, columns, strict=True):
        source = source.with_hashes({name: [column]}, hash_key)
    people = people.join(source.select([SUBJECT, PATTERN, *now]), [SUBJECT], small=False)
    divide = _DivideAtoms(AtomDemand(demand.k, recipients, then, now), repeated)
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
        kept_rows = np.ones(len(atoms), bool)
        for name, start, stop in zip(names.tolist(), starts.tolist(), stops.tolist(), strict=True):
            if not counted[start:stop].any():
                kept_rows[start:stop] = False
                continue
            own = patterns[start:stop]
            if not self._stays(own):
                new[start:stop] = self._divided(rows.slice(start, stop - start), own)
            named[start:stop] = _names(name, new[start:stop])
        arrays = [rows.column(SUBJECT).combine_chunks(), pa.array(named), pa.array(new)]
        found = pa.RecordBatch.from_arrays(arrays, schema=ATOMS)
        yield found if kept_rows.all() else found.filter(pa.array(kept_rows))

    def _stays(self, patterns: np.ndarray) -> bool:
        """Return whether an atom is known to stay as it is."""
        if (patterns == OUTSIDE).all():
            return True
        whole = (patterns == patterns[0]).all() and len(patterns) >= self.demand.k
        return bool(whole) and not (self.demand.now or self.demand.then or self.repeated)

    def _divided(self, rows: pa.Table, patterns: np.ndarray) -> np.ndarray:
        names: Mapping[str, int] = {**self.demand.then, **self.demand.now}
        values: dict[str, Sequence[int | None]] = {
            name: rows.column(name).to_pylist() for name in names
        }
        keys = rows.column(SUBJECT).to_pylist()
        people = [key[:SUBJECT_BYTES] for key in keys] if self.repeated else None
        return divide_atom(patterns, keys, values, self.demand, people)


def _names(atom: int, patterns: np.ndarray) -> np.ndarray:
    """Return the names of the parts of an atom: its own where it is not divided."""
    found, places = np.unique(patterns, return_inverse=True)
    if len(found) == 1:
        return np.full(len(patterns), atom, np.int64)
    path = np.array([atom], np.int64).view(np.uint64)[0]
    names = [child_path(path, np.uint64(one)) for one in found.tolist()]
    return np.array(names, np.uint64).view(np.int64)[places]
