"""Copies of a table by DuckDB and polars: what a user has at hand, and a run is compared with.

    .venv/bin/python benchmarks/copies.py duckdb TABLE FILE

DuckDB reads the Parquet files, orders the records by a hash of all columns and writes them again,
as a release is ordered by a hash. polars reads and writes them without an order. Both compress as
releases are compressed, with all processors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def copy_with_duckdb(table: Path, copy: Path) -> None:
    """Copy the records in the order of a hash."""
    import duckdb

    source = duckdb.read_parquet(str(table / "*.parquet"))
    values = ", ".join(f'"{name}"' for name in source.columns)
    source.order(f"hash({values})").write_parquet(str(copy), compression="snappy")


def copy_with_polars(table: Path, copy: Path) -> None:
    """Copy the records in any order."""
    import polars

    records = polars.scan_parquet(table / "*.parquet")
    records.sink_parquet(copy, compression="snappy", maintain_order=False)


COPIES: dict[str, Callable[[Path, Path], None]] = {
    "duckdb": copy_with_duckdb,
    "polars": copy_with_polars,
}


if __name__ == "__main__":
    COPIES[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
