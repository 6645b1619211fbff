"""Define the sections ``output`` and ``execution``: where a release goes, how the work is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from anonspark.config.problems import Finding, in_words
from anonspark.config.section import NonEmptyText, Section


class ExecutionOptions(Section):
    """The options of the work."""

    # Both engines make the same release, so no fingerprint has it.
    engine: Literal["auto", "local", "spark"] = Field(default="auto", exclude=True)
    """Who does the work: this process, without Java (local), or Spark. auto takes local where no
    Spark is given, input and output are local files of formats that it knows, and the input has at
    most an eighth of the available memory on the disk."""

    task_rows: int = Field(default=250_000, ge=1)
    """Largest number of rows that one task finishes on its own."""

    seed: int = Field(default=0, repr=False, ge=-(2**63), le=2**63 - 1)
    """Mixed into record hashes and random choices. Keep it secret in production, and draw it at
    random from the whole range, so that its fingerprint does not give it away."""

    # The same number makes the same release, wherever it is kept.
    seed_file: NonEmptyText | None = Field(default=None, exclude=True)
    """File that holds the seed and nothing else, instead of seed: a path of the driver's local
    disk, or any Hadoop URI. The environment variable ANONSPARK_SEED is a third place for it. The
    seed stands in one of them."""

    staging_path: NonEmptyText | None = None
    """Private directory that all executors reach, below which a run keeps raw records and its
    finished rounds until it ends. null: beside output.path."""

    def _problems(self) -> Iterator[Finding]:
        if self.seed_file is not None and "seed" not in self.model_fields_set:
            # Else the file would be passed over, and the seed would be 0.
            yield Finding(
                ("seed_file",),
                "found a file that was not read. Expected load_configuration or "
                "parse_configuration to read it. Use one of them",
            )


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

    table: NonEmptyText | None = None
    """Table of a catalog of Spark, catalog.schema.name, that the published records are written to
    as well. null: none."""

    table_mode: Literal["append", "overwrite"] = "append"
    """What becomes of the records in the table: append keeps them, which Delta Lake and Iceberg can
    do in one commit. overwrite replaces them, or those of table_partition."""

    table_partition: dict[NonEmptyText, NonEmptyText] = Field(default={})
    """Columns that the table has besides those of the release, and their value for this release,
    such as the day. They part the table."""

    signing_key: NonEmptyText | None = None
    """Key that signs the manifest: path of a private SSH key of Ed25519, or of its public one if
    the private one is in the agent. null: the release is not signed."""

    def _problems(self) -> Iterator[Finding]:
        why = _UNFIT_FORMATS.get(self.format.lower())
        if why is not None:
            yield Finding(
                ("format",),
                f"found {in_words(self.format)}, which {why}. Expected parquet, orc or delta. "
                "Choose one. output.copies: [csv] adds another form to Parquet",
            )
        if self.copies and self.format.lower() != "parquet":
            yield Finding(
                ("copies",),
                f"found {', '.join(self.copies)}, and output.format is {in_words(self.format)}. "
                "Expected parquet as the format, because copies are proven from its files. Leave "
                "one of them out",
            )
