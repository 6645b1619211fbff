"""Define the ``attributes`` section: the columns and their roles."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from anonspark.config.problems import Finding, impossible, in_words, one_of
from anonspark.config.section import NonEmptyText, Section, unique_entries
from anonspark.core.grids import CALENDAR_UNITS, Bound, UnfitRangeError, day_of, moment_of

_EXPECTED = "Expected a list of two bounds, the first one below the second"


def _plain(value: Any) -> Any:
    # Whether a whole number has a decimal point does not matter.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unfit_bound(bound: object) -> str | None:
    """Explain why a value is no bound, or return None if it is one."""
    if isinstance(bound, str):
        try:
            moment_of(bound)
        except UnfitRangeError:
            return (
                f"found {in_words(bound)}. Expected a number, a day as '2026-01-31' or a moment as "
                "'2026-01-31 12:30:00'. Correct it"
            )
        return None
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        return f"found {in_words(bound)}. Expected a number or a text"
    return None if math.isfinite(bound) else f"found {in_words(bound)}. Expected a finite number"


def _two_bounds(value: object) -> object:
    """Check bounds by hand, because a union type would report each mistake once per member."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        what = f"a list of {len(value)}" if isinstance(value, list) else in_words(value)
        raise impossible([Finding((), f"found {what}. {_EXPECTED}. Correct it")])
    unfit = {index: _unfit_bound(bound) for index, bound in enumerate(value)}
    findings = [Finding((index,), text) for index, text in unfit.items() if text]
    if findings:
        raise impossible(findings)
    low, high = value
    if isinstance(low, str) != isinstance(high, str):
        raise impossible([Finding((), f"found a number and a text. {_EXPECTED}. Correct one")])
    ends = [moment_of(low), moment_of(high)] if isinstance(low, str) else value
    if not ends[0] < ends[1]:
        text = f"found {in_words(low)} before {in_words(high)}. {_EXPECTED}. Correct one"
        raise impossible([Finding((), text)])
    return list(map(_plain, value))


AttributeRange = Annotated[
    list[Any] | None,
    BeforeValidator(_two_bounds),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "array",
                    "items": {"anyOf": [{"type": "number"}, {"type": "string"}]},
                    "minItems": 2,
                    "maxItems": 2,
                },
                {"type": "null"},
            ]
        }
    ),
]
"""Two bounds, or None."""


_GRIDS = ("auto", "none", *CALENDAR_UNITS)


def _step(value: object) -> object:
    """Check a step by hand, as bounds are."""
    is_step = value in _GRIDS if isinstance(value, str) else not _unfit_bound(value)
    if value is None or (is_step and (isinstance(value, str) or value > 0)):  # type: ignore[operator]
        return _plain(value)
    expected = f"Expected a number above 0, or one of {one_of(_GRIDS)}. Correct it"
    raise impossible([Finding((), f"found {in_words(value)}. {expected}")])


def _single_bound(value: object) -> object:
    """Check by hand the value from which on all are one."""
    text = None if value is None else _unfit_bound(value)
    if text:
        raise impossible([Finding((), text)])
    return _plain(value)


_NUMBER_OR_TEXT = {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]}
_STEP = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"enum": [*_GRIDS, None]}]}
AttributeGrid = Annotated[Any, BeforeValidator(_step), WithJsonSchema(_STEP)]
"""A step, a unit of the calendar, ``auto``, ``none``, or None."""
AttributeEnd = Annotated[Any, BeforeValidator(_single_bound), WithJsonSchema(_NUMBER_OR_TEXT)]
"""A number, a day, or None."""


def unfit_range(
    bounds: list[Bound],
    value_type: Literal["number", "date", "timestamp", "boolean", "text"] | None,
) -> str | None:
    """Explain why values of a declared type cannot have such bounds, or return None."""
    if value_type is None:
        return None
    is_number = not isinstance(bounds[0], str)
    if value_type in ("boolean", "text"):
        return f"found a range of a {value_type}. Expected it of numbers, dates and timestamps only"
    if value_type == "date" and not is_number:
        try:
            for bound in bounds:
                day_of(str(bound))
        except UnfitRangeError as error:
            return f"found moments. Expected {error}"
    if is_number != (value_type == "number"):
        kind = "numbers" if is_number else "texts"
        return f"found {kind} as bounds of a {value_type}. Expected the other"
    return None


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
    """With intervals: a number at which intervals of every width begin. null means 0."""

    top: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """With intervals: numbers from this one on form one group at every level, such as 90+."""

    prefix: list[Annotated[int, Field(ge=1, le=1000)]] | None = Field(
        default=None, min_length=1, json_schema_extra=unique_entries
    )
    """For codes such as postal codes: how many characters are masked at the end, ascending, such as
    [1, 2, 3]."""

    keep: list[Annotated[int, Field(ge=1, le=1000)]] | None = Field(
        default=None, json_schema_extra=unique_entries
    )
    """For codes of any length, such as ICD codes: how many characters are kept at the start,
    descending, such as [3, 1]. With an empty list, * is the only level above the values."""

    calendar: list[CalendarLevel] | None = Field(
        default=None, min_length=1, json_schema_extra=unique_entries
    )
    """For dates: the levels above the day, some of month, quarter, year, decade, in this order."""

    @property
    def kind(self) -> Rule:
        """Return the name of the rule."""
        return next(rule for rule in _HIERARCHY_RULES if getattr(self, rule) is not None)

    def _problems(self) -> Iterator[Finding]:
        """Find more or fewer rules than one, options without their rule, and unfit widths."""
        rules = [key for key in _HIERARCHY_RULES if getattr(self, key) is not None]
        if len(rules) != 1:
            yield Finding(
                (),
                f"found {' and '.join(map(repr, rules)) or 'no rule'}. Expected exactly one "
                f"of {one_of(_HIERARCHY_RULES)}. "
                + ("Keep one of them" if rules else "Add one, or give the path of a file"),
            )
        elif self.intervals is None:
            yield from (
                Finding(
                    (key,),
                    f"found {key!r} together with {rules[0]!r}. Expected it with 'intervals' "
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
                    f"found {in_words(later)} after {in_words(former)}. Expected {order} "
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
    """Describe a width as it was written.

    >>> _width(5.0), _width(2.5)
    ('the whole number 5', 'the number 2.5')
    """
    return in_words(int(width) if width.is_integer() else width)


Role = Literal["identifier", "quasi_identifier", "sensitive", "insensitive"]
AttributeType = Literal["number", "date", "timestamp", "boolean", "text"]

_FILE: TypeAdapter[str | None] = TypeAdapter(NonEmptyText | None, config=ConfigDict(strict=True))

# The type of values that each kind of hierarchy needs, and how messages say so.
_TYPE_FOR_HIERARCHY: dict[str, tuple[AttributeType, str]] = {
    "intervals": ("number", "intervals need a number"),
    "prefix": ("text", "a prefix takes the text of the value"),
    "keep": ("text", "the first characters are those of the text of the value"),
    "calendar": ("date", "a calendar needs a date"),
    "file": ("text", "a file takes the text of the value"),
}


def _file_or_rule(value: object) -> object:
    # Chosen by hand: a union would report each mistake once for every member.
    if value is None or isinstance(value, HierarchyRule):
        return value
    if isinstance(value, Mapping):
        return HierarchyRule.model_validate(value)
    return _FILE.validate_python(value)


_FileOrRule = Annotated[NonEmptyText | HierarchyRule | None, BeforeValidator(_file_or_rule)]


_IMPLIED_TYPES: dict[str | None, AttributeType] = {"intervals": "number", "calendar": "date"}


class Attribute(Section):
    """The role of a column."""

    role: Role
    """identifier: never published. quasi_identifier: generalized. sensitive and insensitive:
    published unchanged."""

    type: AttributeType | None = None
    """Type of the values of a quasi-identifier. A text column is cast to it. null means the type of
    the column."""

    order: list[str] | None = Field(default=None, min_length=1, json_schema_extra=unique_entries)
    """All values of a text column in their order, lowest first. For quasi-identifiers, and for
    sensitive attributes with the ordered distance of t-closeness."""

    range: AttributeRange = None
    """Smallest and largest value of a number, date or timestamp, instead of those in the table.
    Values outside are errors. The manifest publishes the range."""

    grid: AttributeGrid = None
    """Where published ranges can end. For numbers: at multiples of this step. For dates and
    timestamps: at the start of a minute, hour, day, week, month, quarter, year or decade. auto:
    about 200 steps in the range. none and null: at values of records, which reveals them."""

    bottom: AttributeEnd = None
    """A number or day. All values up to this one are grouped as '17 or less'."""

    top: AttributeEnd = None
    """A number or day. All values from this one on are grouped as '90+'."""

    weight: float = Field(default=1.0, gt=0.0, le=1000.0, allow_inf_nan=False)
    """Factor for the widths, distances and penalties of a quasi-identifier. The larger it is, the
    less detail is lost."""

    hierarchy: _FileOrRule | None = None
    """Groups of values, from fine to coarse: the path of a CSV file (each line has a value and its
    groups), or a rule such as {intervals: [5, 10, 20]}, {prefix: [1, 2, 3]}, {keep: [3, 1]} or
    {calendar: [month, quarter, year]}. A file can also describe a sensitive attribute."""

    @property
    def declared_type(self) -> AttributeType | None:
        """The type of the values, by the declared type or by the hierarchy's rule."""
        return self.type or _IMPLIED_TYPES.get(self.hierarchy_kind)

    @property
    def is_undeclared(self) -> bool:
        """Whether only the data show the type: a quasi-identifier for which nothing declares it."""
        return self.role == "quasi_identifier" and not any((self.type, self.order, self.hierarchy))

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, value: object) -> object:
        return {"role": value} if isinstance(value, str) else value

    @model_serializer(mode="wrap")
    def _without_later_keys(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Fingerprints stay those of configurations from before these keys existed.
        document: dict[str, Any] = write(self)
        unset = [key for key in ("grid", "bottom", "top") if document.get(key, 0) is None]
        return {key: value for key, value in document.items() if key not in unset}

    def _problems(self) -> Iterator[Finding]:
        """Find options that the role does not allow, and options that contradict each other."""
        if self.role != "quasi_identifier":
            yield from (
                Finding(
                    (key,),
                    f"found '{key}' on an attribute with the role '{self.role}'. Expected it on a "
                    f"quasi_identifier only. Remove '{key}' or change the role",
                )
                for key, is_there in (
                    ("type", self.type is not None),
                    ("order", self.order is not None and self.role != "sensitive"),
                    ("range", self.range is not None),
                    ("grid", self.grid is not None),
                    ("bottom", self.bottom is not None),
                    ("top", self.top is not None),
                    ("weight", self.weight != 1.0),
                )
                if is_there
            )
        twice = [value for value, count in Counter(self.order or ()).items() if count > 1]
        if twice:
            listed = ", ".join(in_words(value) for value in twice)
            yield Finding(
                ("order",),
                f"found {listed} more than once. Expected each value once. Remove the repetitions",
            )
        yield from self._hierarchy_findings()
        yield from self._range_findings()
        yield from self._end_findings()
        if self.order is not None and self.type not in (None, "text"):
            yield Finding(
                ("order",),
                f"found an order together with the type '{self.type}'. Expected an order for "
                "text only. Remove 'order' or set the type to 'text'",
            )

    @property
    def hierarchy_kind(self) -> Literal["file"] | Rule | None:
        """Return the source of the hierarchy, or None if there is none."""
        if self.hierarchy is None:
            return None
        return "file" if isinstance(self.hierarchy, str) else self.hierarchy.kind

    def _range_findings(self) -> Iterator[Finding]:
        """Find options that contradict the range."""
        if self.range is None:
            return
        kind = self.hierarchy_kind
        if self.order is not None or kind in ("file", "prefix", "keep"):
            other = "an order" if self.order is not None else f"a hierarchy of the kind '{kind}'"
            text = f"found a range together with {other}. Expected it of numbers and dates only"
        else:
            needed = None if kind is None else _TYPE_FOR_HIERARCHY[kind][0]
            text = unfit_range(self.range, needed or self.type) or ""
        if text:
            yield Finding(("range",), f"{text}. Remove it, or correct it")

    def _end_findings(self) -> Iterator[Finding]:
        """Find options that contradict the ends of ranges."""
        kind = self.hierarchy_kind
        if self.grid not in (None, "auto", "none") and (kind or self.order):
            other = f"a hierarchy of the kind '{kind}'" if kind else "an order"
            yield Finding(
                ("grid",),
                f"found a grid together with {other}. Expected it of numbers and days without "
                "one, whose ranges would end anywhere. Remove it",
            )
        ends = {key: getattr(self, key) for key in ("bottom", "top")}
        bounds = {key: end for key, end in ends.items() if end is not None}
        for key, end in bounds.items():
            text = unfit_range([end], _TYPE_FOR_HIERARCHY[kind][0] if kind else self.type)
            if self.order is not None or kind in ("file", "prefix", "keep"):
                text = "found it of texts. Expected it of numbers and days only"
            elif key == "top" and isinstance(self.hierarchy, HierarchyRule) and self.hierarchy.top:
                text = "found it together with hierarchy.top. Expected one of them"
            if text:
                yield Finding((key,), f"{text}. Remove it, or correct it")
        low, high = ends.values()
        is_mixed = isinstance(low, str) != isinstance(high, str)
        if len(bounds) == 2 and (is_mixed or not low < high):
            yield Finding(("bottom",), "found it at or above 'top'. Expected it below. Correct one")

    def _hierarchy_findings(self) -> Iterator[Finding]:
        """Find options that contradict the hierarchy."""
        if self.hierarchy_kind is None:
            return
        where = ("hierarchy",)
        expected, need = _TYPE_FOR_HIERARCHY[self.hierarchy_kind]
        if self.role not in ("quasi_identifier", "sensitive"):
            yield Finding(
                where,
                f"found 'hierarchy' on an attribute with the role '{self.role}'. Expected it "
                "on a quasi_identifier, or a file on a sensitive attribute. Remove "
                "'hierarchy' or change the role",
            )
        elif self.role == "sensitive" and self.hierarchy_kind != "file":
            yield Finding(
                where,
                f"found the rule '{self.hierarchy_kind}' on a sensitive attribute. Expected "
                "the path of a file there. Write the groups of its values into a file",
            )
        elif self.type not in (None, expected):
            yield Finding(
                where,
                f"found a hierarchy together with the type '{self.type}', but {need}. Expected "
                f"no type or '{expected}'. Correct 'type' or remove 'hierarchy'",
            )
        if self.order is not None:
            yield Finding(
                where,
                "found a hierarchy together with an order. Expected one of the two, because a "
                "hierarchy orders the values itself. Remove 'order' or 'hierarchy'",
            )


def order_as_told(order: Sequence[str]) -> dict[str, object]:
    """Return what stands in a manifest for the order of a quasi-identifier: its values are raw."""
    digest = hashlib.sha256(json.dumps(order).encode("utf-8", "surrogatepass")).hexdigest()
    return {"order_entries": len(order), "order_fingerprint": digest[:16]}
