"""What a ledger is told of a release, and gates and drift: whether figures are within bounds."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from anonspark.config.budget import BudgetOptions
from anonspark.config.privacy import PrivacyOptions
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
from anonspark.layers.publish.paths import require_apart_from_table
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.figures import Figures
from anonspark.pipeline.released import Release
from anonspark.sharing.ledger.budget import RECORD, Limit, list_release, open_budget

# Where a population is: its path and options may say more than a ledger should.
_PLACES = {"delta_presence": {"population", "format", "options"}}


def require_listable(context: RunContext) -> None:
    """Check, before any work, that a release can be written down; make the ledger if there is none.

    Raises
    ------
    ConfigurationError
        If the ledger has another limit, or there is none and no limit is told; or if it lies
        inside input or output, or one of them inside it.
    GuaranteeError
        If its chain is broken.
    """
    options = _options(context)
    if options is not None:
        limit = _limit(options)
        require_apart_from_table(context.files, context.configuration, "ledger.path", options.path)
        open_budget(context.files, _place(context, options), limit).require_same(limit)


def list_staged(context: RunContext, release: Release) -> None:
    """Write down a release that is proven and is published next.

    Parameters
    ----------
    context : RunContext
    release : Release

    Raises
    ------
    ConfigurationError, GuaranteeError
        As of :func:`require_listable`.
    PublishingError
        If the entry cannot be written; nothing is published then.

    Notes
    -----
    Before it is published, so that no release is ever missing in the ledger, whenever the process
    is killed. Should it not come to be published, the entry stays.
    """
    options = _options(context)
    if options is None:
        return
    configuration = context.configuration
    told = {
        "run_id": context.run_id,
        "command": "run",
        "mechanism": configuration.model.name,
        "settings": configuration.settings_fingerprint(),
        "release": release.summary["output_fingerprint"],
        **_criteria(configuration.privacy),
    }
    list_release(context.files, _place(context, options), _limit(options), told)


def _criteria(privacy: PrivacyOptions) -> dict[str, Any]:
    """Return k and what else was asked for."""
    asked = privacy.model_dump(mode="json", exclude_defaults=True, exclude=_PLACES)
    return {"k": asked.pop("k"), "criteria": asked}


def _options(context: RunContext) -> BudgetOptions | None:
    """Return where releases are written down, None for those that nobody gets."""
    return context.configuration.ledger if context.purpose == "release" else None


def _limit(options: BudgetOptions) -> Limit:
    return Limit(options.most, "add_remove", RECORD)


def _place(context: RunContext, options: BudgetOptions) -> str:
    return context.files.qualified(options.place)


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
    told = {name: None if few else count for name, count in counts.items()}
    gates = {name: gate for name, gate in configuration.gates.items() if name in counts}
    require_passed(check_gates(gates, told, (), (), counts))
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
