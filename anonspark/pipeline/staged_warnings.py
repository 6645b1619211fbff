"""Warn about a release once it is staged."""

from __future__ import annotations

import json
from collections.abc import Iterator

from anonspark.config import Configuration
from anonspark.engine.files import Files
from anonspark.engine.protocol import Table
from anonspark.errors import AnonsparkError
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.figures import Measured
from anonspark.pipeline.preparing import Prepared
from anonspark.pipeline.publishable_data import Basis
from anonspark.pipeline.warnings.dependencies import withheld_dependency_warnings
from anonspark.pipeline.warnings.identifiers import withheld_warnings
from anonspark.pipeline.warnings.published_values import published_value_warnings
from anonspark.pipeline.warnings.release_warning import ReleaseWarning, tell_warnings
from anonspark.pipeline.warnings.sensitive_values import warn_of_sensitive_values
from anonspark.pipeline.warnings.settings import (
    blank_row_warnings,
    dropped_record_warnings,
    large_block_warnings,
)
from anonspark.pipeline.warnings.value_sizes import CountedColumn, count_value_sizes
from anonspark.release.manifest import MANIFEST


def warn_of_staged(
    context: RunContext,
    table: Table,
    prepared: Prepared,
    basis: Basis,
    measured: Measured,
) -> list[ReleaseWarning]:
    """Find, and write to the log, what the staged release should not be used without knowing.

    Parameters
    ----------
    context : RunContext
        Of a comparison nothing is warned.
    table : Table
        The staged release.
    prepared : Prepared
        Its warnings, which are in the log already, come first. They reveal nothing about records
        that were left out.
    basis : Basis
    measured : Measured
    """
    if not context.warns:
        return []
    configuration, published, units = context.configuration, measured.published, measured.units
    with context.progress.stage("warnings"):
        earlier = prepared.warnings
        if basis.left_out:
            earlier = withheld_warnings(prepared.identifiers)
            earlier += withheld_dependency_warnings(configuration)
        # The log has had it since the block was found.
        blocks = [result.large_block for result in basis.rounds.results]
        earlier = [*earlier, *large_block_warnings(max(blocks, default=0))]
        columns_as_is = {name: CountedColumn(name) for name in configuration.published_as_is}
        sizes = count_value_sizes(table, columns_as_is, published.rows, drawn=published.values)
        snapshot, k = prepared.snapshot, configuration.privacy.k
        found = [
            *blank_row_warnings(snapshot.blank_rows, k),
            *dropped_record_warnings(snapshot.rows_dropped, published.rows, k),
        ]
        if context.request is not None and context.request.has_ledger:
            # For who carries the plan out. In releases it would be a count night by night.
            tell_warnings(found)
            found = []
        for text in [] if units is None else units.warnings():
            found.append(ReleaseWarning("people_alone", text))
        found += published_value_warnings(sizes, configuration)
        found += warn_of_sensitive_values(table, configuration, sizes, published)
        tell_warnings(found)
    return earlier + found


# Directories beside the output that are looked at, the last ones by name: nights have dates.
_MOST_BESIDE = 30


def earlier_release_warnings(
    files: Files, configuration: Configuration
) -> Iterator[ReleaseWarning]:
    """Warn where a release of the same input lies at the output path, or beside it.

    Parameters
    ----------
    files : Files
    configuration : Configuration

    Notes
    -----
    Reads the manifests of at most 31 directories. No job.
    """
    wanted = list(configuration.public_dict()["input"]["path"])
    found = sum(
        _input_of(files, path) == wanted for path in _places(files, configuration.output.path)
    )
    if found:
        yield ReleaseWarning(
            "released_before",
            "input.path: a release of this input exists at output.path or next to it. A person who "
            "has several releases about the same people can intersect their classes, and is left "
            "with fewer than k. Make them by a plan with a ledger (anonspark distribute), so that "
            "releases together show no more than each of them alone",
            figures={"releases": found},
        )


def _places(files: Files, output: str) -> Iterator[str]:
    own = files.qualified(output).rstrip("/")
    yield own
    beside = [
        path
        for path in files.children(files.parent(own))
        if path.rstrip("/") != own and not path.rpartition("/")[2].startswith((".", "_"))
    ]
    yield from sorted(beside)[-_MOST_BESIDE:]


def _input_of(files: Files, path: str) -> list[str] | None:
    """Return the paths of the input of a release, None where no release can be read."""
    if not files.exists(f"{path}/{MANIFEST}"):
        return None
    try:
        # Its form does not count here, and costs more to check than a small table to publish.
        paths = json.loads(files.read_text(f"{path}/{MANIFEST}"))["input"]["path"]
    except (AnonsparkError, OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return [paths] if isinstance(paths, str) else paths
