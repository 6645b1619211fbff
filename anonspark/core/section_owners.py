"""Sections of configurations and manifests whose meaning a room above knows, not who reads them.

Who owns a section registers with its key. The room is loaded when such a section is met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anonspark.errors import ConfigurationError

_OWNERS: dict[str, Callable[[], Any]] = {}


def register_owner(section: str, load: Callable[[], Any]) -> None:
    """Let a section be read by what `load` returns, which is called when one is met."""
    _OWNERS[section] = load


def owner_of(section: str) -> Any:
    """Return who owns a section.

    Raises
    ------
    ConfigurationError
        If no room does: an unknown section is never ignored.
    """
    if section not in _OWNERS:
        raise ConfigurationError(
            f"{section}: found a section that no loaded module reads. Import anonspark.sharing "
            "before"
        )
    return _OWNERS[section]()
