"""anonypyx: Mondrian over pandas. Its other method, MDAV, needs memory quadratic in the rows."""

from __future__ import annotations

import pandas as pd

from peers.tool import Job, Tool, repeated, serve


def anonymize(job: Job) -> None:
    """Write the rows that anonypyx returns: one for each class and sensitive value."""
    import anonypyx

    anonymiser = anonypyx.Anonymiser(
        pd.read_csv(job.table),
        k=job.k,
        algorithm="Mondrian",
        feature_columns=job.quasi_identifiers,
        sensitive_column=job.sensitive,
        generalisation_strategy="human-readable",
    )
    anonymiser.anonymise().to_csv(job.output, index=False)


def read(returned: pd.DataFrame, _table: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each record; labels are `17` or `17-25`."""
    return repeated(returned)


TOOL = Tool(
    name="anonypyx",
    distribution="anonypyx",
    module="peers.adapters.anonypyx",
    python="3.11",
    about="Mondrian, pandas",
    read=read,
    conversion="rows with a count are repeated",
)

if __name__ == "__main__":
    serve(anonymize)
