"""Define the kinds of values that an attribute may have."""

from __future__ import annotations

from typing import Literal

Kind = Literal["integer", "float", "decimal", "date", "timestamp", "boolean", "category"]
"""Numbers that are exact or not, points in time, truth values, and names."""
