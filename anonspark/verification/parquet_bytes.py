"""Every byte of a Parquet file: a page of values, or the footer that says where the pages are.

Readers look at what the footer names, and at the values that they ask for. So this walks the whole
file: what lies between pages, behind the values of a page or under keys that no reader knows, and
values of a dictionary that no record has are all seen. It decodes no record.

:mod:`anonspark.engine.parquet_encoding` alone writes the Parquet files of a release, so each
structure has one form, which is derived and compared as a whole. Statistics of values it writes
none.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from anonspark.engine.parquet_encoding import MAGIC, encode_table
from anonspark.kernels.parquet_pages import count_runs, sum_texts

# Kinds of values in Thrift's compact protocol; of a truth value the kind says it, too.
_TRUE, _FALSE, _BYTE, _SHORT, _INT, _LONG, _TEXT, _LIST, _STRUCT = 1, 2, 3, 4, 5, 6, 8, 9, 12

_Struct = dict[tuple[int, int], Any]
"""Fields by number and kind: numbers as parquet.thrift has them."""

_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_CODECS = {1: "snappy", 6: "zstd", 7: "lz4_raw"}
_GZIP = 2
_BOOLEAN, _BYTES = 0, 6
_WIDTHS = {1: 4, 2: 8, 4: 4, 5: 8}
_TYPES = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)

_WRITER = re.compile(
    rb"parquet-cpp-arrow version \d+(?:\.\d+){1,3}(?:-[a-zA-Z]{1,12}(?:-?\d{1,6})?)?"
)


class _OddPartError(Exception):
    """A part of a file that holds more than, or other than, values. Named in words."""


def find_odd_part(content: bytes, metadata: parquet.FileMetaData) -> str | None:
    """Return the first part of a file that is neither its values nor what is known of them.

    Parameters
    ----------
    content : bytes
        Of the whole file.
    metadata : pyarrow.parquet.FileMetaData
        Its footer, which pyarrow can read.

    Returns
    -------
    str or None
        In words, without a value. None where every byte is one of a page or the footer.
    """
    try:
        _walk(content, metadata.schema)
    except _OddPartError as odd:
        return str(odd)
    except Exception:  # noqa: BLE001 - whatever damaged bytes lead to
        return "pages or a footer that cannot be read"
    return None


def _walk(content: bytes, schema: parquet.ParquetSchema) -> None:
    start, footer = _footer_of(content)
    # What says of the columns what they are is in a file without records, too.
    _, expected = _footer_of(encode_table(schema.to_arrow_schema().empty_table()))
    groups = footer[4, _LIST][1]
    expected[3, _LONG] = sum(group[3, _LONG] for group in groups)
    for key in ((4, _LIST), (6, _TEXT)):
        expected[key] = footer[key]
    _require(footer == expected and _WRITER.fullmatch(footer[6, _TEXT]), "footer")
    covered = [(0, 4), (start, len(content))]
    for number, group in enumerate(groups):
        chunks = [
            _Chunk(content, described, schema.column(place))
            for place, described in enumerate(group[1, _LIST][1])
        ]
        for chunk in chunks:
            chunk.walk(group[3, _LONG])
        covered += [(chunk.start, chunk.end) for chunk in chunks]
        derived = {
            (1, _LIST): group[1, _LIST],
            (2, _LONG): sum(chunk.meta[6, _LONG] for chunk in chunks),
            (3, _LONG): group[3, _LONG],
            (5, _LONG): chunks[0].start,
            (6, _LONG): sum(chunk.meta[7, _LONG] for chunk in chunks),
        }
        ordinal = {(7, _SHORT): number}
        _require(ordinal | group == ordinal | derived and len(chunks) == len(schema), "footer")
    for (_, end), (following, _) in pairwise(sorted(covered)):
        # Our files have the magic bytes behind each row group.
        _require(content[end:following] in (b"", MAGIC) and end <= following, "between its pages")
    _require(content.startswith(MAGIC), "between its pages")


def _footer_of(content: bytes) -> tuple[int, _Struct]:
    """Return where the footer begins, and what it says."""
    end = len(content) - 8
    start = end - int.from_bytes(content[-8:-4], "little")
    reader = _Compact(content, start)
    footer = reader.struct()
    _require(reader.at == end, "footer")
    return start, footer


def _require(holds: object, part: str) -> None:
    if not holds:
        raise _OddPartError(part)


@dataclass
class _Compact:
    """Reads structures of Thrift's compact protocol, in the shortest form that they have.

    Parameters
    ----------
    data : bytes
    at : int
        Where the next one begins.
    """

    data: bytes
    at: int

    def struct(self) -> _Struct:
        """Return the fields of a structure, whose numbers rise by less than 16."""
        fields: _Struct = {}
        number = 0
        while head := self._byte():
            step, kind = divmod(head, 16)
            if not step:
                raise ValueError
            number += step
            fields[number, _TRUE if kind == _FALSE else kind] = self._value(kind)
        return fields

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _number(self) -> int:
        number = shift = 0
        while (byte := self._byte()) > 127:
            number |= (byte & 127) << shift
            shift += 7
        if shift and not byte:
            raise ValueError
        return number | byte << shift

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in (_SHORT, _INT, _LONG):
            number = self._number()
            return number >> 1 ^ -(number & 1)
        if kind == _TEXT:
            size = self._number()
            self.at += size
            return self.data[self.at - size : self.at]
        if kind == _LIST:
            size, kind = divmod(self._byte(), 16)
            if size == 15 and (size := self._number()) < 15:
                raise ValueError
            return kind, [self._value(kind) for _ in range(size)]
        if kind == _STRUCT:
            return self.struct()
        raise ValueError


def _decompress(stored: bytes, codec: int, size: int) -> bytes:
    """Decompress a page, and refuse what a decompressor passes over: names, or what is behind."""
    if codec == 0 or not (stored or size):
        return stored
    if codec == _GZIP:
        decompressor = zlib.decompressobj(31)
        whole = decompressor.decompress(stored)
        if not stored.startswith(b"\x1f\x8b\x08" + bytes(5)) or decompressor.unused_data:
            raise ValueError
        return whole if decompressor.eof else b""
    if _CODECS[codec] == "zstd":
        head = stored[4]
        at = 6 - (head >> 5 & 1) + (head >> 5 & 1, 2, 4, 8)[head >> 6]
        block = 0
        while not block & 1 and at < len(stored):
            block = int.from_bytes(stored[at : at + 3], "little")
            at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
        if head & 0b1011 or at + 4 * (head >> 2 & 1) != len(stored):
            raise ValueError
    decompressed: bytes = pa.decompress(stored, size, _CODECS[codec], asbytes=True)
    return decompressed


class _Chunk:
    """The pages of a column in a row group.

    Parameters
    ----------
    content : bytes
        Of the file.
    described : dict
        What the footer says of them.
    column : pyarrow.parquet.ColumnSchema
    """

    def __init__(self, content: bytes, described: _Struct, column: Any) -> None:
        self.content, self.described, self.column = content, described, column
        self.meta: _Struct = described[3, _STRUCT]
        self.first = self.meta[9, _LONG]
        self.start = self.meta.get((11, _LONG), self.first)
        self.end = self.start + self.meta[7, _LONG]
        self.type = _TYPES.index(column.physical_type)
        self.levels = [
            np.zeros(top + 1, np.int64)
            for top in (column.max_repetition_level, column.max_definition_level)
        ]
        self.dictionary, self.used = np.empty(0, np.uint8), np.empty(0, np.int64)
        self.plain_size = self.text_size = self.values = 0
        self.kinds = Counter[tuple[int, int]]()

    def walk(self, rows: int) -> None:
        """Walk the pages, and compare what the footer says of them."""
        position = self.start
        self._require(position >= len(MAGIC), "footer")
        while position < self.end:
            position = self._walk_page(position)
        self._require((self.used > 0).all(), "dictionary")
        self._read_plain(self.dictionary, 0, self.used)
        meta = self.meta
        encodings, pages = meta[2, _LIST][1], meta[13, _LIST][1]
        known = [*{_PLAIN, _RLE, *(encoding for _, encoding in self.kinds)}]
        # The plain one may stand there twice where a dictionary had too many entries.
        twice = [_PLAIN] * ({(2, _PLAIN), (0, _PLAIN)} <= self.kinds.keys())
        self._require(sorted(encodings) in (sorted(known), sorted(known + twice)), "footer")
        listed = [((one[1, _INT], one[2, _INT]), one[3, _INT]) for one in pages]
        self._require(sorted(listed) == sorted(self.kinds.items()), "footer")
        numbers = {(key, _INT) for key in (1, 2, 3)}
        self._require(all(one.keys() == numbers for one in pages), "footer")
        derived = {
            (1, _INT): self.type,
            (2, _LIST): (_INT, encodings),
            (3, _LIST): (_TEXT, meta[3, _LIST][1]),
            (4, _INT): meta[4, _INT],
            (5, _LONG): self.values,
            (6, _LONG): self.plain_size,
            (7, _LONG): position - self.start,
            (9, _LONG): self.first,
            (13, _LIST): (_STRUCT, pages),
        }
        for key in ((11, _LONG), (16, _STRUCT)):
            derived |= {key: meta[key]} if key in meta else {}
        path = b".".join(meta[3, _LIST][1]).decode()
        self._require(meta == derived and path == self.column.path, "footer")
        self._require(rows == self.levels[0][0], "footer")
        places = (0, self.start, self.first, self.end)
        derived = {(2, _LONG): self.described[2, _LONG], (3, _STRUCT): meta}
        self._require(self.described == derived and derived[2, _LONG] in places, "footer")
        self._compare_sizes(meta.get((16, _STRUCT), {}))

    def _walk_page(self, position: int) -> int:
        """Walk the page that begins there, and return where it ends."""
        reader = _Compact(self.content, position)
        header, body = reader.struct(), reader.at
        size, stored = header[2, _INT], self.content[body : body + header[3, _INT]]
        end = body + len(stored)
        page = np.frombuffer(_decompress(stored, self.meta[4, _INT], size), np.uint8)
        if position < self.first:
            kind, encoding, number = 2, _PLAIN, header[7, _STRUCT][1, _INT]
            said = {(7, _STRUCT): {(1, _INT): number, (2, _INT): _PLAIN, (3, _TRUE): False}}
            # No value takes less than a byte.
            self._require(end == self.first and 0 <= number <= len(page), "dictionary")
            self.dictionary, self.used = page, np.zeros(number, np.int64)
        else:
            kind, described = 0, header[5, _STRUCT]
            encoding, number = described[2, _INT], described[1, _INT]
            # Statistics, of which there are none; not all versions of Arrow say that.
            described.setdefault((5, _STRUCT), {})
            levels = {(3, _INT): _RLE, (4, _INT): _RLE, (5, _STRUCT): {}}
            said = {(5, _STRUCT): {(1, _INT): number, (2, _INT): encoding, **levels}}
            self._read_page(page, number, encoding)
            self.values += number
        sizes = {(1, _INT): kind, (2, _INT): len(page), (3, _INT): len(stored)}
        self._require(header == sizes | said, "page header")
        self.kinds[kind, encoding] += 1
        self.plain_size += size + body - position
        return end

    def _read_page(self, page: npt.NDArray[np.uint8], number: int, encoding: int) -> None:
        """Count the levels and the entries of the dictionary of a page, up to its last byte."""
        start, before = 0, self.levels[1][-1]
        for counts in self.levels:
            if len(counts) == 1:
                counts[0] += number
                continue
            end = start + 4 + int.from_bytes(page[start : start + 4].tobytes(), "little")
            width = (len(counts) - 1).bit_length()
            self._require(count_runs(page, start + 4, width, number, counts) == end, "pages")
            start = end
        there = int(self.levels[1][-1] - before)
        if encoding == _PLAIN:
            self._require(there <= 8 * len(page), "pages")
            self._read_plain(page, start, np.ones(there, np.int64))
            return
        self._require(encoding == _RLE_DICTIONARY, "encoding")
        width, entries = int(page[start]), len(self.used)
        end = count_runs(page, start + 1, width, there, self.used) if there else start + 1
        widest = entries if entries < 2 else (entries - 1).bit_length()
        self._require(width <= widest and end == len(page), "pages")

    def _read_plain(
        self, page: npt.NDArray[np.uint8], start: int, counts: npt.NDArray[np.int64]
    ) -> None:
        """Look for the end of plain values, and sum up the bytes of texts as often as they are."""
        size = len(page) - start
        if self.type == _BYTES:
            texts = sum_texts(page, start, counts)
            self._require(texts >= 0, "pages")
            self.text_size += texts
        elif self.type == _BOOLEAN:
            bits = np.unpackbits(page[start:], bitorder="little")
            whole = size == -(-len(counts) // 8)
            self._require(whole and not bits[len(counts) :].any(), "pages")
        else:
            width = _WIDTHS.get(self.type, self.column.length)
            self._require(size == width * len(counts), "pages")

    def _compare_sizes(self, found: Mapping[tuple[int, int], Any]) -> None:
        """Compare counts of bytes and levels, which not all versions of Arrow write."""
        known: dict[tuple[int, int], Any] = {
            (place, _LIST): [(_LONG, counts.tolist()), (_LONG, [])]
            for place, counts in zip((2, 3), self.levels, strict=True)
        }
        known[1, _LONG] = [self.text_size] * (self.type == _BYTES)
        self._require(all(one in known.get(key, ()) for key, one in found.items()), "sizes")

    def _require(self, holds: object, part: str) -> None:
        _require(holds, f"{part} of {self.column.path}")
