"""Presence: how sure somebody of the source may be found to be in a release."""

from __future__ import annotations

from anonspark.errors import GuaranteeError
from anonspark.pipeline.run import StagedRelease
from anonspark.recipients.freezing import column_of
from anonspark.recipients.frozen_source import FrozenSource
from anonspark.recipients.plan import Recipient
from anonspark.release.regions import leaves_by_label
from anonspark.verification.presence import Presence, measure_presence


def require_presence(
    staged: StagedRelease, recipient: Recipient, frozen: FrozenSource
) -> Presence | None:
    """Measure delta-presence of a staged release, the whole source as population.

    Parameters
    ----------
    staged : StagedRelease
    recipient : Recipient
    frozen : FrozenSource

    Returns
    -------
    Presence or None
        None where the request has no bound.

    Raises
    ------
    GuaranteeError
        If somebody of the source is in the release with a larger probability than the bound.

    Notes
    -----
    The jobs of :func:`anonspark.verification.presence.measure_presence`.
    """
    if recipient.presence is None:
        return None
    context, most = staged.context, recipient.presence.max
    configuration = context.configuration
    names = {
        name: column_of(frozen.columns.index(name)) for name in configuration.quasi_identifiers
    }
    presence = measure_presence(
        context.engine.published(f"{staged.staging.release}/data", configuration.output.format),
        staged.form.attributes,
        frozen.records.named(names),
        {name: leaves_by_label(one) for name, one in staged.hierarchies.items()},
        lower=0.0,
        upper=most,
        missing_markers=configuration.input.missing_markers,
    )
    if presence.out_of_bounds:
        raise GuaranteeError(
            f"recipients.{recipient.name}.presence.max: {presence.out_of_bounds:,} of "
            f"{presence.population:,} records of the source are in the release with a probability "
            f"above {most:g}, up to {presence.largest:.4g}; raise k or the bound, or drop the "
            "condition; nothing was published"
        )
    return presence
