"""anjana: full-domain generalization over pandas, with hierarchies."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from peers.tool import Job, Tool, serve

SUPPRESSED_PERCENT = 5
INTERVALS = 64


def hierarchy(values: Sequence[int]) -> dict[int, list[int] | list[str]]:
    """Return the levels of a numeric attribute: itself, 64 intervals, 32, ..., 2, everything.

    Its own ``generate_intervals`` puts a value that is a bound into the interval below it, which
    says that it leaves that value out. Intervals lie within those of the next level: it takes the
    next label of a label, not of a value.

    Parameters
    ----------
    values : sequence of int
        Each once.

    Returns
    -------
    dict of int to list
        Label of each value at each level.
    """
    lowest = min(values)
    span = max(values) - lowest + 1
    levels: dict[int, list[int] | list[str]] = {0: list(values)}
    width = -(-span // INTERVALS)
    while width < span:
        if width > 1:
            starts = [lowest + (value - lowest) // width * width for value in values]
            levels[len(levels)] = [f"[{start}, {start + width})" for start in starts]
        width *= 2
    levels[len(levels)] = ["*"] * len(values)
    return levels


def anonymize(job: Job) -> None:
    """Write the records that anjana keeps, generalized."""
    import numpy as np
    from anjana.anonymity import k_anonymity

    table = pd.read_csv(job.table)
    hierarchies = {}
    for name in job.quasi_identifiers:
        levels = hierarchy([int(value) for value in np.unique(table[name])])
        hierarchies[name] = {level: np.array(labels) for level, labels in levels.items()}
    released = k_anonymity(table, [], job.quasi_identifiers, job.k, SUPPRESSED_PERCENT, hierarchies)
    released.to_csv(job.output, index=False)


def read(returned: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return the published columns without the row numbers that suppression leaves behind."""
    return returned[[name for name in table.columns if name in returned.columns]]


TOOL = Tool(
    name="anjana",
    distribution="anjana",
    module="peers.adapters.anjana",
    python="3.11",
    about="full-domain, pandas; up to 5% left out; hierarchies of 64, 32, ..., 2 equal intervals",
    read=read,
    conversion="the row numbers that it leaves are dropped",
)

if __name__ == "__main__":
    serve(anonymize)
