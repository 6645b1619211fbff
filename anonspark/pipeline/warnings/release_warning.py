"""One warning, and the words that warnings share."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from anonspark.core.warning_codes import WarningCode
from anonspark.foreign_text import visible

_LOGGER = logging.getLogger("anonspark")


@dataclass(frozen=True)
class ReleaseWarning:
    """Something that who releases a table should know.

    Parameters
    ----------
    code : str
        Names the kind of warning.
    text : str
        For people: what was found, what it means, what to do.
    attribute : str or None
        The attribute that it is about, if any.
    figures : mapping
        For machines.
    advice : str
        More for the log, which no release holds.
    """

    code: WarningCode
    text: str
    attribute: str | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    advice: str = ""

    @property
    def line(self) -> str:
        """The warning as one line of the log."""
        where = "" if self.attribute is None else f"attributes.{self.attribute}: "
        return f"{where}{self.text}{self.advice}"

    def as_dict(self) -> dict[str, object]:
        """Return it as the manifest has it: plain values, without the advice."""
        return {
            "code": self.code,
            "attribute": self.attribute,
            "text": visible(self.text),
            "figures": dict(self.figures),
        }


def tell_warnings(warnings: Iterable[ReleaseWarning]) -> None:
    """Write warnings to the log."""
    for one in warnings:
        _LOGGER.warning("%s", one.line)
