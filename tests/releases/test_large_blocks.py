"""A block that no cut makes smaller is one task: the log says so before, the manifest after."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import command, configuration_file, write_table

from anonspark.pipeline.warnings.release_warning import large_block_warnings

TASK_ROWS = 10
EQUAL = 123
OTHERS = 40


def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, *options: str, **sections: Any
) -> tuple[list[dict[str, Any]], list[str]]:
    """Run 123 records that are equal in both quasi-identifiers, and 40 others."""
    write_table(
        tmp_path / "input.parquet",
        {
            "age": [40] * EQUAL + list(range(50, 50 + OTHERS)),
            "town": ["Ulm"] * EQUAL + [f"town {i % 7}" for i in range(OTHERS)],
            "ill": (["yes"] + ["no"] * 2) * (EQUAL // 3) + ["no", "yes"] * (OTHERS // 2),
        },
    )
    sections = {
        "attributes": {
            "age": "quasi_identifier",
            "town": "quasi_identifier",
            "ill": "insensitive",
        },
        "execution": {"task_rows": TASK_ROWS, "seed": 2**60 + 1},
        **sections,
    }
    outcome = command(capsys, "run", configuration_file(tmp_path, **sections), *options, "--json")
    assert outcome.code == 0, outcome.err
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert json.loads(outcome.out)["warnings"] == manifest["warnings"]
    found = [one for one in manifest["warnings"] if one["code"] == "large_block"]
    return found, [line for line in outcome.err.splitlines() if "cannot be cut" in line]


ROUNDS = {"name": "su-mondrian", "refine": 0}


@pytest.mark.parametrize("model", ["smondrian", ROUNDS, {"published": "canbay-2019"}])
def test_equal_records(capsys: pytest.CaptureFixture[str], tmp_path: Path, model: Any) -> None:
    found, logged = run(capsys, tmp_path, "--report", model=model)
    (warning,) = found
    assert warning["figures"] == {"records": 120}
    assert "a block of about 120 records cannot be cut" in warning["text"]
    # Once, although rounds cut the block again.
    assert len(logged) == 1
    assert warning["text"] in logged[0]
    # Who decides about the release need not know of the machine.
    assert "cannot be cut" not in (tmp_path / "release" / "report.html").read_text()


def test_the_log_warns_before_a_task_takes_the_block(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("anonspark.models.blockwise.received_records", out_of_memory)
    with pytest.raises(AssertionError, match="block of about 120 records cannot be cut"):
        run(capsys, tmp_path, model=ROUNDS)


def test_a_criterion_that_allows_no_cut(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    attributes = {"age": "quasi_identifier", "ill": "sensitive"}
    found, logged = run(
        capsys,
        tmp_path,
        attributes=attributes,
        model="smondrian",
        privacy={"t_closeness": {"attribute": "ill", "t": 0.02}},
    )
    (warning,) = found
    # All records are one class: no two parts have nearly the same share of the ill.
    assert warning["figures"] == {"records": 160}
    assert len(logged) == 1


@pytest.mark.parametrize(
    ("model", "task_rows"),
    [
        # These share out what is equal.
        ({"name": "canon"}, TASK_ROWS),
        ({"name": "smondrian", "split": "relaxed"}, TASK_ROWS),
        # A block of at most four times the usual size is no reason.
        ({"name": "smondrian"}, EQUAL // 4 + 1),
        ({"name": "smondrian"}, 1_000),
        ({"name": "microaggregation"}, TASK_ROWS),
    ],
    ids=str,
)
def test_nothing_to_warn_of_blocks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, model: dict[str, Any], task_rows: int
) -> None:
    execution = {"task_rows": task_rows, "seed": 2**60 + 1}
    assert run(capsys, tmp_path, model=model, execution=execution) == ([], [])


def test_a_resumed_run_has_the_warning_of_its_finished_rounds(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("anonspark.pipeline.run.basis_of_figures", out_of_memory)
    with pytest.raises(AssertionError, match=r"1 finished round\. Continue"):
        run(capsys, tmp_path, "--run-id", "night", "--resume", model="smondrian")
    monkeypatch.undo()
    found, logged = run(capsys, tmp_path, "--run-id", "night", "--resume", model="smondrian")
    assert [one["figures"] for one in found] == [{"records": 120}]
    assert logged == []


@pytest.mark.parametrize(
    ("rows", "about"), [(7, 7), (99, 99), (1_234, 1_200), (2_000_000, 2_000_000), (1_999, 1_900)]
)
def test_no_exact_number_is_in_a_warning(rows: int, about: int) -> None:
    (warning,) = large_block_warnings(rows)
    assert warning.figures == {"records": about}
    assert f"about {about:,} records" in warning.text
    assert not list(large_block_warnings(0))
