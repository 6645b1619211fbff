"""Whether figures are within the bounds that the configuration sets: gates, and drift."""

from __future__ import annotations

import logging

from anonspark.layers.evaluate.drift import Drift, measure_drift, require_no_drift
from anonspark.layers.evaluate.gates import GateResult, check_gates, require_passed
from anonspark.layers.publish.history import last_comparable_run
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.figures import Figures

_LOGGER = logging.getLogger("anonspark")


def require_gates(context: RunContext, figures: Figures) -> list[GateResult]:
    """Return the figures of all gates.

    Raises
    ------
    GuaranteeError
        If one is out of its bounds.
    """
    gates = check_gates(
        context.configuration.gates,
        figures.summary,
        figures.attributes,
        figures.risk,
        figures.counted,
    )
    require_passed(gates)
    return gates


def require_little_drift(context: RunContext, figures: Figures) -> list[Drift]:
    """Return the figures that have a bound beside those of the last run of the job.

    Raises
    ------
    DataError
        If the table of all runs cannot be read.
    GuaranteeError
        If a figure has moved too far.
    """
    bounds = context.configuration.metrics.drift
    if not bounds:
        return []
    with context.progress.stage("drift"):
        before = last_comparable_run(
            context.engine, context.configuration, context.run_id, context.started
        )
    if before is None:
        _LOGGER.info("no earlier run of job %r to compare with", context.configuration.metrics.job)
    drifts = measure_drift(bounds, figures.summary, before)
    require_no_drift(drifts)
    return drifts
