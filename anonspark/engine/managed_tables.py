"""Find folders of Delta Lake, Apache Iceberg and Apache Hudi: not all files count in those."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from anonspark.engine.files import Files, FilesError, literal
from anonspark.errors import ConfigurationError

_NAMES = {"delta": "Delta Lake", "iceberg": "Apache Iceberg", "hudi": "Apache Hudi"}
_FOLDERS = {"_delta_log": "delta", ".hoodie": "hudi", ".hoodie_partition_metadata": "hudi"}
_ICEBERG = re.compile(r"(?i)[^/]+\.metadata\.json(\.[a-z]+)?")
# Names that Iceberg gives to metadata. Files with other names may describe plain files.
_NUMBERED = re.compile(r"(?i)(v\d+|\d+-[^/]+)(\.[a-z]+)?\.metadata\.json(\.[a-z]+)?")
_BELOW = re.compile(
    r"((?:.*?/)?)(?:(?:_delta_log|\.hoodie|metadata)/.*|\.hoodie_partition_metadata)"
)


def require_plain_files(files: Files, paths: Sequence[str], data_format: str, key: str) -> None:
    """Raise ConfigurationError if files belong to a table with a log, such as of Delta Lake.

    Such a table also has files of deleted or replaced records, and only its log shows which count.
    Does nothing if ``data_format`` is one of these. ``key`` names the paths in messages. A path
    must not be such a table, lie in one, or hold one in folders that would be read. No job: three
    calls for each folder of files and each above, and a listing of each named directory.
    """
    if any(name in data_format.lower() for name in (*_NAMES, "jdbc")):
        return
    seen: set[str] = set()
    for path in paths:
        addresses = [match.rstrip("/") for match in files.matches(path)]
        pattern = literal(path) if files.exists(path) else path
        inside = files.matches(f"{pattern.rstrip('/')}/*") if addresses else []
        directories = list(dict.fromkeys(address.rpartition("/")[0] for address in inside))
        above = {address.rpartition("/")[0]: files.parent(address) for address in addresses}
        # Only local disks have links, and each call to other file systems takes time.
        local = [address for address in (*addresses, *inside) if address.startswith("file:")]
        targets = {target.rpartition("/")[0]: target for target in map(files.resolved, local)}
        links = [*map(files.parent, targets.values()), *map(files.resolved, directories)]
        for start in dict.fromkeys((*directories, *above.values(), *links)):
            for folder in _upwards(files, start):
                if folder in seen:
                    break
                seen.add(folder)
                if (kind := table_format(files, folder)) is not None:
                    raise _refused(path, folder, kind, key)
        for directory in directories:
            for folder, kind in _tables_below(files, directory):
                raise _refused(path, f"{directory}/{folder}", kind, key)


def table_format(files: Files, folder: str) -> str | None:
    """Return the format of the table in a folder, or None if it is none or cannot be listed.

    A user may read a directory without being allowed to list those above it.
    """
    folder = folder.rstrip("/")
    with suppress(FilesError, ConfigurationError):
        for name, kind in _FOLDERS.items():
            if files.exists(f"{folder}/{name}"):
                return kind
        names = [child.rpartition("/")[2] for child in files.children(f"{folder}/metadata")]
        has_metadata = any(map(_ICEBERG.fullmatch, names)) and files.exists(f"{folder}/data")
        if has_metadata or any(map(_NUMBERED.fullmatch, names)):
            return "iceberg"
    return None


def _upwards(files: Files, address: str) -> Iterator[str]:
    """Yield an address and the directories above it."""
    above = files.parent(address)
    while above != address:
        yield address
        address, above = above, files.parent(above)
    yield address


def _tables_below(files: Files, address: str) -> Iterator[tuple[str, str]]:
    """Yield the tables in a directory from which a reader of plain files would take files.

    Readers enter folders named like ``column=value`` alone. If a directory has no plain file,
    tables in other folders count, too: nothing else can be meant.
    """
    paths = [name for name, _ in files.files_below(address)]
    has_files = any("/" not in name and name[0] not in "._" for name in paths)
    for folder in dict.fromkeys(match[1] for name in paths if (match := _BELOW.fullmatch(name))):
        is_read = not has_files or all("=" in part for part in folder.strip("/").split("/"))
        if is_read and (kind := table_format(files, f"{address}/{folder}")) is not None:
            yield folder, kind


def _refused(path: str, folder: str, kind: str, key: str) -> ConfigurationError:
    """Return the error that files of a table with a log are not read as plain files."""
    option = {"input.path": "input.format", "DATA": "--format"}.get(key, "the format")
    return ConfigurationError(
        f"{key}: the files of {path} are those of the {_NAMES[kind]} table at {folder}, which also "
        "has files of records that were deleted or replaced. They are not read as plain files. "
        f"Name the table's folder, and set {option} to {kind}, which Spark reads with the package "
        "of that format"
    )
