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
    """Where the run works: in this process without Java (local), or on Spark. auto means local if
    you set no Spark master, input and output are local files in formats that it supports, and the
    input files need at most an eighth of the available memory."""

    task_rows: int = Field(default=250_000, ge=1)
    """Maximum number of rows that a task processes alone."""

    seed: int = Field(default=0, repr=False, ge=-(2**63), le=2**63 - 1)
    """A secret number that goes into record hashes and random choices. For real data, draw it at
    random from the whole range, so that its fingerprint does not reveal it."""

    # The same number makes the same release, wherever it is kept.
    seed_file: NonEmptyText | None = Field(default=None, exclude=True)
    """File that contains only the seed, instead of seed: a path on the driver's local disk, or any
    Hadoop URI. A third place is the environment variable ANONSPARK_SEED. Use only one of them."""

    staging_path: NonEmptyText | None = None
    """Private directory that all executors can access. A run keeps raw records and finished rounds
    in it until it ends. null means next to output.path."""

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
    """If the path has content: error refuses the run, overwrite replaces a release."""

    style: OutputStyle = "interval"
    """How generalized values are written: interval as "[17-25]", bounds as two columns <name>_min
    and <name>_max, mean as the mean of the class."""

    format: NonEmptyText = "parquet"
    """Name of the Spark data source that writes the records: parquet, orc, delta, ... It must keep
    types and missing values, and allow its directory to be renamed."""

    copies: list[Literal["csv"]] = Field(default=[])
    """Other formats of the records. csv also writes them to the directory copies, for spreadsheets
    and other programs that cannot read Parquet."""

    file_rows: int | None = Field(default=None, ge=10_000)
    """Approximate number of records in a file. A task holds a whole file in memory. null means
    250,000, or 64 MiB before compression if that is less. If this gives more than 1,000 files, each
    can be up to four times as large."""

    pseudonyms: dict[str, NonEmptyText] = Field(default={})
    """Maps an identifier in privacy.unit to the column of pseudonyms that replaces it. All records
    of a person have the same pseudonym. Pseudonyms differ in every release."""

    table: NonEmptyText | None = None
    """Table of a Spark catalog, catalog.schema.name, to which the published records are also
    written. null: none."""

    table_mode: Literal["append", "overwrite"] = "append"
    """Existing records of the table. append keeps them, and works only for Delta Lake and Iceberg.
    overwrite replaces them, or those of table_partition."""

    table_partition: dict[NonEmptyText, NonEmptyText] = Field(default={})
    """Additional columns of the table, by which it is partitioned, and their values for this
    release, such as the day."""

    signing_key: NonEmptyText | None = None
    """Key that signs the manifest: path of a private Ed25519 key for SSH, or of its public key if
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
