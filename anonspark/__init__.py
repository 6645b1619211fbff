"""anonspark: exact, deterministic k-anonymity for big tables on Apache Spark.

>>> import anonspark
>>> release = anonspark.anonymize(table, config)  # doctest: +SKIP
>>> anonspark.verify(release.data, config).holds  # doctest: +SKIP
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anonspark._version import __version__

if TYPE_CHECKING:
    from anonspark.api import Release, anonymize, verify

__all__ = ["Release", "__version__", "anonymize", "verify"]


def __getattr__(name: str) -> Any:
    # Late: Spark and Numba take a second, which a mistake on the command line need not wait for.
    if name in ("Release", "anonymize", "verify"):
        from anonspark import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
