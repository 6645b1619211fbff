"""Gates and drift: whether figures are within their bounds."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from anonspark.layers.evaluate.gates import (
    Drift,
    GateResult,
    check_gates,
    measure_drift,
    require_no_drift,
    require_passed,
)
from anonspark.layers.evaluate.withholding import is_few
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.layers.publish.history import last_comparable_run
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.figures import Figures

_LOGGER = logging.getLogger("anonspark")

Earlier = Mapping[str, Any]
"""The row of the table ``summary`` of the last run that can be compared."""


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


def look_back(context: RunContext) -> Earlier | None:
    """Return the last run of the job that can be compared, None where nothing is bounded.

    Raises
    ------
    DataError
        If the table of all runs cannot be read.
    """
    if not context.configuration.metrics.drift:
        return None
    with context.progress.stage("drift"):
        before = last_comparable_run(
            context.engine, context.configuration, context.run_id, context.started
        )
    if before is None:
        _LOGGER.info("no earlier run of job %r to compare with", context.configuration.metrics.job)
    return before


def require_usual_input(context: RunContext, snapshot: Snapshot, before: Earlier | None) -> None:
    """Judge what is known of a run before its work: how many records the input has.

    Parameters
    ----------
    context : RunContext
    snapshot : Snapshot
    before : mapping or None
        Of :func:`look_back`.

    Raises
    ------
    GuaranteeError
        If a gate or a bound of the drift will not be kept, whatever the run does.
    """
    configuration = context.configuration
    k = configuration.privacy.k
    dropped = snapshot.rows_dropped
    few = is_few(dropped, k)
    counts = {"rows_in": snapshot.rows_read, "rows_dropped_missing": dropped}
    published = {name: None if few else count for name, count in counts.items()}
    gates = {name: gate for name, gate in configuration.gates.items() if name in counts}
    require_passed(check_gates(gates, published, (), (), counts))
    if before is None:
        return
    # As runs are compared by them: by the least that a count which is withheld can be.
    known = {"rows_in": snapshot.rows if few else snapshot.rows_read}
    known["rows_dropped_missing"] = 0 if few else dropped
    bounds = configuration.metrics.drift
    drifts = measure_drift({name: bounds[name] for name in known if name in bounds}, known, before)
    # Of fewer than k records that find no class, the input's count would lack that many.
    require_no_drift([one for one in drifts if one.metric != "rows_in" or one.is_sure(k - 1)])


def require_little_drift(
    context: RunContext, figures: Figures, before: Earlier | None
) -> list[Drift]:
    """Return the figures that have a bound beside those of the last run of the job.

    Parameters
    ----------
    context : RunContext
    figures : Figures
    before : mapping or None
        Of :func:`look_back`.

    Raises
    ------
    GuaranteeError
        If a figure has moved too far.
    """
    drifts = measure_drift(context.configuration.metrics.drift, figures.summary, before)
    require_no_drift(drifts)
    return drifts
