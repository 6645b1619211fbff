"""What can be known of an input before it is anonymized."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from anonspark.config import Configuration
from anonspark.core.columns import payload_column
from anonspark.engine.spark.value_sizes import count_value_sizes
from anonspark.pipeline.warnings.identifiers import identifier_hashes, identifier_warnings
from anonspark.pipeline.warnings.published_values import (
    published_value_hashes,
    published_value_warnings,
)
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.pipeline.warnings.seeds import seed_warnings
from anonspark.pipeline.warnings.sensitive_values import sensitive_value_warnings
from anonspark.verification.sensitive import SensitiveValues


def warn_of_input(
    kept: DataFrame,
    configuration: Configuration,
    records: int,
    sensitive: Sequence[SensitiveValues],
) -> list[ReleaseWarning]:
    """Return all warnings about a configuration and its input.

    Parameters
    ----------
    kept : DataFrame
        The records that are kept: payload and identifiers, under the names of staged columns.
    configuration : Configuration
    records : int
        Their number.
    sensitive : sequence of SensitiveValues
        Of the attributes that criteria are about.

    Notes
    -----
    One job over identifiers and payload together, see
    :func:`anonspark.engine.spark.value_sizes.count_value_sizes`, and the jobs of
    :func:`anonspark.pipeline.warnings.sensitive_values.sensitive_value_warnings`.
    """
    columns = {
        name: payload_column(index) for index, name in enumerate(configuration.published_as_is)
    }
    identifiers = identifier_hashes(kept, configuration)
    sizes = count_value_sizes(
        kept, {**published_value_hashes(kept, columns), **identifiers}, records
    )
    return [
        *seed_warnings(configuration),
        *identifier_warnings({name: sizes[name] for name in identifiers}, configuration.privacy.k),
        *published_value_warnings({name: sizes[name] for name in columns}, configuration),
        *sensitive_value_warnings(kept, configuration, sensitive, sizes),
    ]
