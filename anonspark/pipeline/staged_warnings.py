"""What is warned of a release once it is staged."""

from __future__ import annotations

from anonspark.engine.protocol import Table
from anonspark.pipeline.basis import Basis
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.preparing import Prepared
from anonspark.pipeline.tasks import sensitive_values
from anonspark.pipeline.warnings.dependencies import withheld_dependency_warnings
from anonspark.pipeline.warnings.dropped_records import dropped_record_warnings
from anonspark.pipeline.warnings.identifiers import withheld_warnings
from anonspark.pipeline.warnings.large_blocks import large_block_warnings
from anonspark.pipeline.warnings.published_values import (
    count_published_values,
    published_value_warnings,
)
from anonspark.pipeline.warnings.release_warning import ReleaseWarning, tell_warnings
from anonspark.pipeline.warnings.sensitive_values import warn_of_sensitive_values
from anonspark.verification.classes import PublishedClasses


def warn_of_staged(
    context: RunContext,
    table: Table,
    prepared: Prepared,
    basis: Basis,
    columns: list[str],
    published: PublishedClasses,
) -> list[ReleaseWarning]:
    """Find, and write to the log, what the staged release should not be used without knowing.

    Parameters
    ----------
    context : RunContext
        Of a comparison nothing is warned.
    table : Table
        The staged release.
    prepared : Prepared
        Its warnings, which are in the log already, come first; of records that were left out they
        tell nothing.
    basis : Basis
    columns : list of str
        Published columns of the quasi-identifiers.
    published : PublishedClasses

    Notes
    -----
    One pass over the published columns that are as they were, with a shuffle of hashes.
    """
    if not context.warns:
        return []
    configuration = context.configuration
    with context.progress.stage("warnings"):
        earlier = prepared.warnings
        if basis.left_out:
            earlier = withheld_warnings(prepared.identifiers)
            earlier += withheld_dependency_warnings(configuration)
        # The log has had it since the block was found.
        blocks = [one.large_block for one in basis.rounds.results]
        earlier = earlier + large_block_warnings(max(blocks, default=0))
        sizes = count_published_values(table, configuration, published.rows)
        dropped = prepared.snapshot.rows_dropped
        dropped_warnings = dropped_record_warnings(dropped, published.rows, configuration.privacy.k)
        found = []
        if context.request is not None and context.request.has_ledger:
            # For who carries the plan out. In releases it would be a count night by night.
            tell_warnings(dropped_warnings)
        else:
            found += dropped_warnings
        found += published_value_warnings(sizes, configuration)
        found += warn_of_sensitive_values(
            table, columns, configuration, sensitive_values(basis.criteria), sizes
        )
        tell_warnings(found)
    return earlier + found
