"""Figures of published rows: none of them is a tool's own, all come from ``anonspark verify``."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from measuring import watched
from standalone import SCRIPTS

from peers.tool import Job, Tool

__all__ = ["figures", "readable_table", "release_as_text", "verify"]

HOLDS, BROKEN = 0, 4


def readable_table(tool: Tool, job: Job, folder: Path) -> Path:
    """Write what a tool returned as a table that verify reads; return where.

    Raises
    ------
    KeyError, ValueError, OSError
        If it is not what the adapter expects.
    """
    if tool.read is None:
        raise ValueError(f"{tool.name} publishes nothing")
    returned = pd.read_csv(job.output, dtype=str, keep_default_na=False)
    table = pd.read_csv(job.table)[[*job.quasi_identifiers, job.sensitive]]
    path = folder / "published.csv"
    tool.read(returned, table).to_csv(path, index=False)
    return path


def roles(quasi_identifiers: Sequence[str], sensitive: str | None, k: int) -> list[str]:
    """Return the arguments that say what is what in a table without a manifest."""
    arguments = [part for name in quasi_identifiers for part in ("--quasi-identifier", name)]
    if sensitive is not None:
        arguments += ["--sensitive", sensitive]
    return [*arguments, "--k", str(k)]


def verify(
    published: Path, arguments: Sequence[str], original: Path, limit: float
) -> dict[str, Any]:
    """Return what verify finds as JSON, in a process of its own.

    Where it cannot match the published rows with the original, it is asked about the rows alone,
    and ``not_matched`` says why. Where it cannot read these, ``unreadable`` says why.
    """
    command = [str(SCRIPTS / "anonspark"), "verify", str(published), *arguments]
    command += ["--json", "--quiet"]
    found, told = _asked([*command, "--original", str(original)], published.parent, limit)
    if found is not None:
        return found
    found, told_again = _asked(command, published.parent, limit)
    return {"unreadable": told_again} if found is None else {**found, "not_matched": told}


def _asked(command: list[str], folder: Path, limit: float) -> tuple[dict[str, Any] | None, str]:
    log = folder / "verify.log"
    with log.open("w", encoding="utf-8") as messages:
        done = watched(command, limit=limit, stdout=subprocess.PIPE, stderr=messages)
    if done.exit_code in (HOLDS, BROKEN) and done.output:
        found: dict[str, Any] = json.loads(done.output)
        return found, ""
    if done.exit_code is None:
        return None, f"over {limit:.0f} s"
    # Messages of ours hold no values.
    lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]
    told = lines[-1].strip() if lines else f"exit code {done.exit_code}"
    return None, told.removeprefix("error: ").partition(";")[0]


def figures(found: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """Return the figures of a release that the table shows.

    Parameters
    ----------
    found : mapping
        JSON of verify.
    rows : int
        Of the original.

    Returns
    -------
    dict
        Where the labels cannot be compared with the original, verify tells no loss: ``dm`` is then
        summed up from its classes by size, and N for each row left out, and ``gcp`` is None.
    """
    if "unreadable" in found:
        return {"unreadable": found["unreadable"]}
    left_out = rows - found["rows"]
    sensitive = found["sensitive"]
    return {
        "classes": found["classes"],
        "smallest": found["smallest"],
        "distinct": sensitive[0]["distinct"] if sensitive else None,
        "dm": sum(size**2 * classes for size, classes in found["sizes"]) + rows * left_out,
        "gcp": found["loss"]["gcp"] if found.get("loss") else None,
        "rows_left_out": left_out,
        "truthful": truthful(found["truthfulness"], left_out),
        "not_matched": found.get("not_matched"),
        "failures": found["failures"],
    }


def truthful(found: Mapping[str, Any] | None, left_out: int) -> str:
    """Return what verify's pairs of originals and published rows say of the labels.

    A table without a manifest cannot tell verify how many rows were left out on purpose, so that
    these count as missing there.

    Parameters
    ----------
    found : mapping or None
        ``truthfulness`` of verify.
    left_out : int
        Rows that may be without a published one.

    Returns
    -------
    str
        ``yes``, ``no``, ``no fault`` where not all was proven, empty where nothing was checked.
    """
    if found is None:
        return ""
    published = found["surplus"] + found["without_original"] + found["unmatched_published"]
    originals = max(found["missing"], found["without_counterpart"], found["unmatched"])
    if published or originals > left_out:
        return "no"
    return "no fault" if found["not_proven"] else "yes"


def release_as_text(release: Path, quasi_identifiers: Sequence[str], sensitive: str) -> Path:
    """Write the rows of a release of ours as CSV, for the second opinion; return where."""
    path = release.with_suffix(".csv")
    rows = pd.read_parquet(release / "data", columns=[*quasi_identifiers, sensitive])
    rows.to_csv(path, index=False)
    return path
