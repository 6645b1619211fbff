"""Every byte of a Parquet file: a page of values, or the footer that says where the pages are.

Readers look at what the footer names, and at the values that they ask for. So this walks the whole
file: what lies between pages, behind the values of a page or under keys that no reader knows,
values of a dictionary that no record has, and statistics that are not those of the values are all
seen. It decodes no record.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.kernels.parquet_pages import count_runs, measure_texts

MAGIC = b"PAR1"

# Fields of the format's structures by their numbers, as the format's parquet.thrift has them; None
# for a value, a list of one for a list. Those that hold keys, texts or places of files, and those
# of encryption and of bloom filters, are left out.
_STATISTICS = dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 8))
_UNIT: dict[int, Any] = {1: {}, 2: {}, 3: {}}
_LOGICAL: dict[int, Any] = {
    **{number: {} for number in (1, 2, 3, 4, 6, 11, 12, 13, 14, 15)},
    5: {1: None, 2: None},
    7: {1: None, 2: _UNIT},
    8: {1: None, 2: _UNIT},
    10: {1: None, 2: None},
    16: {1: None},
}
_SIZES = {1: None, 2: [None], 3: [None]}
_COLUMN = {
    **dict.fromkeys((1, 4, 5, 6, 7, 9, 11)),
    **{2: [None], 3: [None], 12: _STATISTICS, 13: [dict.fromkeys((1, 2, 3))], 16: _SIZES},
}
_CHUNK = {2: None, 3: _COLUMN, **dict.fromkeys((4, 5, 6, 7))}
_GROUP = {1: [_CHUNK], **dict.fromkeys((2, 3, 5, 6, 7))}
_ELEMENT = {**dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 8)), 10: _LOGICAL}
_FILE: dict[int, Any] = {
    **{1: None, 2: [_ELEMENT], 3: None, 4: [_GROUP], 5: [dict.fromkeys((1, 2))], 6: None},
    7: [{1: {}}],
}
_PAGE = {
    **dict.fromkeys((1, 2, 3, 4)),
    5: {**dict.fromkeys((1, 2, 3, 4)), 5: _STATISTICS},
    7: dict.fromkeys((1, 2, 3)),
}
_COLUMN_INDEX = {1: [None], 2: [None], 3: [None], 4: None, 5: [None], 6: [None], 7: [None]}
_OFFSET_INDEX = {1: [dict.fromkeys((1, 2, 3))], 2: [None]}

_PLAIN, _RLE, _BIT_PACKED, _DICTIONARIES = 0, 3, 4, (2, 8)
_CODECS = {1: "snappy", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_BOOLEAN, _INT96, _BYTES, _FIXED = 0, 3, 6, 7
_DECIMAL = 5
_NUMBERS = {1: "<i4", 2: "<i8", 4: "<f4", 5: "<f8"}
_NANS = {4: struct.pack("<f", math.nan), 5: struct.pack("<d", math.nan)}
_ROOTS = (b"schema", b"spark_schema")
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


class _OddPartError(Exception):
    """A part of a file that holds more than, or other than, values; named in words."""


def find_odd_part(content: bytes, schema: Any) -> str | None:
    """Return the first part of a file that is neither its values nor what is known of them.

    Parameters
    ----------
    content : bytes
        Of the whole file.
    schema : pyarrow.parquet.ParquetSchema
        Of its footer, which pyarrow can read.

    Returns
    -------
    str or None
        In words, without a value; None where every byte is one of a page or the footer.
    """
    try:
        _walk(content, [schema.column(place) for place in range(len(schema))])
    except _OddPartError as odd:
        return str(odd)
    except Exception:  # noqa: BLE001 - whatever damaged bytes lead to
        return "pages or a footer that cannot be read"
    return None


def _walk(content: bytes, columns: Sequence[Any]) -> None:
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = _read(content, start, len(content) - 8, _FILE, "footer")
    covered = [(0, 4), (start, len(content))]
    for element in footer[2]:
        # Lengths and digits belong to types that have them.
        _require(2 not in element or element[1] == _FIXED, "footer")
        _require(not element.keys() & {7, 8} or element.get(6) == _DECIMAL, "footer")
    rows = 0
    for number, group in enumerate(footer.get(4, ())):
        chunks = [
            _Chunk(content, chunk, column) for chunk, column in zip(group[1], columns, strict=True)
        ]
        for chunk in chunks:
            covered += [chunk.place, *chunk.walk(group[3])]
        rows += group[3]
        compressed = sum(chunk.meta[7] for chunk in chunks)
        _require(group[2] == sum(chunk.meta[6] for chunk in chunks), "footer")
        _require(group.get(6, compressed) == compressed, "footer")
        _require(group.get(5, chunks[0].place[0]) == chunks[0].place[0], "footer")
        _require(group.get(7, number) == number, "footer")
    names = [one[1] for one in footer.get(5, ())]
    _require(len(set(names)) == len(names) and footer[2][0][4] in _ROOTS, "footer")
    _require(footer[3] == rows and footer[1] in (1, 2) and content.startswith(MAGIC), "footer")
    for (_, end), (following, _) in pairwise(sorted(covered)):
        # Our files have the magic bytes behind each row group.
        _require(content[end:following] in (b"", MAGIC) and end <= following, "between its pages")


def _require(holds: object, part: str) -> None:
    if not holds:
        raise _OddPartError(part)


@dataclass
class _Compact:
    """Reads structures of Thrift's compact protocol, each number in as few bytes as it needs.

    Parameters
    ----------
    data : bytes
    at : int
        Where the next one begins.
    """

    data: bytes
    at: int

    def struct(self) -> dict[int, Any]:
        """Return the fields of a structure by their numbers."""
        fields: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._signed()
            if number in fields:
                raise ValueError
            fields[number] = self._value(kind & 15)
        return fields

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _number(self) -> int:
        number = shift = 0
        while (byte := self._byte()) > 127:
            number |= (byte & 127) << shift
            shift += 7
        if shift > 63 or (shift and not byte):
            raise ValueError
        return number | byte << shift

    def _signed(self) -> int:
        number = self._number()
        return number >> 1 ^ -(number & 1)

    def _value(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 8:
            size = self._number()
            self.at += size
            return self.data[self.at - size : self.at]
        if kind == 9:
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._number()
            if head & 15 in (1, 2):
                return [self._byte() == 1 for _ in range(size)]
            return [self._value(head & 15) for _ in range(size)]
        if kind == 12:
            return self.struct()
        raise ValueError


def _read(data: bytes, start: int, end: int, fields: Mapping[int, Any], odd: str) -> dict[int, Any]:
    """Read a structure that ends there and has no other fields."""
    reader = _Compact(data, start)
    found = reader.struct()
    _require(reader.at == end, odd)
    _check_fields(found, fields, odd)
    return found


def _check_fields(found: Any, known: Any, odd: str) -> None:
    if isinstance(known, list):
        for one in found:
            _check_fields(one, known[0], odd)
    elif known is None:
        _require(not isinstance(found, dict | list), odd)
    else:
        _require(found.keys() <= known.keys(), odd)
        for number, value in found.items():
            _check_fields(value, known[number], odd)


def _decompress(stored: bytes, codec: int, size: int) -> bytes:
    """Decompress a page, and refuse what a decompressor passes over: names, or what is behind."""
    if codec == 0 or not (stored or size):
        return stored
    if codec == 5:
        # Blocks as Hadoop frames them.
        blocks, at = [], 0
        while at < len(stored):
            plain, taken = struct.unpack_from(">II", stored, at)
            blocks.append(
                pa.decompress(stored[at + 8 : at + 8 + taken], plain, "lz4_raw", asbytes=True)
            )
            at += 8 + taken
        return b"".join(blocks)
    if codec == 2:
        decompressor = zlib.decompressobj(31)
        whole = decompressor.decompress(stored)
        if not stored.startswith(b"\x1f\x8b\x08" + bytes(5)) or decompressor.unused_data:
            raise ValueError
        return whole if decompressor.eof else b""
    if codec == 6:
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


@dataclass
class _Values:
    """What is known of the values of some pages.

    Parameters
    ----------
    nulls : int64 ndarray
        How many there are, in the ways that versions of pyarrow count them: below lists an empty
        list, or one that is null, is none to some.
    smallest, largest : object
        As the column's statistics compare them; None where there is none.
    levels : sequence of int64 ndarray
        How often each repetition and each definition level is there.
    """

    nulls: Any = field(default_factory=lambda: np.zeros(1, np.int64))
    text_bytes: int = 0
    smallest: Any = None
    largest: Any = None
    levels: Any = ()

    def add(self, other: _Values) -> None:
        """Take in those of another page."""
        self.nulls = self.nulls + other.nulls
        self.text_bytes += other.text_bytes
        lows = [one for one in (self.smallest, other.smallest) if one is not None]
        highs = [one for one in (self.largest, other.largest) if one is not None]
        self.smallest, self.largest = min(lows, default=None), max(highs, default=None)


@dataclass
class _Chunk:
    """The pages of a column in a row group.

    Parameters
    ----------
    content : bytes
        Of the file.
    described : dict
        Of the footer.
    column : pyarrow.parquet.ColumnSchema
    """

    content: bytes
    described: Mapping[int, Any]
    column: Any
    all: _Values = field(default_factory=_Values)

    def __post_init__(self) -> None:
        self.meta: dict[int, Any] = self.described[3]
        self.name = self.column.path
        start = min((at for at in (self.meta.get(11), self.meta[9]) if at), default=0)
        self.place = start, start + self.meta[7]
        _require(start >= 0 and self.meta[7] >= 0, self._odd("footer"))
        self.type = _TYPES.index(self.column.physical_type)
        self.is_signed = self.type in (_BYTES, _FIXED) and self.column.converted_type == "DECIMAL"
        self.dictionary = np.empty(0, np.uint8)
        self.used = np.empty(0, np.int64)
        self.levels = [
            np.zeros(top + 1, np.int64)
            for top in (self.column.max_repetition_level, self.column.max_definition_level)
        ]

    def walk(self, rows: int) -> list[tuple[int, int]]:
        """Walk the pages, and return where the indexes of the chunk lie."""
        position, end = self.place
        places, values, kinds = [], [], Counter[tuple[int, int]]()
        plain = first = total = 0
        while position < end:
            reader = _Compact(self.content, position)
            header, body = reader.struct(), reader.at
            _check_fields(header, _PAGE, self._odd("page header"))
            following = body + header[3]
            _require(body <= following <= end, self._odd("pages"))
            stored = self.content[body:following]
            crc = zlib.crc32(stored)
            _require(header.get(4, crc) in (crc, crc - 2**32), self._odd("checksum of a page"))
            plain += header[2] + body - position
            is_dictionary = header[1] == 2
            _require(
                header.keys() - {4} == {1, 2, 3, 7 if is_dictionary else 5}, self._odd("pages")
            )
            if is_dictionary:
                _require(position == self.place[0], self._odd("pages"))
                self._read_dictionary(header, stored)
                kinds[2, header[7][2]] += 1
            else:
                _require(header[1] == 0, self._odd("pages"))
                number, encoding, found = self._read_page(header, stored)
                kinds[header[1], encoding] += 1
                places.append((position, following - position, first))
                values.append(found)
                self.all.add(found)
                total += number
                first = int(self.levels[0][0])
            position = following
        odd = self._odd("footer")
        _require(self.meta[1] == self.type and b".".join(self.meta[3]).decode() == self.name, odd)
        _require(position == end and total == self.meta[5] and plain == self.meta[6], odd)
        _require(first == rows and (self.used > 0).all(), self._odd("dictionary"))
        if places:
            _require(self.meta[9] == places[0][0], odd)
        _require(set(self.meta[2]) <= {e for _, e in kinds} | {_PLAIN, _RLE, _BIT_PACKED}, odd)
        listed = Counter({(one[1], one[2]): one[3] for one in self.meta.get(13, ())})
        _require(not listed or (listed == kinds and len(listed) == len(self.meta[13])), odd)
        _require(self.described[2] in (0, self.place[0], self.meta[9], self.place[1]), odd)
        self._check_statistics(self.meta.get(12, {}), self.all)
        self._check_sizes(self.meta.get(16, {}))
        return self._check_indexes(places, values)

    def _read_dictionary(self, header: Mapping[int, Any], stored: bytes) -> None:
        self.dictionary = self._decompressed(stored, header[2])
        # No value takes less than a bit.
        _require(header[7][1] <= 8 * len(self.dictionary), self._odd("dictionary"))
        _require(header[7][2] in (_PLAIN, 2), self._odd("page header"))
        self.used = np.zeros(header[7][1], np.int64)
        everything = np.ones_like(self.used)
        _, end = self._measure(self.dictionary, 0, everything)
        _require(end == len(self.dictionary), self._odd("dictionary"))

    def _read_page(self, header: Mapping[int, Any], stored: bytes) -> tuple[int, int, _Values]:
        """Return the values with nulls, their encoding, and what is known of them."""
        described = header[5]
        number, encoding = described[1], described[2]
        page = self._decompressed(stored, header[2])
        before = [counts.copy() for counts in self.levels]
        _require({described[3], described[4]} <= {_RLE, _BIT_PACKED}, self._odd("page header"))
        start = 0
        for counts in self.levels:
            if len(counts) == 1:
                counts[0] += number
            else:
                start = self._count_runs(page, start, number, counts)
        levels = [after - counts for after, counts in zip(self.levels, before, strict=True)]
        there = int(levels[1][-1])
        if encoding == _PLAIN:
            _require(there <= 8 * len(page), self._odd("pages"))
            found, end = self._measure(page, start, np.ones(there, np.int64))
        elif encoding == _RLE and self.type == _BOOLEAN:
            counts = np.zeros(2, np.int64)
            end = self._count_runs(page, start, there, counts)
            found = self._of_numbers(np.flatnonzero(counts))
        else:
            _require(encoding in _DICTIONARIES, self._odd("encoding"))
            counts = np.zeros_like(self.used)
            width = int(page[start]) if start < len(page) else 0
            end = count_runs(page, start + 1, width, there, counts)
            _require(width <= 32, self._odd("pages"))
            if not there:
                end = min(start + 1, len(page))
            self.used += counts
            found, _ = self._measure(self.dictionary, 0, counts)
        _require(end == len(page), self._odd("pages"))
        ways = self.column.max_definition_level if len(self.levels[0]) > 1 else 1
        found.levels = levels
        found.nulls = np.array([levels[1][way:-1].sum() for way in range(ways)])
        self._check_statistics(described.get(5, {}), found)
        return number, encoding, found

    def _count_runs(
        self, page: npt.NDArray[np.uint8], start: int, number: int, counts: npt.NDArray[np.int64]
    ) -> int:
        """Count levels or truth values behind the bytes that they take; return where they end."""
        end = start + 4 + int.from_bytes(page[start : start + 4].tobytes(), "little")
        width = (len(counts) - 1).bit_length()
        _require(count_runs(page, start + 4, width, number, counts) == end, self._odd("pages"))
        return end

    def _odd(self, part: str) -> str:
        return f"{part} of {self.name}"

    def _measure(
        self, page: npt.NDArray[np.uint8], start: int, counts: npt.NDArray[np.int64]
    ) -> tuple[_Values, int]:
        """Look at plain values, of which some may not be there; return where they end, too."""
        if self.type == _BOOLEAN:
            end = start + -(-len(counts) // 8)
            bits = np.unpackbits(page[start:end], bitorder="little")
            _require(len(bits) >= len(counts) and not bits[len(counts) :].any(), self._odd("pages"))
            return self._of_numbers(bits[: len(counts)]), end
        if self.type in _NUMBERS:
            kind = np.dtype(_NUMBERS[self.type])
            end = start + len(counts) * kind.itemsize
            numbers = np.frombuffer(page[start:end].tobytes(), kind)
            _require(len(numbers) == len(counts), self._odd("pages"))
            return self._of_numbers(numbers[counts > 0]), end
        width = {_BYTES: -1, _INT96: 12}.get(self.type, self.column.length)
        measured = np.zeros(5, np.int64)
        end = measure_texts(page, start, width, self.is_signed, counts, measured)
        low, high = (page[slice(*measured[at : at + 2])].tobytes() for at in (0, 2))
        if self.type == _INT96 or not counts.any():
            return _Values(), end
        return _Values(0, int(measured[4]), self._value(low), self._value(high)), end

    def _of_numbers(self, numbers: npt.NDArray[Any]) -> _Values:
        if self.column.converted_type.startswith("UINT"):
            numbers = numbers.view(numbers.dtype.str.replace("i", "u"))
        if numbers.dtype.kind == "f":
            numbers = numbers[~np.isnan(numbers)]
        if not len(numbers):
            return _Values()
        return _Values(0, 0, numbers.min().item(), numbers.max().item())

    def _value(self, stored: bytes) -> Any:
        """Return a value of statistics, or of texts, so that it can be compared."""
        if self.type in (_BYTES, _FIXED):
            return int.from_bytes(stored, "big", signed=True) if self.is_signed else stored
        kind = _NUMBERS.get(self.type, "u1")
        if self.column.converted_type.startswith("UINT"):
            kind = kind.replace("i", "u")
        (value,) = np.frombuffer(stored, kind).tolist()
        return value

    def _check_statistics(self, found: Mapping[int, Any], values: _Values) -> None:
        odd = self._odd("statistics")
        _require((3 not in found or found[3] in values.nulls) and 4 not in found, odd)
        for key, value in found.items():
            if key in (1, 2, 5, 6):
                self._check_bound(value, values, key in (1, 5), odd)

    def _check_bound(self, stored: bytes, values: _Values, is_largest: bool, odd: str) -> None:
        bound = values.largest if is_largest else values.smallest
        if self.type in _NANS and stored == _NANS[self.type]:
            # As Spark's writer has it, and readers pass over it.
            return
        if isinstance(bound, bytes) and len(stored) < len(bound):
            # Spark's writer cuts long texts off; the last letter is one more in a largest one.
            cut = stored[:-4] if is_largest else stored
            _require(len(stored) > 8 and bound.startswith(cut), odd)
            _require((stored > bound) == is_largest, odd)
        else:
            _require(bound is not None and self._value(stored) == bound, odd)

    def _check_sizes(self, found: Mapping[int, Any]) -> None:
        odd = self._odd("sizes")
        _require(found.get(1, self.all.text_bytes) == self.all.text_bytes, odd)
        for key, counts in zip((2, 3), self.levels, strict=True):
            _require(found.get(key, []) in ([], counts.tolist()), odd)

    def _check_indexes(
        self, places: list[tuple[int, int, int]], values: list[_Values]
    ) -> list[tuple[int, int]]:
        odd = self._odd("index")
        covered = []
        for key, fields in ((6, _COLUMN_INDEX), (4, _OFFSET_INDEX)):
            if key not in self.described:
                _require(key + 1 not in self.described, odd)
                continue
            start = self.described[key]
            end = start + self.described[key + 1]
            covered.append((start, end))
            index = _read(self.content, start, end, fields, odd)
            if key == 4:
                _require([(one[1], one[2], one[3]) for one in index[1]] == places, odd)
                _require(index.get(2, []) in ([], [one.text_bytes for one in values]), odd)
                continue
            empty = [one.smallest is None for one in values]
            _require(index[1] == empty and index[4] in (0, 1, 2), odd)
            nulls = zip(index[5], values, strict=True) if index.get(5) else ()
            _require(all(number in one.nulls for number, one in nulls), odd)
            for side, is_largest in ((2, False), (3, True)):
                for stored, one in zip(index[side], values, strict=True):
                    if one.smallest is None:
                        _require(stored == b"", odd)
                    else:
                        self._check_bound(stored, one, is_largest, odd)
            for side in (0, 1):
                counts = np.concatenate([one.levels[side] for one in values])
                _require(index.get(6 + side, []) in ([], counts.tolist()), odd)
        return covered

    def _decompressed(self, stored: bytes, size: int) -> npt.NDArray[np.uint8]:
        page = _decompress(stored, self.meta[4], size)
        _require(len(page) == size, self._odd("pages"))
        return np.frombuffer(page, np.uint8)
