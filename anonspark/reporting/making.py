"""Making the report of a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonspark.config import Configuration
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import WantedColumns
from anonspark.errors import ConfigurationError
from anonspark.page.blocks import Section
from anonspark.page.document import render
from anonspark.release.manifest import read_manifest
from anonspark.release.originals import open_original
from anonspark.release.regions import require_readable
from anonspark.reporting import figure_sections, proof_sections
from anonspark.reporting.evidence import Evidence, withholds_values
from anonspark.reporting.figures import measure
from anonspark.reporting.placing import place_report, report_place
from anonspark.verification.audit import audit_table
from anonspark.verification.claims import claim_of_manifest
from anonspark.verification.risk import attacks, risk_row


def make_report(
    engine: Engine,
    release: str,
    original: Table | None = None,
    original_path: str | None = None,
) -> str:
    """Return the report of a release.

    Parameters
    ----------
    engine : Engine
    release : str
        The directory that ``output.path`` named.
    original : Table or None
        The table that the release was made of.
    original_path : str or None
        Where that is, for the command that repeats the proof.

    Returns
    -------
    str
        An HTML page; the same for the same release and original.

    Raises
    ------
    DataError
        If there is no complete release, or the original lacks columns.
    ConfigurationError
        If a hierarchy or population that the release names cannot be read, or an original is given
        for a union.

    Notes
    -----
    The jobs of :func:`anonspark.verification.audit.audit_table` and of
    :func:`anonspark.reporting.figures.measure`. A release whose guarantee fails has a report, too,
    which says so.
    """
    release = release.rstrip("/")
    manifest = read_manifest(engine.files, release)
    if manifest.parts and original is not None:
        raise ConfigurationError(
            f"--original: {release} is a union, which has no original; make the report of each of "
            "its parts beside its own"
        )
    claim = claim_of_manifest(engine, release, manifest, matched=True)
    where = f"{release}/data"
    paths = (where,) if original_path is None else (where, original_path)
    with engine.reading(paths, key=""):
        data = engine.published(f"{release}/data", manifest.data_format)
        matched = original if _tells_regions(claim.attributes) else None
        verification = audit_table(data, claim, original=matched, name=release, where=where)
        # Beside the release, the original would tell of records that it leaves out.
        shown = None if withholds_values(manifest) else original
        figures = measure(data, manifest, claim.hierarchies, shown)
    before = []
    if figures.original is not None and figures.original.sizes:
        found = attacks(figures.original.sizes, claim.risk.threshold)
        before = [risk_row(attack, claim.risk) for attack in found]
    evidence = Evidence(
        release,
        manifest,
        verification.as_dict(),
        figures,
        summary=_metrics(engine, release, "summary"),
        rounds=_metrics(engine, release, "rounds", "round"),
        attributes=_metrics(engine, release, "attributes", "position"),
        original=original_path if matched is not None else None,
        risk_before=before,
    )
    said = manifest.document
    return render(
        title=f"Anonymization report: {manifest.run_id or evidence.release}",
        subtitle=(
            f"{evidence.release} · {_made_by(evidence)} · k = {evidence.k:,} · "
            f"{str(said.get('started', '')).replace('+00:00', ' UTC')}"
        ),
        sections=_sections(evidence),
        footer=(
            f"Made by anonspark {said.get('versions', {}).get('anonspark', '')}. Aggregates "
            f"only: no record is in this file, and no count of people below k = {evidence.k:,}."
        ),
    )


def _made_by(evidence: Evidence) -> str:
    manifest = evidence.manifest
    if manifest.parts:
        return f"union of {len(manifest.parts):,} releases"
    model = evidence.counts.get("model", manifest.configuration["model"]["name"])
    if "chosen_model" in manifest.document:
        model += f" ({manifest.document['chosen_model']['model']['name']})"
    return f"model {model}"


def _sections(evidence: Evidence) -> list[Section]:
    """Return, in their order, the sections that there is something to say in."""
    makers = (
        proof_sections.guarantee,
        proof_sections.warnings,
        proof_sections.gates,
        proof_sections.published,
        figure_sections.utility,
        figure_sections.class_sizes,
        figure_sections.loss,
        figure_sections.rounds,
        figure_sections.marginals,
        figure_sections.correlations,
        figure_sections.risk,
        proof_sections.timings,
        proof_sections.configuration,
    )
    return [section for make in makers if (section := make(evidence)) is not None]


def report_release(
    engine: Engine, release: str, original: str | None = None, out: str | None = None
) -> str:
    """Write the report of a release; costs and errors as :func:`make_report`.

    Parameters
    ----------
    engine : Engine
    release : str
        The directory that ``output.path`` named.
    original : str or None
        Path of the table that it was made of, in the format that the manifest tells.
    out : str or None
        Where to write it; None writes it into the release.

    Returns
    -------
    str
        Where it is.

    Raises
    ------
    PublishingError
        If it cannot be written.
    """
    files = engine.files
    table = None
    manifest = read_manifest(files, release)
    path = report_place(files, release, out)
    if original is not None:
        table = open_original(engine, original, manifest)
    place_report(files, release, path, make_report(engine, release, table, original))
    return path


def report_run(engine: Engine, configuration: Configuration) -> str:
    """Write the report of the release that a configuration made, beside its input.

    Returns and raises as :func:`report_release`.
    """
    files = engine.files
    paths = configuration.input.paths
    release = configuration.output.path
    options = configuration.input
    wanted = {name: one.role != "identifier" for name, one in configuration.attributes.items()}
    table = engine.open_table(
        options.paths,
        options.format,
        options.options,
        key="input.path",
        section="input",
        wanted=WantedColumns(wanted, options.missing_columns, "input.missing_columns"),
    )
    path = report_place(files, release, None)
    report = make_report(engine, release, table, paths[0] if len(paths) == 1 else None)
    place_report(files, release, path, report)
    return path


def _tells_regions(attributes: Any) -> bool:
    """Return whether records can be matched with the release: means hide their classes."""
    try:
        require_readable(attributes)
    except ConfigurationError:
        return False
    return True


def _metrics(
    engine: Engine, release: str, name: str, order: str | None = None
) -> list[Mapping[str, Any]]:
    """Read a small table of metrics; nothing where the release came without it."""
    path = f"{release}/metrics/{name}"
    if not engine.files.exists(path):
        return []
    with engine.reading((path,), key=""):
        rows = engine.published(path, "parquet").gather()
    return list((rows if order is None else rows.sort_by(order)).to_pylist())
