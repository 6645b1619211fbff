"""Every file of a release is looked at: what is not listed, changed or has other columns."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Cli
from helpers import write_table
from release_folders import damage, list_files, release_of_several_files, rewrite, save_manifest

from anonspark.engine.files import Entry
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.parquet_encoding import encode_table
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.layers.publish.paths import require_replaceable_release
from anonspark.release.layout import foreign_entries
from anonspark.release.manifest import read_manifest
from anonspark.reporting.build_report import report_path, write_report
from anonspark.verification.audit import audit_release
from anonspark.verification.proof import release_files as contents
from anonspark.verification.proof.release_files import audit_release_files, audit_table_files

Spoil = Callable[[Path], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release_of_several_files(LocalEngine(), tmp_path_factory.mktemp("made"))


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    """Copy the release, with the list of its files."""
    target = tmp_path / "release"
    shutil.copytree(made, target)
    list_files(target)
    return target


WHOLE = ("data/", "metrics/")


def failures(release: Path) -> str:
    engine = LocalEngine()
    manifest = read_manifest(engine.files, str(release))
    try:
        audit_release_files(engine, str(release), manifest)
    except GuaranteeError as error:
        return str(error)
    return ""


def part(release: Path, number: int = 1) -> Path:
    return release / "data" / f"part-1000{number}.parquet"


def replaced(release: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change one part file of three."""
    path = part(release)
    table = pq.read_table(path).replace_schema_metadata(None)
    rewrite(path, encode_table(change(table)))


def with_column(table: pa.Table) -> pa.Table:
    return table.append_column("name", pa.array(["Zebediah"] * len(table)))


def other_type(table: pa.Table) -> pa.Table:
    return table.set_column(1, "illness", pa.array([b"flu"] * len(table)))


def beside(name: str, content: bytes = b"Zebediah") -> Spoil:
    return lambda release: rewrite(release / name, content)


# What is in a file that lies at its place: found whether or not the manifest was changed, too.
INSIDE: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "column in one file": (with_column, "(columns 'name' are too many)"),
    "type in one file": (other_type, "other columns, types or an order"),
    "order in one file": (
        lambda table: table.select(["illness", "age"]),
        "other columns, types or an order",
    ),
    "column missing": (lambda table: table.select(["age"]), "other columns, types or an order"),
}


def hide_as_checksum(release: Path) -> None:
    """Write as many bytes as a checksum of each byte would have. They were accepted."""
    size = part(release).stat().st_size
    hidden = (b"Zebediah Doe, flu" * size)[: 4 * size]
    part(release).with_name(".part-10001.parquet.crc").write_bytes(b"crc\0\0\0\0\1" + hidden)


BESIDE: dict[str, tuple[Spoil, str]] = {
    "raw table": (beside("data/_raw/part-0.parquet"), "data/_raw/part-0.parquet"),
    "raw directory": (beside("raw/part-0.parquet"), "raw/part-0.parquet"),
    "hidden": (beside(".x"), "belong to the release: .x"),
    "underscore": (beside("data/_x"), "data/_x"),
    "empty directory": (lambda release: (release / "raw").mkdir(), "raw/ (a directory)"),
    "link": (lambda release: (release / "l").symlink_to("/nowhere"), "l (a symbolic link)"),
    "pipe": (lambda release: os.mkfifo(release / "metrics/p"), "metrics/p (no file)"),
    "checksum of nothing": (beside("data/.x.crc"), "data/.x.crc"),
    "text as checksum": (beside("data/.part-10001.parquet.crc"), "data/.part-10001.parquet.crc"),
    "other checksum": (
        beside("data/._SUCCESS.crc", b"crc\0\0\0\2\0" + b"Zebediah"),
        "data/._SUCCESS.crc",
    ),
    "records as checksum": (hide_as_checksum, "data/.part-10001.parquet.crc"),
    "table of metrics": (beside("metrics/people/part-0.parquet"), "metrics/people"),
}


@pytest.mark.parametrize("case", INSIDE)
def test_a_file_with_other_columns(release: Path, case: str) -> None:
    change, told = INSIDE[case]
    replaced(release, change)
    assert "are not those that were published" in failures(release)
    list_files(release)
    found = failures(release)
    assert told in found
    assert "part-10001.parquet" in found
    assert "part-10002" not in found
    assert "Zebediah" not in found


def test_a_folder_that_delta_makes_is_known_beside_its_log_alone(
    engine: LocalEngine, tmp_path: Path
) -> None:
    listed = {"manifest.json", "data/_delta_log/00000000000000000000.json"}
    entries = [
        Entry("data", "directory", 0),
        Entry("data/_delta_log", "directory", 0),
        Entry("data/_delta_log/_staged_commits", "directory", 0),
        *(Entry(path, "file", 1) for path in sorted(listed)),
    ]
    assert foreign_entries(engine.files, str(tmp_path), entries, listed) == []
    without = foreign_entries(engine.files, str(tmp_path), entries, {"manifest.json"})
    assert "data/_delta_log/_staged_commits/ (a directory)" in without


@pytest.mark.parametrize("case", BESIDE)
def test_what_lies_beside(release: Path, case: str) -> None:
    spoil, told = BESIDE[case]
    spoil(release)
    found = failures(release)
    assert told in found
    assert str(release) in found
    assert "Zebediah" not in found


def test_a_sound_release(
    engine: LocalEngine, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read in tasks or by the driver; with a report that was made later."""
    assert failures(release) == ""
    in_tasks = contents._in_tasks(engine, f"file:{release}", contents._Read(WHOLE, (), False))
    monkeypatch.setattr(contents, "_in_tasks", lambda *_: {})
    entries = [one for one in engine.files.tree(str(release)) if one.path in in_tasks]
    assert len(entries) > 6
    assert contents.read_contents(engine, f"file:{release}", entries, WHOLE) == in_tasks
    files = engine.files
    for text in ("night", "day"):
        place = report_path(files, str(release), None)
        page = f"<!doctype html><title>Anonymization report: {text}</title>"
        write_report(files, str(release), place, page)
        assert failures(release) == ""
    # Whoever changes it has to say so in the manifest.
    rewrite(release / "report.html", b"<table>Zebediah</table>")
    assert "report.html" in failures(release)


def test_records_in_another_order(release: Path) -> None:
    """As they stood in the input, for instance: classes stand together in files of ours."""
    for number in range(3):
        table = pq.read_table(part(release, number))
        shuffled = table.take(np.random.default_rng(number).permutation(len(table)))
        rewrite(part(release, number), encode_table(shuffled.replace_schema_metadata(None)))
    list_files(release)
    assert "records of a class do not stand together" in failures(release)


def test_files_that_are_gone_or_changed(release: Path) -> None:
    rewrite(part(release, 0), b"")
    list_files(release)
    assert "files of tables are empty: data/part-10000.parquet" in failures(release)
    rewrite(part(release, 0), part(release, 1).read_bytes()[:-20])
    list_files(release)
    assert "damaged or of another format: data/part-10000.parquet" in failures(release)
    list_files(release)
    manifest = json.loads((release / "manifest.json").read_text())
    (listed,) = [one for one in manifest["files"] if one["path"] == "data/part-10001.parquet"]
    listed["rows"] = 99
    save_manifest(release, manifest)
    found = failures(release)
    assert "other numbers of rows than the manifest says: data/part-10001.parquet" in found
    content = bytearray(part(release, 2).read_bytes())
    content[50] ^= 1
    damage(part(release, 2), bytes(content))
    part(release, 1).unlink()
    found = failures(release)
    assert "manifest lists are not there: data/part-10001.parquet" in found
    assert "(bytes or SHA-256 differ): data/part-10002.parquet" in found


@pytest.mark.parametrize("largest", [2**28, 0])
def test_bytes_that_were_not_published_are_not_parsed(
    release: Path, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow is code of others, and crashed on some: in tasks and in the driver."""
    tails: list[bytes] = []
    parse = contents.read_footer
    monkeypatch.setattr(contents, "_LARGEST_IN_TASK", largest)
    monkeypatch.setattr(
        contents, "read_footer", lambda tail, **more: tails.append(tail) or parse(tail, **more)
    )
    forged = bytearray(part(release).read_bytes())
    forged[50] ^= 1
    damage(part(release), bytes(forged))
    beside("data/part-20000.parquet", part(release, 2).read_bytes() + b"Zebediah")(release)
    monkeypatch.setattr(LocalEngine, "published", lambda *_: pytest.fail("a table was opened"))
    with pytest.raises(GuaranteeError, match=r"data/part-20000[^$]*differ\): data/part-10001"):
        audit_release(LocalEngine(), str(release))
    assert part(release, 0).read_bytes() in tails
    assert not [tail for tail in tails if tail == forged or b"Zebediah" in tail]


def test_verify_ends_with_4(release: Path, cli: Cli) -> None:
    """Whether the figures can be told all the same or not."""
    cli.ends(0, "verify", release)
    rewrite(release / "data" / "_raw" / "part-0.parquet", b"Zebediah")
    cli.ends(4, "verify", release, says="data/_raw")
    for number in range(3):
        part(release, number).unlink()
    outcome = cli.ends(4, "verify", release, says="data/_raw")
    assert "Traceback" not in outcome.err


def test_tables_of_other_tools(engine: LocalEngine, tmp_path: Path, cli: Cli) -> None:
    table = pa.table({"age": ["20-30"] * 4, "illness": ["flu"] * 4})
    for number in range(3):
        write_table(tmp_path / "table" / f"{number}.parquet", table)
    for name in ("_SUCCESS", "_started_12"):
        rewrite(tmp_path / "table" / name, b"{}")
    verify = ("verify", tmp_path / "table", "--quasi-identifier", "age", "--k", "2")
    cli.ends(0, *verify)
    audit_table_files(engine, str(tmp_path / "table" / "1.parquet"))
    for name, content, told in (
        ("_raw/1.parquet", b"1", "_raw/1.parquet"),
        (".x", b"1", "pass over: .x"),
        ("9.parquet", b"", "are empty: 9.parquet"),
    ):
        rewrite(tmp_path / "table" / name, content)
        cli.ends(4, *verify, says=told)
        (tmp_path / "table" / name).unlink()
    shutil.rmtree(tmp_path / "table" / "_raw")
    write_table(tmp_path / "table" / "1.parquet", with_column(table))
    cli.ends(4, *verify, says="1.parquet (columns 'name' are too many)")


def test_a_directory_that_cannot_be_listed(
    engine: LocalEngine, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    manifest = read_manifest(engine.files, str(release))
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(GuaranteeError, match="directories can be listed"):
        audit_release_files(engine, str(release), manifest)
    with pytest.raises(ConfigurationError, match="Check permissions"):
        require_replaceable_release(engine.files, str(release))
