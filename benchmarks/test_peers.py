"""Tools beside ours: what they return is read right, and nothing that goes wrong is hidden."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import cases
from measuring import watched
from peers import environments
from peers.adapters import anjana, anonypy, lighthouse, polarfrost
from peers.cases import Case, Cases
from peers.page import HEADING, notes, section, table, with_section
from peers.registry import CHECKER, PEERS
from peers.running import why
from peers.tool import Tool, repeated
from peers.verifying import figures

TABLE = pd.DataFrame({"age": [17, 20, 25, 30], "hours": [40, 40, 20, 20], "income": list("abab")})

TRUTHFULNESS = {
    "surplus": 0,
    "without_original": 0,
    "unmatched_published": 0,
    "missing": 5,
    "without_counterpart": 3,
    "unmatched": 5,
    "not_proven": 0,
}

FOUND = {
    "rows": 95,
    "classes": 12,
    "smallest": 5,
    "sizes": [[5, 5], [10, 7]],
    "sensitive": [{"attribute": "income", "distinct": 1}],
    "truthfulness": TRUTHFULNESS,
    "failures": [],
}

DONE = Case(
    "anonypy", "0.2.1", 100, 5, "done", limit=900.0, seconds=1.25, peak_mebibytes=1234,
    figures=figures(FOUND, 100), measured={"machine": "a machine", "versions": "some versions"},
)  # fmt: skip


def texts(**columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(columns, dtype=str)


def test_rows_with_a_count_are_repeated() -> None:
    returned = texts(age=["['17-20']", "['25']"], income=["a", "b"], count=["2", "1"])
    assert anonypy.read(returned, TABLE[["age", "income"]]).to_dict("list") == {
        "age": ["17-20", "17-20", "25"],
        "income": ["a", "a", "b"],
    }
    assert len(repeated(texts(age=[], count=[]))) == 0


def test_polarfrost_has_no_sensitive_values() -> None:
    returned = texts(age=["17-20"], hours=["40-40"], income=["a,b"], count=["2"])
    assert polarfrost.read(returned, TABLE).to_dict("list") == {
        "age": ["17-20"] * 2,
        "hours": ["40-40"] * 2,
    }


def test_means_become_the_bounds_of_their_records() -> None:
    # The record of row 2 was left out, and rows come in another order.
    returned = texts(
        age=["30.0", "18.5", "18.5"], hours=["20", "40", "40"], income=["b", "b", "a"],
        row_number=["3", "1", "0"],
    )  # fmt: skip
    found = lighthouse.read(returned, TABLE)
    assert found.to_dict("list") == {
        "age_min": [30, 17, 17],
        "age_max": [30, 20, 20],
        "hours_min": [20, 40, 40],
        "hours_max": [20, 40, 40],
        "income": ["b", "b", "a"],
    }


def bounds(label: str) -> tuple[int, int]:
    found = re.fullmatch(r"\[(-?\d+), (-?\d+)\)", label)
    assert found is not None
    return int(found[1]), int(found[2])


@pytest.mark.parametrize(
    "values",
    [[3], [0, 1], list(range(17, 91)), [0, 1, 99999], [12285, 20000, 1484705], [-7, -3, 64]],
    ids=str,
)
def test_hierarchies_hold_their_values_and_are_nested(values: list[int]) -> None:
    levels = anjana.hierarchy(values)
    assert list(levels) == list(range(len(levels)))
    assert levels[0] == values
    assert set(levels[len(levels) - 1]) == {"*"}
    within = [(value, value + 1) for value in values]
    for level in range(1, len(levels) - 1):
        wider = [bounds(str(label)) for label in levels[level]]
        assert len(set(wider)) <= anjana.INTERVALS
        assert all(
            low <= inner_low and inner_high <= high
            for (inner_low, inner_high), (low, high) in zip(within, wider, strict=True)
        )
        within = wider


def test_hierarchies_of_a_wide_attribute_halve() -> None:
    levels = anjana.hierarchy(np.arange(640).tolist())
    assert [len(set(labels)) for labels in levels.values()] == [640, 64, 32, 16, 8, 4, 2, 1]


@pytest.mark.parametrize(
    ("exit_code", "log", "reason"),
    [
        (1, "Traceback (most recent call last):\n  File x\nKeyError: 39\n", "KeyError"),
        (1, "py4j.protocol.Py4JJavaError: An error with 77516\n: java.lang.X", "Py4JJavaError"),
        (1, "MemoryError\n", "MemoryError"),
        (1, "ValueError: 1\n\nDuring handling\n\nOSError: 2\n", "OSError"),
        (3, "77516 is wrong", "exit code 3"),
        (-9, "", "ended by SIGKILL"),
    ],
)
def test_reasons_name_the_error_and_no_value(exit_code: int, log: str, reason: str) -> None:
    assert why(exit_code, log) == reason


@cases(__file__, "text", "told")
def test_installers_are_quoted_without_decoration(text: str, told: str) -> None:
    assert environments.first_error(text) == told


@pytest.mark.parametrize("tool", [*PEERS.values(), CHECKER], ids=lambda tool: tool.name)
def test_every_tool_is_pinned_with_hashes(tool: Tool) -> None:
    assert environments.version_of(tool) != "unknown"
    text = (environments.REQUIREMENTS / f"{tool.name}.txt").read_text()
    wanted = f"{tool.distribution}=={environments.version_of(tool)}"
    assert wanted in (environments.REQUIREMENTS / f"{tool.name}.in").read_text()
    for requirement in re.split(r"\n(?=\S)", text.strip()):
        assert requirement.startswith("#") or "--hash=sha256:" in requirement


def test_an_installation_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An uv that refuses, and speaks as uv does.
    uv = tmp_path / "uv" / "bin" / "uv"
    uv.parent.mkdir(parents=True)
    uv.write_text("#!/bin/sh\necho 'error: no interpreter found' >&2\nexit 2\n")
    uv.chmod(0o755)
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    with pytest.raises(environments.InstallationError, match="no interpreter found"):
        environments.install(CHECKER)


def test_rows_left_out_cost_as_much_as_the_table() -> None:
    found = figures(FOUND, 100)
    assert found["rows_left_out"] == 5
    assert found["dm"] == 5 * 25 + 7 * 100 + 5 * 100
    assert found["distinct"] == 1
    assert found["truthful"] == "yes"


@cases(__file__, "changed", "told")
def test_labels_are_true_where_nothing_but_what_was_left_out_is_missing(
    changed: dict[str, int], told: str
) -> None:
    measured = {**TRUTHFULNESS, **changed}
    assert figures({**FOUND, "truthfulness": measured}, 100)["truthful"] == told
    assert figures({**FOUND, "truthfulness": None}, 100)["truthful"] == ""


def test_what_verify_cannot_read_has_no_figures() -> None:
    assert figures({"unreadable": "a label"}, 100) == {"unreadable": "a label"}


def test_cases_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "build" / "cases.json"
    Cases(path).put(DONE)
    Cases(path).put(replace(DONE, k=10, status="over"))
    Cases(path).put(replace(DONE, seconds=2.0))
    assert [(case.k, case.seconds) for case in Cases(path)] == [(5, 2.0), (10, 1.25)]
    assert Cases(path).get("anonypy", 100, 5) == replace(DONE, seconds=2.0)
    assert Cases(path).get("anonypy", 101, 5) is None


def test_only_what_may_end_otherwise_is_measured_again() -> None:
    assert DONE.is_settled(1800.0)
    assert replace(DONE, status="failed").is_settled(900.0)
    assert replace(DONE, status="over").is_settled(900.0)
    assert not replace(DONE, status="over").is_settled(901.0)
    assert not replace(DONE, status="not installed").is_settled(900.0)


def test_the_table_has_every_case() -> None:
    nothing = replace(DONE, seconds=None, peak_mebibytes=None, figures=None)
    ours = replace(DONE, tool="smondrian", second_opinion={"k": 5, "l": 1})
    cases = [
        replace(DONE, tool="polarfrost", status="over"),
        replace(nothing, tool="anjana", status="not installed", reason="no wheel"),
        DONE,
        replace(ours, seconds=30.0),
    ]
    lines = list(table(cases))
    assert lines[0] == "100 rows:"
    assert [line.split(" |")[0].strip("| ") for line in lines[4:8]] == [
        "**smondrian**", "anonypy", "anjana", "polarfrost"
    ]  # fmt: skip
    assert lines[5] == "| anonypy | 5 | 1.2 | 1,234 | 12 | 5 | 1,325 |  | 5 | yes |"
    assert len({line.count("|") for line in lines[2:8]}) == 1
    told = "\n".join(notes(cases))
    assert "anjana, 100 rows, k = 5: not installed, no wheel." in told
    assert "pycanon counts the same k and distinct l" in told
    other = replace(ours, second_opinion={"k": 4, "l": 1})
    assert "do not agree on smondrian, k = 5: k 4 and 5" in "\n".join(notes([other]))


def test_a_release_that_breaks_its_k_is_named() -> None:
    broken = replace(DONE, figures={**figures(FOUND, 100), "smallest": 4})
    assert "- anonypy, 100 rows, k = 5: the release is not k-anonymous." in list(notes([broken]))


def test_the_section_replaces_its_older_one() -> None:
    text = section([DONE])
    page = "# Page\n\ntext\n"
    once = with_section(page, text)
    assert once == f"{page}\n{text}"
    assert once.endswith("Machine: a machine; some versions.\n")
    assert with_section(once, text) == once
    between = f"# Page\n\n{HEADING}\n\nold\n\n## Limits\n\nmany\n"
    assert with_section(between, text) == f"# Page\n\n{text}\n## Limits\n\nmany\n"
    assert with_section(with_section(between, text), text) == with_section(between, text)


def test_a_command_over_its_limit_is_stopped_with_all_it_started() -> None:
    # The inner process is in a group of its own, as Spark's Python daemon is.
    inner = "import os, time; os.setpgid(0, 0); print(os.getpid(), flush=True); time.sleep(60)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    # On a busy machine both may take long until the inner one runs.
    for limit in (1.0, 8.0, 40.0):
        done = watched([sys.executable, "-c", outer], limit=limit, stdout=subprocess.PIPE)
        assert done.exit_code is None
        if done.output:
            break
    assert done.together > 0
    process = int(done.output)
    deadline = time.monotonic() + 60
    while not is_gone(process):
        assert time.monotonic() < deadline, "the inner process still runs"
        time.sleep(0.05)


def is_gone(process: int) -> bool:
    """Return whether a process has ended, whether or not anybody has asked for its end."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_command_tells_how_it_ended() -> None:
    done = watched([sys.executable, "-c", "print(1); raise SystemExit(3)"], stdout=subprocess.PIPE)
    assert (done.exit_code, done.output) == (3, "1\n")
