"""Types of Arrow by the names that manifests and files of data give them."""

from __future__ import annotations

import re

import pyarrow as pa


def arrow_type(name: str) -> pa.DataType:
    """Return the type that Arrow writes so, for those that tests name.

    >>> arrow_type("decimal128(5, 2)")
    Decimal128Type(decimal128(5, 2))
    """
    if found := re.fullmatch(r"decimal128\((\d+), (\d+)\)", name):
        return pa.decimal128(int(found[1]), int(found[2]))
    if found := re.fullmatch(r"timestamp\[us, tz=(.+)\]", name):
        return pa.timestamp("us", found[1])
    if found := re.fullmatch(r"list<(.+)>", name):
        return pa.list_(arrow_type(found[1]))
    return pa.type_for_alias(name)
