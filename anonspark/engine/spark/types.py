"""Spark's types by what their values are."""

from __future__ import annotations

from pyspark.sql import types as st

TEXT_TYPES = (st.StringType, st.VarcharType, st.CharType)
"""Those of texts."""
