"""The section ``ledger``: a release of a run is written down before it is published."""

from __future__ import annotations

from typing import cast

from anonspark.config.budget import BudgetOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.layers.publish.paths import require_apart_from_table
from anonspark.pipeline.context import Release, RunContext
from anonspark.release.signatures import key_name
from anonspark.sharing.ledger.budget import RECORD, Limit, list_release, open_budget

# Where a population is: its path and options may say more than a ledger should.
_PLACES = {"delta_presence": {"population", "format", "options"}}


def require_listable(context: RunContext) -> None:
    """Check, before any work, that a release can be written down. Make the ledger if there is none.

    Raises
    ------
    ConfigurationError
        If the ledger has another limit, or there is none and no limit is given, or if it lies
        inside input or output, or one of them inside it.
    GuaranteeError
        If its chain is broken.
    """
    options = _options(context)
    limit = _limit(options)
    require_apart_from_table(context.files, context.configuration, "ledger.path", options.path)
    open_budget(context.files, _path_of(context, options), limit).require_same(limit)


def list_staged(context: RunContext, release: Release) -> None:
    """Write down a release that is proven and is published next.

    Raises
    ------
    ConfigurationError, GuaranteeError
        As of :func:`require_listable`.
    PublishingError
        If the entry cannot be written. Nothing is published then.

    Notes
    -----
    Before it is published, so that no release is ever missing in the ledger, whenever the process
    is killed. Should it not come to be published, the entry stays.
    """
    options, configuration = _options(context), context.configuration
    key = configuration.output.signing_key
    content = {
        "run_id": context.run_id,
        "command": "run",
        "mechanism": configuration.model.name,
        "settings": configuration.settings_fingerprint(),
        "release": release.summary["output_fingerprint"],
        **({} if key is None else {"signer": key_name(key)}),
        **_criteria(configuration.privacy),
    }
    list_release(context.files, _path_of(context, options), _limit(options), content)


def _criteria(privacy: PrivacyOptions) -> dict[str, object]:
    """Return k and what else was asked for."""
    asked = privacy.model_dump(mode="json", exclude_defaults=True, exclude=_PLACES)
    return {"k": asked.pop("k"), "criteria": asked}


def _options(context: RunContext) -> BudgetOptions:
    # Who owns a section is asked where there is one.
    return cast("BudgetOptions", context.configuration.ledger)


def _limit(options: BudgetOptions) -> Limit:
    return Limit(options.most, "add_remove", RECORD)


def _path_of(context: RunContext, options: BudgetOptions) -> str:
    return context.files.qualified(options.place)
