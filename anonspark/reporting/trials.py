"""Stricter promises that nobody made: how many classes of a release would not keep them."""

from __future__ import annotations

from collections.abc import Sequence

from anonspark.core.criterion import Criterion
from anonspark.verification.sensitive_values import SensitiveValues

DISTANCES = (0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
"""Largest distances of t-closeness that are tried."""

SHARES = (0.9, 0.75, 0.5)
"""Largest shares of one value that are tried."""

DIVERSITIES = (2, 3, 4, 5, 6, 8, 10)
"""Different values that are tried."""


def trials(values: SensitiveValues) -> Sequence[Criterion]:
    """Return the criteria that the classes of a release are held against for its report.

    Parameters
    ----------
    values : SensitiveValues
        Of one sensitive attribute.
    """
    name = values.name
    distances = [Criterion(name, "equal distance", t) for t in DISTANCES]
    if values.is_ordered:
        distances = [Criterion(name, "ordered distance", t) for t in DISTANCES]
    shares = [Criterion(name, "alpha", share) for share in SHARES]
    # No class can have more values than there are.
    several = [
        Criterion(name, "distinct", float(one)) for one in DIVERSITIES if one <= len(values.values)
    ]
    return [*distances, *shares, *several]
