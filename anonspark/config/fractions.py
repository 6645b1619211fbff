"""Numbers of the configuration that may be written as fractions."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

_PATTERN = r"[0-9]{1,15} ?/ ?[1-9][0-9]{0,14}"


def _divided(value: object) -> object:
    """Return a fraction as the nearest number, as figures are divided, and other values as is."""
    if not isinstance(value, str) or not re.fullmatch(_PATTERN, value):
        return value
    numerator, denominator = map(int, value.split("/"))
    return numerator / denominator


def _schema(**bounds: float) -> WithJsonSchema:
    fraction = {"type": "string", "pattern": f"^{_PATTERN}$", "examples": ["1/11"]}
    return WithJsonSchema({"anyOf": [{"type": "number", **bounds}, fraction]})


_DIVIDED = BeforeValidator(_divided)

Share = Annotated[float, _DIVIDED, Field(ge=0.0, le=1.0), _schema(minimum=0.0, maximum=1.0)]
"""A number from 0 to 1, or a fraction as 1/11."""

# Nothing is below or above what is not a number.
Bound = Annotated[float, _DIVIDED, Field(allow_inf_nan=False), _schema()]
"""A finite number, or a fraction as 1/11."""
