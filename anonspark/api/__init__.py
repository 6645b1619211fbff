"""Use anonspark in a notebook or a program: DataFrames in, DataFrames out."""

from __future__ import annotations

from inspect import isfunction

from anonspark.api.arguments import suggesting
from anonspark.api.distribution import Distribution
from anonspark.api.functions import (
    anonymize,
    compare,
    convert,
    distribute,
    evaluate,
    profile,
    read,
    report,
    select,
    union,
    verify,
    verify_together,
)
from anonspark.api.release import Release
from anonspark.api.results import (
    Comparison,
    Conversion,
    Profile,
    Selection,
    Union,
    Utility,
    Verification,
)
from anonspark.reading.published import PublishedRelease

__all__ = [
    "Comparison",
    "Conversion",
    "Distribution",
    "Profile",
    "PublishedRelease",
    "Release",
    "Selection",
    "Union",
    "Utility",
    "Verification",
    "anonymize",
    "compare",
    "convert",
    "distribute",
    "evaluate",
    "profile",
    "read",
    "report",
    "select",
    "union",
    "verify",
    "verify_together",
]

# Here, where they become public, because examples in their docstrings run in their modules.
globals().update({name: suggesting(f) for name, f in globals().items() if isfunction(f)})
