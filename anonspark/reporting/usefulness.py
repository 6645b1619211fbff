"""Section of the report: how useful a release is."""

from __future__ import annotations

from anonspark.page.blocks import Section, Text
from anonspark.reporting.evidence import Evidence
from anonspark.reporting.wording import utility_sentences


def usefulness(evidence: Evidence) -> Section:
    """Say in words what the release is good for."""
    if evidence.manifest.parts:
        told = (
            "This release is a union of releases of several holders. A union has no original, and "
            "no run made it: what each part lost stands in its own metrics and its own report."
        )
        return Section("utility", "How useful it is", [Text(told)])
    sentences = utility_sentences(
        evidence.counts, evidence.attributes, evidence.figures, evidence.rules
    )
    return Section("utility", "How useful it is", [Text(sentence) for sentence in sentences])
