"""What the values of an attribute are."""

from __future__ import annotations

from typing import Literal

from pyspark.sql import types as st

__all__ = ["TEXT_TYPES", "Kind"]

Kind = Literal["integer", "float", "decimal", "date", "timestamp", "boolean", "category"]
"""Numbers that are exact or not, points in time, truth values, and names."""

TEXT_TYPES = (st.StringType, st.VarcharType, st.CharType)
"""Spark's types of texts."""
