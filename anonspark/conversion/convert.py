"""Convert files of Stata, SPSS, SAS and Excel to one Parquet file, with what each column became."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from anonspark.engine.data_files import listed_files
from anonspark.engine.local.files import LocalFiles
from anonspark.errors import ConfigurationError, DataError, PublishingError, refusal_of
from anonspark.ownership import fault_at
from anonspark.presentation.blocks import Table
from anonspark.presentation.card import Card


@dataclass(frozen=True)
class Conversion:
    """Files that were converted.

    Parameters
    ----------
    path : str
        The Parquet file.
    rows : int
    columns : list of list of str
        Each column: its name, its format in the file, its type in Parquet, and a note.
    notes : list of str
        What was left out, such as hidden sheets.
    """

    path: str
    rows: int
    columns: list[list[str]]
    notes: list[str]

    as_dict = asdict

    @property
    def card(self) -> Card:
        """Return what is shown of it."""
        verdict = f"{self.rows:,} records, {len(self.columns):,} columns at {self.path}"
        table = Table("Columns", ["column", "in the file", "in Parquet", "note"], self.columns)
        return Card("Converted", verdict, tables=(table,), remarks=self.notes)


# What reading may take: MiB of memory, and seconds.
_MEMORY, _SECONDS = 8192, 3600


class Options(NamedTuple):
    """How files are read. :func:`anonspark.convert` describes each."""

    sheet: str | None
    header_row: int | None
    hidden: str | None
    encoding: str | None
    catalog: str | None
    types: Mapping[str, str]


def convert(
    files: Sequence[str], out: str, options: Options, *, overwrite: bool = False
) -> Conversion:
    """Convert files to one Parquet file, which appears whole or not at all.

    Raises
    ------
    ConfigurationError
        If arguments are wrong, or it is not certain which part of a workbook is meant.
    DataError
        If a file cannot be read, or a column is of no certain type.
    PublishingError
        If the file cannot be written.
    """
    _require(out, options, overwrite=overwrite)
    listed = listed_files(LocalFiles(), files, "FILE")
    if not listed or any(file.folders for file in listed):
        raise DataError(
            f"FILE: {', '.join(files)}: found no file, only the lock of a workbook that is open "
            "(~$...), or folders that name a column. Expected files. Convert those of each folder "
            "apart, to a folder of the same name"
        )
    paths = list(dict.fromkeys(file.path for file in listed))
    target = None
    try:
        number, target = tempfile.mkstemp(".converting", ".", Path(out).absolute().parent)
        os.close(number)
        answer = _read({**options._asdict(), "files": paths, "target": target, "memory": _MEMORY})
        Path(target).replace(out)
    except OSError as error:
        raise PublishingError(f"OUT: {refusal_of(error)}") from error
    finally:
        if target is not None:
            Path(target).unlink(missing_ok=True)
    return Conversion(out, **answer)


def _require(out: str, options: Options, *, overwrite: bool) -> None:
    problems = []
    if not out.endswith(".parquet"):
        problems.append(
            f"OUT: found {out!r}. Expected a file to write as the last one: OUT.parquet"
        )
    if Path(out).exists() and not overwrite:
        problems.append(f"OUT: something is at {out}. Choose another path, or say --overwrite")
    if (fault := fault_at(out)) is not None:
        problems.append(f"OUT: {out} {fault}")
    if not {"number", "text"}.issuperset(options.types.values()):
        problems.append("--type: expected NAME=number or NAME=text. Correct it")
    if problems:
        raise ConfigurationError(*problems)


def _read(request: dict[str, Any]) -> dict[str, Any]:
    """Have a process of its own read the files, and return its answer.

    Raises
    ------
    ConfigurationError, DataError
        What it found, or that it ended by a signal or a limit.
    """
    environment = {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)]),
        "PYTHONUTF8": "1",
        # Each thread reserves memory, of which the process may have little.
        "OPENBLAS_NUM_THREADS": "1",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "anonspark.conversion.reading"],
            input=json.dumps(request).encode(),
            capture_output=True,
            check=False,
            timeout=_SECONDS,
            env=environment,
        )
        printed, end = done.stdout, f"exit code {done.returncode}"
    except subprocess.TimeoutExpired as error:
        printed, end = error.stdout or b"", f"no answer after {_SECONDS:,} s"
    lines = printed.decode(errors="replace").splitlines()
    answer, cause = {}, None
    with suppress(ValueError):
        answer = json.loads(lines[-1] if lines else "")
    match answer:
        case {"columns": _, "rows": _, "notes": _}:
            return dict(answer)
        case {"error": "ConfigurationError", "problems": problems}:
            raise ConfigurationError(*problems)
        case {"error": "DataError", "problems": problems}:
            raise DataError(*problems)
        case {"error": error, "details": details}:
            end, cause = error, RuntimeError(details)
    number = sum(line.isdecimal() for line in lines)
    raise DataError(
        f"{request['files'][max(number, 1) - 1]}: the file cannot be read ({end}). Expected a file "
        f"of Stata, SPSS, SAS or Excel (.xlsx) that is read with {_MEMORY:,} MiB of memory. "
        "Fetch it again, name its --encoding, save a workbook as .xlsx without a password, or "
        "export the file as CSV or Parquet (the details, with --debug, may show data)"
    ) from cause
