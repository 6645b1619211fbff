"""Formats of other programs, known by the first bytes of their files, which are not read here."""

from __future__ import annotations

import re

_PANDAS = "Convert it, for instance with pandas.{}(...).to_parquet(...)"
_UNPACK = "Unpack it, or compress it with gzip"

# What the file is, how it begins, and what to do.
_FORMATS: tuple[tuple[str, bytes, str], ...] = (
    ("an Excel workbook or another zip archive", rb"PK\x03\x04", _PANDAS.format("read_excel")),
    ("an old Excel workbook", rb"\xd0\xcf\x11\xe0", _PANDAS.format("read_excel")),
    ("Stata", rb"<stata_dta>|[\x69-\x73][\x01\x02]\x01\x00", _PANDAS.format("read_stata")),
    ("SPSS", rb"\$FL[23]", _PANDAS.format("read_spss")),
    ("SAS", rb".{12}\xc2\xea\x81\x60|HEADER RECORD\*{7}LIB", _PANDAS.format("read_sas")),
    ("Feather or Arrow", rb"ARROW1\x00|FEA1", _PANDAS.format("read_feather")),
    ("a pickle of Python", rb"\x80[\x02-\x05]", _PANDAS.format("read_pickle")),
    ("HDF5", rb"\x89HDF", _PANDAS.format("read_hdf")),
    ("an SQLite database", rb"SQLite format 3\x00", _PANDAS.format("read_sql")),
    ("an object of R", rb"RDX[23]|[XAB]\n\x00\x00\x00[\x02\x03]", "Write it as CSV in R"),
    ("compressed with Zstandard", rb"\x28\xb5\x2f\xfd", _UNPACK),
    ("compressed with xz", rb"\xfd7zXZ", _UNPACK),
)


def foreign_format(beginning: bytes) -> str | None:
    """Return what a file is that begins so, if it is in a format of another program."""
    return next((name for name, mark, _ in _FORMATS if re.match(mark, beginning, re.S)), None)


def remedy_for(name: str) -> str | None:
    """Return what to do with a format of :func:`foreign_format`. None of others."""
    return next((remedy for own, _, remedy in _FORMATS if own == name), None)
