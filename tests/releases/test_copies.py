"""Copies of a release as CSV: listed, proven against the records, and refused where they differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from forgeries import name_other_version, read_manifest, save_manifest
from helpers import command, configuration_file, published, write_table
from release_folders import damage, list_files, rewrite, show_unchanged

import anonspark


def people(rows: int = 200) -> dict[str, Any]:
    return {
        "age": [20 + n * 7 % 50 for n in range(rows)],
        "job": [("=cmd", "-5", None, "cook")[n % 4] for n in range(rows)],
        "codes": [[n % 3] for n in range(rows)],
    }


@pytest.fixture
def release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    write_table(tmp_path / "input.parquet", pa.table(people()))
    path = configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier", "job": "insensitive"},
        output={"copies": ["csv"]},
    )
    done = command(capsys, "run", path)
    assert done.code == 0, done.err
    return tmp_path / "release"


def test_a_copy_has_the_records(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (release / "copies" / "part-00000.csv").read_text("utf-8-sig").splitlines()
    rows = published(release).to_pylist()
    shown = {"=cmd": '"\'=cmd"', "-5": '"-5"', "cook": '"cook"', None: ""}
    assert lines == [
        '"age","job"',
        *(f'"{row["age"]}",{shown[row["job"]]}' for row in rows),
    ]
    assert "`copies` holds the same records as CSV" in (release / "README.md").read_text()
    package = json.loads((release / "datapackage.json").read_text())
    assert [one["path"] for one in package["resources"]][1] == ["copies/part-00000.csv"]
    verified = command(capsys, "verify", release, "--json")
    assert verified.code == 0
    assert not any("copies" in one for one in json.loads(verified.out)["claimed"])
    assert len(anonspark.read(str(release)).to_arrow()) == len(rows)


def relist(release: Path) -> None:
    """List the copies as they lie there."""
    document = read_manifest(release)
    document["files"] = [one for one in document["files"] if not one["path"].startswith("copies/")]
    for path in sorted((release / "copies").iterdir()):
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        document["files"].append(
            {"path": f"copies/{path.name}", "bytes": len(content), "rows": None, "sha256": digest}
        )
    document["files"].sort(key=lambda one: one["path"])
    save_manifest(release, document)


def change(release: Path) -> None:
    path = release / "copies" / "part-00000.csv"
    rewrite(path, path.read_bytes().replace(b"cook", b"king"))


def delete(release: Path) -> None:
    rewrite(release / "copies" / "part-00001.csv", b"")
    (release / "copies" / "part-00000.csv").unlink()


def add(release: Path) -> None:
    content = (release / "copies" / "part-00000.csv").read_bytes()
    rewrite(release / "copies" / "part-00001.csv", content)


@pytest.mark.parametrize("forge", [change, delete, add])
def test_other_copies_are_refused(
    release: Path, capsys: pytest.CaptureFixture[str], forge: Callable[[Path], None]
) -> None:
    forge(release)
    relist(release)
    refused = command(capsys, "verify", release)
    assert refused.code == 4
    assert "not the records of data as CSV" in refused.err


def test_a_copy_by_another_version_is_compared_too(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A raw table was accepted as a copy, with a warning about the texts."""
    rewrite(release / "copies" / "part-00000.csv", b"name,age\nZebediah Doe,34\n")
    name_other_version(release)
    relist(release)
    refused = command(capsys, "verify", release)
    assert refused.code == 4
    assert "not the records of data as CSV" in refused.err
    assert "Zebediah" not in refused.err


def test_a_page_that_cannot_be_decompressed_has_no_copy(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ended with an error of ours."""
    (part,) = (release / "data").glob("part-*.parquet")
    content = bytearray(part.read_bytes())
    content[40:80] = b"\xff" * 40
    show_unchanged(release)
    damage(part, bytes(content))
    list_files(release, explained=False)
    refused = command(capsys, "verify", release)
    assert refused.code == 4
    assert "files are damaged or of another format: data/part-00000.parquet" in refused.err


def test_copies_that_nobody_asked_for(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = read_manifest(release)
    document["configuration"]["output"]["copies"] = []
    save_manifest(release, document)
    refused = command(capsys, "verify", release)
    assert refused.code == 4
    assert "copies/part-00000.csv" in refused.err


def test_what_csv_cannot_express_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(tmp_path / "input.parquet", pa.table(people()))
    attributes = {"age": "quasi_identifier", "codes": "insensitive"}
    for output, code, said in (
        ({"copies": ["csv"]}, 3, "codes: the column has type array<bigint>, which CSV cannot"),
        ({"copies": ["csv"], "format": "orc"}, 2, "found csv, and output.format is the text 'orc'"),
        ({"copies": ["xlsx"]}, 2, "output.copies"),
    ):
        path = configuration_file(tmp_path, attributes=attributes, output=output)
        for asked in ("check", "run"):
            refused = command(capsys, asked, path)
            assert refused.code == code, asked
            assert said in refused.err
    assert not (tmp_path / "release").exists()
