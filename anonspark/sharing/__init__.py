"""Share: more than one table, release or party. The rest of the package knows nothing of it.

Importing it makes the sections that it owns readable. What reads them is loaded when one is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anonspark.core.extensions import register_owner

if TYPE_CHECKING:
    from anonspark.config.configuration import CodingReader
    from anonspark.pipeline.context import Register
    from anonspark.release.manifest_form import SectionOwner


def _coding() -> CodingReader:
    """Load the reader of codings."""
    from anonspark.sharing.coding import agreement

    return agreement


def _parts() -> SectionOwner:
    """Load the owner of the section ``parts``."""
    from anonspark.sharing.holders import parts

    return parts


def _ledger() -> Register:
    """Load the register of releases."""
    from anonspark.sharing.ledger import events

    return events


register_owner("coding", _coding)
register_owner("parts", _parts)
register_owner("ledger", _ledger)
