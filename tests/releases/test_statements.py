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
import pyarrow.parquet as pq
import pytest
from cases import cases, changed
from helpers import command, configuration_file, published, write_table
from release_folders import save_manifest

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.release.manifest import read_manifest
from anonspark.release.manifest_form import manifest_problems
from anonspark.verification.audit import audit_release
from anonspark.verification.class_table import class_schema, read_class_table
from anonspark.verification.classes import count_published_classes
from anonspark.verification.loss import Loss
from anonspark.verification.result import Verification
from anonspark.verification.statements import Statements, read_statements


@dataclass
class Made:
    """A release, what it says, and what is counted in it."""

    path: Path
    said: Statements
    counted: Verification
    columns: list[str]

    def failures(self, manifest: dict[str, Any]) -> list[str]:
        """Tell what is wrong with a manifest that somebody put there."""
        said = replace(self.said, manifest=manifest)
        return [*manifest_problems(manifest), *said.misformed(), *self.missed(said)]

    def missed(self, said: Statements) -> list[str]:
        """Tell what differs from the counts."""
        counted = self.counted
        values = {one.attribute: one.values for one in counted.sensitive}
        return said.miscounted(counted.published, self.columns, counted.criteria, None, values)


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
def test_commands_with_a_changed_manifest(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    release = tmp_path / "release"
    shutil.copytree(made.path, release)
    manifest = changed(made.said.manifest, {"published.rows": 301})
    save_manifest(release, manifest)
    outcome = command(capsys, name, release)
    if name == "verify":
        assert outcome.code == 4
        assert "published.rows: found 301, expected 300" in outcome.err
    else:
        assert outcome.code == 0
        assert "The guarantee does not hold" in (release / "report.html").read_text()
    del manifest["published"]["rows"], manifest["configuration"]["input"]["missing_markers"]
    save_manifest(release, manifest)
    outcome = command(capsys, name, release)
    assert outcome.code == 4
    assert "manifest.json: not a manifest of anonspark" in outcome.err
    assert "published.rows: expected a value there" in outcome.err
    assert "Traceback" not in outcome.err


def test_classes_that_are_not_those_of_the_labels(made: Made) -> None:
    classes = made.said.classes
    assert classes is not None
    sizes = {size + 1: number for size, number in classes.sizes.items()}
    for changes, told in (
        ({"bounds": classes.bounds ^ 1}, "bounds and sizes"),
        ({"unsound": 1}, "rows that no run writes: found 1"),
        ({"sizes": sizes}, "bounds and sizes"),
    ):
        found = made.missed(replace(made.said, classes=replace(classes, **changes)))
        assert any(told in problem for problem in found), (changes, found)


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
    rows = 300
    counted = made.counted.published
    loss = Loss(rows, 0, int(made.said.manifest["summary"]["dm"]), None, None)
    assert made.said.mismeasured(counted, loss, rows) == []
    for name, found in {
        "rows_in": made.said.mismeasured(counted, loss, 400),
        "rows_left_out": made.said.mismeasured(counted, replace(loss, rows_left_out=9), 300),
        "dm": made.said.mismeasured(counted, replace(loss, dm=1), 300),
        "loss": made.said.mismeasured(counted, replace(loss, gcp=0.9, gcp_total=9.0), 300),
    }.items():
        assert any(f"summary.{name}: found" in problem for problem in found), (name, found)


def test_rows_of_classes_as_no_run_writes_them(
    made: Made, tmp_path: Path, engine: LocalEngine
) -> None:
    said = made.said
    assert said.labels is not None
    rows = pq.read_table(made.path / "metrics" / "classes").to_pylist()
    for number, (name, value) in enumerate(
        {"run_id": "day", "class_id": "Jane Doe 7, has flu", "round": None, "size": None}.items()
    ):
        path = tmp_path / f"{number}.parquet"
        forged = [{**rows[0], name: value}, *rows[1:]]
        pq.write_table(pa.Table.from_pylist(forged, schema=class_schema(said.labels)), path)
        table = engine.published(str(path), "parquet")
        read = read_class_table(table, said.labels, rows[0]["run_id"])
        assert (read.unsound, read.bounds == said.classes.bounds) == (1, name != "size"), name


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
