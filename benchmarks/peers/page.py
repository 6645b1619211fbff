"""The table of all cases, on the terminal and in the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from peers.cases import Case
from peers.registry import CHECKER, MODELS, PEERS

__all__ = ["section", "table", "with_section"]

HEADING = "## Compared with other tools"

INTRODUCTION = """\
You could use these tools instead. All get the same CSV file, with the five numeric
quasi-identifiers of Adult and `income` as sensitive attribute. Every tool has a separate
environment, and none is a dependency of anonspark. A run is a whole process, from
its start to the written release, once. Its memory is the resident memory of all its processes at
one time. Shared pages count in each. All other figures are those of `anonspark
verify`, counted in the published rows, and none is reported by a tool. Verifying is not timed.

```sh
make peers                                    # Adult, k = 5 and 10
make peers ARGS="--rows 301620 --k 10 --limit 100"
make peers ARGS="--tools anonypy su-mondrian --again"
.venv/bin/python benchmarks/side_by_side.py --help
```

Earlier measurements are kept in `build/peers.json` and not repeated. Tables of more than
30,162 rows are Adult, repeated with noise."""

COLUMNS = (
    "tool", "k", "seconds", "peak MiB", "classes", "smallest", "DM", "GCP", "left out", "true",
)  # fmt: skip
NO_PENALTY = "GCP is empty where verify cannot compare the labels with the original."
MEANINGS = """\
DM is the sum of squared class sizes, and the number of all rows for each row left out. "True" shows
whether published rows can be paired with original ones so that every label holds its values
([truthfulness](verification.md#with-the-original)). It is "no fault" if not all could be proven."""


def table(cases: Iterable[Case]) -> Iterator[str]:
    """Yield the lines of a table, ours first, for each number of rows and k by time."""
    ordered = sorted(cases, key=_place)
    for rows, of_rows in groupby(ordered, key=attrgetter("rows")):
        yield f"{rows:,} rows:"
        yield ""
        yield "| " + " | ".join(COLUMNS) + " |"
        yield "| --- |" + " ---: |" * (len(COLUMNS) - 2) + " --- |"
        for case in of_rows:
            yield "| " + " | ".join(_cells(case)) + " |"
        yield ""


def _place(case: Case) -> tuple[object, ...]:
    seconds = float("inf") if case.status != "done" or case.seconds is None else case.seconds
    return case.rows, case.k, case.tool not in MODELS, seconds, case.tool


def _cells(case: Case) -> list[str]:
    name = f"**{case.tool}**" if case.tool in MODELS else case.tool
    if case.status == "not installed":
        return [name, str(case.k), "not installed", *[""] * 7]
    took = "failed"
    if case.status == "over":
        took = f"over {case.limit:,.0f}"
    elif case.status == "done" and case.seconds is not None:
        took = f"{case.seconds:.1f}"
    peak = "" if case.peak_mebibytes is None else f"{case.peak_mebibytes:,}"
    cells = [name, str(case.k), took, peak]
    found = case.figures or {}
    for figure in ("classes", "smallest", "dm"):
        cells.append(f"{found[figure]:,}" if figure in found else "")
    gcp = found.get("gcp")
    cells.append("" if gcp is None else f"{gcp:.4f}")
    cells.append(f"{found['rows_left_out']:,}" if "rows_left_out" in found else "")
    cells.append(found.get("truthful", ""))
    return cells


def notes(cases: Sequence[Case]) -> Iterator[str]:
    """Yield what is to be known of the tools, of cases without figures, and of k."""
    shown = {case.tool for case in cases}
    for name, tool in PEERS.items():
        if name in shown:
            version = next(case.version for case in cases if case.tool == name)
            conversion = f"; {tool.conversion}" if tool.conversion else ""
            yield f"- {name} {version}: {tool.about}{conversion}."
    for case in cases:
        for what in _failures(case):
            yield f"- {case.tool}, {case.rows:,} rows, k = {case.k}: {what}."
    if not any((case.figures or {}).get("gcp") is not None for case in cases):
        yield f"- {NO_PENALTY}"
    yield from _second_opinions(cases)


def _failures(case: Case) -> Iterator[str]:
    found = case.figures or {}
    if case.reason:
        yield f"{case.status}, {case.reason}"
    if found.get("unreadable"):
        yield f"verify does not read what it published ({found['unreadable']})"
    if found.get("not_matched"):
        yield f"whether labels are true was not checked ({found['not_matched']})"
    if "smallest" in found and found["smallest"] < case.k:
        yield "the release is not k-anonymous"


def _second_opinions(cases: Sequence[Case]) -> Iterator[str]:
    agreeing = []
    for case in cases:
        opinion, found = case.second_opinion, case.figures or {}
        if opinion is None:
            continue
        what = f"{case.tool}, k = {case.k}"
        if "reason" in opinion:
            yield f"- {CHECKER.name} of {what}: {opinion['reason']}."
        elif (opinion["k"], opinion["l"]) == (found.get("smallest"), found.get("distinct")):
            agreeing.append(f"{what}: k {opinion['k']}, l {opinion['l']}")
        else:
            yield (
                f"- {CHECKER.name} and verify do not agree on {what}: k {opinion['k']} and "
                f"{found.get('smallest')}, l {opinion['l']} and {found.get('distinct')}."
            )
    if agreeing:
        yield (
            f"- {CHECKER.name} counts the same k and distinct l as verify in our releases of Adult "
            f"({'; '.join(agreeing)})."
        )


def section(cases: Iterable[Case]) -> str:
    """Return the section of the documentation."""
    known = list(cases)
    lines = [HEADING, "", INTRODUCTION, "", *table(known), MEANINGS, "", *notes(known), ""]
    lines += dict.fromkeys(_measured(case) for case in known)
    return "\n".join(lines) + "\n"


def _measured(case: Case) -> str:
    parts = (case.measured.get(name) for name in ("machine", "versions", "remark"))
    return f"Machine: {'; '.join(part for part in parts if part)}."


def with_section(page: str, text: str) -> str:
    """Return a page with this section in the place of its older one, or at its end."""
    found = re.search(rf"^{re.escape(HEADING)}$.*?(?=^## |\Z)", page, re.M | re.S)
    if found is None:
        return page.rstrip("\n") + "\n\n" + text
    rest = page[found.end() :]
    return page[: found.start()] + text + ("\n" + rest if rest else "")
