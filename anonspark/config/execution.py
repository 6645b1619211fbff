"""Define the ``execution`` section: how the work is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from anonspark.config.problems import Finding
from anonspark.config.section import NonEmptyText, Section


class ExecutionOptions(Section):
    """The options of the work."""

    # The same release, whoever makes it.
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
