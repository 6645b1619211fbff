"""anonspark: exact, deterministic k-anonymity for big tables on Apache Spark.

Public are these names, which :mod:`anonspark.api` defines, and :mod:`anonspark.errors`.
CHANGELOG.md lists what changes of them. Everything else is internal and may change with any
version, but for the two functions that docs/api.md lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anonspark._version import __version__

if TYPE_CHECKING:
    from anonspark.api import (
        Comparison,
        Conversion,
        Distribution,
        Profile,
        PublishedRelease,
        Release,
        Selection,
        Union,
        Utility,
        Verification,
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
    "__version__",
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


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    # Late: Spark and Numba take a second, which a mistake on the command line need not wait for.
    if name in __all__:
        from anonspark import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
