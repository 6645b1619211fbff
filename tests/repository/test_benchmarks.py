"""Every program of `benchmarks/` runs on small tables, and tools beside ours are read right."""

from __future__ import annotations

import gzip
import json
import re
import runpy
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import minimality
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
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
from places import REPOSITORY
from quality.averaging import train_alone, train_together, weighted_mean
from quality.network import Descent, Examples, Parameters, gradient, probabilities, start
from scaling import PUBLISHING

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run

BENCHMARKS = REPOSITORY / "benchmarks"
LINES = 600

# Arguments by program; DATA is a folder of small public tables, OUT one for what is written.
SMALL = {
    "bench": "--in-session --rows 2000 --runs 1 --models smondrian --directory OUT",
    "compare_models": "--data DATA --tables adult --models smondrian",
    "copies": "duckdb OUT/people OUT/copy.parquet",
    "defaults": "--data DATA --tables Adult --models smondrian --ks 5",
    "full_domain": "adult --data DATA",
    "generated_people": "--rows 1000 --out OUT/generated",
    "grids": "--data DATA --tables Adult --classes 10",
    "large_blocks": "--rows 2000 --engines local",
    "learning": "--rows 1000 --warm-up 1000 --runs 1 --jobs run --directory OUT",
    "mapping": "--rows 2000 --regions 50",
    "minimality": "--data DATA --tables Adult --ks 5",
    "model_loss": "--data DATA --tables privacy",
    "private_selection": "--rows 2000 --candidates 8 --without-identity",
    "quality/attacks": "--data DATA --tables Adult --seeds 0 --ks 5 --rounds 1",
    "quality/identifying": "--data DATA --tables Adult",
    "quality/selection": "--data DATA --runs 1",
    "quality/silos": "--data DATA --seeds 0",
    "recipients": "--rows 2000",
    "refined": "--data DATA --tables Adult --ks 5 --runs 1",
    "release_pairs": "--people 2000",
    "scaling": "OUT/small.json OUT/large.json",
    "separation": "--data DATA",
    "suppression": "--data DATA --tables Adult --models smondrian --limits 0.05",
    "tables": "people 1000 OUT/table",
    "union": "--rows 1000 --holders 2",
    "units": "--visits 3000 --k 5",
    "utility": "--data DATA --tables numbers --models smondrian --ks 5",
}

# What is run before.
BEFORE = {
    "bench": ["tables people 20000 OUT/people-20000", "tables people 2000 OUT/people-2000"],
    "copies": ["tables people 1000 OUT/people"],
}

# The others need what is not in every environment.
ELSEWHERE = {
    "faults": "a cluster whose processes are killed: tests/systems/test_faults.py",
    "on_hdfs": "an HDFS: make systems fetches one",
    "reproduce": "hours: make reproduce. Its parts are the modules of benchmarks/quality",
    "second_opinion": "OpenDP in an environment of its own: tests/systems/test_second_opinion.py",
    "side_by_side": "other tools in environments of their own: make peers",
    "submit": "what make dist packs",
}


def test_every_program_is_run_or_has_a_reason() -> None:
    programs = {
        path.relative_to(BENCHMARKS).with_suffix("").as_posix()
        for path in (*BENCHMARKS.glob("*.py"), *BENCHMARKS.glob("quality/*.py"))
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    assert programs == SMALL.keys() | ELSEWHERE.keys()
    assert not SMALL.keys() & ELSEWHERE.keys()


@pytest.fixture(scope="module")
def small_data(data_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public tables, of each the first lines."""
    folder = tmp_path_factory.mktemp("data")
    for path in data_directory.iterdir():
        if path.is_dir():
            shutil.copytree(path, folder / path.name)
            continue
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rb") as whole, opened(folder / path.name, "wb") as part:
            part.writelines(line for line, _ in zip(whole, range(LINES), strict=False))
    return folder


@pytest.mark.parametrize("program", SMALL)
@pytest.mark.usefixtures("spark_session")
def test_programs_run(
    program: str, small_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("small", "large"), 1):
        (tmp_path / f"{name}.json").write_text(json.dumps(measured(1_000 * number)))
    monkeypatch.setenv("ANONSPARK_DATA", str(small_data))
    for command in (*BEFORE.get(program, ()), f"{program} {SMALL[program]}"):
        called = command.replace("DATA", str(small_data)).replace("OUT", str(tmp_path)).split()
        monkeypatch.setattr(sys, "argv", called)
        runpy.run_path(str(BENCHMARKS / f"{called[0]}.py"), run_name="__main__")


def measured(rows: int) -> dict[str, Any]:
    """Return a file as bench.py writes it, of one model."""
    stages = dict.fromkeys(("prepare", "round 1 of 1", *PUBLISHING), rows / 500)
    case = {"model": "smondrian", "rows": rows, "seconds_of_stages": stages}
    counting = {"counting_seconds": rows / 1000, "counting_passes": 2, "shuffled_bytes": 10 * rows}
    return {"master": "local[2]", "cases": [case | counting]}


def test_a_refused_cut_that_proves_a_value(tmp_path: Path) -> None:
    """Ages 30, 30 and six times 31, of whom three have hiv: the class of eight says who."""
    names = ["hiv", "hiv", "hiv", "flu", "gout", "asthma", "ulcer", "eczema"]
    table = pa.table({"age": [30, 30, *[31] * 6], "ill": names})
    pq.write_table(table, tmp_path / "table.parquet")
    ages = {"role": "quasi_identifier", "grid": None}
    sizes = []
    for criterion in ({}, {"l_diversity": {"attribute": "ill", "l": 2}}):
        document = {
            "input": {"path": str(tmp_path / "table.parquet")},
            "attributes": {"age": ages, "ill": "sensitive"},
            "privacy": {"k": 2, **criterion},
            "model": "smondrian",
            "output": {"path": str(tmp_path / "out"), "mode": "overwrite"},
        }
        summary = run(LocalEngine(), parse_configuration(document), purpose="comparison").summary
        sizes.append((summary["published_classes"], summary["published_min_class_size"]))
    assert sizes == [(2, 2), (1, 8)]
    counts = np.array([3, 1, 1, 1, 1, 1])
    for words in ("l = 2", "entropy l = 2", "alpha = 0.5"):
        judge = minimality.satisfied(minimality.CRITERIA[words], counts / 8)
        known = minimality.known_of(counts, 2, judge)
        assert known is not None
        assert (known.largest[0], known.is_certain) == (pytest.approx(1.0), (True, False))
    judge = minimality.satisfied(minimality.CRITERIA["t = 0.3"], counts / 8)
    known = minimality.known_of(counts, 2, judge)
    assert known is not None
    assert not any(known.is_certain)


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


HOLDERS = (
    Examples(np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([1.0, 0, 1])),
    Examples(np.array([[2.0, 0]]), np.array([1.0])),
)
POOLED = Examples(
    np.concatenate([one.features for one in HOLDERS]),
    np.concatenate([one.labels for one in HOLDERS]),
)
FULL_BATCH = Descent(rate=0.1, batch=None)


def from_zero() -> Parameters:
    return [np.zeros((2, 1)), np.zeros(1)]


def drawn(seed: int, records: int, features: int = 5) -> Examples:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(records, features))
    return Examples(values, (values[:, 0] + rng.normal(size=records) > 0).astype(float))


def generators(holders: int) -> list[np.random.Generator]:
    return [np.random.default_rng([7, number]) for number in range(holders)]


@cases(__file__, "rounds", "steps", "weights", "offset")
def test_logistic_regression_of_two_holders(
    rounds: int, steps: int, weights: tuple[float, float], offset: float
) -> None:
    descent = Descent(rate=0.1, batch=None, steps=steps)
    found, found_offset = train_together(from_zero(), HOLDERS, rounds, descent, generators(2))
    assert found[:, 0] == pytest.approx(weights, abs=5e-9)
    assert found_offset[0] == pytest.approx(offset, abs=5e-9)


@pytest.mark.parametrize("rounds", [1, 2, 30])
def test_one_step_of_full_batches_is_central_descent(rounds: int) -> None:
    central = train_alone(from_zero(), POOLED, rounds, FULL_BATCH, generators(1)[0])
    together = train_together(from_zero(), HOLDERS, rounds, FULL_BATCH, generators(2))
    for own, other in zip(central, together, strict=True):
        assert own == pytest.approx(other, abs=1e-14)


def test_one_holder_is_plain_training_to_the_last_bit() -> None:
    examples, begun = drawn(1, 101), start(5, (8, 4), np.random.default_rng(2))
    alone = train_alone(begun, examples, 5, Descent(), generators(1)[0])
    together = train_together(begun, [examples], 5, Descent(), generators(1))
    assert [one.tobytes() for one in alone] == [one.tobytes() for one in together]
    assert any((own != other).any() for own, other in zip(alone, begun, strict=True))


def test_equal_holders_are_a_plain_mean() -> None:
    models = [start(5, (8,), np.random.default_rng(seed)) for seed in range(3)]
    for own, parts in zip(weighted_mean(models, [40] * 3), zip(*models, strict=True), strict=True):
        assert own == pytest.approx(np.mean(parts, axis=0), abs=1e-15)
    one, other, _ = models
    by_records = weighted_mean([one, other], [3, 1])
    assert by_records[0] == pytest.approx(0.75 * one[0] + 0.25 * other[0])


def test_gradient_is_the_slope_of_the_cross_entropy() -> None:
    examples, parameters = drawn(3, 20), start(5, (6, 3), np.random.default_rng(4))

    def entropy() -> float:
        chance = probabilities(parameters, examples.features)
        return -float(np.mean(np.log(np.where(examples.labels == 1, chance, 1 - chance))))

    step = 1e-6
    for own, slopes in zip(parameters, gradient(parameters, examples), strict=True):
        for place in np.ndindex(own.shape):
            given = own[place]
            own[place] = given + step
            above = entropy()
            own[place] = given - step
            below = entropy()
            own[place] = given
            assert slopes[place] == pytest.approx((above - below) / (2 * step), abs=1e-7)


def test_training_leaves_its_start_as_it_is() -> None:
    begun = start(5, (8,), np.random.default_rng(5))
    before = [one.copy() for one in begun]
    train_alone(begun, drawn(6, 64), 1, Descent(), generators(1)[0])
    for own, other in zip(begun, before, strict=True):
        assert (own == other).all()
