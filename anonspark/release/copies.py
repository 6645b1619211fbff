"""Write the records of a release again as CSV: a function of each of their files."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from anonspark.engine.files import Files, PublishedFile
from anonspark.engine.raw_columns import is_text

COPIES = "copies"
"""Directory of a release."""

# Spreadsheets recognize UTF-8 by this byte order mark.
_MARK = b"\xef\xbb\xbf"

# A text that begins so may be run as a formula. An apostrophe shows that it is none, so one more
# stands before an apostrophe, and the first one can be removed from every text.
_FORMULA = "^[=+\\-@'\\t\\r\\n\uff1d\uff0b\uff0d\uff20]"
# Readers that split at these begin a cell inside of a text, behind its quotes.
_CELL = "([;\\t\\v\\f\\r\\n\\x{85}\\x{2028}\\x{2029}]\"*)([=+\\-@'\uff1d\uff0b\uff0d\uff20])"
_NUMBER = "^[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$"


def copy_path(path: str) -> str:
    """Return the path of the copy of a file of the records.

    >>> copy_path("data/part-00000.parquet")
    'copies/part-00000.csv'
    """
    return f"{COPIES}/{path.removeprefix('data/').removesuffix('.parquet')}.csv"


def csv_copy(content: bytes | pa.Buffer) -> bytes:
    """Convert a Parquet file of the records to CSV: UTF-8 with a byte order mark and a header.

    Texts are in quotes, missing values are not. A text that a spreadsheet would run as a formula
    gets an apostrophe in front, also in a cell that begins inside of a text. Raises
    pyarrow.ArrowException if the content is no Parquet file.
    """
    sink = io.BytesIO()
    sink.write(_MARK)
    with parquet.ParquetFile(pa.BufferReader(content)) as file:
        names = _harmless(pa.chunked_array([file.schema_arrow.names], pa.string())).to_pylist()
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, use_threads=False)
            columns = [
                _harmless(cells) if is_text(cells.type) else cells for cells in table.columns
            ]
            options = csv.WriteOptions(include_header=not group)
            csv.write_csv(pa.Table.from_arrays(columns, names), sink, options)
    return sink.getvalue()


def _harmless(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Put an apostrophe before each text that a spreadsheet would run as a formula.

    >>> _harmless(pa.chunked_array([["=1+1", "-3", "a,=b"]])).to_pylist()
    ["'=1+1", '-3', 'a,=b']
    """
    is_number = pc.match_substring_regex(texts, _NUMBER)
    is_formula = pc.and_not(pc.match_substring_regex(texts, _FORMULA), is_number)
    inside = pc.replace_substring_regex(texts, _CELL, r"\1'\2")
    return pc.if_else(is_formula, pc.binary_join_element_wise("'", inside, ""), inside)


def write_copies(
    files: Files, release: str, written: Sequence[PublishedFile]
) -> list[PublishedFile]:
    """Write a CSV copy of each file of the records among those that a release has.

    The driver reads one file at a time, of some 64 MiB at most.
    """
    copies = []
    for file in written:
        if file.path.startswith("data/"):
            copied = csv_copy(files.read_part(f"{release}/{file.path}", 0, file.bytes))
            path = copy_path(file.path)
            files.write_bytes(f"{release}/{path}", copied)
            digest = hashlib.sha256(copied).hexdigest()
            copies.append(PublishedFile(path, len(copied), None, digest))
    return copies
