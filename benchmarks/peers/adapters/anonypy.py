"""anonypy: Mondrian over pandas."""

from __future__ import annotations

import pandas as pd

from peers.tool import Job, Tool, repeated, serve


def anonymize(job: Job) -> None:
    """Write the rows that anonypy returns: one for each class and sensitive value."""
    import anonypy

    table = pd.read_csv(job.table)
    table[job.sensitive] = table[job.sensitive].astype("category")
    preserver = anonypy.Preserver(table, job.quasi_identifiers, job.sensitive)
    pd.DataFrame(preserver.anonymize_k_anonymity(job.k)).to_csv(job.output, index=False)


def read(returned: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each record; labels are lists of one text, `['17']` or `['17-25']`."""
    records = repeated(returned)
    for name in table.columns:
        if pd.api.types.is_numeric_dtype(table[name]):
            records[name] = records[name].str.removeprefix("['").str.removesuffix("']")
    return records


TOOL = Tool(
    name="anonypy",
    distribution="anonypy",
    module="peers.adapters.anonypy",
    python="3.11",
    about="Mondrian, pandas",
    read=read,
    conversion="rows with a count are repeated, and the brackets and quotes around labels dropped",
)

if __name__ == "__main__":
    serve(anonymize)
