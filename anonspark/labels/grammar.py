"""The grammar of labels. Python, Arrow and DuckDB read them by patterns that are made of its parts.

:mod:`anonspark.core.labels` writes labels. Of this grammar :mod:`anonspark.kernels.label_reading`
reads plain numbers and days, from bytes.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.labels import Kind, divider_of

SIGN = "[-+]?"

# No longer than what a column can hold, so that a damaged label costs nothing.
DIGITS = "[0-9]{1,400}"
EXPONENT = "(?:[eE][-+]?[0-9]{1,3})?"
NUMBER = f"{DIGITS}(?:[.]{DIGITS})?{EXPONENT}"

# Years before 1 and after 9999 have a sign or more digits.
YEAR = "[0-9]{4,7}"
DATE = f"{YEAR}-[0-9]{{2}}-[0-9]{{2}}"
MINUTE = "[0-9]{2}:[0-9]{2}"
SECOND = f"{MINUTE}:[0-9]{{2}}"


def written_value(kind: Kind, scale: int = 0) -> str:
    """Return the pattern that matches a number, date or time exactly as anonspark writes it.

    >>> written_value("decimal", scale=2)
    '-?(?:0|[1-9][0-9]{0,75})[.][0-9]{2}'
    """
    match kind:
        case "integer":
            return "0|-?[1-9][0-9]{0,19}"
        case "decimal":
            zeros = f"[.][0-9]{{{scale}}}" if scale > 0 else "0*"
            return f"-?(?:0|[1-9][0-9]{{0,75}}){zeros}"
        case "date":
            return f"-?{DATE}"
        case "timestamp":
            return f"-?{DATE}(?: {SECOND}(?:[.][0-9]{{6}})?)?"
        case _:
            return f"-?{NUMBER}"


def split_ends(labels: pa.Array, kind: Kind, scale: int = 0) -> tuple[pa.Array, pa.Array]:
    """Split labels of anonspark into the texts of both ends, which are equal for a single value.

    For other labels both are null or empty.

    >>> [ends.to_pylist() for ends in split_ends(pa.array(["17", "[-3-4]", "{a}"]), "integer")]
    [['17', '-3', None], ['17', '4', None]]
    """
    value = written_value(kind, scale)
    interval = rf"\[(?P<low>{value}){divider_of(kind)}(?P<high>{value})\]"
    groups = pc.extract_regex(labels, f"^(?:{interval}|(?P<single>{value}))$")
    single = pc.struct_field(groups, "single")
    low, high = (
        pc.if_else(pc.equal(single, ""), pc.struct_field(groups, end), single)
        for end in ("low", "high")
    )
    return low, high
