"""Define the rule of a hierarchy."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Literal, get_args

from pydantic import Field

from anonspark.config.problems import Finding, found, one_of
from anonspark.config.section import Section, unique_entries

CalendarLevel = Literal["month", "quarter", "year", "decade"]
Rule = Literal["intervals", "prefix", "keep", "calendar"]

_HIERARCHY_RULES: tuple[Rule, ...] = get_args(Rule)


class HierarchyRule(Section):
    """A hierarchy that is built from a rule, over the values that occur."""

    intervals: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = Field(
        default=None, min_length=1, json_schema_extra=unique_entries
    )
    """For numbers: widths of half-open intervals from fine to coarse, each a multiple of the one
    before, such as [5, 10, 20]."""

    origin: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """With intervals: a number at which intervals of all widths begin. Null: 0."""

    top: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """With intervals: numbers from here on are one group at all levels, such as 90+."""

    prefix: list[Annotated[int, Field(ge=1, le=1000)]] | None = Field(
        default=None, min_length=1, json_schema_extra=unique_entries
    )
    """For codes such as postal codes: numbers of characters masked at the end, ascending, such as
    [1, 2, 3]."""

    keep: list[Annotated[int, Field(ge=1, le=1000)]] | None = Field(
        default=None, min_length=1, json_schema_extra=unique_entries
    )
    """For codes of any lengths such as ICD codes: numbers of first characters kept, descending,
    such as [3, 1]."""

    calendar: list[CalendarLevel] | None = Field(
        default=None, min_length=1, json_schema_extra=unique_entries
    )
    """For dates: the levels above the day, among month, quarter, year, decade, in order."""

    @property
    def kind(self) -> Rule:
        """Return the name of the rule."""
        return next(rule for rule in _HIERARCHY_RULES if getattr(self, rule) is not None)

    def _problems(self) -> Iterator[Finding]:
        given = [key for key in _HIERARCHY_RULES if getattr(self, key) is not None]
        if len(given) != 1:
            yield Finding(
                (),
                f"found {' and '.join(map(repr, given)) or 'no rule'}. Expected exactly one "
                f"of {one_of(_HIERARCHY_RULES)}. "
                + ("Keep one of them" if given else "Add one, or give the path of a file"),
            )
        elif self.intervals is None:
            yield from (
                Finding(
                    (key,),
                    f"found {key!r} together with {given[0]!r}. Expected it with 'intervals' "
                    "only. Remove it",
                )
                for key in ("origin", "top")
                if getattr(self, key) is not None
            )
        for finer, coarser in pairwise(self.intervals or ()):
            if coarser <= finer or Fraction(repr(coarser)) % Fraction(repr(finer)):
                yield Finding(
                    ("intervals",),
                    f"found {_width(coarser)} after {_width(finer)}. Expected widths from fine "
                    "to coarse, each a multiple of the one before. Correct one of the two",
                )
        for key, order, sign in (
            ("prefix", "ascending numbers of masked", 1),
            ("keep", "descending numbers of kept", -1),
        ):
            yield from (
                Finding(
                    (key,),
                    f"found {found(later)} after {found(former)}. Expected {order} "
                    "characters. Sort them, each once",
                )
                for former, later in pairwise(getattr(self, key) or ())
                if sign * later <= sign * former
            )
        in_order = [level for level in get_args(CalendarLevel) if level in (self.calendar or ())]
        if self.calendar is not None and self.calendar != in_order:
            yield Finding(
                ("calendar",),
                "found levels in another order or more than once. Expected them from fine to "
                f"coarse. Write [{', '.join(in_order)}]",
            )


def _width(width: float) -> str:
    """Return a width as it was written."""
    return found(int(width) if width.is_integer() else width)
