"""What can be known of an input before it is anonymized."""

from __future__ import annotations

from collections.abc import Sequence

from anonspark.config import Configuration
from anonspark.core.columns import payload_column
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.protocol import Table
from anonspark.pipeline.warnings.dependencies import dependency_warnings
from anonspark.pipeline.warnings.identifiers import identifier_warnings, read_identifiers
from anonspark.pipeline.warnings.published_values import published_value_warnings
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.pipeline.warnings.seeds import seed_warnings
from anonspark.pipeline.warnings.sensitive_values import (
    privacy_warnings_of_input,
    sensitive_value_warnings,
)
from anonspark.pipeline.warnings.text_values import text_value_warnings
from anonspark.pipeline.warnings.value_sizes import CountedColumn, ValueSizes, count_value_sizes
from anonspark.verification.sensitive_values import SensitiveValues


def warn_of_input(
    kept: Table,
    configuration: Configuration,
    records: int,
    sensitive: Sequence[SensitiveValues],
    quasi_identifiers: Sequence[QuasiIdentifier],
) -> tuple[list[ReleaseWarning], dict[str, ValueSizes]]:
    """Return all warnings about a configuration and its input.

    Parameters
    ----------
    kept : Table
        The records that are kept: payload and identifiers, under the names of staged columns.
    configuration : Configuration
    records : int
        Their number.
    sensitive : sequence of SensitiveValues
        Of the attributes that criteria are about.
    quasi_identifiers : sequence of QuasiIdentifier

    Returns
    -------
    warnings : list of ReleaseWarning
    sizes : dict of str to ValueSizes
        How many records share each value of the columns that were looked at: identifiers, and
        attributes that are published as they are.

    Notes
    -----
    One job over identifiers and payload together, see
    :func:`anonspark.pipeline.warnings.value_sizes.count_value_sizes`, and the jobs of
    :func:`anonspark.pipeline.warnings.sensitive_values.sensitive_value_warnings`.
    """
    columns = {
        name: CountedColumn(payload_column(index))
        for index, name in enumerate(configuration.published_as_is)
    }
    carried = [one.name for one in columns.values()]
    table, identifiers = read_identifiers(kept, configuration, carried)
    sizes = count_value_sizes(table, {**columns, **identifiers}, records)
    # Where k counts people, no identifier makes it count fewer.
    counted = {} if configuration.privacy.unit else {name: sizes[name] for name in identifiers}
    warnings = [
        *seed_warnings(configuration),
        *identifier_warnings(counted, configuration.privacy.k),
        *published_value_warnings({name: sizes[name] for name in columns}, configuration),
        *text_value_warnings(quasi_identifiers, configuration),
        *dependency_warnings(kept, configuration, records),
        *sensitive_value_warnings(kept, configuration, sensitive, sizes),
        *privacy_warnings_of_input(kept, configuration, sizes),
    ]
    return warnings, sizes
