"""Define the ``output`` section: the place and form of the release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from anonspark.config.problems import Finding, found
from anonspark.config.section import NonEmptyText, Section

OutputMode = Literal["error", "overwrite"]
OutputStyle = Literal["interval", "bounds", "mean"]

# What cannot be read back as it was written, or moved.
_NO_TYPES = "keeps no types, and does not distinguish missing values from empty ones"
_UNFIT_FORMATS = {
    **dict.fromkeys(("csv", "json", "text", "xml"), _NO_TYPES),
    "iceberg": "names its files by absolute paths, so that a release could not be renamed",
    "jdbc": "has no files, so that a release could not be renamed",
}


class OutputOptions(Section):
    """The place and form of the release."""

    path: NonEmptyText
    """Directory of the release. Any Hadoop URI."""

    mode: OutputMode = "error"
    """If there is something at the path: error refuses, overwrite replaces it."""

    style: OutputStyle = "interval"
    """How generalized values are written: interval as "[17-25]", bounds as two columns <name>_min
    and <name>_max, mean as the mean of the class."""

    format: NonEmptyText = "parquet"
    """Name of the Spark data source that the records are written with: parquet, orc, delta, ... It
    has to keep types and missing values, and to bear a rename of its directory."""

    copies: list[Literal["csv"]] = Field(default=[])
    """Other forms of the records: csv writes them again to the directory copies, for spreadsheets
    and other programs that read no Parquet."""

    file_rows: int | None = Field(default=None, ge=10_000)
    """Records of a file of the release, about. A task holds a whole file in memory. null: 250,000,
    or 64 MiB before compression, and up to four times as many where that makes more than 1,000
    files."""

    pseudonyms: dict[str, NonEmptyText] = Field(default={})
    """An identifier that privacy.unit names, and the column that holds a pseudonym of the person in
    its place, another one in every release: the records of a person then stay together."""

    signing_key: NonEmptyText | None = None
    """Key that signs the manifest: path of a private SSH key of Ed25519, or of its public one if
    the private one is in the agent. null: the release is not signed."""

    def _problems(self) -> Iterator[Finding]:
        why = _UNFIT_FORMATS.get(self.format.lower())
        if why is not None:
            yield Finding(
                ("format",),
                f"found {found(self.format)}, which {why}. Expected parquet, orc or delta. Choose "
                "one. output.copies: [csv] adds another form to Parquet",
            )
        if self.copies and self.format.lower() != "parquet":
            yield Finding(
                ("copies",),
                f"found {', '.join(self.copies)}, and output.format is {found(self.format)}. "
                "Expected parquet as the format, because copies are proven from its files. Leave "
                "one of them out",
            )
