"""Define the kinds of values that an attribute may have."""

from __future__ import annotations

from typing import Literal

Kind = Literal["integer", "float", "decimal", "date", "timestamp", "boolean", "category"]
"""Numbers that are exact or not, points in time, truth values, and names."""

KIND_WORDS = {
    **{"integer": "whole number", "float": "number", "decimal": "number", "date": "date"},
    **{"timestamp": "date and time", "boolean": "yes or no", "category": "category"},
    **{"intervals": "steps", "prefix": "first characters"},
    **{"keep": "chosen values", "calendar": "parts of the calendar"},
}
"""What pages call them, and rules of hierarchies."""
