"""Register releases before they are published, by the owner of the section ``ledger``."""

from __future__ import annotations

from typing import Protocol

from anonspark.core.section_owners import owner_of
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.released import Release

LEDGER = "ledger"
"""The section, whose owner is a :class:`Register`."""


class Register(Protocol):
    """Writes releases down."""

    def require_listable(self, context: RunContext) -> None:
        """Check, before any work, that a release can be written down.

        Raises
        ------
        ConfigurationError, GuaranteeError
        """

    def list_staged(self, context: RunContext, release: Release) -> None:
        """Write down a release that is proven and is published next.

        Raises
        ------
        ConfigurationError, GuaranteeError
            As of :meth:`require_listable`.
        PublishingError
            If the entry cannot be written. Nothing is published then.
        """


def register_of(context: RunContext) -> Register | None:
    """Return who registers the release of a run. None without a register or recipient."""
    asked = context.configuration.ledger is not None and context.purpose == "release"
    register: Register | None = owner_of(LEDGER) if asked else None
    return register
