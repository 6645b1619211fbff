"""anonspark: exact, deterministic k-anonymity for big tables on Apache Spark."""

from __future__ import annotations

__version__ = "0.1.0"
