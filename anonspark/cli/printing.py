"""What commands print for programs to read."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import typer

from anonspark.redaction import redact_values


def print_json(value: object) -> None:
    """Print a value as JSON, without credentials."""

    def plain(other: object) -> object:
        if isinstance(other, Decimal):
            return int(other)
        if isinstance(other, date):
            return other.isoformat()
        return str(other)

    told = json.loads(json.dumps(value, default=plain))
    typer.echo(json.dumps(redact_values(told), indent=2, ensure_ascii=False))
