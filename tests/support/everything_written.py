"""Everything that a run writes, but for what differs between two runs of one configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from commands import Outcome

# Of the time that a run takes and of when it began; of the input as a whole, under the secret seed.
_TIMES = ("seconds", "started")
_INPUT = "input_fingerprint"


def everything(release: Path, outcome: Outcome) -> dict[str, Any]:
    """Return everything that was written, without times and the fingerprint of the input."""
    found: dict[str, Any] = {"output": outcome.out, "log": re.sub(r"(?m)^\S+ \S+", "", outcome.err)}
    for path in sorted(release.rglob("*")):
        name = re.sub(
            r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "", str(path.relative_to(release))
        )
        if path.suffix == ".parquet" and "summary" in name:
            found[name] = [without_times(row) for row in pq.read_table(path).to_pylist()]
        elif path.name == "manifest.json":
            found[name] = without_times(json.loads(path.read_text()))
        elif path.name == "report.html":
            found[name] = plain_report(path.read_text())
        elif path.is_file() and path.suffix != ".crc":
            found[name] = path.read_bytes()
    return found


def without_times(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {
            name: without_times(value)
            for name, value in found.items()
            if name not in (*_TIMES, _INPUT, "input", "files")
        }
    return [without_times(one) for one in found] if isinstance(found, list) else found


def plain_report(text: str) -> str:
    """Return a report without the section on times, times, and the fingerprint of the input."""
    text = re.sub(r'<section aria-labelledby="timings">.*?</section>', "", text, flags=re.DOTALL)
    text = re.sub(r"\d{4}-\d\d-\d\d(T| )\d\d:\d\d:\d\d(\+00:00| UTC)?", "TIME", text)
    return re.sub(r"(<t[dh][^>]*>input</t[dh]>\s*<td[^>]*>)[0-9a-f]{64}", r"\1", text)
