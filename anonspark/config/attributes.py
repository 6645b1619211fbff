"""Define the ``attributes`` section: the columns and their roles."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator

from anonspark.config.attribute_range import AttributeRange, unfit_range
from anonspark.config.hierarchy_rule import HierarchyRule, Rule
from anonspark.config.problems import Finding, found
from anonspark.config.section import NonEmptyText, Section, unique_entries

Role = Literal["identifier", "quasi_identifier", "sensitive", "insensitive"]
AttributeType = Literal["number", "date", "timestamp", "boolean", "text"]

_FILE: TypeAdapter[str | None] = TypeAdapter(NonEmptyText | None, config=ConfigDict(strict=True))

# What the values must be for a hierarchy: type that may be declared, and words for it.
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


class Attribute(Section):
    """The role of a column."""

    role: Role
    """identifier: never published. Quasi_identifier: generalized. Sensitive and insensitive:
    published as it is."""

    type: AttributeType | None = None
    """What the values of a quasi-identifier are. A text column is cast to it. null: what the type
    of the column says."""

    order: list[str] | None = Field(default=None, min_length=1, json_schema_extra=unique_entries)
    """All values of a text quasi-identifier in their order, lowest first. Of a sensitive attribute
    for t-closeness with the ordered distance."""

    range: AttributeRange = None
    """Smallest and largest value of a number, date or timestamp, in the place of those of the
    table. A value outside is refused. It is published in the manifest."""

    weight: float = Field(default=1.0, gt=0.0, le=1000.0, allow_inf_nan=False)
    """What the widths, distances and penalties of a quasi-identifier are multiplied by: the larger,
    the less of it is lost."""

    hierarchy: _FileOrRule | None = None
    """Groups of values, from fine to coarse, by which a quasi-identifier is generalized: the path
    of a CSV file (each line a value and its groups), or one of the rules {intervals: [5, 10, 20]},
    {prefix: [1, 2, 3]}, {keep: [3, 1]}, {calendar: [month, quarter, year]}. A file may describe a
    sensitive attribute, too."""

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, value: object) -> object:
        return {"role": value} if isinstance(value, str) else value

    def _problems(self) -> Iterator[Finding]:
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
                    ("weight", self.weight != 1.0),
                )
                if is_there
            )
        twice = [value for value, count in Counter(self.order or ()).items() if count > 1]
        if twice:
            listed = ", ".join(found(value) for value in twice)
            yield Finding(
                ("order",),
                f"found {listed} more than once. Expected each value once. Remove the repetitions",
            )
        yield from self._hierarchy_findings()
        yield from self._range_findings()
        if self.order is not None and self.type not in (None, "text"):
            yield Finding(
                ("order",),
                f"found an order together with the type '{self.type}'. Expected an order for "
                "text only. Remove 'order' or set the type to 'text'",
            )

    @property
    def hierarchy_kind(self) -> Literal["file"] | Rule | None:
        """Return the source of the hierarchy, None where there is none."""
        if self.hierarchy is None:
            return None
        return "file" if isinstance(self.hierarchy, str) else self.hierarchy.kind

    def _range_findings(self) -> Iterator[Finding]:
        """Find what does not go together with the range."""
        if self.range is None:
            return
        kind = self.hierarchy_kind
        if self.order is not None or kind in ("file", "prefix", "keep"):
            beside = "an order" if self.order is not None else f"a hierarchy of the kind '{kind}'"
            text = f"found a range together with {beside}. Expected it of numbers and dates only"
        else:
            needed = None if kind is None else _TYPE_FOR_HIERARCHY[kind][0]
            text = unfit_range(self.range, needed or self.type) or ""
        if text:
            yield Finding(("range",), f"{text}. Remove it, or correct it")

    def _hierarchy_findings(self) -> Iterator[Finding]:
        """Find what does not go together with the hierarchy."""
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
