"""Days in another form than 2026-01-31: the patterns of Java that leave nothing open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import cached_property

ISO_DAY = "yyyy-MM-dd"
"""The pattern that nobody has to say."""

# The year in the end, or first without a hyphen behind it, which would be a point in time, too.
_PATTERN = re.compile(
    r"(dd?)([./-])(MM?)([./-])(yyyy)|(MM?)([./-])(dd?)([./-])(yyyy)|(yyyy)([./])(MM?)([./-])(dd?)"
)
_NAMES = {"d": "day", "M": "month", "y": "year"}
# Of one letter as many digits as there are, of several as many as letters.
_DIGITS = {1: "[0-9]{1,19}", 2: "[0-9]{2}", 4: "[0-9]{4}"}


@dataclass(frozen=True)
class DayPattern:
    """A pattern of days.

    Parameters
    ----------
    parts : tuple of str
        Letters and what stands between them, five.
    """

    parts: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> DayPattern | None:
        """Return the pattern that a text is, None for what is read by Spark alone."""
        match = _PATTERN.fullmatch(text)
        return None if match is None else cls(tuple(part for part in match.groups() if part))

    def _regex(self, year: str) -> re.Pattern[str]:
        written = []
        for part in self.parts:
            name = _NAMES.get(part[0])
            digits = year if name == "year" else _DIGITS.get(len(part), "")
            written.append(re.escape(part) if name is None else f"(?P<{name}>{digits})")
        return re.compile("".join(written))

    @cached_property
    def _usual(self) -> re.Pattern[str]:
        return self._regex(_DIGITS[4])

    @cached_property
    def _unusual(self) -> re.Pattern[str]:
        return self._regex("[+-][0-9]{4,}|0000")

    def day(self, text: str) -> date | None:
        """Return the day that a text is; None for another text."""
        match = self._usual.fullmatch(text)
        if match is None:
            return None
        try:
            return date(*(int(match[name]) for name in ("year", "month", "day")))
        except (ValueError, OverflowError):
            return None

    def is_unusual(self, text: str) -> bool:
        """Return whether a text may be a day of a year that Python does not know."""
        return self._unusual.fullmatch(text) is not None
