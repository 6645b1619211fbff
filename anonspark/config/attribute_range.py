"""Define ``range`` of an attribute: two bounds, the first one below the second."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema

from anonspark.config.problems import Finding, found, impossible
from anonspark.core.ranges import Bound, UnfitRangeError, day_of, moment_of

_EXPECTED = "Expected a list of two bounds, the first one below the second"


def _two_bounds(value: object) -> object:
    """Check bounds by hand: a union would report each mistake once for every member."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        what = f"a list of {len(value)}" if isinstance(value, list) else found(value)
        raise impossible([Finding((), f"found {what}. {_EXPECTED}. Correct it")])
    findings = []
    for place, bound in enumerate(value):
        is_number = isinstance(bound, int | float) and not isinstance(bound, bool)
        if isinstance(bound, float) and not math.isfinite(bound):
            findings.append(Finding((place,), f"found {found(bound)}. Expected a finite number"))
        elif isinstance(bound, str):
            try:
                moment_of(bound)
            except UnfitRangeError:
                findings.append(
                    Finding(
                        (place,),
                        f"found {found(bound)}. Expected a number, a day as '2026-01-31' or a "
                        "moment as '2026-01-31 12:30:00'. Correct it",
                    )
                )
        elif not is_number:
            findings.append(Finding((place,), f"found {found(bound)}. Expected a number or a text"))
    if findings:
        raise impossible(findings)
    low, high = value
    if isinstance(low, str) != isinstance(high, str):
        raise impossible([Finding((), f"found a number and a text. {_EXPECTED}. Correct one")])
    ends = [moment_of(low), moment_of(high)] if isinstance(low, str) else value
    if not ends[0] < ends[1]:
        raise impossible(
            [Finding((), f"found {found(low)} before {found(high)}. {_EXPECTED}. Correct one")]
        )
    # Whether a whole number has a decimal point does not matter.
    return [int(one) if isinstance(one, float) and one.is_integer() else one for one in value]


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


def unfit_range(
    bounds: list[Bound],
    value_type: Literal["number", "date", "timestamp", "boolean", "text"] | None,
) -> str | None:
    """Return why values of a declared type cannot have such bounds, None where they can."""
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
