"""Where a table lies and how it is read, found by its name and its first bytes."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from anonspark.engine.choice import Work, local_path
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError, DataError
from anonspark.profiling.csv_form import recognize_csv

_ENDINGS = {
    "parquet": "parquet", "orc": "orc", "csv": "csv", "tsv": "csv", "tab": "csv", "txt": "csv",
    "json": "json", "jsonl": "json", "ndjson": "json",
}  # fmt: skip
_COMPRESSED = (".gz", ".bz2")
_HEAD = 2**18


@dataclass(frozen=True)
class Source:
    """A table, and how it is read.

    Parameters
    ----------
    path : str
        As the user wrote it.
    format : str
        Of Spark's data source.
    options : dict of str to str
        Of that format.
    notes : tuple of str
        What was recognized, for a person.
    """

    path: str
    format: str
    options: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def work(self) -> Work:
        """What reading it takes, for the choice of an engine."""
        return Work((self.path,), (), (self.format,))

    def open(self, engine: Engine) -> Table:
        """Open the table; lazy.

        Raises
        ------
        DataError
            If there is none, or it cannot be read.
        ConfigurationError
            If the format is not known or refuses its options.
        """
        return engine.open_table([self.path], self.format, self.options, key="DATA")


def find_source(
    path: str, data_format: str | None = None, options: Mapping[str, str] | None = None
) -> Source:
    """Find out how a table is read.

    Parameters
    ----------
    path : str
        A file, a directory of files or a pattern; an address of another file system is told by its
        name alone, and a CSV file there is taken to have commas and a header.
    data_format : str or None
        None recognizes it.
    options : mapping of str to str or None
        Of the format; they go before what is recognized.

    Returns
    -------
    Source

    Raises
    ------
    DataError
        If nothing is at the path, or it cannot be read.
    ConfigurationError
        If nothing tells the format.
    """
    given = dict(options or {})
    place = local_path(path)
    if place is None:
        found = data_format or _by_name(path)
        if found is None:
            raise ConfigurationError(
                f"DATA: nothing in the name {path!r} tells the format; say it: --format"
            )
        usual = {"header": "true"} if found == "csv" else {}
        return Source(path, found, usual | given)
    first = _first_file(place, path)
    if data_format is None and first.is_dir():
        return Source(path, "delta", given)
    head = _head(first)
    found = data_format or _by_name(first.name) or _by_content(head)
    if found != "csv":
        return Source(path, found, given)
    form = recognize_csv(head, complete=len(head) < _HEAD)
    return Source(path, found, form.options | given, tuple(form.notes))


def _by_name(name: str) -> str | None:
    lower = name.lower().rstrip("/")
    for ending in _COMPRESSED:
        lower = lower.removesuffix(ending)
    return _ENDINGS.get(lower.rpartition(".")[2])


def _by_content(head: bytes) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ORC"):
        return "orc"
    return "json" if head.lstrip().startswith(b"{") else "csv"


def _first_file(place: Path, path: str) -> Path:
    """Return the first file of what a path names; the directory itself of a Delta table."""
    if place.is_file():
        return place
    if (place / "_delta_log").is_dir():
        return place
    if place.is_dir():
        found = (one for one in place.rglob("*") if one.is_file())
    else:
        anchor = Path(place.anchor or ".")
        pattern = str(place.relative_to(anchor) if place.anchor else place)
        matches = sorted(anchor.glob(pattern)) if any(one in path for one in "*?[{") else []
        found = (
            one
            for match in matches
            for one in (match.rglob("*") if match.is_dir() else [match])
            if one.is_file()
        )
    files = sorted(one for one in found if one.name[0] not in "._")
    if not files:
        raise DataError(f"DATA: no file is at {path}; check the path")
    return files[0]


def _head(file: Path) -> bytes:
    """Return the first bytes of a file, unpacked."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(_HEAD)
    except OSError as error:
        raise DataError(
            f"DATA: {file} cannot be read ({error.strerror}); check its permissions"
        ) from error
    try:
        if file.suffix.lower() == ".gz":
            return zlib.decompressobj(wbits=31).decompress(raw, _HEAD)
        if file.suffix.lower() == ".bz2":
            return bz2.BZ2Decompressor().decompress(raw, _HEAD)
    except (zlib.error, OSError) as error:
        raise DataError(
            f"DATA: {file} is damaged: it cannot be unpacked; fetch it again"
        ) from error
    return raw
