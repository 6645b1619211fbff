"""What a manifest or a table of metrics says of a release is counted, or listed as claimed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases, changed
from commands import Cli
from helpers import configuration_file, published, write_table
from release_folders import save_manifest

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.release.manifest import read_manifest
from anonspark.release.manifest_form import manifest_problems
from anonspark.verification.attacks.loss import Loss
from anonspark.verification.audit import audit_release
from anonspark.verification.claims.claim import Claim
from anonspark.verification.claims.statements import Statements, read_statements
from anonspark.verification.proof.classes import count_published_classes
from anonspark.verification.result import Verification


@dataclass
class Made:
    """A release, what it says, and what is counted in it."""

    path: Path
    said: Statements
    counted: Verification
    columns: list[str]

    @property
    def claim(self) -> Claim:
        """Return what the manifest promises."""
        return Claim(self.said.privacy, self.columns, (), risk=self.said.risk)

    def failures(self, manifest: dict[str, Any]) -> list[str]:
        """Tell what is wrong with a manifest that somebody put there."""
        said = replace(self.said, manifest=manifest)
        return [*manifest_problems(manifest), *said.misformed(), *self.missed(said)]

    def missed(self, said: Statements) -> list[str]:
        """Tell what differs from the counts."""
        return said.miscounted(self.counted, self.claim, self.columns)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    engine = LocalEngine()
    folder = tmp_path_factory.mktemp("made")
    random = np.random.default_rng(3)
    table = {
        "age": random.integers(0, 99, 300),
        "pay": random.lognormal(9, 1, 300),
        "town": random.choice(["Ash", "Elm"], 300),
        "illness": random.choice(["flu", "gout", "mumps"], 300),
    }
    write_table(folder / "input.parquet", table)
    path = configuration_file(
        folder,
        attributes={
            "age": {"role": "quasi_identifier", "weight": 2.0},
            "pay": "quasi_identifier",
            "town": "quasi_identifier",
            "illness": "sensitive",
        },
        missing="category",
        model={"name": "su-mondrian", "refine": 0},
        privacy={"k": 5, "l_diversity": {"attribute": "illness", "l": 2}},
        gates={"gcp": {"max": 0.9}, "attributes.age.ncp": {"max": 0.9}},
        output={"style": "bounds"},
    )
    run(engine, load_configuration(str(path)), run_id="night")
    release = folder / "release"
    counted = audit_release(engine, str(release))
    assert counted.failures == []
    manifest = read_manifest(engine.files, str(release)).document
    privacy = load_configuration(str(path)).privacy
    risk = load_configuration(str(path)).evaluate.risk
    said = read_statements(engine, str(release), manifest, privacy, risk)
    columns = published(release).column_names
    assert said.labels is not None
    data = engine.published(str(release / "data"), "parquet")
    # With the key of these statements.
    classes = count_published_classes(data, said.labels.columns, labels=said.labels)
    counted = replace(counted, published=classes)
    made = Made(release, said, counted, columns)
    assert made.failures(manifest) == []
    return made


def numbers(found: object, before: str = "") -> Iterator[tuple[str, int | float]]:
    """Find every number and truth value at any depth, and the path to it."""
    inside: Any = found.items() if isinstance(found, dict) else ()
    if isinstance(found, list):
        inside = enumerate(found)
    for key, value in inside:
        if isinstance(value, int | float):
            yield f"{before}{key}", value
        yield from numbers(value, f"{before}{key}.")


def test_every_figure_is_counted_or_claimed(made: Made) -> None:
    """Also where the table of the summary was changed with the manifest."""
    (row,) = made.said.tables["summary"]
    counted = set()
    for path, value in numbers(made.said.manifest):
        section, _, name = path.partition(".")
        if section not in ("published", "summary"):
            continue
        manifest = changed(made.said.manifest, {path: value + 1})
        summary = {**row, name: value + 1} if section == "summary" else row
        tables = {**made.said.tables, "summary": [summary]}
        said = replace(made.said, manifest=manifest, tables=tables, claimed=set())
        found = [*manifest_problems(manifest), *said.misformed(), *made.missed(said)]
        claims = [one.removeprefix("manifest: ") for one in said.unproven]
        is_claimed = any(path == one or path.startswith(f"{one}.") for one in claims)
        assert is_claimed or any(section in one for one in found), path
        if not is_claimed:
            counted.add(name)
    assert {
        *("rows_published", "published_classes", "published_min_class_size", "k", "classes", "dm"),
        *("mean_class_size", "aecs", "min_class_size", "max_class_size", "rows_suppressed"),
        *("minimal_distortion", "columns_published", "rows"),
    } <= counted


@cases(__file__, "path", "value", "told")
def test_a_manifest_that_contradicts_itself(made: Made, path: str, value: Any, told: str) -> None:
    found = made.failures(changed(made.said.manifest, {path: value}))
    assert any(told in problem for problem in found), found


@cases(__file__, "name", "changes", "told")
def test_metrics_that_say_something_else(
    made: Made, name: str, changes: dict[str, Any], told: str
) -> None:
    # Of the release, not of a round.
    rows = [
        {**row, **(changes if row.get("round") is None or name != "risk" else {})}
        for row in made.said.tables[name]
    ]
    said = replace(made.said, tables={**made.said.tables, name: rows})
    found = said.misformed() + made.missed(said)
    assert any(told in problem for problem in found), found


def test_metrics_of_other_columns_and_types(
    made: Made, tmp_path: Path, engine: LocalEngine
) -> None:
    """Neither a traceback nor silence: the table is named."""
    release = tmp_path / "release"
    shutil.copytree(made.path, release)
    for name, table in {
        "risk": {"attacker": [1]},
        "attributes": {"attribute": ["age"]},
        "rounds": {"round": ["one"]},
        "classes": {"size": ["five"], "ncp": [0.5]},
        "summary": {"rows_in": ["all"]},
        "privacy": {"criterion": pa.nulls(1)},
    }.items():
        shutil.rmtree(release / "metrics" / name)
        write_table(release / "metrics" / name / "part-00000.parquet", table)
    said = read_statements(
        engine, str(release), made.said.manifest, made.said.privacy, made.said.risk
    )
    assert set(said.unread) == {"risk", "attributes", "rounds", "classes", "summary", "privacy"}
    assert sum("cannot be read" in problem for problem in said.misformed()) == 6


@pytest.mark.parametrize("name", ["verify", "report"])
def test_commands_with_a_changed_manifest(made: Made, tmp_path: Path, cli: Cli, name: str) -> None:
    release = tmp_path / "release"
    shutil.copytree(made.path, release)
    manifest = changed(made.said.manifest, {"published.rows": 301})
    save_manifest(release, manifest)
    outcome = cli(name, release)
    if name == "verify":
        assert outcome.code == 4
        assert "published.rows: found 301, expected 300" in outcome.err
    else:
        assert outcome.code == 0
        assert "The guarantee does not hold" in (release / "report.html").read_text()
    del manifest["published"]["rows"], manifest["configuration"]["input"]["missing_markers"]
    save_manifest(release, manifest)
    outcome = cli.ends(4, name, release, says="manifest.json: not a manifest of anonspark")
    assert "published.rows: expected a value there" in outcome.err
    assert "Traceback" not in outcome.err


def test_sizes_that_no_label_shows_are_claimed(made: Made) -> None:
    """Labels do not show whether a run divided a class, nor figures that follow from that."""
    classes = made.said.classes
    assert classes is not None
    size = max(classes.sizes)
    parts = Counter(classes.sizes) + Counter([size // 2, size - size // 2]) - Counter([size])
    for sizes, is_divided in ((classes.sizes, False), (parts, True)):
        said = replace(made.said, classes=replace(classes, sizes=sizes), claimed=set())
        assert not made.missed(said)
        names = {"metrics/classes: size", "manifest: summary.dm", "metrics/summary: dm"}
        assert (names <= set(said.unproven)) == is_divided


def test_figures_that_the_original_refutes(made: Made) -> None:
    """What was measured with the original is compared with what is said."""
    loss = Loss(300, 0, int(made.said.manifest["summary"]["dm"]), None, None)
    for name, rows, changes in (
        (None, 300, {}),
        ("rows_in", 400, {}),
        ("rows_left_out", 300, {"rows_left_out": 9}),
        ("dm", 300, {"dm": 1}),
        ("loss", 300, {"gcp": 0.9, "gcp_total": 9.0}),
    ):
        measured = replace(made.counted, loss=replace(loss, **changes))
        found = made.said.mismeasured(measured, rows)
        assert bool(found) == (name is not None)
        assert name is None or any(f"summary.{name}: found" in problem for problem in found), (
            name,
            found,
        )


def test_texts_of_another_version_are_claimed(made: Made) -> None:
    texts = {"file: README.md", "file: check_release.py", "file: datapackage.json"}
    assert not texts & set(made.said.unproven)
    assert made.said.warnings() == []
    versions = made.said.manifest["versions"] | {"anonspark": "0.0.9"}
    older = replace(made.said, manifest={**made.said.manifest, "versions": versions})
    assert texts < set(older.unproven)
    (warning,) = older.warnings()
    assert "claimed, not proven" in warning
    assert "0.0.9" in warning
