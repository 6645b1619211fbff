"""What commands print for programs to read."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal

import typer

from anonspark.foreign_text import json_text, visible_lines
from anonspark.redaction import redact_values


def print_json(value: object) -> None:
    """Print a value as JSON, without credentials."""

    def plain(other: object) -> object:
        if isinstance(other, Decimal):
            return int(other)
        if isinstance(other, date):
            return other.isoformat()
        return str(other)

    document = json.loads(json.dumps(value, default=plain))
    typer.echo(json_text(redact_values(document), indent=2))


def print_csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Print rows as CSV with a header. None is empty, and truth values are as in JSON."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = (row[name] for name in columns)
        writer.writerow([str(one).lower() if isinstance(one, bool) else one for one in cells])
    print_text(text.getvalue())


def print_text(text: str) -> None:
    """Print lines that a program gets as they are."""
    typer.echo(visible_lines(text) if sys.stdout.isatty() else text, nl=False)
