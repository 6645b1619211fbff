"""polarfrost: Mondrian over Polars. Its way over Spark hands applyInPandas a wrapped function."""

from __future__ import annotations

import pandas as pd

from peers.tool import Job, Tool, repeated, serve


def anonymize(job: Job) -> None:
    """Write the rows that polarfrost returns: one for each class."""
    import polars
    from polarfrost import mondrian_k_anonymity

    table = polars.read_csv(job.table)
    classes = mondrian_k_anonymity(table, job.quasi_identifiers, job.sensitive, job.k)
    classes.write_csv(job.output)


def read(returned: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each record, without sensitive values; labels are `17-25`.

    Of these it publishes the set that a class has, not the value of each record.
    """
    names = [name for name in table.columns if pd.api.types.is_numeric_dtype(table[name])]
    return repeated(returned[[*names, "count"]])


TOOL = Tool(
    name="polarfrost",
    distribution="polarfrost",
    module="peers.adapters.polarfrost",
    python="3.11",
    about="Mondrian, Polars",
    read=read,
    conversion="rows with a count are repeated; the sensitive column is left out, for it is "
    "published as the set of a class's values",
    keeps_sensitive=False,
)

if __name__ == "__main__":
    serve(anonymize)
