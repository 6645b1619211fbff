"""Measure the staged release together with its original records.

Nothing of it may depend on the values of records left out that are withheld: then the records are
those that are published.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from anonspark.core.columns import WEIGHT, payload_column, quasi_identifier_column
from anonspark.core.figures import ENDS
from anonspark.engine.protocol import Table
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.description import PublishedForm
from anonspark.pipeline.publishable_data import Basis
from anonspark.release.region_matching import LabelledTable
from anonspark.release.regions import Leaves, leaves_by_label
from anonspark.verification.proof.weights import sum_weights

if TYPE_CHECKING:
    # Few runs ask for them, and only those import them.
    from anonspark.utility.association import Association
    from anonspark.utility.learning import Target
    from anonspark.verification.attacks.ends import Ends
    from anonspark.verification.proof.information import Information

_LOGGER = logging.getLogger("anonspark")

_TARGET = "evaluate.association.target"


def find_target(context: RunContext, snapshot: Snapshot) -> Target | None:
    """Find the classes of the target that association is measured with, before the work.

    Returns
    -------
    Target or None
        None where the configuration names none.

    Raises
    ------
    ConfigurationError
        If it is no category of 2 to 100 values.

    Notes
    -----
    One narrow pass over the snapshot.
    """
    wanted = context.configuration.evaluate.association
    if wanted is None:
        return None
    from anonspark.utility.learning import describe_target

    with context.progress.stage("association"):
        records = snapshot.records.named(_payload(context, wanted.target))
        markers = context.configuration.input.missing_markers
        return describe_target(records, wanted.target, markers, _TARGET)


def require_weights(context: RunContext, snapshot: Snapshot) -> None:
    """Check the sampling weights before the work, if the configuration names any.

    Raises
    ------
    DataError
        If one is negative, or no finite number.

    Notes
    -----
    One narrow pass over the snapshot.
    """
    name = context.configuration.evaluate.risk.weights
    if name is not None:
        is_published = name in context.configuration.published_as_is
        column = _payload(context, name) if is_published else {name: WEIGHT}
        records = snapshot.records.named(column)
        sum_weights(records, [], name, context.configuration.input.missing_markers)


def measure_information_kept(
    context: RunContext, table: Table, snapshot: Snapshot, basis: Basis, form: PublishedForm
) -> Information | None:
    """Measure the staged files beside the snapshot, or beside the published records of it.

    Parameters
    ----------
    context : RunContext
    table : Table
        The staged release.
    snapshot : Snapshot
    basis : Basis
    form : PublishedForm

    Returns
    -------
    Information or None
        None where the configuration does not ask for it.
    """
    if not context.configuration.evaluate.information:
        return None
    from anonspark.verification.proof.information import measure_information

    with context.progress.stage("information"):
        return measure_information(
            _labelled(context, table, snapshot, form),
            _records(snapshot, basis, {}),
            basis.left_out if basis.values_told else 0,
        )


def measure_isolating_ends(
    context: RunContext, table: Table, snapshot: Snapshot, basis: Basis, form: PublishedForm
) -> Ends | None:
    """Count the ends of ranges that hold one record. None without a gate on them."""
    if ENDS not in context.configuration.gates:
        return None
    from anonspark.verification.attacks.ends import measure_ends

    with context.progress.stage("ends of ranges"):
        labels = _labelled(context, table, snapshot, form)
        return measure_ends(labels, _records(snapshot, basis, {}), drops_missing=False)


def measure_association_kept(
    context: RunContext,
    table: Table,
    snapshot: Snapshot,
    basis: Basis,
    form: PublishedForm,
    target: Target | None,
) -> Association | None:
    """Measure the staged files beside the snapshot, or beside the published records of it.

    Parameters
    ----------
    context : RunContext
    table : Table
        The staged release.
    snapshot : Snapshot
    basis : Basis
    form : PublishedForm
    target : Target or None
        Of :func:`find_target`.

    Returns
    -------
    Association or None
        None where there is no target.
    """
    if target is None:
        return None
    from anonspark.utility.association import measure_association

    with context.progress.stage("association"):
        found = measure_association(
            table,
            _records(snapshot, basis, _payload(context, target.name)),
            form.attributes,
            _leaves(snapshot),
            target,
            context.configuration.input.missing_markers,
        )
    if found.loss is None:
        _LOGGER.warning(
            "association_loss is null: the quasi-identifiers predict next to nothing of %r",
            target.name,
        )
    return found


def _records(snapshot: Snapshot, basis: Basis, payload: dict[str, str]) -> Table:
    """Return the records that may be counted, under the names of the input."""
    named = {
        identifier.name: quasi_identifier_column(index)
        for index, identifier in enumerate(snapshot.quasi_identifiers)
    } | payload
    records = snapshot.records.named(named)
    if basis.withheld is not None:
        records = records.except_all(basis.withheld.records.named(named))
    return records


def _labelled(
    context: RunContext, table: Table, snapshot: Snapshot, form: PublishedForm
) -> LabelledTable:
    markers = context.configuration.input.missing_markers
    return LabelledTable(table, form.attributes, _leaves(snapshot), markers)


def _payload(context: RunContext, name: str) -> dict[str, str]:
    return {name: payload_column(context.configuration.published_as_is.index(name))}


def _leaves(snapshot: Snapshot) -> dict[str, Leaves]:
    return {name: leaves_by_label(hierarchy) for name, hierarchy in snapshot.hierarchies.items()}
