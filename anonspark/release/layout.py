"""Define the files of a release: those in its manifest and its configuration."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Sequence

from anonspark.core.figures import TABLES
from anonspark.engine.files import Entry, Files
from anonspark.release.copies import COPIES
from anonspark.release.manifest import MANIFEST, Manifest
from anonspark.release.signatures import SIGNATURE
from anonspark.verifier import VERIFIER

REPORT = "report.html"
"""Name of the report beside the data of a release."""

COMPANIONS = ("README.md", "datapackage.json", "views.sql", VERIFIER)
"""Files that explain a release."""

LEFT_OUT = "left_out"
"""Directory of a release: attribute, value as text (null where missing), records."""

_MOST_NAMES = 5

OF_UNIONS = ("summary", "privacy", "risk")
"""The tables of metrics that a union has. The others describe a run."""

# Delta's log lies beside the records; its files name each other.
_DATA_OF_DELTA = (
    r"data/part-\d{5}-[0-9a-f-]{36}[-.]c\d{3}(?:\.[a-z0-9]+)?\.parquet"
    r"|data/_delta_log/(?:_last_checkpoint|\d{20}\.(?:json|crc|checkpoint\.parquet))"
)
_LOG_OF_DELTA = "data/_delta_log"
# Delta makes it whenever it opens a table, and leaves it empty.
_EMPTY_FOLDER_OF_DELTA = "_staged_commits"

_HEAD_BYTES = 1024
_PAGE_BEGINS = b"<!doctype html>"

REPORT_KIND = "Anonymization report"
"""Beginning of the title of every report, as browsers show it."""

_CHECKSUM = re.compile(r"(?P<folder>(?:.*/)?)\.(?P<name>[^/]+)\.crc")
_CHECKSUM_MAGIC = b"crc\0"
_CHECKSUM_HEADER = 8
_LARGEST_CHUNK = 2**24


def files_of_half_a_release(entries: Sequence[Entry]) -> list[str]:
    """List the files that a run may have written before it could list them in a manifest.

    A run that was killed may leave the directory of a table empty. Its path ends with a slash.

    >>> files_of_half_a_release([Entry("data/part-0.parquet", "file", 9), Entry("a", "file", 9)])
    ['data/part-0.parquet']
    """
    tables = "|".join([LEFT_OUT, COPIES, *(f"metrics/{name}" for name in (*TABLES, "classes"))])
    pattern = re.compile(rf"(?:data|{tables})/(?:_SUCCESS|part-[^/]*)?|metrics/|{_DATA_OF_DELTA}")
    paths = [f"{entry.path}/" if entry.kind == "directory" else entry.path for entry in entries]
    return [path for path in paths if path in (*COMPANIONS, SIGNATURE) or pattern.fullmatch(path)]


def unknown_files(manifest: Manifest) -> list[str]:
    """List the files in a manifest that its configuration cannot have written."""
    data_format = manifest.data_format.lower()
    is_union = bool(manifest.parts)
    tables = "|".join(OF_UNIONS if is_union else (*TABLES, "classes"))
    patterns = [rf"metrics/(?:{tables})/part-\d{{5}}\.parquet"]
    match data_format:
        case "parquet" | "orc":
            patterns.append(rf"data/part-\d{{5,}}\.{data_format}")
        case "delta":
            patterns.append(_DATA_OF_DELTA)
        case _:
            # What other formats write is known to them alone.
            patterns.append(r"data/[^/.][^/]*")
    if manifest.published.get("rows_left_out", 0) and manifest.lists_left_out_values:
        patterns.append(rf"{LEFT_OUT}/part-00000\.parquet")
    if "csv" in manifest.copies:
        patterns.append(rf"{COPIES}/part-\d{{5,}}\.csv")
    names = {*COMPANIONS, REPORT} - ({"views.sql"} if data_format != "parquet" else set())
    pattern = re.compile("|".join(patterns))
    return [
        path
        for path in sorted(manifest.listed_paths)
        if path not in names and pattern.fullmatch(path) is None
    ]


def foreign_entries(
    files: Files,
    release: str,
    entries: Sequence[Entry],
    listed: Collection[str],
    *,
    marks: Collection[str] = (),
) -> list[str]:
    """List the paths in a release that do not belong to it, with what is wrong about each.

    ``entries`` is everything in the release, ``listed`` the files that belong to it, and ``marks``
    the names of empty files that a run may have left. The directories of its files also belong to
    it, and so do their checksums of Hadoop's local file system, which are read. No Spark job.
    """
    always = {MANIFEST, SIGNATURE, *listed}
    members = {
        entry.path
        for entry in entries
        if entry.kind == "file"
        and (entry.path in always or (entry.path in marks and not entry.bytes))
    }
    folders = {
        path[:end] for path in (*members, *listed) for end, sign in enumerate(path) if sign == "/"
    }  # fmt: skip
    if _LOG_OF_DELTA in folders:
        folders.add(f"{_LOG_OF_DELTA}/{_EMPTY_FOLDER_OF_DELTA}")
    foreign = []
    for entry in entries:
        match entry.kind:
            case "link":
                foreign.append(f"{entry.path} (a symbolic link)")
            case "other":
                foreign.append(f"{entry.path} (no file)")
            case "directory" if entry.path not in folders:
                foreign.append(f"{entry.path}/ (a directory)")
            case "file" if entry.path not in members:
                name = _CHECKSUM.fullmatch(entry.path)
                checked = name["folder"] + name["name"] if name else ""
                paths = f"{release}/{entry.path}", f"{release}/{checked}"
                if checked not in members or not is_checksum(files, *paths):
                    foreign.append(entry.path)
    return foreign


def is_checksum(files: Files, path: str, of: str) -> bool:
    """Return whether a file is exactly the checksum that Hadoop writes for the file ``of``.

    It is computed again, because only Hadoop compares it with the content.
    """
    checksum_path, content_path = files.local_path(path), files.local_path(of)
    if checksum_path is None or content_path is None:
        # Only local file systems have such checksums.
        return False
    try:
        # A name may be no valid text, which open() takes.
        with open(checksum_path, "rb") as file, open(content_path, "rb") as content:  # noqa: PTH123
            header = file.read(_CHECKSUM_HEADER)
            size = int.from_bytes(header[4:], "big")
            if header[:4] != _CHECKSUM_MAGIC or not 0 < size <= _LARGEST_CHUNK:
                return False
            chunks = iter(lambda: content.read(size), b"")
            sums = (zlib.crc32(chunk).to_bytes(4, "big") for chunk in chunks)
            return all(file.read(4) == checksum for checksum in sums) and not file.read(1)
    except OSError:
        return False


def looks_like_report(files: Files, path: str) -> bool:
    """Return whether a file begins as every report does."""
    return looks_like_page(files, path, REPORT_KIND)


def looks_like_page(files: Files, path: str, kind: str) -> bool:
    """Return whether a file begins as a page of a kind does. See :data:`REPORT_KIND`."""
    try:
        head = files.read_part(path, 0, min(files.size(path), _HEAD_BYTES))
    except OSError:  # a directory, for instance
        return False
    return head.startswith(_PAGE_BEGINS) and f"<title>{kind}".encode() in head


def named(paths: Sequence[str]) -> str:
    """Write the first five of several paths for a message.

    >>> named(["a", "b", "c", "d", "e", "f", "g"])
    'a, b, c, d, e and 2 more'
    """
    names = ", ".join(paths[:_MOST_NAMES])
    more = len(paths) - _MOST_NAMES
    return f"{names} and {more:,} more" if more > 0 else names
