"""Proving a release from its own files, and attacking it with what an attacker may have.

Nothing here trusts the anonymizer: neither its metrics nor its class numbers nor its code. What is
shared with it are the vocabulary of the configuration and the reading of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from anonspark.config import Configuration
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import require_distinct, require_read
from anonspark.errors import ConfigurationError
from anonspark.progress import report_step
from anonspark.release.manifest import NOT_PROTECTED, Manifest
from anonspark.release.originals import open_original
from anonspark.verification.claims.claim import Claim
from anonspark.verification.proof.classes import PublishedClasses, count_published_classes
from anonspark.verification.proof.recount import recount
from anonspark.verification.proof.sensitive_figures import Trials
from anonspark.verification.result import Verification

if TYPE_CHECKING:
    from anonspark.verification.attacks.attack import ByOriginal
    from anonspark.verification.claims.roles import Roles
    from anonspark.verification.opening import OpenedRelease


def audit_release(
    engine: Engine,
    release: str,
    configuration: Configuration | None = None,
    *,
    roles: Roles | None = None,
    original: str | None = None,
    population: str | None = None,
    signers: str | None = None,
    table: str | None = None,
) -> Verification:
    """Measure from its files what a release keeps of its promise, and how attacks on it end.

    ``release`` is the directory that ``output.path`` named, or a table of another tool. The
    requirements are those of ``configuration``, else those that the manifest promises, and without
    a manifest those of ``roles``. ``original`` is the path of the table that the release was made
    of, ``population`` that of a table of people, with the quasi-identifiers as columns, that an
    attacker has. ``signers`` is a local file of the allowed signers: without it no signature is
    checked. ``table`` names a table of a catalog that should have the same records. Raises
    ConfigurationError if a file that a criterion needs cannot be used, DataError if there is no
    complete release, columns are missing, or tables cannot be read, and GuaranteeError if the
    manifest or another file is damaged.

    One job reads every file of the release once as bytes
    (:func:`~anonspark.verification.proof.release_files.read_contents`). One pass over the published
    files and one shuffle of class sizes. Two more jobs for each sensitive attribute, two passes
    over the population for delta-presence, and the jobs of
    :func:`~anonspark.verification.attacks.truthfulness.measure_truthfulness` and
    :func:`~anonspark.verification.attacks.linkage.measure_linkage` for the tables given.
    """
    from anonspark.verification.opening import open_release

    report_step("reading the files")
    opened = open_release(
        engine,
        release,
        configuration,
        roles=roles,
        matched=original is not None or population is not None,
        signers=signers,
    )
    proof = audit_opened(engine, opened, original=original, population=population)
    return proof if table is None else compare_table(engine, opened, proof, table)


def compare_table(
    engine: Engine, opened: OpenedRelease, proof: Verification, name: str
) -> Verification:
    """Add a failure if a table of a catalog has other records than the release in its partition.

    Costs as :func:`~anonspark.verification.proof.classes.count_published_classes` of the partition.
    Raises ConfigurationError if the engine has no catalogs, DataError if there is no such table.
    """
    report_step("comparing with the table")
    output = (opened.manifest or Manifest({})).configuration.get("output", {})
    with engine.reading((name,), key="--table: "):
        table = engine.named_table(name, output.get("table_partition", {})).read()
        names, columns = (
            opened.data.schema.names,
            {column.lower(): column for column in table.schema.names},
        )
        if columns.keys() == {column.lower() for column in names}:
            # In one order, and by the same names.
            table = table.select({column: columns[column.lower()] for column in names})
            counted = count_published_classes(table, opened.claim.columns)
            if counted.fingerprint == proof.published.fingerprint:
                return proof
    text = (
        f"{name}: its records are not those of the release, in these columns and types. Write "
        "them again, and give each release an output.table_partition of its own"
    )
    return replace(proof, failures=[*proof.failures, text])


def audit_opened(
    engine: Engine,
    opened: OpenedRelease,
    *,
    original: str | Table | None = None,
    population: str | None = None,
) -> Verification:
    """Measure what an opened release keeps of its promise. See :func:`audit_release`."""
    described = opened.manifest or Manifest({})
    if original is not None and described.parts:
        raise ConfigurationError(
            f"--original: {opened.path} is a union, which has no original. Verify each of its "
            "parts with its own original"
        )
    if opened.manifest is None and opened.configuration is not None:
        described = Manifest({"configuration": opened.configuration.model_dump(mode="json")})
    tables: list[Table | None] = []
    paths = [opened.where]
    for key, table in (("original", original), ("population", population)):
        if isinstance(table, str):
            paths.append(table)
            with engine.reading((table,), key=f"--{key}: "):
                tables.append(open_original(engine, table, described, key=f"--{key}"))
        else:
            tables.append(table)
    with engine.reading(tuple(paths), key=""):
        verification = audit_table(
            opened.data,
            opened.claim,
            original=tables[0],
            population=tables[1],
            name=opened.path,
            where=opened.where,
        )
    verification = replace(verification, signature=opened.signature)
    if described.parts:
        return replace(verification, warnings=[*verification.warnings, NOT_PROTECTED])
    return verification


def audit_table(
    data: Table,
    claim: Claim,
    *,
    original: Table | None = None,
    population: Table | None = None,
    name: str = "the table",
    where: str = "the table",
    trials: Trials | None = None,
    published: PublishedClasses | None = None,
) -> Verification:
    """Measure what published records keep of a claim. See :func:`audit_release`.

    A run calls it on what it has staged, ``verify`` on what is published. The records are counted
    again and attacked with other tables, and the statements about them are compared with both.
    ``name`` and ``where`` name the release and its records, ``trials`` is that of
    :func:`~anonspark.verification.proof.sensitive_figures.measure_sensitive`, and ``published`` are
    the classes if they are counted already, because a run counts more in the same pass.
    """
    tables = {"original": original, "population": population}
    _require_columns({*claim.names, *data.schema.names}, tables)
    proof = replace(recount(data, claim, where, trials, published), release=name)
    proof, matched = _attack(proof, data, claim, tables)
    if claim.statements is None:
        return proof
    # Imported late, because most runs do not need it.
    from anonspark.verification.claims.statements import compare

    report_step("comparing with what is said of the release")
    compared = (matched, original.schema) if matched and original is not None else None
    return compare(proof, claim.statements, data, claim, where, compared)


def _require_columns(used: set[str], tables: Mapping[str, Table | None]) -> None:
    """Raise DataError if a table has a used column twice, or one that cannot be read."""
    for subject, table in tables.items():
        if table is not None:
            require_distinct(table.schema.names, used, subject)
            require_read(table.schema, used, f"{subject}: ")


def _attack(
    proof: Verification, data: Table, claim: Claim, tables: Mapping[str, Table | None]
) -> tuple[Verification, ByOriginal | None]:
    """Add what other tables show, if there are any. Also return the match with the original."""
    has_tables = any(table is not None for table in tables.values())
    if not has_tables and claim.privacy.delta_presence is None:
        return proof, None
    from anonspark.verification.attacks.attack import attack

    return attack(proof, data, claim, **tables)
