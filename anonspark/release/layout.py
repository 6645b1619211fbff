"""What may lie in a release: the files that its manifest lists, or those of the known layout."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from anonspark.engine.files import Entry, Files
from anonspark.release.manifest import MANIFEST
from anonspark.verifier import VERIFIER

REPORT = "report.html"
"""Name of the report beside the data of a release."""

_DESCRIBED = b"-- The records of this release with typed columns"

COMPANIONS = {
    "README.md": b"# Anonymized records, k = ",
    "datapackage.json": b'{\n  "profile": "data-package",\n  "name": "release-',
    "views.sql": _DESCRIBED,
    VERIFIER: b'"""Counts again what a release of anonspark promises',
}
"""Files that explain a release, and how each begins."""

_MOST_NAMES = 5

# Releases of earlier versions do not list their files; in them only these names are known.
_TABLES = r"(?:data|metrics/(?:summary|rounds|classes|attributes|privacy|risk|nodes)|left_out)"
_KNOWN = re.compile(rf"{_TABLES}/(?:_SUCCESS|part-[^/]*)|{re.escape(REPORT)}")
# Delta's log lies beside the records.
_KNOWN_OF_DELTA = re.compile(
    r"data/_delta_log/(?:_last_checkpoint|\d{20}\.(?:json|crc|checkpoint\.parquet))"
)
_LOG_OF_DELTA = "data/_delta_log"
# Delta makes it whenever it looks at a table, and leaves it empty.
_EMPTY_FOLDER_OF_DELTA = "_staged_commits"

_HEAD_BYTES = 1024
_PAGE_BEGINS = b"<!doctype html>"

REPORT_KIND = "Anonymization report"
"""What the title of every report begins with, as browsers show it."""

_CHECKSUM = re.compile(r"(?P<folder>(?:.*/)?)\.(?P<name>[^/]+)\.crc")
_CHECKSUM_MAGIC = b"crc\0"
_CHECKSUM_HEADER = 8


def foreign_entries(
    files: Files,
    release: str,
    entries: Sequence[Entry],
    listed: Collection[str] | None,
    *,
    data_format: str = "parquet",
    marks: Collection[str] = (),
    is_half: bool = False,
) -> list[str]:
    """Return what lies in a release and does not belong to it.

    Parameters
    ----------
    files : Files
    release : str
        Its directory.
    entries : sequence of Entry
        All that lies there.
    listed : collection of str or None
        The files that belong to it; None where nobody listed them, and the names of the known
        layout count.
    data_format : str
        ``output.format``.
    marks : collection of str
        Names of empty files that a run may have left there.
    is_half : bool
        Whether a run was killed while it wrote there: what explains the release may lie there
        without a list, whole or not.

    Returns
    -------
    list of str
        Paths with what is wrong about them. A directory belongs to a release if a file of it lies
        there; a checksum of Hadoop's local file system, if the file that it is of does.

    Notes
    -----
    No Spark job; the first bytes of each checksum are read.
    """
    sizes = {entry.path: entry.bytes for entry in entries if entry.kind == "file"}

    def belongs(path: str) -> bool:
        if path == MANIFEST or (path in marks and not sizes.get(path)):
            return True
        if listed is not None:
            return path in listed
        if path.endswith("/_SUCCESS") and sizes[path]:
            return False
        if is_half and path in COMPANIONS:
            return _begins_as(files, f"{release}/{path}", sizes[path], COMPANIONS[path])
        known = _KNOWN.fullmatch(path)
        return bool(known or (data_format == "delta" and _KNOWN_OF_DELTA.fullmatch(path)))

    own = {path for path in sizes if belongs(path)}
    folders = {
        path[:place] for path in own for place, sign in enumerate(path) if sign == "/"
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
            case "file" if entry.path not in own:
                checked = _CHECKSUM.fullmatch(entry.path)
                of = checked["folder"] + checked["name"] if checked else ""
                if of not in own or not checksum_header_is_sound(
                    files, f"{release}/{entry.path}", entry.bytes, sizes[of]
                ):
                    foreign.append(entry.path)
    return foreign


def checksum_header_is_sound(files: Files, path: str, size: int, content: int) -> bool:
    """Return whether a file is as large as a checksum of Hadoop's is, and begins like one.

    Hadoop passes over a checksum that does not begin so, and compares every other one with the
    content whenever it reads that: so nothing else can hide in it.

    Parameters
    ----------
    files : Files
    path : str
    size : int
        Its bytes.
    content : int
        Bytes of the file that it is of.
    """
    local = files.local_path(path)
    if local is None or size < _CHECKSUM_HEADER:
        # No other file system has them.
        return False
    try:
        with open(local, "rb") as file:  # noqa: PTH123 - the name may be no text
            header = file.read(_CHECKSUM_HEADER)
    except OSError:
        return False
    chunk = int.from_bytes(header[4:], "big")
    if header[:4] != _CHECKSUM_MAGIC or not 0 < chunk < 2**31:
        return False
    return size == _CHECKSUM_HEADER + 4 * -(-content // chunk)


def _begins_as(files: Files, path: str, size: int, head: bytes) -> bool:
    """Return whether a file begins in a way, or was about to."""
    try:
        found = files.read_part(path, 0, min(size, len(head)))
    except OSError:
        return False
    return head.startswith(found)


def looks_like_report(files: Files, path: str) -> bool:
    """Return whether a file begins as every report does."""
    return looks_like_page(files, path, REPORT_KIND)


def looks_like_page(files: Files, path: str, kind: str) -> bool:
    """Return whether a file begins as a page of a kind does; see :data:`REPORT_KIND`."""
    try:
        head = files.read_part(path, 0, min(files.size(path), _HEAD_BYTES))
    except OSError:  # a directory, for instance
        return False
    return head.startswith(_PAGE_BEGINS) and f"<title>{kind}".encode() in head


def named(paths: Sequence[str]) -> str:
    """Write some of several paths for a message."""
    told = ", ".join(paths[:_MOST_NAMES])
    more = len(paths) - _MOST_NAMES
    return f"{told} and {more:,} more" if more > 0 else told
