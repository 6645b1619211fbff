"""Define the ``input`` section: where the table comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)

from anonspark.config.problems import in_words
from anonspark.config.section import NonEmptyText, Section

MissingPolicy = Literal["drop", "error", "category"]
MissingColumns = Literal["error", "null"]

_PATH: TypeAdapter[str] = TypeAdapter(NonEmptyText, config=ConfigDict(strict=True))
_PATHS: TypeAdapter[list[str]] = TypeAdapter(
    Annotated[list[NonEmptyText], Field(min_length=1)], config=ConfigDict(strict=True)
)


def _path_or_paths(value: object) -> str | list[str]:
    # Chosen by hand: a union would report each mistake once for every member.
    if isinstance(value, list):
        return _PATHS.validate_python(value)
    return _PATH.validate_python(value)


def _option_text(value: object) -> object:
    """Write a YAML boolean or whole number as Spark options are written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return value


SourceOptions = dict[
    str,
    Annotated[
        str,
        BeforeValidator(_option_text),
        WithJsonSchema({"anyOf": [{"type": t} for t in ("string", "boolean", "integer")]}),
    ],
]
"""Options of a data source, as YAML may write them."""


def _null_as_text(value: object) -> object:
    """Turn what YAML takes for nothing into the word that the file has."""
    return "null" if value is None else value


def _trim(markers: list[str]) -> list[str]:
    # Values are compared trimmed: a marker with blanks around it would never match.
    return list(dict.fromkeys(marker.strip() for marker in markers))


_FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
    ".avro": "avro",
    ".parquet": "parquet",
    # Formats of other programs, whose files are converted first.
    ".dta": "stata",
    **dict.fromkeys((".sav", ".zsav", ".por"), "spss"),
    **dict.fromkeys((".sas7bdat", ".xpt"), "sas"),
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "excel"),
}

COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zstd", ".zip")
"""Ends of the names of compressed files."""


CATALOG_TABLE = "table"
"""Format of a table that is read by its name in a catalog of Spark."""

NOT_IN_FILES = ("jdbc", CATALOG_TABLE)
"""Formats whose path is no path of files."""


def uncompressed(path: str) -> str:
    """Return the name of a file in small letters, without the ending of its compression.

    >>> uncompressed("People.CSV.gz")
    'people.csv'
    """
    name = PurePosixPath(path.rstrip("/")).name.lower()
    return next((name.removesuffix(end) for end in COMPRESSED if name.endswith(end)), name)


def format_of_name(path: str) -> str | None:
    """Return the format by a file's name, compressed or not, or None if it shows none.

    >>> format_of_name("people.csv.gz"), format_of_name("people.yaml")
    ('csv', None)
    """
    return _FORMATS.get(PurePosixPath(uncompressed(path)).suffix)


def format_of_names(paths: Iterable[str]) -> str | None:
    """Return the format by all names, or None if they show several, or one shows none.

    >>> format_of_names(["a.parquet", "b.parquet"])
    'parquet'
    """
    formats = {format_of_name(path) for path in paths}
    return formats.pop() if len(formats) == 1 else None


def take_format_of_names(section: Section, paths: Iterable[str]) -> None:
    """Set the ``format`` of a section by the names of files, if it has none."""
    format_ = None if "format" in section.model_fields_set else format_of_names(paths)
    if format_ is not None:
        # Past the freezing, and so that it does not count as given.
        section.__dict__["format"] = format_


# Without functions, queries and escapes, so that nothing is read but the columns that it names.
_TERM = re.compile(r"\s*([^\W\d]\w*|`[^`]+`)\s*(?:[<>]=?|=)\s*(?:'[^'\\]*'|-?\d+(?:\.\d+)?)\s*")


def columns_of(condition: str | None) -> list[str]:
    """Return the columns that ``input.where`` is about.

    >>> columns_of("day = '2026-11-28' AND `the hour` >= 6")
    ['day', 'the hour']
    """
    return [name.strip("`") for name in _TERM.findall(condition or "")]


def _comparisons(condition: str) -> str:
    if not re.fullmatch(rf"{_TERM.pattern}(?:(?i:and)\b{_TERM.pattern})*", condition):
        raise ValueError(
            f"found {in_words(condition)}. Expected comparisons of columns with texts or numbers, "
            "joined by AND, as in day = '2026-11-28' AND hour >= 6. Correct it"
        )
    return condition


class InputOptions(Section):
    """The source of the table."""

    path: Annotated[
        str | list[str],
        BeforeValidator(_path_or_paths),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {
                        "type": "array",
                        "items": {"type": "string", "minLength": 1},
                        "minItems": 1,
                    },
                ]
            }
        ),
    ]
    """Paths, patterns or Hadoop URIs of the files, one or a list. Or set table, the name of a table
    or view in a Spark catalog."""

    format: NonEmptyText = "parquet"
    """Name of the Spark data source (parquet, csv, orc, json, ...). If you omit it, the file names
    decide."""

    options: SourceOptions = Field(default={})
    """Options of the format, such as header and inferSchema of csv."""

    where: Annotated[str, AfterValidator(_comparisons)] | None = None
    """Condition for the records to read: comparisons joined by AND, such as day = '2026-11-28'.
    Spark reads only partitions and row groups that can match. null: all."""

    missing_markers: Annotated[list[str], AfterValidator(_trim)] = Field(default=["", "?"])
    """Texts that stand for a missing value in a quasi-identifier of any type. Surrounding blanks
    are ignored."""

    missing_columns: Annotated[
        MissingColumns,
        BeforeValidator(_null_as_text),
        WithJsonSchema(
            {"anyOf": [{"enum": ["error", "null"], "type": "string"}, {"type": "null"}]}
        ),
    ] = "error"
    """What to do if some files of the table (Parquet, ORC, Avro) lack an attribute. error refuses
    the table, null reads missing values."""

    _is_settled: bool = PrivateAttr(default=False)

    @model_validator(mode="after")
    def _take_format_of_names(self) -> Self:
        take_format_of_names(self, self.paths)
        return self

    @property
    def says_format(self) -> bool:
        """Return whether the configuration names the format."""
        return "format" in self.model_fields_set

    @property
    def is_settled(self) -> bool:
        """Return whether no option is left to be recognized from the files."""
        return self._is_settled

    def settled(self, recognized: Mapping[str, str]) -> InputOptions:
        """Return a copy with the options, and perhaps format, that its files show."""
        options = dict(recognized)
        update = {"format": options.pop("format")} if "format" in options else {}
        copied = self.model_copy(update={**update, "options": {**self.options, **options}})
        copied._is_settled = True
        return copied

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths, one or more."""
        return (self.path,) if isinstance(self.path, str) else tuple(self.path)

    @property
    def paths_of_files(self) -> list[str]:
        """Return the paths in a file system: none for a database or a catalog."""
        return [] if self.format.lower() in NOT_IN_FILES else list(self.paths)
