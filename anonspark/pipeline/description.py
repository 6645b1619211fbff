"""Describe a release: its form, the findings of the run, and its manifest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from anonspark.config import Configuration
from anonspark.core.encoding import QuasiIdentifier
from anonspark.labels.regions import PublishedAttribute, published_attributes
from anonspark.layers.evaluate.gates import Drift, GateResult
from anonspark.layers.generalize.classes import Generalizer
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.figures import Figures
from anonspark.pipeline.publishable_data import Basis
from anonspark.pipeline.tasks import generalizer_of
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.release.derived_manifest import columns_section, sections_of_summary
from anonspark.release.manifest import Manifest, versions
from anonspark.release.signatures import key_name

if TYPE_CHECKING:
    from anonspark.models.choosing import Choice


@dataclass(frozen=True)
class PublishedForm:
    """The form of a release, which is known before anything is counted in it.

    ``description`` holds the sections ``configuration`` and, without counts, ``published`` of the
    manifest: what a reader of a release needs.
    """

    generalizer: Generalizer
    description: dict[str, Any]

    @property
    def columns(self) -> list[str]:
        """Published columns of the quasi-identifiers."""
        return [column.name for column in self.generalizer.columns()]

    @property
    def attributes(self) -> tuple[PublishedAttribute, ...]:
        """The quasi-identifiers as a reader of the release knows them."""
        return published_attributes(Manifest(self.description))


def published_form(
    configuration: Configuration, quasi_identifiers: tuple[QuasiIdentifier, ...]
) -> PublishedForm:
    """Return how a release of quasi-identifiers is published."""
    generalizer = generalizer_of(configuration, quasi_identifiers)
    configured = configuration.public_dict()
    described = [quasi_identifier.describe() for quasi_identifier in quasi_identifiers]
    published = {**columns_section(configured, described), "quasi_identifiers": described}
    return PublishedForm(generalizer, {"configuration": configured, "published": published})


@dataclass(frozen=True)
class Findings:
    """The findings of a run about its release.

    ``choice`` is None if the configuration names the model. ``version`` is that of
    :class:`anonspark.pipeline.preparing.Prepared`.
    """

    form: PublishedForm
    basis: Basis
    choice: Choice | None
    figures: Figures
    gates: Sequence[GateResult]
    drifts: Sequence[Drift]
    warnings: Sequence[ReleaseWarning]
    version: Mapping[str, str]


def release_manifest(context: RunContext, findings: Findings, *, attempt: int) -> dict[str, Any]:
    """Return the manifest of a release as JSON values, without the list of its files.

    The seconds of the stages come from the progress of the context. ``attempt`` is the number of
    the attempt that made the release.
    """
    summary, basis = findings.figures.summary, findings.basis
    description = findings.form.description
    seconds = context.progress.seconds
    sections = sections_of_summary(summary)
    manifest: dict[str, Any] = {
        "run_id": sections["run_id"],
        "started": sections["started"],
        "seconds": {name: round(taken, 3) for name, taken in seconds.items()},
        "versions": versions(context.engine.versions, description["configuration"]),
        "configuration": description["configuration"],
        "fingerprints": sections["fingerprints"],
        "published": {
            "rows": summary["rows_published"],
            "rows_left_out": summary["rows_left_out"],
            "sensitive_values": basis.sensitive_values,
            "left_out_values": "told" if basis.shows_left_out else "withheld",
            **description["published"],
        },
        "summary": sections["summary"],
        "gates": [
            {name: value for name, value in asdict(gate).items() if name != "within"}
            for gate in findings.gates
        ],
        # A count that is withheld is judged by the least that it can be, and stays withheld.
        "drift": [
            asdict(drift) | ({"found": None} if summary.get(drift.metric) is None else {})
            for drift in findings.drifts
        ],
        "attempt": attempt,
    }
    units = findings.figures.units
    if units is not None:
        manifest["published"]["units"] = [list(pair) for pair in sorted(units.items())]
    if context.request is not None:
        manifest["recipient"] = context.request.entry(context.configuration.privacy.k)
    of_people = findings.figures.of_people
    if of_people is not None:
        finite = [item if math.isfinite(item) else None for item in of_people]
        manifest["published"]["criteria_of_people"] = finite
    if findings.version:
        manifest["input_version"] = dict(findings.version)
    coding = context.configuration.agreed_coding
    if coding is not None:
        manifest["coding"] = coding.as_dict()
    if findings.choice is not None:
        chosen = findings.choice.as_dict()
        if summary["loss"] is None:
            # The chosen one's would be that of the release.
            chosen["tried"] = [item | {"loss": None} for item in chosen["tried"]]
        manifest["chosen_model"] = chosen
    manifest["warnings"] = [item.as_dict() for item in findings.warnings]
    if (key := context.configuration.output.signing_key) is not None:
        manifest["signer"] = key_name(key)
    return manifest
