"""Every file of a release: it is listed, it is what was written, and it has the release's columns.

Readers of a table see what the footers of its files say, and not all readers look at the same one.
So a column in one file, a file that Spark passes over or a table beside the table publish as well
as anything else does. Of Parquet files every byte is published, not only the values that a footer
points to: they are encoded again from their values by :mod:`anonspark.engine.parquet_encoding`,
which alone writes them, and every byte is compared.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc, parquet

from anonspark._version import __version__
from anonspark.engine.files import Entry, PublishedFile
from anonspark.engine.parquet_encoding import WRITER, EncodedFile, Encoding
from anonspark.engine.protocol import Engine
from anonspark.engine.raw_columns import flags
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError, GuaranteeError, raise_if_limit_reached
from anonspark.labels.regions import published_attributes
from anonspark.release.copies import COPIES, copy_path, csv_copy
from anonspark.release.layout import COMPANIONS, foreign_entries, named, unknown_files
from anonspark.release.manifest import MANIFEST, Manifest
from anonspark.sidecars.contents import sidecar_contents

# A task holds a file as a whole; larger ones are read by the driver, piece by piece.
_LARGEST_IN_TASK = 256 * 2**20

_ROWS = pa.schema(
    [
        ("path", pa.string()),
        ("sha256", pa.string()),
        ("footer", pa.string()),
        ("is_whole", pa.bool_()),
        ("copy", pa.string()),
    ]
)


@dataclass(frozen=True)
class Content:
    """The facts read from a file.

    ``sha256`` is None if the file cannot be read, or only otherwise than Hadoop's checksum says.
    ``footer`` is None if it is no file of Parquet or ORC. ``copy`` is the SHA-256 of its CSV copy.
    """

    sha256: str | None
    footer: Footer | None = None
    copy: str | None = None


def read_contents(
    engine: Engine,
    directory: str,
    entries: Sequence[Entry],
    whole: Sequence[str] = (),
    labels: Sequence[str] = (),
    *,
    listed: Mapping[str, str] | None = None,
    copies: bool = False,
) -> dict[str, Content]:
    """Read files of a directory. If the SHA-256 of a file is unexpected, nothing else is read.

    ``whole`` are beginnings of the paths of Parquet files of which every byte is compared,
    ``labels`` columns whose changes from record to record are counted, and ``listed`` SHA-256 by
    path (None for files that no one listed). With ``copies`` the records are written as CSV, to
    compare copies with.

    One job whose tasks read every file below the directory once: hashes in Java, footers (at most a
    mebibyte of each file) in Python. Some lines for each file reach the driver. The driver reads
    files that Spark passes over (names with a dot or an underscore in front) or that are larger
    than 256 MiB, and all files if the job fails, to find the one that cannot be read. It keeps none
    of them.
    """
    address = engine.files.qualified(directory).rstrip("/")
    reader = _Read(tuple(whole), tuple(labels), copies, listed)
    in_tasks = _in_tasks(engine, address, reader) if any(map(_is_seen, entries)) else {}
    return {
        entry.path: in_tasks.get(entry.path) or _by_driver(engine, address, entry, reader)
        for entry in entries
    }


def _is_seen(entry: Entry) -> bool:
    """Return whether Spark reads a file, and a task can hold it.

    >>> _is_seen(Entry("data/part-0.parquet", "file", 9)), _is_seen(Entry(".a", "file", 9))
    (True, False)
    """
    return _first_hidden(entry) is None and 0 < entry.bytes <= _LARGEST_IN_TASK


def _first_hidden(entry: Entry) -> str | None:
    """Return the first name of a path that readers of tables pass over, or None.

    >>> _first_hidden(Entry("data/_delta_log/0.json", "file"))
    '_delta_log'
    """
    return next((part for part in entry.path.split("/") if part.startswith((".", "_"))), None)


def _in_tasks(engine: Engine, address: str, reader: _Read) -> dict[str, Content]:
    """Read files in tasks. If the job fails the result is empty, and the driver reads them."""
    try:
        table = engine.contents(
            address, largest=_LARGEST_IN_TASK, tail=TAIL_BYTES, whole=reader.whole
        )
        rows = table.map_batches(reader, _ROWS).collect().to_pylist()
    except engine.failures as error:
        if "cancelled" in str(error).lower():
            raise
        # The driver then tries each file alone, to name the one that cannot be read.
        return {}
    return {
        row["path"]: Content(
            row["sha256"],
            None if row["footer"] is None else Footer(**json.loads(row["footer"])),
            row["copy"],
        )
        for row in rows
        if row["is_whole"]
    }


@dataclass(frozen=True)
class _Read:
    """Reads the ends of files, or all of them. Fields are parameters of :func:`read_contents`."""

    whole: tuple[str, ...]
    labels: tuple[str, ...]
    copies: bool
    listed: Mapping[str, str] | None = None

    def content(self, path: str, sha256: str, tail: bytes) -> Content:
        """Parse a file. Bytes that were not published are not handed to Arrow."""
        if not tail or (self.listed is not None and self.listed.get(path) != sha256):
            return Content(sha256)
        footer = read_footer(tail, whole=path.startswith(self.whole), labels=self.labels)
        copy = None
        if self.copies and path.startswith("data/"):
            with suppress(pa.ArrowException, OSError):
                copy = hashlib.sha256(csv_copy(tail)).hexdigest()
        return Content(sha256, footer, copy)

    def __call__(self, batches: Batches) -> Batches:
        """Yield a row a file."""
        for batch in batches:
            rows = []
            for row in batch.to_pylist():
                is_whole = tail_to_read(row["tail"]) <= max(len(row["tail"]), 8)
                content = self.content(**row) if is_whole else Content(row["sha256"])
                footer = None if content.footer is None else json.dumps(content.footer.as_dict())
                rows.append(
                    {**vars(content), "path": row["path"], "footer": footer, "is_whole": is_whole}
                )
            yield pa.RecordBatch.from_pylist(rows, _ROWS)


def _by_driver(engine: Engine, address: str, entry: Entry, reader: _Read) -> Content:
    """Read a file on the driver. A file that cannot be read has no SHA-256."""
    files, path, size = engine.files, f"{address}/{entry.path}", entry.bytes
    failures: tuple[type[Exception], ...] = (OSError, ConfigurationError, *engine.failures)
    try:
        digest = files.sha256(path)
        length = size if entry.path.startswith(reader.whole) else min(size, TAIL_BYTES)
        tail = files.read_part(path, size - length, length)
        needed = min(tail_to_read(tail), size)
        if needed > length:
            tail = files.read_part(path, size - needed, needed)
    except failures as error:
        # A full or failing disk says nothing about the file.
        raise_if_limit_reached(error)
        return Content(None)
    return reader.content(entry.path, digest, tail)


_WITH_FOOTERS = ("parquet", "orc")

# What other tools leave beside the files of a table: signs of success, summaries, logs.
_BESIDE_TABLES = re.compile(
    r"_SUCCESS|_metadata|_common_metadata|_delta_log|_(?:started|committed)_\d+"
)
_CHECKSUM = re.compile(r"\.(?P<name>.+)\.crc")
_FOOTED = re.compile(r".*\.(?:parquet|orc)")


def audit_release_files(
    engine: Engine, release: str, manifest: Manifest, replaced: Collection[str] = ()
) -> list[str]:
    """Raise GuaranteeError if the files of a release are not those of its manifest.

    No file is parsed before all are the listed ones, so other faults are then hidden. The error has
    one sentence for each kind of fault, and the paths. ``replaced`` are files that are not read.
    The release is listed once, and read once by :func:`read_contents`. Returns the files whose
    bytes are claimed, because another version of Arrow encoded them, perhaps in another way.
    """
    unknown = unknown_files(manifest)
    expected = manifest.listed_paths - set(unknown)
    try:
        entries = [entry for entry in engine.files.tree(release) if entry.path not in replaced]
        foreign = foreign_entries(engine.files, release, entries, expected, marks=(manifest.mark,))
    except ConfigurationError as error:
        raise_if_limit_reached(error)
        raise GuaranteeError(str(error)) from error
    failures = []
    if foreign:
        failures.append(
            f"{release}: holds what does not belong to the release: {named(foreign)}. Nothing is "
            "known of what is in there. Remove it, or publish the release again"
        )
    unread = {MANIFEST, *(text.split(" (")[0].rstrip("/") for text in foreign)}
    members = [entry for entry in entries if entry.kind == "file" and entry.path not in unread]
    listed = [file for file in manifest.files if file.path not in {*unknown, *replaced}]
    contents = _read_listed(engine, release, manifest, members, listed)
    unreadable = [path for path, content in contents.items() if content.sha256 is None]
    if unreadable:
        failures.append(
            f"{release}: cannot be read, or not as Hadoop's checksums say: {named(unreadable)}. "
            "Check permissions, restore the release or publish it again"
        )
    failures += _as_listed(release, listed, members, contents)
    if not failures:
        failures += _changed_copies(release, manifest, contents)
        failures += _compare_tables(release, manifest, members, contents)
    if failures:
        raise GuaranteeError("\n".join(failures))
    footers = ((path, content.footer) for path, content in contents.items())
    claimed = [path for path, footer in footers if footer and footer.is_of_another_arrow]
    return [f"bytes: {path}" for path in claimed]


def _read_listed(
    engine: Engine,
    release: str,
    manifest: Manifest,
    members: Sequence[Entry],
    listed: Sequence[PublishedFile],
) -> dict[str, Content]:
    """Read the files of a release, and every byte of Parquet tables unless they are of Delta."""
    data = ("data/",) if manifest.data_format.lower() == "parquet" else ()
    return read_contents(
        engine,
        release,
        members,
        ("metrics/", "left_out/", *data),
        manifest.quasi_identifier_columns,
        listed={file.path: file.sha256 for file in listed},
        copies="csv" in manifest.copies,
    )


def _as_listed(
    release: str,
    listed: Sequence[PublishedFile],
    entries: Iterable[Entry],
    contents: Mapping[str, Content],
) -> list[str]:
    """Return the differences between files and the manifest's list, one sentence a kind."""
    sizes = {entry.path: entry.bytes for entry in entries}
    missing, changed, rows = [], [], []
    for file in listed:
        path, content = file.path, contents.get(file.path)
        if content is None:
            missing.append(path)
        elif sizes[path] != file.bytes or content.sha256 not in (None, file.sha256):
            changed.append(path)
        elif content.footer is not None:
            rows += [path] if content.footer.rows != file.rows else []
        elif file.rows is not None and "/" not in path:
            rows.append(path)
    remedy = "Restore the release or publish it again"
    problems = (
        (missing, "files that its manifest lists are not there"),
        (changed, "files are not those that were published (bytes or SHA-256 differ)"),
        (rows, "files have other numbers of rows than the manifest says"),
    )
    return [f"{release}: {text}: {named(paths)}. {remedy}" for paths, text in problems if paths]


def _changed_copies(release: str, manifest: Manifest, contents: Mapping[str, Content]) -> list[str]:
    """Return a sentence if copies differ from the records of data written as CSV."""
    expected = {
        copy_path(path): content.copy
        for path, content in contents.items()
        if "csv" in manifest.copies and path.startswith("data/")
    }
    existing = {
        path: content.sha256 for path, content in contents.items() if path.startswith(f"{COPIES}/")
    }
    changed = _differing(expected, existing)
    if not changed:
        return []
    return [
        f"{release}: {named(changed)}: not the records of data as CSV. Do not use these files, "
        "restore the release or publish it again"
    ]


def _compare_tables(
    release: str,
    manifest: Manifest,
    entries: Iterable[Entry],
    contents: Mapping[str, Content],
) -> list[str]:
    """Return the faults of the tables of a release, by the footers of their files.

    Checks that there are data and no file is empty, that the records of a class stand together, and
    that the files of a table agree. Copies and hidden files are compared elsewhere.
    """
    footers_by_folder: dict[str, dict[str, Footer | None]] = {}
    empty, data_format = [], manifest.data_format.lower()
    for entry in entries:
        folder, _, name = entry.path.rpartition("/")
        # In formats without footers only files that have one are compared.
        is_hidden = name.startswith(("_", ".")) or "/_" in f"/{folder}"
        if not folder or folder == COPIES or is_hidden:
            continue
        if not entry.bytes:
            empty.append(entry.path)
            continue
        content = contents[entry.path]
        needs_footer = folder != "data" or data_format in _WITH_FOOTERS
        if content.sha256 is not None and (needs_footer or content.footer is not None):
            footers_by_folder.setdefault(folder, {})[entry.path] = content.footer
    failures = []
    if data_format in _WITH_FOOTERS and "data" not in footers_by_folder:
        failures.append(
            f"{release}/data: holds no records that can be read. Restore the release or publish it "
            "again"
        )
    if empty:
        failures.append(
            f"{release}: files of tables are empty: {named(empty)}. Restore the release or publish "
            "it again"
        )
    data = footers_by_folder.get("data", {})
    classes = footers_by_folder.get("metrics/classes", {}).values()
    if not manifest.parts and all(classes) and _is_in_disorder(data, classes):
        failures.append(
            f"{release}/data: records of a class do not stand together, so their order may say "
            "where they stood in the input. The release must not be used"
        )
    for folder, footers in footers_by_folder.items():
        columns = manifest.published["columns"] if folder == "data" else None
        failures += _compare_footers(release, footers, columns)
    return failures


def _is_in_disorder(data: Mapping[str, Footer | None], classes: Iterable[Footer | None]) -> bool:
    """Return whether labels change more often than classes that stand together have them change.

    A class of more than an eighth of a file's records may be in all files, suppressed records are a
    class that the table of classes does not have, and each row group is looked at alone.
    """
    records = sum(footer.rows for footer in classes if footer is not None)
    groups = sum(footer.row_groups for footer in data.values() if footer is not None)
    runs = sum(footer.runs for footer in data.values() if footer is not None)
    return records > 0 and runs > records + 1 + groups + 9 * len(data) * (len(data) - 1)


def _compare_footers(
    where: str,
    footers: Mapping[str, Footer | None],
    columns: Sequence[str] | None,
    *,
    ours: bool = True,
) -> list[str]:
    """Return the faults of a table's files, whose footers are given by path, or None without any.

    ``columns`` are the names in order that the manifest lists, or None if it lists none. With
    ``ours`` footers may only hold what Spark and anonspark write.
    """
    damaged = [path for path, footer in footers.items() if footer is None]
    readable = {path: footer for path, footer in footers.items() if footer is not None}
    failures = []
    if damaged:
        failures.append(
            f"{where}: files are damaged or of another format: {named(damaged)}. Restore the "
            "release or publish it again"
        )
    if not readable:
        return failures
    # If files differ, the majority is right.
    counts = Counter(tuple(footer.columns) for footer in readable.values())
    usual = max(readable.values(), key=lambda footer: counts[tuple(footer.columns)])
    names = usual.names if columns is None else list(columns)
    deviating = [
        path
        for path, footer in readable.items()
        if footer.columns != usual.columns or footer.names != names
    ]
    if deviating:
        surplus = sorted({name for path in deviating for name in readable[path].names} - set(names))
        more = f" (columns {named(list(map(repr, surplus)))} are too many)" if surplus else ""
        failures.append(
            f"{where}: files have other columns, types or an order of columns than the table: "
            f"{named(deviating)}{more}. The release must not be used"
        )
    strange = sorted({key for footer in readable.values() for key in footer.strange})
    if ours and strange:
        paths = [path for path, footer in readable.items() if footer.strange]
        failures.append(
            f"{where}: {named(paths)} hold more than anonspark writes, under "
            f"{named([repr(key[:80]) for key in strange])}. Publish the release again"
        )
    return failures


def audit_table_files(engine: Engine, path: str) -> None:
    """Raise GuaranteeError if the files of another tool's table are unsound.

    The path is a file, a directory, or a pattern. Readers must pass over no file, none may be
    empty, and footers must agree. Costs as :func:`audit_release_files`.
    """
    failures, files = [], engine.files
    for match in files.matches(path):
        folder, entries = match, files.tree(match)
        if not entries:
            folder, _, name = match.rpartition("/")
            entries = [Entry(name, "file", files.size(match))]
        sizes = {entry.path: entry.bytes for entry in entries if entry.kind == "file"}
        hidden = [entry.path for entry in entries if _is_hidden(entry, sizes)]
        seen = [entry for entry in entries if entry.kind == "file" and _first_hidden(entry) is None]
        empty = [entry.path for entry in seen if not entry.bytes]
        if hidden:
            failures.append(
                f"{folder}: holds what readers of the table pass over: {named(hidden)}. Nothing is "
                "known of what is in there. Remove it, or verify it alone"
            )
        if empty:
            failures.append(f"{folder}: files are empty: {named(empty)}. Remove them")
        footed = [entry for entry in seen if _FOOTED.fullmatch(entry.path.lower()) and entry.bytes]
        if footed:
            contents = read_contents(engine, folder, footed)
            footers = {entry: content.footer for entry, content in contents.items()}
            failures += _compare_footers(folder, footers, None, ours=False)
    if failures:
        raise GuaranteeError("\n".join(failures))


def _is_hidden(entry: Entry, sizes: Mapping[str, int]) -> bool:
    """Return whether readers of tables pass over an entry that has no known reason to be there.

    >>> _is_hidden(Entry("_SUCCESS", "file"), {}), _is_hidden(Entry("_old.csv", "file", 9), {})
    (False, True)
    """
    if entry.kind in ("link", "other"):
        return True
    hidden_part = _first_hidden(entry)
    if hidden_part is None or _BESIDE_TABLES.fullmatch(hidden_part):
        return False
    checksum = _CHECKSUM.fullmatch(entry.name)
    folder = entry.path.removesuffix(entry.name)
    return not (checksum and folder + checksum["name"] in sizes)


def changed_sidecar_files(release: str, manifest: Manifest, schema: pa.Schema) -> list[str]:
    """Return a sentence if the files that explain a release are not what its manifest implies.

    Those of another version may be worded differently, and are not compared.
    """
    columns = {name for attribute in published_attributes(manifest) for name in attribute.columns}
    if not columns <= {*schema.names}:  # which is refused elsewhere
        return []
    contents = sidecar_contents(manifest, schema, manifest.files)
    expected = {name: hashlib.sha256(text).hexdigest() for name, text in contents.items()}
    existing = {file.path: file.sha256 for file in manifest.files if file.path in COMPANIONS}
    changed = _differing(expected, existing)
    if not changed or manifest.version != __version__:
        return []
    return [
        f"{release}: {named(changed)}: not what this version writes of this manifest and these "
        "records, so that it may say or run something else. Do not use it, restore the release "
        "or publish it again"
    ]


def _differing(expected: Mapping[str, object], existing: Mapping[str, object]) -> list[str]:
    """Return the keys whose values differ, or that only one of two mappings has, sorted.

    >>> _differing({"a": 1, "b": 2}, {"b": 2, "c": 3})
    ['a', 'c']
    """
    keys = expected.keys() | existing.keys()
    return sorted(key for key in keys if expected.get(key) != existing.get(key))


TAIL_BYTES = 2**20
"""The last bytes of a file that are looked at first: most footers are far smaller."""

_PARQUET = b"PAR1"

# Spark's own note in ORC files. Any other note may hold data.
_SPARK = b"org.apache.spark.version"
_NUMBERS = r"\d+(?:\.\d+){1,3}(?:-[a-zA-Z]{1,12}(?:-?\d{1,6})?)?"
_VERSION = re.compile(_NUMBERS.encode())
_WRITERS = re.compile(f"parquet-cpp-arrow version {_NUMBERS}")


@dataclass(frozen=True)
class Footer:
    """The content of the end of a file.

    ``names`` are the columns at the top in order, ``columns`` name and stored type of every column.
    ``strange`` are the names of what neither Spark nor anonspark writes, without values. ``runs``
    counts how often labels change from one record to the next, and one for the first of each row
    group. ``is_of_another_arrow`` says that bytes were not compared: another version may encode
    otherwise.
    """

    rows: int
    names: list[str]
    columns: list[str]
    strange: list[str]
    runs: int = 0
    row_groups: int = 0
    is_of_another_arrow: bool = False

    def as_dict(self) -> dict[str, object]:
        """Return it as plain values."""
        return asdict(self)


def tail_to_read(tail: bytes) -> int:
    """Return how many bytes at the end of a file are its footer, by its last bytes.

    >>> tail_to_read(b"..." + (100).to_bytes(4, "little") + b"PAR1")
    108
    """
    if tail.endswith(_PARQUET):
        return 8 + int.from_bytes(tail[-8:-4], "little")
    return len(tail)


def read_footer(tail: bytes, *, whole: bool = False, labels: Sequence[str] = ()) -> Footer | None:
    """Read the footer from the end of a file, or return None if it is damaged or of another format.

    With ``whole`` the bytes are the whole file. Those of a Parquet file are then compared with its
    values, and changes of the labels are counted.

    >>> read_footer(b"a,b") is None
    True
    """
    try:
        if tail.endswith(_PARQUET):
            return _of_parquet(tail, whole=whole, labels=labels)
        file = orc.ORCFile(pa.BufferReader(tail))
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return None
    notes = dict(file.schema.metadata or {})
    if _VERSION.fullmatch(notes.get(_SPARK, b"")):
        del notes[_SPARK]
    strange = [key.decode(errors="replace") for key in notes]
    return Footer(int(file.nrows), list(file.schema.names), _columns(file.schema), strange)


def _columns(schema: pa.Schema) -> list[str]:
    """Write name and type of each column.

    >>> _columns(pa.schema([("age", pa.int64())]))
    ['age: int64']
    """
    return [f"{field.name}: {field.type}" for field in schema]


def _of_parquet(content: bytes, *, whole: bool, labels: Sequence[str]) -> Footer:
    """Read the footer of a Parquet file, and compare its bytes with those of its values."""
    metadata = parquet.read_metadata(pa.BufferReader(content))
    schema = metadata.schema.to_arrow_schema().remove_metadata()
    footer = Footer(int(metadata.num_rows), list(schema.names), _columns(schema), [])
    if not whole:
        return footer
    encoding = Encoding.of(schema, _codec_of(metadata))
    if metadata.metadata != encoding.notes:
        return replace(footer, strange=["notes of the footer"])
    if metadata.created_by != WRITER and _WRITERS.fullmatch(metadata.created_by):
        return replace(footer, is_of_another_arrow=True)
    # Labels are compared with the row before by their numbers in a dictionary.
    types = dict(zip(schema.names, schema.types, strict=True))
    texts = [name for name in labels if types.get(name) == pa.string()]
    file = parquet.ParquetFile(pa.BufferReader(content), metadata=metadata, read_dictionary=texts)
    runs: list[int] = []
    encoded, position = EncodedFile(encoding), 0
    for part in encoded.parts(_row_groups(file, labels, runs)):
        if content[position : position + len(part)] != part:
            return replace(footer, strange=["bytes other than those of its values"])
        position += len(part)
    strange = [] if position == len(content) else ["bytes behind its end"]
    return replace(footer, strange=strange, runs=sum(runs), row_groups=len(runs))


def _codec_of(metadata: parquet.FileMetaData) -> str:
    """Return the codec of the first page, as Spark calls it."""
    if not metadata.num_row_groups:
        return "snappy"
    codec = str(metadata.row_group(0).column(0).compression).lower()
    return {"lz4": "lz4_raw"}.get(codec, codec)


def _row_groups(file: parquet.ParquetFile, labels: Sequence[str], runs: list[int]) -> Batches:
    """Yield the row groups of a file, and note how often labels change in each."""
    schema = file.metadata.schema.to_arrow_schema()
    for number in range(file.num_row_groups):
        group = file.read_row_group(number, use_threads=False).combine_chunks()
        columns = dict(zip(group.column_names, (column.chunk(0) for column in group), strict=True))
        runs.append(_count_runs([columns[name] for name in labels if name in columns]))
        decoded = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for column in columns.values()
        ]
        yield pa.RecordBatch.from_arrays(decoded, schema=schema)
    if not file.num_row_groups:
        yield pa.RecordBatch.from_pylist([], schema)


def _count_runs(columns: Sequence[pa.Array]) -> int:
    """Count how often rows differ from the row before, and one for the first row.

    >>> _count_runs([pa.array([1, 1, 2]), pa.array(["a", "b", "b"])])
    3
    """
    # Lists cannot be compared with the row before. The other columns are enough.
    plain = [
        column.indices if pa.types.is_dictionary(column.type) else column
        for column in columns
        if not pa.types.is_nested(column.type)
    ]
    if not plain:
        return 0
    changes = np.zeros(len(plain[0]) - 1, bool)
    for column in plain:
        before, after = column[:-1], column[1:]
        changes |= flags(pc.not_equal(before, after).fill_null(fill_value=False))
        changes |= flags(pc.not_equal(before.is_null(), after.is_null()))
    return int(changes.sum()) + 1
