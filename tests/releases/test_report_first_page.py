"""The first page of the report of Adult: what an officer asks, and what each edition tells."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from commands import Cli

from anonspark.cli.application import main
from anonspark.config import Configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.table import LocalTable
from anonspark.engine.protocol import Engine
from anonspark.release.manifest import read_manifest
from anonspark.release.originals import open_original
from anonspark.reporting import build_report
from anonspark.reporting.build_report import make_report
from anonspark.verification.result import Verification

QUASI_IDENTIFIERS = ["age", "workclass", "education-num", "marital-status", "hours-per-week"]
K = 10


@pytest.fixture(scope="module")
def verified() -> list[Verification | None]:
    """Keep what the run has verified when it makes its report."""
    return []


@pytest.fixture(scope="module")
def adult(
    data_directory: Path,
    tmp_path_factory: pytest.TempPathFactory,
    verified: list[Verification | None],
) -> Path:
    folder = tmp_path_factory.mktemp("first-page")
    document = {
        # Nothing is said of the file: the report reads it as the run did.
        "input": {"path": str(data_directory / "adult.csv")},
        "attributes": {
            **{name: {"role": "quasi_identifier", "grid": "auto"} for name in QUASI_IDENTIFIERS},
            "occupation": "sensitive",
            "income": "insensitive",
        },
        "privacy": {"k": K, "l_diversity": {"attribute": "occupation", "l": 3}},
        "model": {"name": "su-mondrian", "refine": 0},
        "evaluate": {"association": {"target": "income"}},
        "output": {"path": str(folder / "release")},
        "report": {
            "title": "Jobs <and> incomes",
            "purpose": "Teaching statistics.",
            "contact": "privacy@university.example",
        },
    }
    (folder / "adult.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    report_run = build_report.report_run

    def keep(engine: Engine, configuration: Configuration, one: Verification | None) -> str:
        verified.append(one)
        return report_run(engine, configuration, one)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_report, "report_run", keep)
        assert main(["run", str(folder / "adult.yaml"), "--report", "--no-progress"]) == 0
    return folder


def report_of(adult: Path) -> str:
    return (adult / "release" / "report.html").read_text()


def plain(page: str) -> str:
    """Return the text of a page, without the meanings of its words."""
    without = re.sub(r'<span class="tip".*?</span>', "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", without)))


def classes_of(release: Path) -> Iterator[list[str]]:
    """Return the occupations of each class."""
    table = pq.read_table(release / "data")
    names = [one for one in table.schema.names if one not in ("occupation", "income")]
    grouped = table.group_by(names).aggregate([("occupation", "list")])
    yield from grouped["occupation_list"].to_pylist()


def test_five_tiles_answer_first(adult: Path) -> None:
    page = report_of(adult)
    assert len(re.findall(r'<li class="tile', page)) == 5
    before = plain(page[: page.index("<nav")])
    for text in ("Verdict holds", "100% → 10%", "Records lost 0"):
        assert text in before
    assert "89.5% share one value" in before
    assert "Of the information that the attributes have about the target, 1.6% is lost" in before


def test_title_purpose_and_contact_are_those_of_the_configuration(adult: Path) -> None:
    page = report_of(adult)
    assert "<title>Anonymization report: Jobs &lt;and&gt; incomes</title>" in page
    assert "Teaching statistics." in page
    assert "Questions: privacy@university.example" in page


def test_what_verify_measures_of_classes_is_on_the_page(adult: Path) -> None:
    page = plain(report_of(adult))
    classes = list(classes_of(adult / "release"))
    shares = [max(map(one.count, one)) / len(one) for one in classes]
    assert f"{max(shares):.1%}" == "89.5%"
    assert "occupation: 89.5% of one class share one value" in page
    assert "No class has one value only" in page
    some = [one for one, share in zip(classes, shares, strict=True) if share > 0.5]
    counted = f"In {len(some):,} classes with {sum(map(len, some)):,} records"
    assert f"{counted} one value has more than 50%" in page
    assert "occupation: singles people out by itself" in page


def test_a_stricter_promise_is_measured_with_its_line(
    adult: Path, tmp_path: Path, cli: Cli
) -> None:
    page = unescape(report_of(adult))
    lines = re.findall(r"<pre [^>]*>(--set [^<]*)</pre>", page)
    assert lines == [
        "--set 'privacy.t_closeness={attribute: occupation, t: 0.6}'",
        "--set 'privacy.alpha_k_anonymity={attribute: occupation, alpha: 0.5}'",
    ]
    everybody = [value for one in classes_of(adult / "release") for value in one]
    values = sorted(set(everybody))
    whole = [everybody.count(value) / len(everybody) for value in values]
    far = [
        one
        for one in classes_of(adult / "release")
        if sum(
            abs(one.count(value) / len(one) - share)
            for value, share in zip(values, whole, strict=True)
        )
        / 2
        > 0.6 + 1e-9
    ]
    records = sum(map(len, far))
    assert (
        f"{len(far):,} of {len(list(classes_of(adult / 'release'))):,} classes do not keep it now, "
        f"with {records:,} records" in plain(page)
    )
    options = [line.removeprefix("--set ").strip("'") for line in lines]
    options.append(f"output.path={tmp_path / 'stricter'}")
    cli.ends(0, "check", adult / "adult.yaml", *(f"--set={one}" for one in options))


def test_a_run_with_all_lines_keeps_all_that_they_say(tmp_path: Path, cli: Cli) -> None:
    records = 600
    columns = {
        "age": [one * 7 % 61 for one in range(records)],
        "town": [f"town {one * 11 % 13}" for one in range(records)],
        "job": [("cook", "nurse", "smith")[(one % 61) * (one % 5) % 3] for one in range(records)],
        "ill": [("flu", "cold")[one * one % 7 < 3] for one in range(records)],
        "tool": ["hammer" if one > 2 else "saw" for one in range(records)],
    }
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    document = {
        "input": {"path": str(tmp_path / "people.parquet")},
        "quasi_identifiers": ["age", "town"],
        "sensitive": ["job", "ill"],
        "insensitive": ["tool"],
        "privacy": {"k": 4, "l_diversity": {"job": 2}},
        "output": {"path": str(tmp_path / "release")},
    }
    (tmp_path / "people.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    assert main(["run", str(tmp_path / "people.yaml"), "--report", "--no-progress"]) == 0
    page = unescape((tmp_path / "release" / "report.html").read_text())
    lines = re.findall(r"<pre [^>]*>(--set [^<]*)</pre>", page)
    settings = [shlex.split(line)[1] for line in lines]
    assert len({one.partition("=")[0] for one in settings}) == len(settings)
    out = tmp_path / "stricter"
    options = [f"--set={one}" for one in (*settings, f"output.path={out}")]
    cli.ends(0, "run", tmp_path / "people.yaml", *options)
    kept = read_manifest(LocalEngine().files, str(out)).configuration
    privacy = kept["privacy"]
    asked = {
        key: {one["attribute"] for one in privacy[key]}
        for key in ("l_diversity", "t_closeness", "alpha_k_anonymity")
    }
    assert asked == {key: {"job", "ill"} for key in asked}
    assert privacy["k"] == 5
    assert kept["attributes"]["tool"]["role"] == "quasi_identifier"


def test_what_a_chart_says_is_in_the_table_below_it(adult: Path) -> None:
    page = report_of(adult)
    figures = re.findall(r"<figure>.*?</figure>", page, re.DOTALL)
    assert len(figures) >= 2 * len(QUASI_IDENTIFIERS)
    said = 0
    for figure in figures:
        below = plain(figure[figure.index("<table") :])
        for one in re.findall(r"<title>(.*?)</title>", figure, re.DOTALL):
            name, *lines = [plain(line).strip() for line in one.split("\n")]
            if not any(lines):
                name, lines = name.rsplit(": ", 1)[0], [name]
            for line in filter(None, lines):
                said += 1
                text = line.rpartition(": ")[2]
                numbers = re.findall(r"fewer than \d+|[\d.,]*\d(?: %)?", text)
                assert numbers, line
                assert all(number in below for number in numbers), (line, below)
    assert said > 150
    without = re.sub(r'<g class="tips".*?</g>', "", page, flags=re.DOTALL)
    assert len(page) < 1.5 * len(without)


def test_the_section_changes_no_fingerprint(adult: Path) -> None:
    document = yaml.safe_load((adult / "adult.yaml").read_text())
    told = Configuration.model_validate(document)
    del document["report"]
    untold = Configuration.model_validate(document)
    assert told.fingerprint() == untold.fingerprint()
    assert told.settings_fingerprint() == untold.settings_fingerprint()
    assert "report" not in untold.public_dict()
    manifest = json.loads((adult / "release" / "manifest.json").read_text())
    assert manifest["configuration"]["report"]["contact"] == "privacy@university.example"
    assert main(["verify", str(adult / "release"), "--no-progress"]) == 0


def test_what_the_run_has_verified_is_not_verified_again(
    adult: Path, verified: list[Verification | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted are the tables that are collected, and the directories that are read as bytes."""
    passes: list[Any] = []
    read: list[str] = []
    collect, contents = LocalTable.collect, LocalEngine.contents

    def count(self: LocalTable, most: int | None = None) -> pa.Table:
        passes.append(most)
        return collect(self, most)

    def note(self: LocalEngine, directory: str, **options: Any) -> Any:
        read.append(directory)
        return contents(self, directory, **options)

    release = adult / "release"
    monkeypatch.setattr(LocalTable, "collect", count)
    monkeypatch.setattr(LocalEngine, "contents", note)
    (found,) = verified
    assert found is not None
    engine = LocalEngine()
    source = yaml.safe_load((adult / "adult.yaml").read_text())["input"]["path"]
    original = open_original(engine, source, read_manifest(engine.files, str(release)))
    counts = []
    for one in (found, None):
        passes.clear()
        read.clear()
        make_report(engine, str(release), original, source, verified=one)
        counts.append((len(passes), len(read)))
    assert counts == [(7, 0), (21, 1)]
