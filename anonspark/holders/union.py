"""``anonspark union``: releases of holders who anonymized apart become one, proved anew."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pyarrow as pa

from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError
from anonspark.holders.figures import Row, figures_of, stage_figures
from anonspark.holders.form import Form, form_of
from anonspark.holders.parts import read_parts, require_same_types
from anonspark.holders.proving import fingerprint_of, prove_parts, prove_union
from anonspark.holders.writing import Extent, write_union
from anonspark.layers.publish.committing import begin, commit
from anonspark.layers.publish.paths import require_apart, require_target
from anonspark.layers.publish.staging import open_staging
from anonspark.progress import Progress
from anonspark.redaction import Redacted
from anonspark.release.manifest import NOT_PROTECTED
from anonspark.verification.classes import count_published_classes
from anonspark.verification.opening import OpenedRelease, open_release

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, repr=False)
class Union(Redacted):
    """A union that was published.

    Parameters
    ----------
    path : str
        Its directory.
    run_id : str
    parts : list of dict
        ``run_id``, ``output_fingerprint``, ``rows``, ``privacy`` and ``holder`` of each.
    summary : dict
        The row of the table ``summary``.
    privacy : list of dict
        The rows of the table ``privacy``.
    risk : list of dict
        The rows of the table ``risk``.
    holder_column : str or None
    warnings : list of str
        What who releases it should know.
    """

    path: str
    run_id: str
    parts: list[dict[str, Any]]
    summary: Row
    privacy: list[Row]
    risk: list[Row]
    holder_column: str | None
    warnings: list[str]

    def as_dict(self) -> dict[str, Any]:
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


def unite(
    engine: Engine,
    releases: Sequence[str],
    out: str,
    *,
    holder_column: str | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Union:
    """Publish the union of releases that follow one coding.

    Parameters
    ----------
    engine : Engine
    releases : sequence of str
        Their directories; at least two. Their order changes nothing.
    out : str
        Directory of the union, where nothing is yet.
    holder_column : str or None
        Name of a column that tells who held a record, by the name of the release's directory; then
        every class is of one holder, and the coding's criteria are required of each holder's
        records. None tells nobody.
    seed : int or None
        Key of the order of the records, 64 bits, signed; a secret. None draws one.
    progress : Progress or None
        Where to tell what is going on.

    Returns
    -------
    Union

    Raises
    ------
    ConfigurationError
        If releases do not fit together, or places lie inside one another.
    DataError
        If a release is not complete.
    GuaranteeError
        If a release does not keep its promise, or the union not that of the coding.
    PublishingError
        If the union cannot be written. Nothing is left at ``out`` then, nor beside it.

    Notes
    -----
    The jobs of :func:`anonspark.verification.audit.audit_release` for each part, those of
    :func:`~anonspark.holders.writing.write_union` over all records, and one pass over the union
    with two jobs for each attribute of a criterion. No record is collected.
    """
    progress = progress or Progress()
    started = datetime.now(UTC)
    run_id = uuid.uuid4().hex[:12]
    progress.run_id = run_id
    key = _key(seed)
    paths = [path.rstrip("/") for path in releases]
    _require_places(engine.files, paths, out)
    parts = read_parts(engine.files, paths)
    form = form_of(parts, holder_column)
    with (
        open_staging(engine.files, out, run_id, key="--out") as staging,
        engine.running(run_id, progress),
    ):
        with progress.stage("verify parts"):
            opened = [open_release(engine, part.path) for part in parts]
            schema = require_same_types(parts, opened)
            proofs = [one.published for one in prove_parts(engine, parts, opened)]
        tables = _published(opened, form, schema)
        extent = Extent(
            sum(one.rows for one in proofs),
            sum(part.stored for part in parts),
            sum(one.largest for one in proofs),
        )
        expected = fingerprint_of(proofs)
        classes = form.manifest.quasi_identifier_columns
        begin(engine.files, staging)
        with progress.stage("publish", rows=extent.rows):
            if form.holder_column is not None:
                whole = reduce(lambda one, other: one.union(other), tables)
                expected = count_published_classes(whole, classes).fingerprint
            written = write_union(tables, classes, extent, key, staging)
        with progress.stage("verify"):
            staged = engine.published(f"{staging.release}/data", form.manifest.data_format)
            proof = prove_union(engine, staged, form, expected, out)
        figures = figures_of(form, proof, run_id, started)
        with progress.stage("metrics"):
            stage_figures(engine, staging, form, figures, written, progress)
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
    if seed is None:
        return secrets.randbelow(2**64) + _SMALLEST
    if not _SMALLEST <= seed <= _LARGEST:
        raise ConfigurationError(
            f"--seed: expected a whole number from {_SMALLEST} to {_LARGEST}; choose another"
        )
    return seed


def _require_places(files: Files, releases: Sequence[str], out: str) -> None:
    """Check, before any work, that the union can be written, and lies apart from its parts.

    Raises
    ------
    ConfigurationError
    """
    if set(out) & set("*?[]{}"):
        raise ConfigurationError(
            f"--out: {out} holds one of the characters * ? [ ] {{ }}, which Spark would take for a "
            "pattern; choose another path"
        )
    require_target(files, "--out", out)
    places = {f"release {number} ({path})": path for number, path in enumerate(releases, start=1)}
    require_apart(files, {**places, f"--out ({out})": out})
    if files.exists(out):
        raise ConfigurationError(f"--out: {out} exists already; choose another path, or remove it")


def _published(opened: Sequence[OpenedRelease], form: Form, schema: pa.Schema) -> list[Table]:
    """Return the records of each part, as the union has them; lazy."""
    tables = [one.data.select(schema.names) for one in opened]
    if form.holder_column is not None:
        told = schema.append(pa.field(form.holder_column, pa.string()))
        tables = [
            table.map_batches(_WithHolder(holder, told), told)
            for table, holder in zip(tables, form.holders, strict=True)
        ]
    return tables
