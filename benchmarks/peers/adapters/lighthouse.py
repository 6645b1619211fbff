"""project-lighthouse-anonymize: Core Mondrian over pandas, in several processes."""

from __future__ import annotations

import logging

import pandas as pd

from peers.tool import Job, Tool, serve

ROW = "row_number"


def anonymize(job: Job) -> None:
    """Write the records that it keeps, with the mean of their class for each quasi-identifier."""
    from project_lighthouse_anonymize.wrappers.k_anonymize import k_anonymize

    table = pd.read_csv(job.table)
    table[ROW] = range(len(table))
    kept, _, _ = k_anonymize(
        logging.getLogger("lighthouse"),
        table,
        job.quasi_identifiers,
        job.k,
        {},
        ROW,
        parallelism=job.cores,
    )
    kept.to_csv(job.output, index=False)


def read(returned: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return the records with the bounds of their class instead of its means.

    A mean says nothing of how far the values of a class lie apart. Records with equal means are a
    class, and row numbers lead to its raw values.
    """
    columns = [name for name in table.columns if name in returned.columns]
    names = [name for name in columns if pd.api.types.is_numeric_dtype(table[name])]
    means = returned.set_index(returned[ROW].astype(int))
    number = means.groupby(names).ngroup()
    raw = table.loc[means.index, names].groupby(number)
    bounds = {}
    for name in names:
        bounds[f"{name}_min"] = raw[name].transform("min")
        bounds[f"{name}_max"] = raw[name].transform("max")
    others = means[[name for name in columns if name not in names]]
    return pd.concat([pd.DataFrame(bounds), others], axis="columns")


TOOL = Tool(
    name="lighthouse",
    distribution="project-lighthouse-anonymize",
    module="peers.adapters.lighthouse",
    python="3.11",
    about="Core Mondrian, pandas, several processes; leaves out up to 1% by default",
    read=read,
    conversion="it publishes the means of its classes: measured are the bounds of the records that "
    "share their means, found by row number",
)

if __name__ == "__main__":
    serve(anonymize)
