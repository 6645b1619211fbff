"""``anonspark union``: releases of holders who anonymized apart become one, proved anew."""

from __future__ import annotations

import math
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from operator import xor
from typing import Any

import pyarrow as pa

from anonspark._version import __version__
from anonspark.core.figures import SUMMARY, TABLES, arrow_schema
from anonspark.core.fingerprints import table_fingerprint
from anonspark.engine.files import Files, PublishedFile
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.layers.publish.committing import begin, commit
from anonspark.layers.publish.paths import require_apart, require_target
from anonspark.layers.publish.staging import Staging, find_stagings, open_staging, remove_staging
from anonspark.layers.publish.tables import write_rows
from anonspark.progress import Progress
from anonspark.redaction import Redacted
from anonspark.release.derived_figures import Row, privacy_rows
from anonspark.release.derived_manifest import sections_of_summary
from anonspark.release.manifest import NOT_PROTECTED, listing, versions, write_manifest
from anonspark.release.signatures import key_name
from anonspark.sharing.holders.parts import Form, Part, form_of, read_parts, require_same_types
from anonspark.sharing.holders.writing import Extent, write_union
from anonspark.sidecars.contents import write_sidecar_files
from anonspark.verification.audit import audit_opened, audit_table
from anonspark.verification.claims.claim import claim_of_description
from anonspark.verification.opening import OpenedRelease, open_release
from anonspark.verification.proof.classes import PublishedClasses, count_published_classes
from anonspark.verification.proof.criteria import MeasuredCriterion
from anonspark.verification.result import Verification


@dataclass(frozen=True)
class Figures:
    """The figures of a union.

    ``summary`` is the row of its table, with None for what only a run has: a union has no original.
    ``privacy`` and ``risk`` are rows of their tables. ``different`` counts the values of each
    attribute of a distance.
    """

    summary: Row
    privacy: list[Row]
    risk: list[Row]
    different: dict[str, int]


def figures_of(form: Form, proof: Verification, run_id: str, started: datetime) -> Figures:
    """Compute the figures of a union from the proof of its staged records. Times are in UTC."""
    run, published = {"run_id": run_id}, proof.published
    summary: Row = {
        **{figure.name: None for figure in SUMMARY},
        **run,
        "k": form.privacy.k,
        "rows_published": published.rows,
        "published_classes": published.classes,
        "published_min_class_size": published.smallest,
        "output_fingerprint": published.fingerprint,
        "version": __version__,
        "started": started,
        "seconds": (datetime.now(UTC) - started).total_seconds(),
    }
    figures = {case.criterion: case.measured for case in proof.criteria}
    distances = {case.criterion.attribute for case in proof.criteria if case.criterion.is_distance}
    return Figures(
        summary,
        privacy=[
            run | row for row in privacy_rows(form.privacy, published.smallest, None, figures, None)
        ],
        risk=[run | row for row in proof.risk],
        different={
            case.attribute: case.values
            for case in proof.sensitive
            if case.attribute in distances and case.values is not None
        },
    )


def stage_figures(
    engine: Engine,
    staging: Staging,
    form: Form,
    figures: Figures,
    written: Sequence[PublishedFile],
    progress: Progress,
    key: str | None,
) -> None:
    """Write the tables of metrics and the manifest, and sign it if there is a key.

    ``written`` are the records, and ``progress`` has the seconds of the stages so far. Raises
    PublishingError.
    """
    files, summary = engine.files, figures.summary
    listed = list(written)
    for name, rows in (
        ("summary", [summary]),
        ("privacy", figures.privacy),
        ("risk", figures.risk),
    ):
        schema = arrow_schema(TABLES[name])
        listed.append(write_rows(files, rows, schema, staging.release, f"metrics/{name}"))
    description, sections = form.description, sections_of_summary(summary)
    manifest = {
        "run_id": sections["run_id"],
        "started": sections["started"],
        "seconds": {name: round(time, 3) for name, time in progress.seconds.items()},
        "versions": versions(engine.versions, description["configuration"]),
        **description,
        "published": {
            "rows": summary["rows_published"],
            "sensitive_values": figures.different,
            **description["published"],
        },
        "fingerprints": sections["fingerprints"],
        "summary": sections["summary"],
        "warnings": [
            {
                "code": "people_of_two_holders",
                "attribute": None,
                "text": NOT_PROTECTED,
                "figures": {},
            }
        ],
    }
    if key is not None:
        manifest["signer"] = key_name(key)
    schema = engine.published(f"{staging.release}/data", form.manifest.data_format).schema
    listed += write_sidecar_files(files, manifest, schema, listed, staging.release)
    manifest["files"] = listing(listed)
    write_manifest(files, staging.manifest, manifest, staging.release, key)


# The t that a message names is enough for the union: it is rounded up.
_DIGITS, _ROUNDING = 10_000, 1e-6


def open_part(engine: Engine, path: str) -> OpenedRelease:
    """Open a part. Raises GuaranteeError if its files are not those of its manifest."""
    try:
        return open_release(engine, path)
    except GuaranteeError as error:
        raise _broken_part(path) from error


def _broken_part(path: str) -> GuaranteeError:
    """Describe a part that breaks its promise, without saying how."""
    # The failure may show a count of few people, or the name of a forbidden column.
    return GuaranteeError(
        f"union: {path} does not keep its own promise. Nothing was published. Its holder has to "
        f"put it right: anonspark verify {path} shows what is wrong"
    )


def prove_parts(
    engine: Engine, parts: Sequence[Part], opened: Sequence[OpenedRelease]
) -> list[Verification]:
    """Prove each part as ``anonspark verify``, at its cost. Raises GuaranteeError if one fails."""
    proofs = []
    for part, item in zip(parts, opened, strict=True):
        proof = audit_opened(engine, item)
        if proof.failures:
            raise _broken_part(part.path)
        proofs.append(proof)
    return proofs


def fingerprint_of(proofs: Sequence[PublishedClasses]) -> str:
    """Return the fingerprint of the records of several releases together. No job."""
    return table_fingerprint(
        sum(proof.rows for proof in proofs),
        sum(proof.hash_sum for proof in proofs),
        reduce(xor, (proof.hash_xor for proof in proofs)),
    )


def prove_union(engine: Engine, staged: Table, form: Form, expected: str, out: str) -> Verification:
    """Measure the staged records of a union, and check that all of the coding holds.

    ``expected`` is the fingerprint of the records of all parts, and ``out`` the union's path, for
    messages. One pass with a shuffle of class sizes. Two more jobs for each attribute of a
    criterion. Raises GuaranteeError if records are not those of the parts, or a criterion does not
    hold.
    """
    claim = claim_of_description(engine, form.manifest, matched=False)
    # Nothing is required of attributes without a criterion.
    claim = replace(claim, sensitive=())
    proof = audit_table(staged, claim, name=out, where=out)
    if proof.published.fingerprint != expected:
        raise GuaranteeError(
            f"{out}: the staged union holds other records than its parts: their files changed "
            "while they were read, or records were lost. Nothing was published. Try again, and "
            "report it as a bug if that does not help"
        )
    if proof.published.smallest < form.privacy.k:
        raise GuaranteeError(
            f"{out}: a class of the union is smaller than k = {form.privacy.k} of the coding, so a "
            "part was published with a smaller k. Nothing was published. Let its holder publish "
            "again by the coding"
        )
    advice = [text for case in proof.criteria if (text := _advice(case, form)) is not None]
    if proof.failures:
        raise GuaranteeError("\n".join([*proof.failures, *advice]))
    return proof


def _advice(measured: MeasuredCriterion, form: Form) -> str | None:
    """Return the distance that a union needs, and a remedy, or None if the criterion holds."""
    criterion = measured.criterion
    if not measured.violating_classes or not criterion.is_distance:
        return None
    needed = "no finite bound is enough"
    if math.isfinite(measured.measured):
        enough = math.ceil(measured.measured * _DIGITS - _ROUNDING) / _DIGITS
        needed = f"the union needs {enough:g}"
    where = f"{criterion.type.key} of {criterion.attribute!r}"
    if form.holder_column is not None:
        return (
            f"{where}: {needed}, compared with the distribution of each holder's published "
            "records. Raise the bound in the coding, or agree on l-diversity instead, and publish "
            "again"
        )
    return (
        f"{where}: {needed}: each part is close to its own distribution, not to that of the union. "
        "Agree on l-diversity instead, raise the bound in the coding, or publish with "
        "--holder-column, where each part keeps its own guarantee"
    )


_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, repr=False)
class Union(Redacted):
    """A union that was published.

    ``parts`` have ``run_id``, ``output_fingerprint``, ``rows``, ``privacy`` and ``holder``.
    ``summary`` is the row of that table, ``privacy`` and ``risk`` the rows of theirs. ``warnings``
    are for whoever releases it.
    """

    path: str
    run_id: str
    parts: list[dict[str, Any]]
    summary: Row
    privacy: list[Row]
    risk: list[Row]
    holder_column: str | None
    warnings: list[str]

    def as_dict(self) -> dict[str, object]:
        """Return all of it as plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _WithHolder:
    """Adds a column of one text."""

    text: str
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            held = pa.repeat(pa.scalar(self.text, pa.string()), batch.num_rows)
            yield pa.RecordBatch.from_arrays([*batch.columns, held], schema=self.schema)


def _write_parts(
    engine: Engine,
    staging: Staging,
    parts: Sequence[Part],
    form: Form,
    order_key: int,
    progress: Progress,
) -> tuple[list[PublishedFile], str]:
    """Prove the parts and stage their records. Also return the fingerprint of all records."""
    with progress.stage("verify parts"):
        opened = [open_part(engine, part.path) for part in parts]
        schema = require_same_types(parts, opened)
        proofs = [proof.published for proof in prove_parts(engine, parts, opened)]
    tables = _published(opened, form, schema)
    extent = Extent(
        sum(proof.rows for proof in proofs),
        sum(part.stored for part in parts),
        sum(proof.largest for proof in proofs),
    )
    expected = fingerprint_of(proofs)
    classes = form.manifest.quasi_identifier_columns
    begin(engine.files, staging)
    with progress.stage("publish", rows=extent.rows):
        if form.holder_column is not None:
            whole = reduce(lambda table, other: table.union(other), tables)
            expected = count_published_classes(whole, classes).fingerprint
        return write_union(tables, classes, extent, order_key, staging), expected


def unite(
    engine: Engine,
    releases: Sequence[str],
    out: str,
    *,
    holder_column: str | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    key: str | None = None,
) -> Union:
    """Publish the union of at least two releases that follow one coding, in any order.

    ``out`` is the directory of the union, which must not exist. ``holder_column`` names the holder
    of each record by the name of the release's directory: then every class is of one holder, and
    each holder's records must satisfy the coding's criteria. ``seed`` is the secret key of the
    order of the records, 64 bits, signed, drawn if it is None. ``key`` is the path of the key that
    signs. Raises ConfigurationError if releases do not fit together, or paths lie inside one
    another, DataError if a release is incomplete, GuaranteeError if a release or the union breaks
    its promise, and PublishingError if the union cannot be written. Then nothing is left at
    ``out``, nor next to it.

    The jobs of :func:`anonspark.verification.audit.audit_release` for each part, those of
    :func:`~anonspark.sharing.holders.writing.write_union` over all records, and one pass over the
    union with two jobs for each attribute of a criterion. No record is collected.
    """
    progress = progress or Progress()
    started = datetime.now(UTC)
    run_id = uuid.uuid4().hex[:12]
    progress.run_id = run_id
    order_key = _key(seed)
    if key is not None:
        key_name(key)
    paths = [path.rstrip("/") for path in releases]
    # `clean` needs a configuration, which a union lacks, and a union is never resumed.
    for path_left in find_stagings(engine.files, out, None):
        remove_staging(engine.files, path_left)
    _require_places(engine.files, paths, out)
    parts = read_parts(engine.files, paths)
    form = form_of(parts, holder_column)
    with (
        open_staging(engine.files, out, run_id, key="--out") as staging,
        engine.running(run_id, progress),
    ):
        written, expected = _write_parts(engine, staging, parts, form, order_key, progress)
        with progress.stage("verify"):
            staged = engine.published(f"{staging.release}/data", form.manifest.data_format)
            proof = prove_union(engine, staged, form, expected, out)
        figures = figures_of(form, proof, run_id, started)
        with progress.stage("metrics"):
            stage_figures(engine, staging, form, figures, written, progress, key)
        commit(engine.files, staging, overwrite=False)
    return Union(
        path=out,
        run_id=run_id,
        parts=form.description["parts"],
        summary=figures.summary,
        privacy=figures.privacy,
        risk=figures.risk,
        holder_column=holder_column,
        warnings=[NOT_PROTECTED, *proof.warnings],
    )


def _key(seed: int | None) -> int:
    """Return the key of the order of records, drawn if there is no seed.

    >>> _key(7)
    7
    """
    if seed is None:
        return secrets.randbelow(2**64) + _SMALLEST
    if not _SMALLEST <= seed <= _LARGEST:
        raise ConfigurationError(
            f"--seed: expected a whole number from {_SMALLEST} to {_LARGEST}. Choose another"
        )
    return seed


def _require_places(files: Files, releases: Sequence[str], out: str) -> None:
    """Raise ConfigurationError, before any work, unless ``out`` can be written apart from parts."""
    if set(out) & set("*?[]{}"):
        raise ConfigurationError(
            f"--out: {out} holds one of the characters * ? [ ] {{ }}, which would make it a "
            "pattern. Choose another path"
        )
    require_target(files, "--out", out)
    places = {f"release {number} ({path})": path for number, path in enumerate(releases, start=1)}
    require_apart(files, {**places, f"--out ({out})": out})
    if files.exists(out):
        raise ConfigurationError(f"--out: {out} exists already. Choose another path, or remove it")


def _published(opened: Sequence[OpenedRelease], form: Form, schema: pa.Schema) -> list[Table]:
    """Return the records of each part, as the union has them. Lazy."""
    tables = [item.data.select(schema.names) for item in opened]
    if form.holder_column is not None:
        with_holder = schema.append(pa.field(form.holder_column, pa.string()))
        tables = [
            table.map_batches(_WithHolder(holder, with_holder), with_holder)
            for table, holder in zip(tables, form.holders, strict=True)
        ]
    return tables
