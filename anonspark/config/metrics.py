"""The section ``metrics``: how runs are followed over time."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Annotated

from pydantic import Field

from anonspark.config.gates import summary_figures, unmeasured
from anonspark.config.problems import Finding, did_you_mean, found
from anonspark.config.section import NonEmptyText, Section
from anonspark.core.figures import Need

# The upper end keeps out what would be no bound at all.
_Bound = Annotated[float, Field(ge=0.0, le=100_000.0)]


class MetricsOptions(Section):
    """Options to follow runs over time."""

    job: str = Field(default="anonspark", min_length=1)
    """Name of the job: runs are compared with earlier runs of the same job. It identifies them in
    the tables of all runs."""

    append_to: NonEmptyText | None = None
    """Directory to whose tables summary and rounds the rows of every release are appended, by date.
    Any Hadoop URI. null: none."""

    drift: dict[str, _Bound] = Field(default={})
    """Largest relative change of figures of the table summary against the last earlier run of the
    same job, such as {rows_in: 0.2}. Beyond it nothing is published."""


def unusable_drift(metrics: MetricsOptions, measured: AbstractSet[Need]) -> Iterator[Finding]:
    """Find bounds on the drift of what is no figure, is not measured, or cannot be compared.

    Parameters
    ----------
    metrics : MetricsOptions
    measured : set of str
        As of :func:`anonspark.config.gates.unmeasured`.
    """
    if metrics.drift and metrics.append_to is None:
        yield Finding(
            ("metrics", "drift"),
            "found bounds, but no earlier runs to compare with. Expected metrics.append_to "
            "as well. Add it, or remove the bounds",
        )
    figures = summary_figures()
    for name in metrics.drift:
        text = unmeasured(name, measured)
        if name not in figures:
            text = (
                f"found {found(name)}, which is no figure of a release. Expected a number of the "
                f"table summary. {did_you_mean(name, figures, 'See docs/output.md#summary')}"
            )
        if text is not None:
            yield Finding(("metrics", "drift", name), text)
