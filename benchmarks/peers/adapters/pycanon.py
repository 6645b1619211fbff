"""pycanon: measures releases; the second opinion on ours."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from peers.tool import Job, Tool, serve


def measure(job: Job) -> None:
    """Write the k and the distinct l of a release."""
    from pycanon import anonymity

    release = pd.read_csv(job.table, dtype=str, keep_default_na=False)
    found = {
        "k": int(anonymity.k_anonymity(release, job.quasi_identifiers)),
        "l": int(anonymity.l_diversity(release, job.quasi_identifiers, [job.sensitive])),
    }
    Path(job.output).write_text(json.dumps(found), encoding="utf-8")


TOOL = Tool(
    name="pycanon",
    distribution="pycanon",
    module="peers.adapters.pycanon",
    python="3.11",
    about="measures releases",
)

if __name__ == "__main__":
    serve(measure)
