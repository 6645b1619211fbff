"""Nothing is replaced or deleted but what a run of ours wrote; links are refused at the start."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from helpers import (
    configuration_file,
    contents,
    list_earlier_release,
    write_earlier_release,
    write_table,
)
from pyspark.sql import SparkSession
from release_folders import write_checksum

from anonspark.comparison.runner import _require_own_output
from anonspark.config import Configuration, parse_configuration
from anonspark.demo.people import prepare_demo
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.layers.publish.committing import begin, commit
from anonspark.layers.publish.history import append_to_history
from anonspark.layers.publish.paths import (
    require_replaceable_release,
    require_usable_metrics,
    require_usable_output,
)
from anonspark.layers.publish.run_state import RunState
from anonspark.layers.publish.staging import open_staging
from anonspark.reporting.build_report import report_path, write_report

pytestmark = pytest.mark.usefixtures("spark")

ATTRIBUTES = {"age": "quasi_identifier"}

Damage = Callable[[Path], object]


def configured(folder: Path, **sections: Any) -> Configuration:
    """Return a configuration whose input and output lie in a folder."""
    document: dict[str, Any] = {
        "input": {"path": str(folder / "input.parquet")},
        "attributes": ATTRIBUTES,
        "privacy": {"k": 2},
        "output": {"path": str(folder / "release"), "mode": "overwrite"},
    }
    for name, section in sections.items():
        document[name] = document.get(name, {}) | section
    return parse_configuration(document)


def write(path: Path, content: bytes = b"precious") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


NOT_REPLACED: dict[str, tuple[Damage, str]] = {
    "empty manifest": (lambda release: write(release / "manifest.json", b"{}"), "not a release"),
    "list as manifest": (lambda release: write(release / "manifest.json", b"[1]"), "not a release"),
    "key twice": (
        lambda release: write(
            release / "manifest.json",
            (release / "manifest.json").read_bytes().replace(b"{", b'{"published": {}, ', 1),
        ),
        "not a release",
    ),
    "file beside": (lambda release: write(release / "thesis.txt"), "thesis.txt"),
    "hidden file": (lambda release: write(release / ".secret"), ".secret"),
    "hidden file of data": (lambda release: write(release / "data/_notes"), "data/_notes"),
    "raw table": (lambda release: write(release / "data/_raw/part-0.parquet"), "data/_raw/part-0"),
    "directory": (lambda release: write(release / "raw/part-0.parquet"), "raw/part-0.parquet"),
    "empty directory": (lambda release: (release / "raw").mkdir(), "raw/ (a directory)"),
    "other table": (lambda release: write(release / "metrics/people/part-0"), "metrics/people"),
    "checksum of nothing": (lambda release: write(release / "data/.other.crc"), "data/.other.crc"),
    "No checksum": (
        lambda release: write(release / "data/.part-0.parquet.crc", b"crc\0\0\0\2\0" + b"x" * 40),
        ".part-0.parquet.crc",
    ),
    "link": (lambda release: (release / "data/link").symlink_to("/etc"), "(a symbolic link)"),
    "pipe": (lambda release: os.mkfifo(release / "data/part-1"), "data/part-1 (no file)"),
}


@pytest.mark.parametrize("damage", NOT_REPLACED)
def test_what_is_no_release_alone_is_not_replaced(
    spark: SparkSession, tmp_path: Path, damage: str
) -> None:
    release = tmp_path / "release"
    write_earlier_release(release)
    require_replaceable_release(FileSystem(spark), str(release))
    spoil, told = NOT_REPLACED[damage]
    spoil(release)
    with pytest.raises(ConfigurationError, match=r"^output\.path: ") as refusal:
        require_replaceable_release(FileSystem(spark), str(release))
    assert told in str(refusal.value)


def test_what_a_release_may_hold(spark: SparkSession, tmp_path: Path) -> None:
    """Tables, a report, checksums of Hadoop's, and the mark of the run that published it."""
    release = tmp_path / "release"
    write_earlier_release(release)
    files = FileSystem(spark)
    names = ("report.html", "metrics/summary/part-00000.parquet", "left_out/part-0")
    for name in names:
        files.write_text(str(release / name), "x" * 1500)
    with pytest.raises(ConfigurationError, match=r"left_out/part-0.* and 1 more"):
        require_replaceable_release(files, str(release))
    list_earlier_release(release)
    (release / ".anonspark-night").touch()
    for name in names:
        write_checksum(release / name)
    require_replaceable_release(files, str(release))


def test_overwriting_looks_again_before_the_rename(spark: SparkSession, tmp_path: Path) -> None:
    release = tmp_path / "release"
    write_earlier_release(release)
    files = FileSystem(spark)
    with open_staging(files, str(release), "night") as staging:
        begin(files, staging)
        write(release / "thesis.txt")
        files.write_text(f"{staging.manifest}/manifest.json", "{}")
        before = contents(release)
        with pytest.raises(ConfigurationError, match=r"thesis\.txt"):
            commit(files, staging, overwrite=True)
    assert contents(release) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release"]


LINKS: dict[str, tuple[dict[str, dict[str, str]], str]] = {
    "dangling output": ({"output": {"path": "dangling"}}, "output.path: .*symbolic link"),
    "output": ({"output": {"path": "link"}}, "output.path: .*symbolic link"),
    "output below": ({"output": {"path": "dangling/a/b"}}, "output.path: .*not there"),
    "staging": ({"execution": {"staging_path": "dangling"}}, "execution.staging_path: .*not there"),
    "history": ({"metrics": {"append_to": "dangling/a"}}, "metrics.append_to: .*not there"),
}


@pytest.mark.parametrize("case", LINKS)
def test_links_are_refused_at_the_start(spark: SparkSession, tmp_path: Path, case: str) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    write_earlier_release(tmp_path / "there")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    sections, told = LINKS[case]
    sections = {
        name: {key: str(tmp_path / value) for key, value in section.items()}
        for name, section in sections.items()
    }
    files, configuration = FileSystem(spark), configured(tmp_path, **sections)

    def look() -> None:
        require_usable_output(files, configuration)
        require_usable_metrics(files, configuration)

    with pytest.raises(ConfigurationError, match=told):
        look()


def test_links_above_the_output_are_fine(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    files = FileSystem(spark)
    places = {"output": {"path": f"{tmp_path}/link/release"}}
    places |= {"execution": {"staging_path": f"{tmp_path}/link"}}
    places |= {"metrics": {"append_to": f"{tmp_path}/link"}}
    require_usable_output(files, configured(tmp_path, **places))
    write_earlier_release(tmp_path / "disk" / "release")
    require_replaceable_release(files, f"{tmp_path}/link/release")


@pytest.mark.parametrize("name", ["check", "run"])
def test_a_link_as_output_is_told_by_commands(tmp_path: Path, cli: Cli, name: str) -> None:
    """Before the input is opened: there is none here."""
    (tmp_path / "release").symlink_to(tmp_path / "nowhere")
    path = configuration_file(tmp_path, attributes=ATTRIBUTES)
    cli.ends(2, name, path, says=("output.path", "is a symbolic link"))
    assert [one.name for one in sorted(tmp_path.iterdir())] == ["configuration.yaml", "release"]


def stage(spark: SparkSession, folder: Path) -> Path:
    """Leave what a killed run leaves."""
    staging = folder / ".release.anonspark-night"
    RunState.claim(FileSystem(spark), str(staging / "state")).end()
    staging.chmod(0o700)
    write(staging / "records-1" / "snapshot" / "part-0")
    return staging


def precious_in_half_release(staging: Path) -> None:
    write(staging.parent / "release" / ".anonspark-night", b"")
    write(staging.parent / "release" / "data" / "thesis.txt")


def precious_beside_listed_files(staging: Path) -> None:
    write(staging / "release-files.json", b'["data/part-0"]')
    write(staging.parent / "release" / ".anonspark-night", b"")
    write(staging.parent / "release" / "data" / "part-0")
    write(staging.parent / "release" / "data" / "part-1")


def private_directory_of_others(staging: Path) -> None:
    write(staging.parent / "home" / "thesis.txt")
    write(staging / "raw-records-at.txt", f"file:{staging.parent}/home".encode())


def staging_that_is_a_link(staging: Path) -> None:
    shutil.move(staging, staging.parent / "elsewhere")
    staging.symlink_to(staging.parent / "elsewhere")


SPARED: dict[str, tuple[Damage, str]] = {
    "half release": (precious_in_half_release, "data/thesis.txt"),
    "listed files": (precious_beside_listed_files, "data/part-1"),
    "other private directory": (private_directory_of_others, "names no staging directory"),
    "file in staging": (lambda staging: write(staging / "thesis.txt"), "thesis.txt"),
    "link": (staging_that_is_a_link, "is a symbolic link"),
}


@pytest.mark.parametrize("case", SPARED)
def test_clean_spares_what_no_run_wrote(
    spark: SparkSession, tmp_path: Path, cli: Cli, case: str
) -> None:
    staging = stage(spark, tmp_path)
    spoil, told = SPARED[case]
    spoil(staging)
    path = configuration_file(tmp_path, attributes=ATTRIBUTES)
    precious = [one for one in tmp_path.rglob("*") if one.name in ("thesis.txt", "part-1")]
    cli.ends(5, "clean", path, says=told)
    assert all(one.exists() for one in precious)
    if case == "link":
        assert (tmp_path / "elsewhere" / "records-1").exists()


REPORT = b"<!doctype html>\n<html><title>Anonymization report: night</title>"


def test_a_report_replaces_reports_alone(spark: SparkSession, tmp_path: Path) -> None:
    files, release = FileSystem(spark), str(tmp_path / "release")
    write_earlier_release(tmp_path / "release")
    people = write(tmp_path / "people.csv")
    (tmp_path / "link.html").symlink_to(people)
    for out, told in {
        str(people): "is not a report",
        str(tmp_path / "release"): "is not a report",
        str(tmp_path / "link.html"): "symbolic link",
        f"{release}/data/report.html": "inside the release",
        f"{release}/manifest.json": "inside the release",
    }.items():
        with pytest.raises(ConfigurationError, match=rf"^--out: .*{told}"):
            report_path(files, release, out)
    earlier = write(tmp_path / "earlier.html", REPORT)
    assert report_path(files, release, str(earlier)) == str(earlier)
    assert report_path(files, release, None) == f"{release}/report.html"
    write(tmp_path / "release" / "report.html", b"<html>my own")
    with pytest.raises(ConfigurationError, match="is not a report"):
        report_path(files, release, None)


def test_a_report_of_an_earlier_version(spark: SparkSession, tmp_path: Path) -> None:
    files, release = FileSystem(spark), tmp_path / "release"
    write_earlier_release(release)
    path = report_path(files, str(release), None)
    write_report(files, str(release), path, REPORT.decode())
    listed = json.loads((release / "manifest.json").read_text())["files"]
    assert "report.html" in [file["path"] for file in listed]
    require_replaceable_release(files, str(release))


def test_a_demo_replaces_demos_alone(tmp_path: Path) -> None:
    people = write(tmp_path / "people-100.parquet")
    with pytest.raises(ConfigurationError, match="was not written by the demo"):
        prepare_demo(tmp_path, 100)
    people.unlink()
    prepare_demo(tmp_path, 100)
    prepare_demo(tmp_path, 100)
    people.rename(tmp_path / "people-200.parquet")
    with pytest.raises(ConfigurationError, match="was not written by the demo"):
        prepare_demo(tmp_path, 200)
    configuration = write(tmp_path / "people.yaml", b"input: {path: a}\n")
    with pytest.raises(ConfigurationError, match=r"people\.yaml was not written by the demo"):
        prepare_demo(tmp_path, 100)
    assert configuration.read_bytes() == b"input: {path: a}\n"


def test_comparisons_replace_comparisons_alone(spark: SparkSession, tmp_path: Path) -> None:
    files, output = FileSystem(spark), tmp_path / "grid"
    configuration = configured(tmp_path)
    write_table(tmp_path / "input.parquet", {"age": [1, 1]})
    cell = write(output / "cells" / "0123456789abcdef.json", b"{}")
    for name in ("metrics.csv", "report.html", "metrics/part-00000.parquet"):
        files.write_text(str(output / name), "x")
    _require_own_output(files, configuration, str(output))
    for name in ("thesis.txt", "cells/thesis.json", "metrics/part-00001.parquet"):
        stranger = write(output / name)
        with pytest.raises(ConfigurationError, match=name):
            _require_own_output(files, configuration, str(output))
        stranger.unlink()
    # A folder called cells is not enough.
    cell.unlink()
    with pytest.raises(ConfigurationError, match="is not a comparison"):
        _require_own_output(files, configuration, str(output))


def test_rows_of_all_runs_replace_such_rows_alone(spark: SparkSession, tmp_path: Path) -> None:
    metrics = {"append_to": str(tmp_path / "history")}
    configuration = configured(tmp_path, metrics=metrics)
    summary = {"run_id": "night", "started": datetime(2026, 11, 22, tzinfo=UTC)}
    rounds = [{"run_id": "night", "round": 1}]
    for _ in ("first", "again"):
        append_to_history(FileSystem(spark), configuration, summary, rounds)
    stranger = tmp_path / "history" / "rounds" / "date=2026-01-01" / "night.parquet"
    write_table(stranger, {"run_id": ["day"]})
    with pytest.raises(PublishingError, match=r"is no row of run night"):
        append_to_history(FileSystem(spark), configuration, summary, rounds)
    assert stranger.exists()
