"""What models learn from a release, in its report as ``anonspark evaluate`` tells it."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest
from evaluated import people
from helpers import command, configuration_file, write_table

import anonspark
from anonspark.cli.application import main


class Made(NamedTuple):
    """A release, and what it was made of."""

    release: Path
    original: Path
    holdout: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("learned")
    table = people().drop_columns(["born", "visits"])
    original = write_table(folder / "input.parquet", table.slice(0, 400))
    holdout = write_table(folder / "holdout.parquet", table.slice(400))
    attributes = {
        **dict.fromkeys(("age", "job", "weight"), "quasi_identifier"),
        "ill": "sensitive",
    }
    path = configuration_file(folder, attributes=attributes, missing="category")
    assert main(["run", str(path), "--no-progress"]) == 0
    return Made(folder / "release", original, holdout)


@pytest.mark.parametrize("held_out", [True, False])
def test_the_sentence_is_that_of_evaluate(
    made: Made, capsys: pytest.CaptureFixture[str], tmp_path: Path, held_out: bool
) -> None:
    given = ["--original", made.original, "--target", "ill", "--no-progress"]
    given += ["--holdout", made.holdout] * held_out
    told = json.loads(command(capsys, "evaluate", made.release, *given, "--json").out)
    out = tmp_path / "report.html"
    assert command(capsys, "report", made.release, *given, "--out", out).code == 0
    page = unescape(out.read_text())
    sentence = f"{told['sentence'][0].upper()}{told['sentence'][1:]}."
    assert "as good as on the original (95% interval" in sentence
    # In the tile and in the section.
    assert page.count(sentence) == 2
    assert ("flattering" in page) is not held_out
    share = f"{100 * told['kept']['share']:.1f}%"
    assert re.search(rf'class="[^"]*value[^"]*">{share}<', page)
    for one in told["learning"]["differences"]:
        assert f"{one['roc_auc']['difference']:+.4f}" in page
    if held_out:
        html = anonspark.report(
            made.release, original=made.original, target="ill", holdout=made.holdout
        ).html
        assert html == out.read_text()


def test_too_few_test_records_are_refused(
    made: Made, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    few = write_table(tmp_path / "few.parquet", pq.read_table(made.holdout).slice(0, 4))
    given = ["--original", made.original, "--target", "ill", "--no-progress"]
    outcome = command(capsys, "report", made.release, *given, "--holdout", few)
    assert outcome.code == 3
    assert "fewer than 5 test records. Expected k = 5 or none of each kind" in outcome.err
    assert not (made.release / "report.html").exists()
    outcome = command(capsys, "report", made.release, "--target", "ill", "--no-progress")
    assert outcome.code == 2
    assert "--target: found no --original. " in outcome.err
