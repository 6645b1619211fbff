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
from typing import Any

from anonspark.engine.data_files import listed_files
from anonspark.engine.local.files import LocalFiles
from anonspark.errors import ConfigurationError, DataError, PublishingError, refusal_of
from anonspark.ownership import fault_at
from anonspark.presentation.blocks import Table, Text
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
        return Card("Converted", verdict, tables=(table,), notes=self.notes)

    @property
    def blocks(self) -> list[Table | Text]:
        """Return the same for a terminal, with all columns."""
        return [Text(self.card.headline), *map(Text, self.notes), *self.card.tables]


# What reading may take: MiB of memory, and time.
_MEMORY, _SECONDS = 8192, 3600


def convert(files: Sequence[str], out: str, *, overwrite: bool, **options: Any) -> Conversion:
    """Convert files to one Parquet file, which appears whole or not at all.

    The options are those of :func:`anonspark.convert`, which describes them.

    Raises
    ------
    ConfigurationError
        If arguments are wrong, or it is not certain which part of a workbook is meant.
    DataError
        If a file cannot be read, or a column is of no certain type.
    PublishingError
        If the file cannot be written.
    """
    _require(out, options["hidden"], options["types"], overwrite=overwrite)
    locks = [file for file in files if Path(file).name.startswith("~$")]
    others = [file for file in files if file not in locks]
    if not others:
        raise DataError(f"FILE: {', '.join(locks)} is the lock of a workbook that is open in Excel")
    found = listed_files(LocalFiles(), others, "FILE")
    if not found or any(file.folders for file in found):
        raise DataError(
            f"FILE: {', '.join(others)}: found no file, or folders that name a column. Expected "
            "files. Convert those of each folder apart, to a folder of the same name"
        )
    paths = list(dict.fromkeys(file.path for file in found))
    target = None
    try:
        number, target = tempfile.mkstemp(".converting", ".", Path(out).absolute().parent)
        os.close(number)
        answer = _read({**options, "files": paths, "target": target, "memory": _MEMORY})
        Path(target).replace(out)
    except OSError as error:
        raise PublishingError(f"OUT: {refusal_of(error)}") from error
    finally:
        if target is not None:
            Path(target).unlink(missing_ok=True)
    notes = [f"{lock}: left out, because it is the lock of an open workbook" for lock in locks]
    return Conversion(out, answer["rows"], answer["columns"], [*notes, *answer["notes"]])


def _require(out: str, hidden: str | None, types: Mapping[str, str], *, overwrite: bool) -> None:
    problems = []
    if not out.endswith(".parquet"):
        problems.append(
            f"OUT: found {out!r}. Expected a file to write as the last one: OUT.parquet"
        )
    if Path(out).exists() and not overwrite:
        problems.append(f"OUT: something is at {out}. Choose another path, or say --overwrite")
    if (fault := fault_at(out)) is not None:
        problems.append(f"OUT: {out} {fault}")
    if hidden not in (None, "keep", "drop"):
        problems.append(f"--hidden: found {hidden!r}. Expected keep or drop")
    if not {"number", "text"}.issuperset(types.values()):
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
        "Fetch it again, name its --encoding, or export it as CSV or Parquet (the details, with "
        "--debug, may show data)"
    ) from cause
