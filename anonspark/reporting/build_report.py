"""Make the report of a release, with its glossary, and place it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

from anonspark.config import Configuration
from anonspark.config.decision import Decision, read_decision
from anonspark.config.models import model_in_words
from anonspark.engine.files import Files, PublishedFile, require_ours
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError, GuaranteeError, PublishingError
from anonspark.labels.regions import PublishedAttribute
from anonspark.layers.publish.paths import require_target
from anonspark.presentation.blocks import Section
from anonspark.presentation.document import Glossary, Term, render
from anonspark.release.layout import REPORT, REPORT_KIND, looks_like_report
from anonspark.release.manifest import MANIFEST, Manifest, listing, manifest_text, read_manifest
from anonspark.release.metric_tables import read_metrics
from anonspark.release.originals import open_original
from anonspark.release.risk import attacks, risk_row
from anonspark.release.signatures import SIGNATURE, key_name, sign
from anonspark.reporting import proof_sections, risk_sections, value_sections
from anonspark.reporting.advice import advice, stricter, trials, weaknesses
from anonspark.reporting.evidence import Evidence, Row, hides_original
from anonspark.reporting.figures import Figures, measure
from anonspark.reporting.risk_sections import class_sizes, risk_curve
from anonspark.reporting.summary_tiles import glance, quality
from anonspark.reporting.usefulness import usefulness
from anonspark.reporting.value_sections import learn
from anonspark.verification.audit import audit_table
from anonspark.verification.claims.claim import Claim, claim_of_description, claim_of_manifest
from anonspark.verification.claims.left_out import read_left_out
from anonspark.verification.result import Verification


def report_path(files: Files, release: str, out: str | None, key: str | None = None) -> str:
    """Check that a report can be written before the work for it begins, and return its path.

    ``out`` is None for a report in the release. ``key`` is the path of the key that signs the
    release, if that is signed. Raises ConfigurationError if something other than a report is at the
    path, it is a symbolic link, it lies inside the release under another name, or the release is
    signed by another key, and GuaranteeError if the manifest of a signed release was changed.
    """
    inside = f"{release.rstrip('/')}/{REPORT}"
    path = out or inside
    option = "report" if out is None else "--out"
    require_target(files, option, path)
    if out is None:
        require_ours(files, option, release.rstrip("/"))
    target, release_root = files.resolved(path), files.resolved(release).rstrip("/")
    if target.startswith(f"{release_root}/") and target != f"{release_root}/{REPORT}":
        raise ConfigurationError(
            f"{option}: {path} lies inside the release, which holds what its manifest lists and "
            f"nothing else. Leave it out for {inside}, or choose a place apart from the release"
        )
    if files.exists(path) and not looks_like_report(files, path):
        raise ConfigurationError(
            f"{option}: what is at {path} is not a report, so it is not replaced. Choose another "
            "file, or remove it yourself"
        )
    if target == f"{release_root}/{REPORT}":
        _require_signed_by(files, release.rstrip("/"), key)
    return path


def _require_signed_by(files: Files, release: str, key: str | None) -> None:
    """Check that a key signed the manifest in its present state, before it signs a changed one."""
    manifest = read_manifest(files, release)
    if manifest.signer is None:
        return
    if key is None or manifest.signer != key_name(key):
        raise ConfigurationError(
            f"report: {release} is signed by the key {manifest.signer}, and the report changes its "
            "manifest. Name that key with --sign (of a run output.signing_key), or write the "
            "report elsewhere with --out"
        )
    texts = [manifest_text(manifest.document)]
    if files.exists(f"{release}/{REPORT}"):
        # That of a call which was killed between signature and manifest.
        texts.append(_with_report(files, release, manifest))
    path = f"{release}/{SIGNATURE}"
    signature = files.read_part(path, 0, files.size(path)) if files.exists(path) else b""
    if signature not in [sign(text.encode(), key) for text in texts]:
        raise GuaranteeError(
            f"report: {release}/{MANIFEST} is not what was signed, so it is not signed again. "
            "Restore the release, or publish it again"
        )


def write_report(
    files: Files, release: str, path: str, report: str, key: str | None = None
) -> None:
    """Write a report. A report inside a release becomes one of the files of its manifest.

    No Spark job. First the report is replaced, then the signature, then the manifest, each in one
    step if the file system can. If the process is killed in between, ``verify`` refuses the report
    until ``anonspark report`` is run again. Raises as :func:`report_path`, and PublishingError if
    it cannot be written.
    """
    try:
        aside = f".{path.rpartition('/')[2]}.writing"
        inside = files.resolved(release).rstrip("/")
        is_inside = files.resolved(path) == f"{inside}/{REPORT}"
        if is_inside:
            _require_signed_by(files, release.rstrip("/"), key)
        files.replace(path, report.encode(), aside)
        if is_inside:
            _list_report(files, release.rstrip("/"), key)
    except OSError as error:
        raise PublishingError(
            f"report: {path} cannot be written. Check that its folder can be written to, and the "
            "space on the disk. The release itself is complete"
        ) from error


def _list_report(files: Files, release: str, key: str | None) -> None:
    manifest = read_manifest(files, release)
    content = _with_report(files, release, manifest).encode()
    if key is not None and manifest.signer is not None:
        files.replace(f"{release}/{SIGNATURE}", sign(content, key), f".{SIGNATURE}.writing")
    files.replace(f"{release}/{MANIFEST}", content, f".{MANIFEST}.writing")


def _with_report(files: Files, release: str, manifest: Manifest) -> str:
    """Return the text of a manifest that lists the report in its present form."""
    path = f"{release}/{REPORT}"
    listed = PublishedFile(REPORT, files.size(path), None, files.sha256(path))
    others = [file for file in manifest.files if file.path != REPORT]
    return manifest_text(manifest.document | {"files": listing([*others, listed])})


GLOSSARY = Glossary(
    Term(
        "class",
        "All records with the same published quasi-identifiers. No one can distinguish them by "
        "these.",
        ("classes",),
    ),
    Term(
        "quasi-identifier",
        "A column that others may know of a person, such as age or town, so that several together "
        "single people out. It is published coarser than it was.",
        ("quasi-identifiers",),
    ),
    Term(
        "sensitive attribute",
        "A column whose value must stay private, such as a diagnosis. It is published as it is. "
        "Classes hide whose record it is. Only a criterion such as l-diversity hides the value.",
        ("sensitive attributes",),
    ),
    Term(
        "k-anonymity",
        "Every class has k records or more: no published combination of quasi-identifiers is that "
        "of fewer.",
    ),
    Term(
        "l-diversity",
        "Every class has several different values of a sensitive attribute, so that the class "
        "alone does not reveal the value for sure.",
    ),
    Term(
        "t-closeness",
        "In every class a sensitive attribute is distributed about as in the whole table, so that "
        "a person's class reveals little more. t is the largest distance allowed, 0 to 1.",
    ),
    Term(
        "homogeneous",
        "A class in which all records have the same value of a sensitive attribute: who is known "
        "to be in it is known to have that value.",
    ),
    Term(
        "re-identification",
        "Finding out which record is that of a certain person.",
        ("re-identified",),
    ),
    Term(
        "certainty penalty",
        "The part of an attribute's range that a published value leaves open: 0% is the exact "
        "value, 100% covers the whole range.",
    ),
    Term(
        "linkage attack",
        "Looking for the people of another table among the classes of a release.",
    ),
    Term(
        "truthfulness",
        "Every published value covers the value of the record that it stands for.",
    ),
    Term(
        "suppressed",
        "Published without any quasi-identifier, or not at all.",
        ("suppression",),
    ),
)
"""Explained where they stand, and at the end of the page."""


class Report(NamedTuple):
    """An HTML page, and whether the release keeps all its requirements."""

    html: str
    holds: bool


def make_report(
    engine: Engine,
    release: str,
    original: Table | None = None,
    original_path: str | None = None,
    *,
    target: str | None = None,
    holdout: Table | str | None = None,
    verified: Verification | None = None,
    decision: Decision | None = None,
) -> Report:
    """Make the report of a release, which only depends on the release and the original.

    ``original_path`` is for the command that repeats the proof. Models learn to predict ``target``,
    a category that is published as it is, from the release and from the original. They are tested
    on ``holdout``, records like the original's that were not anonymized, or else on a part of the
    original, which flatters the release. ``verified`` is what the run has just proven, or None to
    prove it here.

    Runs the jobs of :func:`anonspark.verification.audit.audit_table`, of
    :func:`anonspark.reporting.figures.measure` and of
    :func:`anonspark.reporting.value_sections.learn`. A release whose guarantee fails also has a
    report, which shows that. Raises DataError if the release is incomplete, the original lacks
    columns, or scores would be about fewer than k records, and ConfigurationError if a named
    hierarchy or population cannot be read, a union has no original, or there is a target but no
    original to compare models with.
    """
    release = release.rstrip("/")
    manifest = read_manifest(engine.files, release)
    if manifest.parts and original is not None:
        raise ConfigurationError(
            f"--original: {release} is a union, which has no original. Make a report of each of "
            f"its parts with the original of that part"
        )
    where = f"{release}/data"
    sources = (original_path, holdout if isinstance(holdout, str) else None)
    with engine.reading((where, *filter(None, sources)), key=""):
        data = engine.published(where, manifest.data_format)
        claim, verification, is_matched = _proof(
            engine, release, manifest, data, original, verified
        )
        learning = learn(engine, release, manifest, original, target, holdout)
        # Beside the release, the original would tell of records that it leaves out, or of bounds.
        shown = None if hides_original(manifest) else original
        figures = measure(data, manifest, claim.hierarchies, shown)
    metrics = {name: read_metrics(engine.files, release, name) for name in _SORTED_BY}
    evidence = Evidence(
        release,
        manifest,
        verification,
        figures,
        original=original_path if is_matched else None,
        risk_before=_risk_before(verification, figures, claim),
        proven_by_run=verified is not None,
        learning=learning,
        decision=decision,
        **{name: sorted(rows, key=itemgetter(_SORTED_BY[name])) for name, rows in metrics.items()},
    )
    return Report(_page(evidence), evidence.holds)


_SORTED_BY = {"summary": "run_id", "rounds": "round", "attributes": "position"}


def _risk_before(verification: Verification, figures: Figures, claim: Claim) -> list[Row]:
    """Return rows of the table ``risk`` about the original, none if it is not given.

    Of the original only records are counted, and nothing compares them with people.
    """
    if verification.units is not None or figures.original is None or not figures.original.sizes:
        return []
    attacked = attacks(figures.original.sizes, claim.risk.threshold)
    return [risk_row(attack, claim.risk) for attack in attacked]


_COLUMNS = ("columns_published", "columns_in")


def _proof(
    engine: Engine,
    release: str,
    manifest: Manifest,
    data: Table,
    original: Table | None,
    verified: Verification | None,
) -> tuple[Claim, Verification, bool]:
    """Return the promise, its verification, and whether the original can be matched."""
    where = f"{release}/data"
    if verified is not None:
        claim = claim_of_description(engine, manifest, matched=True)
        claim = replace(claim, left_out=read_left_out(engine, release, manifest))
        proof = audit_table(
            data, claim, name=release, where=where, trials=trials, published=verified.published
        )
        # Weights that are not published are known to the run alone.
        by_run = {name: getattr(verified, name) for name in ("risk", *_COLUMNS)}
        proof = replace(proof, **by_run)
        return claim, proof, original is not None and _shows_regions(claim.attributes)
    claim = claim_of_manifest(engine, release, manifest, matched=True, replaced=(REPORT,))
    matched = original if _shows_regions(claim.attributes) else None
    verification = audit_table(
        data, claim, original=matched, name=release, where=where, trials=trials
    )
    return claim, verification, matched is not None


def _moment(started: object) -> str:
    return str(started or "").replace("T", " ").replace("+00:00", " UTC")


def _page(evidence: Evidence) -> str:
    """Render the HTML page of a report from the evidence."""
    manifest = evidence.manifest
    document, about = manifest.document, manifest.about
    title = about.get("title") or f"Release {evidence.release.rpartition('/')[2]}"
    lead = [str(about["purpose"])] if about.get("purpose") else []
    if about.get("contact"):
        lead.append(f"Questions: {about['contact']}")
    privacy = (
        "Aggregates only: no record of the input is in this file, and no count of people below "
        f"k = {evidence.k:,}."
    )
    return render(
        title=title,
        kind=REPORT_KIND,
        subtitle=(
            f"Anonymization report of {evidence.release} · {_made_by(evidence)} · "
            f"k = {evidence.k:,} · {_moment(document.get('started'))}"
        ),
        opening=glance(evidence),
        sections=_sections(evidence, _MAIN),
        footer=f"Made by anonspark {document.get('versions', {}).get('anonspark', '')}. {privacy}",
        lead=lead,
        appendix=_sections(evidence, _APPENDIX),
        glossary=GLOSSARY,
        printed_footer=f"Fingerprint of the release: {manifest.fingerprint}",
    )


def _made_by(evidence: Evidence) -> str:
    manifest = evidence.manifest
    if manifest.parts:
        return f"union of {len(manifest.parts):,} releases"
    model = model_in_words(evidence.counts.get("model", manifest.configuration["model"]["name"]))
    if "chosen_model" in manifest.document:
        model += f": {model_in_words(manifest.document['chosen_model']['model']['name'])}"
    return f"model {model}"


_MAIN: Sequence[Callable[[Evidence], Section | None]] = (
    weaknesses,
    advice,
    risk_curve,
    quality,
    proof_sections.guarantee,
    proof_sections.gates,
    proof_sections.published,
    usefulness,
    value_sections.marginals,
    risk_sections.risk,
    class_sizes,
    proof_sections.decision,
)

_APPENDIX: Sequence[Callable[[Evidence], Section | None]] = (
    stricter,
    value_sections.loss,
    value_sections.rounds,
    proof_sections.timings,
    proof_sections.configuration,
)


def _sections(
    evidence: Evidence, makers: Sequence[Callable[[Evidence], Section | None]]
) -> list[Section]:
    """Return the sections that are not empty, in their order."""
    return [section for make in makers if (section := make(evidence)) is not None]


@dataclass(frozen=True)
class WrittenReport:
    """The path of a report, and whether the release keeps all its requirements."""

    path: str
    holds: bool


def report_release(
    engine: Engine,
    release: str,
    original: str | None = None,
    out: str | None = None,
    *,
    target: str | None = None,
    holdout: str | None = None,
    decision: str | None = None,
    key: str | None = None,
) -> WrittenReport:
    """Write the report of a release, into it or to another path. See :func:`make_report`.

    ``original``, ``holdout`` and ``decision`` are paths, and the original has the format of the
    manifest. ``key`` is the path of the key that signed the release, which signs it again.
    """
    files = engine.files
    table = None
    stated = None if decision is None else read_decision(decision)
    manifest = read_manifest(files, release)
    path = report_path(files, release, out, key)
    if original is not None:
        table = open_original(engine, original, manifest)
    report = make_report(
        engine, release, table, original, target=target, holdout=holdout, decision=stated
    )
    write_report(files, release, path, report.html, key)
    return WrittenReport(path, report.holds)


def report_run(
    engine: Engine, configuration: Configuration, verified: Verification | None = None
) -> str:
    """Write the report of the release that a configuration made, and return its path.

    What the run has proven is not proven again. Raises as :func:`report_release`.
    """
    files = engine.files
    paths = configuration.input.paths
    release = configuration.output.path
    # In the version that the run has read, with the options that it recognized.
    version = read_manifest(files, release).input_version
    table = engine.open_source(configuration.with_input(version))
    key = configuration.output.signing_key
    path = report_path(files, release, None, key)
    original = paths[0] if len(paths) == 1 else None
    report = make_report(engine, release, table, original, verified=verified)
    write_report(files, release, path, report.html, key)
    return path


def _shows_regions(attributes: Iterable[PublishedAttribute] | None) -> bool:
    """Return whether records can be matched with the release: means hide their classes."""
    return not any(attribute.is_mean for attribute in attributes or ())
