"""Hierarchies from CSV files: in each line a value, then its groups from fine to coarse.

The layout is that of other anonymization tools::

    Bachelors;Undergraduate;Higher education;*
    Masters;Graduate;Higher education;*

There is no header. Cells are trimmed, fields may be quoted, blank lines are ignored. The columns
are divided by a semicolon, comma, tab or vertical bar, whichever fits the lines best.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.errors import ConfigurationError

BLANKS = " \t\n\r\v\f"
"""Characters that are removed around cells, and around the values that are looked up."""

_DELIMITERS = ";,\t|"
_MOST_PROBLEMS = 10
_END = "\0"


class _Row(NamedTuple):
    """A line of the file: its number and its trimmed cells."""

    line: int
    cells: list[str]


class _Problem(NamedTuple):
    """A problem of a line. The words name no value and no label."""

    line: int
    text: str


def parse_hierarchy(text: str, where: str) -> Hierarchy:
    r"""Read a hierarchy from the text of a CSV file. A byte order mark in front is ignored.

    ``where`` names the configuration key and the file in messages. Raises ConfigurationError with
    all problems, line by line: at most 10 lines, the others are counted.

    >>> parse_hierarchy("flu;viral;*\nburn;wound;*\n", "hierarchy").leaves
    ('flu', 'burn')
    """
    text = text.removeprefix("\ufeff")
    delimiter = _delimiter(text)
    if delimiter is None:
        raise ConfigurationError(
            f"{where}: found one column or none. Expected in each line a value and its groups from "
            "fine to coarse, divided by a semicolon, comma, tab or vertical bar"
        )
    # A line of our own behind the last one shows whether a quoted field swallows it.
    *rows, last = _rows(f"{text}\n{_END}", delimiter)
    if last.cells != [_END]:
        raise ConfigurationError(
            f"{where}: line {last.line}: a quoted field does not end. Close the quotes, and double "
            "those inside"
        )
    columns = _usual_columns(rows)
    problems = [problem for row in rows for problem in _gaps(row, columns)]
    gaps = {problem.line for problem in problems}
    sound = [row for row in rows if row.line not in gaps]
    problems += [*_repetitions(sound), *_second_parents(sound), *_second_roots(sound)]
    # Only a tree has sets of values below its labels.
    if not problems:
        problems += _ambiguous_labels(sound)
    if problems:
        raise ConfigurationError(*_listed(problems, where))
    return Hierarchy.from_rows([row.cells for row in sound])


def hierarchy_digest(text: str) -> str:
    r"""Return the SHA-256 of a hierarchy file, whatever its line ends and byte order mark.

    It is the digest of the file itself if that is UTF-8 with line feeds.

    >>> hierarchy_digest("flu;*\r\n") == hierarchy_digest("flu;*\n")
    True
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _rows(text: str, delimiter: str) -> Iterable[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    # Any field may be as long as the file, such as one whose quotes are not closed.
    limit = csv.field_size_limit(max(len(text), 1))
    try:
        line = 1
        for record in reader:
            cells = [cell.strip(BLANKS) for cell in record]
            if cells not in ([], [""]):
                yield _Row(line, cells)
            line = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _delimiter(text: str) -> str | None:
    r"""Return the sign that cuts most lines into the same number of columns, or None.

    The number is at least two. Of signs that do equally well, one that makes the last column
    constant is preferred, and best an asterisk.

    >>> _delimiter("a, b;x;*\nc;y;*\n")
    ';'
    """
    best: tuple[int, int] = (0, 0)
    best_delimiter = None
    for delimiter in _DELIMITERS:
        rows = [row for row in _rows(text, delimiter) if len(row.cells) > 1]
        columns = _usual_columns(rows)
        fitting = [row.cells for row in rows if len(row.cells) == columns]
        roots = {cells[-1] for cells in fitting}
        score = (len(fitting), (len(roots) == 1) + (roots == {"*"}))
        if score > best:
            best, best_delimiter = score, delimiter
    return best_delimiter


def _usual_columns(rows: Sequence[_Row]) -> int:
    """Return the number of columns of most rows, on a tie that of the earliest."""
    counts = Counter(len(row.cells) for row in rows)
    return counts.most_common(1)[0][0] if counts else 0


def _gaps(row: _Row, columns: int) -> Iterable[_Problem]:
    if len(row.cells) != columns:
        yield _Problem(
            row.line,
            f"found {len(row.cells)} columns. Expected {columns}, as in most lines. Give each "
            "value a label at every level",
        )
    elif "" in row.cells:
        yield _Problem(
            row.line,
            f"column {row.cells.index('') + 1} is empty. Expected a label at every level. Fill "
            "the gap, if need be with the label next to it",
        )


def _repetitions(rows: Sequence[_Row]) -> Iterable[_Problem]:
    first: dict[str, _Row] = {}
    for row in rows:
        earlier = first.setdefault(row.cells[0], row)
        if earlier is not row:
            how = "the same" if earlier.cells == row.cells else "other"
            yield _Problem(
                row.line,
                f"lists the value of line {earlier.line} again, with {how} groups. Expected each "
                "value once. Remove one of the two lines",
            )


def _second_parents(rows: Sequence[_Row]) -> Iterable[_Problem]:
    first: dict[tuple[int, str], _Row] = {}
    for row in rows:
        # The last column holds the root; whether it is one is checked apart.
        for level in range(1, len(row.cells) - 2):
            earlier = first.setdefault((level, row.cells[level]), row)
            if earlier.cells[level + 1] != row.cells[level + 1]:
                yield _Problem(
                    row.line,
                    f"the group of column {level + 1} lies in another group of column {level + 2} "
                    f"than in line {earlier.line}. Expected one group above each. Correct one of "
                    "the two lines, or give the groups labels of their own",
                )


def _second_roots(rows: Sequence[_Row]) -> Iterable[_Problem]:
    for row in rows:
        if row.cells[-1] != rows[0].cells[-1]:
            yield _Problem(
                row.line,
                f"the last column holds another label than in line {rows[0].line}. Expected one "
                "label for everything, such as *. Add a last column with it",
            )


def _ambiguous_labels(rows: Sequence[_Row]) -> Iterable[_Problem]:
    """Find labels that name different sets of values at different levels.

    A label in the release must have one meaning. It keeps it if a group of one value has the name
    of the value, or a group has the name of the only group in it.
    """
    meanings: dict[str, dict[int, list[_Row]]] = {}
    for row in rows:
        for level, label in enumerate(row.cells):
            meanings.setdefault(label, {}).setdefault(level, []).append(row)
    for levels in meanings.values():
        (level, below), *others = levels.items() if len(levels) > 1 else [(0, [])]
        for other_level, other_below in others:
            # Rows are unique by their value and stand in the order of the file.
            if [row.line for row in other_below] == [row.line for row in below]:
                continue
            yield _Problem(
                other_below[0].line,
                f"the label of column {other_level + 1} stands in column {level + 1} of line "
                f"{below[0].line} for other values. Expected one meaning for each label. Give one "
                "of the two another label",
            )


def _listed(problems: Sequence[_Problem], where: str) -> list[str]:
    ordered = sorted(problems, key=lambda problem: problem.line)
    lines = [f"{where}: line {line}: {text}" for line, text in ordered[:_MOST_PROBLEMS]]
    more = len(ordered) - _MOST_PROBLEMS
    if more > 0:
        lines.append(f"{where}: {more:,} more problems of this kind. Correct the file")
    return lines
