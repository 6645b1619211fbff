"""Traps that a review of the code found, each as the input that fell into it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from cases import cases
from helpers import command, configuration_file, summary, write_table

from anonspark.layers.publish import file_assignment

ATTRIBUTES = {"age": "quasi_identifier", "exact_age": "sensitive"}


def test_no_file_ends_where_raw_values_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_assignment, "_FILE_BYTES", 200_000)
    random = np.random.default_rng(0)
    ages = random.permutation(4_000)
    notes = [random.bytes(100).hex() for _ in ages]
    write_table(tmp_path / "input.parquet", {"age": ages, "exact_age": ages, "note": notes})
    configuration = configuration_file(
        tmp_path,
        attributes=ATTRIBUTES | {"note": "insensitive"},
        privacy={"k": 500},
        model={"name": "smondrian"},
    )
    outcome = command(capsys, "run", configuration)
    assert outcome.code == 0, outcome.err
    parts: dict[str, list[np.ndarray]] = {}
    for file in sorted((tmp_path / "release" / "data").glob("*.parquet")):
        table = pq.read_table(file)
        labels = np.array(table["age"].to_pylist())
        values = table["exact_age"].to_numpy()
        for label in np.unique(labels):
            parts.setdefault(label, []).append(values[labels == label])
    divided = [part for part in parts.values() if len(part) > 1]
    assert divided, "no class is divided between files: the test tests nothing"
    for part in divided:
        for one, other in pairwise(part):
            apart = one.max() < other.min() or other.max() < one.min()
            assert not apart


@pytest.mark.parametrize("passes", [0, 1])
def test_baseline_of_relaxed_models_counts_duplicates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], passes: int
) -> None:
    ages = [7] * 150 + list(range(100, 350))
    write_table(tmp_path / "input.parquet", {"age": ages, "exact_age": [1] * 400})
    common = {"attributes": ATTRIBUTES, "execution": {"task_rows": 60}}
    relaxed = {"split": "relaxed", "refine": passes}
    configuration = configuration_file(
        tmp_path,
        **common,
        model=relaxed | {"name": "su-mondrian"},
        evaluate={"compare_baseline": True},
    )
    assert command(capsys, "run", configuration).code == 0
    with_baseline = summary(tmp_path / "release")
    configuration = configuration_file(
        tmp_path, **common, model=relaxed | {"name": "smondrian"}, output={"mode": "overwrite"}
    )
    assert command(capsys, "run", configuration).code == 0
    alone = summary(tmp_path / "release")
    assert with_baseline["baseline_classes"] == alone["classes"]
    assert with_baseline["baseline_dm"] == alone["dm"]
    assert with_baseline["baseline_gcp_total"] == alone["gcp_total"]


def test_published_names_like_those_of_generated_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attributes = {
        "h": "quasi_identifier",
        "h_max": "insensitive",
        "size": "quasi_identifier",
        "content_hash": "insensitive",
    }
    numbers = list(range(40))
    write_table(tmp_path / "input.parquet", dict.fromkeys(attributes, numbers))
    configuration = configuration_file(tmp_path, attributes=attributes)
    assert command(capsys, "run", configuration).code == 0
    outcome = command(capsys, "verify", tmp_path / "release", "--config", configuration)
    assert outcome.code == 0, outcome.err


@pytest.mark.usefixtures("spark")  # which is asked about file systems that we do not know
@cases(__file__, "key", "path", "code")
def test_paths_that_cannot_be_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, path: str, code: int
) -> None:
    write_table(tmp_path / "input.parquet", {"age": [1] * 10, "exact_age": [1] * 10})
    configuration = configuration_file(tmp_path, attributes=ATTRIBUTES)
    path = path.replace("{tmp_path}", str(tmp_path))
    outcome = command(capsys, "run", configuration, "--set", f"{key}='{path}'")
    assert outcome.code == code, outcome.err
    assert path in outcome.err


def test_check_refuses_what_run_would_not_overwrite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(tmp_path / "input.parquet", {"age": [1] * 10, "exact_age": [1] * 10})
    write_table(tmp_path / "release" / "thesis.parquet", {"text": ["precious"]})
    configuration = configuration_file(
        tmp_path, attributes=ATTRIBUTES, output={"mode": "overwrite"}
    )
    for name in ("check", "run"):
        outcome = command(capsys, name, configuration)
        assert outcome.code == 2, outcome.err
        assert "is not a release" in outcome.err
    assert (tmp_path / "release" / "thesis.parquet").exists()
