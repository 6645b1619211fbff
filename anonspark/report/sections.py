"""The sections of the report in their order."""

from __future__ import annotations

from anonspark.page.blocks import Section
from anonspark.report import figure_sections, proof_sections
from anonspark.report.evidence import Evidence

__all__ = ["all_sections"]


def all_sections(evidence: Evidence) -> list[Section]:
    """Return the sections that there is something to say in."""
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
