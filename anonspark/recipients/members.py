"""Who is in which class of a staged release, for the joint check and the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.columns import CLASS_ID, SIZE, SUBJECT, payload_column, published_column
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches
from anonspark.ledger.joint_classes import MembersOf
from anonspark.ledger.key import Key
from anonspark.ledger.members import CLASS, RECORDS, members_schema, sensitive_column
from anonspark.pipeline.rounds import StagedRounds

# More classes than these are brought to the records by a shuffle.
_FEW_CLASSES = 1_000_000


@dataclass(frozen=True)
class StagedMembers:
    """Who is in which class of a release, and the classes, in the staging directory of a plan.

    Parameters
    ----------
    release : str
        Its name in the ledger.
    recipient : str
    path : str
        Holds ``members`` and ``classes``.
    sensitive : list of str
        Sensitive attributes of the release.
    columns : list of str
        What is published of its quasi-identifiers.
    schema : pyarrow.Schema
        Of the classes.
    """

    release: str
    recipient: str
    path: str
    sensitive: list[str]
    columns: list[str]
    schema: pa.Schema

    @classmethod
    def again(
        cls, told: Mapping[str, Any], release: str, recipient: str, path: str
    ) -> StagedMembers:
        """Return what an earlier attempt has staged, given what it told of it."""
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(told["schema"])))
        return cls(release, recipient, path, told["sensitive"], told["columns"], schema)

    def told(self) -> dict[str, Any]:
        """Return what :meth:`again` needs, as JSON has it."""
        schema = self.schema.serialize().to_pybytes().hex()
        return {"sensitive": self.sensitive, "columns": self.columns, "schema": schema}

    def members(self, engine: Engine) -> MembersOf:
        """Return who is in which class; lazy."""
        schema = members_schema(len(self.sensitive))
        table = engine.staged([f"{self.path}/members"], schema)
        return MembersOf(self.release, self.recipient, table, self.sensitive)

    def classes(self, engine: Engine) -> Table:
        """Return the classes; lazy."""
        return engine.staged([f"{self.path}/classes"], self.schema)


def stage_members(
    rounds: StagedRounds,
    configuration: Configuration,
    columns: Sequence[str],
    key: Key,
    path: str,
    named: tuple[str, str],
) -> StagedMembers:
    """Write who is in which class of a release.

    Parameters
    ----------
    rounds : StagedRounds
        The finished records and classes that the release was written from: what the members say
        is what was published, not a second computation.
    configuration : Configuration
        Of the release.
    columns : sequence of str
        Published columns that tell of quasi-identifiers.
    key : Key
    path : str
        A new directory, private.
    named : tuple of str
        The release, and its recipient.

    Notes
    -----
    Two jobs with a shuffle of the classes each, and one of the members where there are many
    classes.
    """
    labels = _labels(rounds, len(columns))
    sensitive = configuration.sensitive
    payload = [payload_column(configuration.published_as_is.index(name)) for name in sensitive]
    records = rounds.finished.rows(CLASS_ID, SUBJECT, *payload)
    for index, name in enumerate(payload):
        records = records.with_hashes({sensitive_column(index): [name]}, key.of_values)
    few = sum(one.rows for one in rounds.results) <= _FEW_CLASSES
    own = labels.select([CLASS_ID, CLASS])
    schema = members_schema(len(sensitive))
    members = records.join(own, [CLASS_ID], small=few).select(schema.names)
    members.stage(f"{path}/members")
    published = [published_column(index) for index in range(len(columns))]
    classes = labels.aggregate([CLASS, *published], sums=[SIZE])
    own_schema = _class_schema(labels.schema, columns)
    classes.map_batches(_Rename([CLASS, *published, SIZE], own_schema), own_schema).stage(
        f"{path}/classes"
    )
    return StagedMembers(
        named[0], named[1], path, sensitive, list(columns), _class_schema(labels.schema, columns)
    )


def _labels(rounds: StagedRounds, d: int) -> Table:
    """Return of each group its name, what is published of it, its size, and a hash of that."""
    published = [published_column(index) for index in range(d)]
    names = [CLASS_ID, *published, SIZE]
    labels = rounds.classes.rows(*names)
    residual = rounds.residual
    if residual is not None and residual.labels is not None:
        sizes = pa.array([residual.rows], pa.int64())
        own = residual.labels.append_column(SIZE, sizes).select(names).cast(labels.schema)
        labels = labels.union(labels.engine.table(own))
    return labels.with_hashes({CLASS: published})


def _class_schema(labels: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """Return the schema of a class table: its hash, the published columns, its records."""
    taken = {CLASS, RECORDS}
    named = [f"{name}_" if name in taken else name for name in columns]
    own = [
        labels.field(published_column(index)).with_name(name).with_nullable(True)
        for index, name in enumerate(named)
    ]
    return pa.schema([(CLASS, pa.int64()), *own, (RECORDS, pa.int64())])


@dataclass(frozen=True)
class _Rename:
    """Gives columns their names and types, by their places."""

    names: Sequence[str]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            own = [
                batch.column(name).cast(field.type)
                for name, field in zip(self.names, self.schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(own, schema=self.schema)
