"""The form of a CSV file, recognized by its first bytes."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from dataclasses import dataclass

from anonspark.core.recognition.values import is_number

_DELIMITERS = (",", ";", "\t", "|")
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_RECORDS = 200


@dataclass(frozen=True)
class CsvForm:
    """How a CSV file is read.

    Parameters
    ----------
    options : dict of str to str
        Of the data source ``csv``.
    notes : list of str
        What was recognized, for a person.
    """

    options: dict[str, str]
    notes: list[str]


def recognize_csv(head: bytes, *, complete: bool) -> CsvForm:
    """Recognize encoding, delimiter, header and quotes.

    Parameters
    ----------
    head : bytes
        The first of the file, unpacked.
    complete : bool
        Whether that is all of it.

    Returns
    -------
    CsvForm
    """
    options: dict[str, str] = {}
    text, encoding = _decoded(head)
    if encoding != "UTF-8":
        options["encoding"] = encoding
    lines = text.splitlines(keepends=True)
    if not complete and len(lines) > 1:
        lines = lines[:-1]
    delimiter = _delimiter(lines)
    if delimiter != ",":
        options["sep"] = delimiter
    if '""' in text and any(f'{delimiter}"' in line or line[0] == '"' for line in lines if line):
        # Quotes are doubled inside of values.
        options["escape"] = '"'
    records = list(csv.reader(lines[: _RECORDS + 1], delimiter=delimiter))
    header = _has_header([record for record in records if record])
    options["header"] = "true" if header else "false"
    notes = [
        f"encoding {encoding}, fields divided by {_NAMES[delimiter]}, "
        + ("a header in the first line" if header else "no header: columns are _c0, _c1, ...")
    ]
    return CsvForm(options, notes)


def _decoded(head: bytes) -> tuple[str, str]:
    for mark, name in ((codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16")):
        if head.startswith(mark):
            return head.decode("utf-16", errors="ignore"), name
    try:
        # The last character may be cut.
        return codecs.getincrementaldecoder("utf-8-sig")().decode(head), "UTF-8"
    except UnicodeDecodeError:
        return head.decode("latin-1"), "ISO-8859-1"


def _delimiter(lines: list[str]) -> str:
    """Return the delimiter by which most of the first records have equally many fields."""
    best = (0.0, 0, ",")
    for delimiter in _DELIMITERS:
        sizes = [len(one) for one in csv.reader(lines[:_RECORDS], delimiter=delimiter) if one]
        if not sizes:
            continue
        fields, often = Counter(sizes).most_common(1)[0]
        if fields > 1 and (often / len(sizes), fields) > best[:2]:
            best = (often / len(sizes), fields, delimiter)
    return best[2]


def _has_header(records: list[list[str]]) -> bool:
    """Return whether the first record is none like the others."""
    if not records:
        return False
    first, others = [cell.strip() for cell in records[0]], records[1:]
    if not all(first) or len(set(first)) < len(first) or any(map(is_number, first)):
        return False
    # A name that is a value of its own column, too, is one of these.
    return not any(
        len(record) == len(first) and record[place].strip() == name
        for place, name in enumerate(first)
        for record in others
    )
