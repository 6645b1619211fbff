"""Convert files of Stata, SPSS, SAS and Excel to one Parquet file, with what each column became."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from anonspark.conversion.reading import Options, Request
from anonspark.engine.data_files import listed_files
from anonspark.engine.local.files import LocalFiles
from anonspark.errors import ConfigurationError, DataError, PublishingError, refusal_of
from anonspark.ownership import fault_at
from anonspark.presentation.blocks import Table
from anonspark.presentation.card import Card


@dataclass(frozen=True)
class Conversion:
    """A Parquet file that files were converted to.

    Each of ``columns`` has a name, a format in the file, a type in Parquet and a note. ``notes``
    list what was left out, such as hidden sheets.
    """

    path: str
    rows: int
    columns: list[list[str]]
    notes: list[str]

    as_dict = asdict

    @property
    def card(self) -> Card:
        """Return the card that shows the conversion."""
        verdict = f"{self.rows:,} records, {len(self.columns):,} columns at {self.path}"
        table = Table("Columns", ["column", "in the file", "in Parquet", "note"], self.columns)
        return Card("Converted", verdict, tables=(table,), remarks=self.notes)


# Limits of the process that reads: MiB of memory, and seconds.
_MEMORY, _SECONDS = 8192, 3600


def convert(
    files: Sequence[str], out: str, options: Options, *, overwrite: bool = False
) -> Conversion:
    """Convert files to one Parquet file, which appears as a whole or not at all.

    Raises ConfigurationError for wrong arguments, or if it is uncertain which part of a workbook is
    meant, DataError if a file cannot be read, or the type of a column is uncertain, and
    PublishingError if the file cannot be written.
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
        answer = _read(Request(paths, target, _MEMORY, options))
        Path(target).replace(out)
    except OSError as error:
        raise PublishingError(f"OUT: {refusal_of(error)}") from error
    finally:
        if target is not None:
            Path(target).unlink(missing_ok=True)
    return Conversion(out, **answer)


def _require(out: str, options: Options, *, overwrite: bool) -> None:
    """Check the arguments, and report all faults at once."""
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


def _read(request: Request) -> dict[str, Any]:
    """Read the files in a child process, and return its description of the columns.

    Raises the error that the process reports, or DataError if a signal or a limit ended it.
    """
    environment = {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)]),
        "PYTHONUTF8": "1",
        # Each thread reserves memory, of which the process may have little.
        "OPENBLAS_NUM_THREADS": "1",
    }
    try:
        process = subprocess.run(
            [sys.executable, "-P", "-m", "anonspark.conversion.reading"],
            input=json.dumps(request).encode(),
            capture_output=True,
            check=False,
            timeout=_SECONDS,
            env=environment,
        )
        printed, end = process.stdout, f"exit code {process.returncode}"
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
        f"{request.files[max(number, 1) - 1]}: the file cannot be read ({end}). Expected a file "
        f"of Stata, SPSS, SAS or Excel (.xlsx) that is read with {_MEMORY:,} MiB of memory. "
        "Fetch it again, name its --encoding, save a workbook as .xlsx without a password, or "
        "export the file as CSV or Parquet (the details, with --debug, may show data)"
    ) from cause
