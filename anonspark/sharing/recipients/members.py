"""Collect the members of a release's classes, and remove what a killed plan left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.columns import CLASS_ID, SIZE, SUBJECT, payload_column, published_column
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError, GuaranteeError, PublishingError
from anonspark.labels.region_matching import LabelledTable
from anonspark.labels.regions import leaves_by_label
from anonspark.layers.publish.staging import find_stagings, remove_staging
from anonspark.pipeline.rounds import StagedRounds
from anonspark.pipeline.run import StagedRelease
from anonspark.release.manifest import MANIFEST, read_manifest, sound_manifest
from anonspark.sharing.ledger.chain import Key, read_key
from anonspark.sharing.ledger.events import FAILED, PUBLISHED, LedgerRelease
from anonspark.sharing.ledger.joint_classes import (
    CLASS,
    RECORDS,
    MembersOf,
    members_schema,
    sensitive_column,
)
from anonspark.sharing.ledger.ledger import Ledger, find_ledger, open_ledger
from anonspark.sharing.ledger.lock import locked
from anonspark.sharing.recipients.plan import Plan, Recipient
from anonspark.sharing.recipients.source import EVERYBODY, FrozenSource, OpenFrozen
from anonspark.verification.attacks.presence import Presence, measure_presence


def settle(
    files: Files, ledger: Ledger, staging_path: str | None, *, resumed: str | None = None
) -> None:
    """Record the end of every release that a locked ledger has as planned.

    ``staging_path`` is ``execution.staging_path`` of the plan, and ``resumed`` the id of the run
    that continues: its releases stay planned. Raises PublishingError if another run could be
    resumed, because a person must decide that.
    """
    for release in ledger.releases.values():
        if release.state != "planned":
            continue
        run_id = str(release.content["run_id"])
        content = {"run_id": run_id, "recipient": release.recipient, "release": release.name}
        if is_published(files, release):
            ledger.events.append(PUBLISHED, content)
        elif resumed == run_id:
            continue
        elif _can_go_on(files, release, staging_path):
            raise PublishingError(
                f"ledger.path: release {release.name!r} is planned and neither published nor "
                f"failed. Go on with distribute --resume --run-id {run_id}, or say anonspark clean"
            )
        else:
            ledger.events.append(FAILED, content | {"reason": "its process ended before"})


def require_known_releases(files: Files, plan: Plan, ledger: Ledger) -> None:
    """Raise DataError if the ledger lacks a release at a path of the plan, as an old copy does."""
    releases = ledger.releases.values()
    listed = {(release.recipient, release.content["run_id"]) for release in releases}
    for recipient in plan.recipients:
        path = recipient.configuration.output.path.rstrip("/")
        if not files.exists(f"{path}/{MANIFEST}"):
            continue
        manifest = read_manifest(files, path)
        name = (manifest.document.get("recipient") or {}).get("name")
        if name == recipient.name and (name, manifest.run_id) not in listed:
            raise DataError(
                f"ledger: {ledger.layout.path} does not know the release of {recipient.name} at "
                f"{path}: it is an older ledger, and you bring the newest one back. Or the release "
                "was made without this ledger, which does not count it, and you move it elsewhere"
            )


def is_published(files: Files, release: LedgerRelease) -> bool:
    """Return whether a release is at its path, complete."""
    manifest = sound_manifest(files, str(release.content["path"]))
    expected = (release.content["run_id"], release.content["output_fingerprint"])
    return manifest is not None and (manifest.run_id, manifest.fingerprint) == expected


def _can_go_on(files: Files, release: LedgerRelease, staging_path: str | None) -> bool:
    """Return whether the run of a release can be resumed."""
    stagings = find_stagings(files, str(release.content["path"]), staging_path)
    return any(staging.run_id == release.content["run_id"] for staging in stagings)


# A join with more classes than these is a shuffle.
_FEW_CLASSES = 1_000_000


@dataclass(frozen=True)
class StagedMembers:
    """The members of a release's classes, in the staging directory of a plan.

    ``release`` is the name in the ledger. ``path`` holds ``members`` and ``classes``, whose schema
    is ``schema``. ``columns`` are what is published of the quasi-identifiers.
    """

    release: str
    recipient: str
    path: str
    sensitive: list[str]
    columns: list[str]
    schema: pa.Schema

    @classmethod
    def again(
        cls, document: Mapping[str, Any], release: str, recipient: str, path: str
    ) -> StagedMembers:
        """Return what an earlier attempt has staged, by what :meth:`as_dict` recorded."""
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(document["schema"])))
        return cls(release, recipient, path, document["sensitive"], document["columns"], schema)

    def as_dict(self) -> dict[str, object]:
        """Return what :meth:`again` needs, as JSON has it."""
        schema = self.schema.serialize().to_pybytes().hex()
        return {"sensitive": self.sensitive, "columns": self.columns, "schema": schema}

    def members(self, engine: Engine) -> MembersOf:
        """Return who is in which class. Lazy."""
        schema = members_schema(len(self.sensitive))
        table = engine.staged([f"{self.path}/members"], schema)
        return MembersOf(self.release, self.recipient, table, self.sensitive)

    def classes(self, engine: Engine) -> Table:
        """Return the classes. Lazy."""
        return engine.staged([f"{self.path}/classes"], self.schema)


def stage_members(
    rounds: StagedRounds,
    configuration: Configuration,
    columns: Sequence[str],
    key: Key,
    path: str,
    named: tuple[str, str],
) -> StagedMembers:
    """Write the people of each class of a release into a new private directory.

    ``rounds`` are the finished records and classes from which the release was written, so the
    members are those of the published classes, not of a second computation. ``columns`` are the
    published ones of quasi-identifiers, and ``named`` the release and its recipient. Two jobs with
    a shuffle of the classes each, and one of the members if the classes are too many to copy to
    each task.
    """
    labels = _labels(rounds, len(columns))
    sensitive = configuration.sensitive
    payload = [payload_column(configuration.published_as_is.index(name)) for name in sensitive]
    records = rounds.finished.rows(CLASS_ID, SUBJECT, *payload)
    for index, name in enumerate(payload):
        records = records.with_hashes({sensitive_column(index): [name]}, key.of_values)
    has_few_classes = sum(result.rows for result in rounds.results) <= _FEW_CLASSES
    hashes = labels.select([CLASS_ID, CLASS])
    schema = members_schema(len(sensitive))
    members = records.join(hashes, [CLASS_ID], small=has_few_classes).select(schema.names)
    members.stage(f"{path}/members")
    published = [published_column(index) for index in range(len(columns))]
    classes = labels.aggregate([CLASS, *published], sums=[SIZE])
    class_schema = _class_schema(labels.schema, columns)
    classes.map_batches(_Rename([CLASS, *published, SIZE], class_schema), class_schema).stage(
        f"{path}/classes"
    )
    return StagedMembers(*named, path, sensitive, list(columns), class_schema)


def _labels(rounds: StagedRounds, d: int) -> Table:
    """Return the id of each group, its published values, its size, and a hash of the values."""
    published = [published_column(index) for index in range(d)]
    names = [CLASS_ID, *published, SIZE]
    labels = rounds.classes.rows(*names)
    residual = rounds.residual
    if residual is not None and residual.labels is not None:
        sizes = pa.array([residual.rows], pa.int64())
        row = residual.labels.append_column(SIZE, sizes).select(names).cast(labels.schema)
        labels = labels.union(labels.engine.table(row))
    return labels.with_hashes({CLASS: published})


def _class_schema(labels: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """Return the schema of a class table: its hash, the published columns, its records."""
    in_use = {CLASS, RECORDS}
    named = [f"{name}_" if name in in_use else name for name in columns]
    fields = [
        labels.field(published_column(index)).with_name(name).with_nullable(True)
        for index, name in enumerate(named)
    ]
    return pa.schema([(CLASS, pa.int64()), *fields, (RECORDS, pa.int64())])


@dataclass(frozen=True)
class _Rename:
    """Gives columns their names and types, in order."""

    names: Sequence[str]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            arrays = [
                batch.column(name).cast(field.type)
                for name, field in zip(self.names, self.schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def require_presence(
    staged: StagedRelease, recipient: Recipient, frozen: FrozenSource
) -> Presence | None:
    """Measure delta-presence of a staged release in the whole source, if it is bounded.

    Runs the jobs of :func:`anonspark.verification.attacks.presence.measure_presence`. Raises
    GuaranteeError if a person of the source is in the release with a probability above the bound.
    """
    if recipient.presence is None:
        return None
    context, most = staged.context, recipient.presence.max
    configuration = context.configuration
    population = OpenFrozen(frozen, EVERYBODY)(configuration, staged.hierarchies)
    presence = measure_presence(
        LabelledTable(
            context.engine.published(f"{staged.staging.release}/data", configuration.output.format),
            staged.form.attributes,
            {name: leaves_by_label(hierarchy) for name, hierarchy in staged.hierarchies.items()},
            configuration.input.missing_markers,
        ),
        population.rows(configuration.quasi_identifiers),
        upper=most,
    )
    if presence.out_of_bounds:
        raise GuaranteeError(
            f"recipients.{recipient.name}.presence.max: {presence.out_of_bounds:,} of "
            f"{presence.population:,} records of the source are in the release with a probability "
            f"above {most:g}, up to {presence.largest:.4g}. Raise k or the bound, or drop the "
            "condition. Nothing was published"
        )
    return presence


def is_plan(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a plan, and not a configuration.

    >>> is_plan({"base": "base.yaml", "recipients": {}}), is_plan({"input": {}})
    (True, False)
    """
    return "recipients" in document


def clean_plan(files: Files, plan: Plan, run_id: str | None = None) -> list[tuple[str, bool]]:
    """Remove what killed runs of a plan left, and record the ends of their planned releases.

    With an id only those of this run. Returns directories, and whether they were removed. Those on
    which a process works are not.
    """
    staging_path = plan.base.execution.staging_path
    # The plan's own staging goes last: as long as it exists, the run can be resumed.
    outputs = [*(recipient.configuration.output.path for recipient in plan.recipients), plan.output]
    removed = [
        (staging.private, remove_staging(files, staging))
        for output in outputs
        for staging in find_stagings(files, output, staging_path)
        if run_id in (None, staging.run_id)
    ]
    if plan.file.ledger is not None:
        key = read_key(plan.file.ledger.key_file)
        layout, _ = find_ledger(files, plan.file.ledger.path, key)
        with locked(files, layout, "clean"):
            settle(files, open_ledger(files, plan.file.ledger.path, key), staging_path)
    return removed
