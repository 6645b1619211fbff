"""Recognize formats of other programs by the first bytes of their files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from anonspark.config.input import uncompressed
from anonspark.errors import DataError

_CONVERTED = {"stata": "Stata", "spss": "SPSS", "sas": "SAS", "excel": "Excel"}

_PANDAS = "Convert it, for instance with pandas.{}(...).to_parquet(...)"
_UNPACK = "Give the file a name with the ending {}, or unpack it"

# Words for the file, its first bytes, and the format that `convert` reads, or a remedy.
_FORMATS: tuple[tuple[str, bytes, str], ...] = (
    (
        "an Excel workbook",
        rb"PK\x03\x04.{26}(\[Content_Types\]|_rels/|docProps/|xl/|mimetypeapplication/vnd\.oasis)",
        "excel",
    ),
    ("a zip archive", rb"PK\x03\x04", _UNPACK.format(".zip")),
    ("an old Excel workbook", rb"\xd0\xcf\x11\xe0", "excel"),
    ("Stata", rb"<stata_dta>|[\x69-\x73][\x01\x02]\x01\x00", "stata"),
    ("SPSS", rb"\$FL[23]|.{200}ASCII SPSS PORT FILE", "spss"),
    ("SAS", rb".{12}\xc2\xea\x81\x60|HEADER RECORD\*{7}LIB", "sas"),
    ("Feather or Arrow", rb"ARROW1\x00|FEA1", _PANDAS.format("read_feather")),
    ("a pickle of Python", rb"\x80[\x02-\x05]", _PANDAS.format("read_pickle")),
    ("HDF5", rb"\x89HDF", _PANDAS.format("read_hdf")),
    ("an SQLite database", rb"SQLite format 3\x00", _PANDAS.format("read_sql")),
    ("an object of R", rb"RDX[23]|[XAB]\n\x00\x00\x00[\x02\x03]", "Write it as CSV in R"),
    ("compressed with Zstandard", rb"\x28\xb5\x2f\xfd", _UNPACK.format(".zst")),
    ("compressed with xz", rb"\xfd7zXZ", _UNPACK.format(".xz")),
)


def foreign_format(beginning: bytes) -> str | None:
    """Return which format of another program a file is in by its first bytes, or None.

    >>> foreign_format(b"$FL2@(#) SPSS DATA FILE"), foreign_format(b"age,sex")
    ('SPSS', None)
    """
    return next((name for name, mark, _ in _FORMATS if re.match(mark, beginning, re.S)), None)


def remedy_for(name: str) -> str | None:
    """Return what to do with a file of a format of :func:`foreign_format`, or None for others.

    For files that `anonspark convert` reads this is the format, for :func:`refuse_foreign`.
    """
    return next((remedy for kind, _, remedy in _FORMATS if kind == name), None)


def refuse_foreign(paths: Sequence[str], data_format: str) -> None:
    """Raise DataError for a format that only `anonspark convert` reads, with its command."""
    program = _CONVERTED.get(data_format.lower())
    if program is None:
        return
    is_address = any("://" in path for path in paths)
    files = [PurePosixPath(path).name if is_address else path for path in paths]
    first = PurePosixPath(files[0])
    out = str(first.with_name(f"{PurePosixPath(uncompressed(first.name)).stem}.parquet"))
    raise DataError(
        f"{', '.join(paths)}: files of {program} are converted to Parquet first. "
        f"{'Download them, and run' if is_address else 'Run'}: anonspark convert "
        f"{shlex.join([*files, out])}. Then name {out} instead"
    )
