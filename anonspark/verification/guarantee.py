"""What of a promise the published files do not keep."""

from __future__ import annotations

from collections.abc import Sequence

from anonspark.verification.classes import PublishedClasses
from anonspark.verification.criteria import MeasuredCriterion


def broken_promises(
    published: PublishedClasses,
    *,
    k: int,
    measured: Sequence[MeasuredCriterion] = (),
) -> list[str]:
    """Tell which promises a release does not keep.

    Parameters
    ----------
    published : PublishedClasses
        Counted from the files.
    k : int
        Smallest class size allowed.
    measured : sequence of MeasuredCriterion
        Criteria beyond k, measured in the files.

    Returns
    -------
    list of str
        One sentence each; no value of the data is in them.
    """
    broken = []
    if published.smallest < k:
        broken.append(
            f"the smallest class of the release has {published.smallest:,} "
            f"{'record' if published.smallest == 1 else 'records'}, "
            f"expected at least k = {k}; the release must not be used"
        )
    broken += [
        f"{one.violating_classes:,} of {published.classes:,} classes of the release, with "
        f"{one.violating_records:,} records, violate {one.criterion.describe()} on "
        f"attribute {one.criterion.attribute!r}; the release must not be used"
        for one in measured
        if one.violating_classes
    ]
    return broken
