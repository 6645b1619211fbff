"""What is known of a run before its rounds: blocks that no cut makes smaller, early judgement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from commands import Cli
from helpers import configuration_file, write_table

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import GuaranteeError
from anonspark.layers.evaluate.gates import Drift
from anonspark.pipeline.run import run
from anonspark.pipeline.warnings.release_warning import large_block_warnings
from anonspark.progress import Progress

TASK_ROWS = 10
EQUAL = 123
OTHERS = 40


def run_blocks(
    cli: Cli, tmp_path: Path, *options: str, **sections: Any
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
        "attributes": {"age": "quasi_identifier", "town": "quasi_identifier", "ill": "insensitive"},
        "execution": {"task_rows": TASK_ROWS, "seed": 2**60 + 1},
        **sections,
    }
    outcome = cli.ends(0, "run", configuration_file(tmp_path, **sections), *options, "--json")
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert json.loads(outcome.out)["warnings"] == manifest["warnings"]
    found = [one for one in manifest["warnings"] if one["code"] == "large_block"]
    return found, [line for line in outcome.err.splitlines() if "cannot be cut" in line]


ROUNDS = {"name": "su-mondrian", "refine": 0}


@pytest.mark.parametrize("model", ["smondrian", ROUNDS, {"published": "canbay-2019"}])
def test_equal_records(cli: Cli, tmp_path: Path, model: Any) -> None:
    found, logged = run_blocks(cli, tmp_path, "--report", model=model)
    (warning,) = found
    assert warning["figures"] == {"records": 120}
    assert "a block of about 120 records cannot be cut" in warning["text"]
    # Once, although rounds cut the block again.
    assert len(logged) == 1
    assert warning["text"] in logged[0]
    # Who decides about the release need not know of the machine.
    assert "cannot be cut" not in (tmp_path / "release" / "report.html").read_text()


def test_the_log_warns_before_a_task_takes_the_block(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("anonspark.models.blockwise.received_records", out_of_memory)
    with pytest.raises(AssertionError, match="block of about 120 records cannot be cut"):
        run_blocks(cli, tmp_path, model=ROUNDS)


def test_a_criterion_that_allows_no_cut(cli: Cli, tmp_path: Path) -> None:
    attributes = {"age": "quasi_identifier", "ill": "sensitive"}
    found, logged = run_blocks(
        cli,
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
    cli: Cli, tmp_path: Path, model: dict[str, Any], task_rows: int
) -> None:
    execution = {"task_rows": task_rows, "seed": 2**60 + 1}
    assert run_blocks(cli, tmp_path, model=model, execution=execution) == ([], [])


def test_a_resumed_run_has_the_warning_of_its_finished_rounds(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("anonspark.pipeline.run.basis_of_figures", out_of_memory)
    with pytest.raises(AssertionError, match=r"1 finished round\. Continue"):
        run_blocks(cli, tmp_path, "--run-id", "night", "--resume", model="smondrian")
    monkeypatch.undo()
    found, logged = run_blocks(cli, tmp_path, "--run-id", "night", "--resume", model="smondrian")
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


def document_of(folder: Path, rows: int, missing: int = 0, **sections: Any) -> dict[str, Any]:
    """Write a table and return its configuration."""
    random = np.random.default_rng(rows)
    ages = [None] * missing + random.integers(20, 80, rows - missing).tolist()
    path = write_table(folder / f"{rows}-{missing}.parquet", {"age": ages, "town": ["x"] * rows})
    return {
        "input": {"path": str(path)},
        "attributes": {"age": "quasi_identifier", "town": "insensitive"},
        "missing": "drop",
        "privacy": {"k": 4},
        "metrics": {"append_to": str(folder / "runs"), "drift": {"rows_in": 0.2}},
        "execution": {"seed": 1},
        "output": {"path": str(folder / "release"), "mode": "overwrite"},
        **sections,
    }


def stages_of(document: dict[str, Any], words: str | None = None) -> list[str]:
    """Run a configuration, which fails with some words, and return its stages."""
    progress = Progress()
    if words is None:
        run(LocalEngine(), parse_configuration(document), progress=progress)
    else:
        with pytest.raises(GuaranteeError, match=words):
            run(LocalEngine(), parse_configuration(document), progress=progress)
    return list(progress.seconds)


def test_half_a_delivery_ends_the_night_at_once(tmp_path: Path) -> None:
    stages = stages_of(document_of(tmp_path, 100))
    assert stages[:3] == ["prepare", "drift", "round 1 of 5"]
    words = r"metrics\.drift\.rows_in: found 50 after 100 in run \w+, a relative change of 0\.5"
    assert stages_of(document_of(tmp_path, 50), words) == ["prepare", "drift"]
    # Figures that only a release has are judged when there is one.
    told = {"append_to": str(tmp_path / "runs"), "drift": {"gcp": 0.0, "rows_in": 9}}
    stages = stages_of(document_of(tmp_path, 50, metrics=told), r"metrics\.drift\.gcp")
    assert "verify" in stages


def test_a_gate_on_the_input_is_judged_at_once(tmp_path: Path) -> None:
    gates = {"rows_in": {"min": 100}, "rows_dropped_missing": {"max": 5}}
    document = document_of(tmp_path, 60, 10, gates=gates)
    words = (
        r"gates\.rows_in: found 60, expected at least 100, 40 more\n"
        r"gates\.rows_dropped_missing: found 10, expected at most 5, 5 less"
    )
    assert stages_of(document, words) == ["prepare", "drift"]
    # Of fewer than k records no number is told.
    document = document_of(tmp_path, 60, 3, gates={"rows_dropped_missing": {"max": 2}})
    words = r"gates\.rows_dropped_missing: found a number that is withheld"
    assert stages_of(document, words) == ["prepare", "drift"]
    stages_of(document_of(tmp_path, 60, 3, gates={"rows_dropped_missing": {"max": 3}}))


@cases(__file__, "found", "before", "less", "sure")
def test_a_count_that_may_be_told_smaller_is_judged_by_the_nearest(
    found: float, before: float, less: int, sure: bool
) -> None:
    assert Drift("rows_in", found, before, 0.2, "monday").is_sure(less) == sure
    nearest = min((abs(found - some - before) / before for some in range(less + 1)), default=0.0)
    assert sure == (nearest > 0.2)
