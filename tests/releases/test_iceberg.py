"""A release as a table of Iceberg: its metadata follow from its files and from where it lies."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from forgeries import name_other_version, read_manifest, save_manifest
from helpers import command, configuration_file, write_table

from anonspark.engine.files import PublishedFile
from anonspark.release.iceberg import ICEBERG_FILES, iceberg_contents
from anonspark.release.manifest import Manifest

PEOPLE = {"age": [20 + n * 7 % 50 for n in range(200)], "codes": [[n % 3] for n in range(200)]}


def configure(folder: Path, **output: object) -> Path:
    return configuration_file(
        folder,
        attributes={"age": "quasi_identifier", "codes": "insensitive"},
        output={"copies": ["iceberg"], **output},
    )


@pytest.fixture
def release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    write_table(tmp_path / "input.parquet", pa.table(PEOPLE))
    done = command(capsys, "run", configure(tmp_path))
    assert done.code == 0, done.err
    return tmp_path / "release"


def test_the_table_has_the_files_of_the_release(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = json.loads((release / "metadata" / "v1.metadata.json").read_text())
    assert table["location"] == f"file:{release}"
    columns = {one["name"]: one["type"] for one in table["schemas"][0]["fields"]}
    element = {"element-id": 3, "element": "long", "element-required": False}
    assert columns == {"age": "string", "codes": {"type": "list", **element}}
    assert table["snapshots"][0]["summary"]["total-records"] == "200"
    assert (
        f"file:{release}/data/part-00000.parquet".encode()
        in (release / "metadata" / "files.avro").read_bytes()
    )
    assert "With Apache Iceberg" in (release / "README.md").read_text()
    verified = command(capsys, "verify", release, "--json")
    assert verified.code == 0, verified.err
    assert not any("metadata" in one for one in json.loads(verified.out)["claimed"])


def test_the_next_night_is_the_same_table(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = []
    for k in (5, 6):
        path = configure(release.parent, mode="overwrite")
        assert command(capsys, "run", path, "--set", f"privacy.k={k}").code == 0
        tables.append(json.loads((release / "metadata" / "v1.metadata.json").read_text()))
    assert tables[0]["table-uuid"] == tables[1]["table-uuid"]
    assert tables[0]["current-snapshot-id"] != tables[1]["current-snapshot-id"]


def test_records_of_a_release_are_read_until_others_write_to_the_table(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(capsys, "profile", release / "data").code == 0
    (release / "metadata" / ".v1.metadata.json.crc").write_bytes(b"of Hadoop")
    assert command(capsys, "profile", release / "data").code == 0
    (release / "metadata" / "v2.metadata.json").write_text("{}")
    refused = command(capsys, "profile", release / "data")
    assert refused.code == 2
    assert "Apache Iceberg table" in refused.err


def relist(release: Path) -> None:
    document = read_manifest(release)
    for one in document["files"]:
        path = release / one["path"]
        if one["path"] in ICEBERG_FILES and path.exists():
            content = path.read_bytes()
            one |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    save_manifest(release, document)


def of_other_files(release: Path) -> None:
    path = release / "metadata" / "files.avro"
    path.write_bytes(path.read_bytes().replace(b"/release/data", b"/records/data"))


def of_another_snapshot(release: Path) -> None:
    path = release / "metadata" / "v1.metadata.json"
    path.write_text(path.read_text().replace(f"{release}/metadata", f"{release}/old"))


@pytest.mark.parametrize("forge", [of_other_files, of_another_snapshot])
def test_other_metadata_are_refused(
    release: Path, capsys: pytest.CaptureFixture[str], forge: Callable[[Path], None]
) -> None:
    forge(release)
    relist(release)
    refused = command(capsys, "verify", release)
    assert refused.code == 4
    assert "not the metadata of Iceberg for these files" in refused.err


def test_a_moved_release_is_no_table(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moved = release.rename(release.with_name("elsewhere"))
    refused = command(capsys, "verify", moved)
    assert refused.code == 4
    assert "or the release was moved" in refused.err
    shutil.copytree(moved, release)
    assert command(capsys, "verify", release).code == 0


def test_metadata_of_another_program_are_a_broken_promise(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They ended as a mistake in the configuration."""
    (release / "metadata" / "v2.metadata.json").write_text("{}")
    refused = command(capsys, "verify", release)
    assert refused.code == 4
    assert "v2.metadata.json" in refused.err


@pytest.mark.parametrize("forge", [of_other_files, of_another_snapshot])
def test_other_metadata_of_another_version_are_refused(
    release: Path, capsys: pytest.CaptureFixture[str], forge: Callable[[Path], None]
) -> None:
    """The texts of another version are claims, its metadata name files."""
    forge(release)
    name_other_version(release)
    relist(release)
    refused = command(capsys, "verify", release)
    assert refused.code == 4
    assert "not the metadata of Iceberg for these files" in refused.err


def test_metadata_that_nobody_asked_for(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = read_manifest(release)
    document["configuration"]["output"]["copies"] = []
    save_manifest(release, document)
    refused = command(capsys, "verify", release)
    assert refused.code == 4
    assert "metadata/v1.metadata.json" in refused.err


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({"format": "orc"}, "found iceberg, and output.format is the text 'orc'"),
        ({"format": "iceberg"}, "output.copies: [csv, iceberg] adds other forms to Parquet"),
    ],
)
def test_what_cannot_be_a_table_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output: dict[str, str], said: str
) -> None:
    refused = command(capsys, "run", configure(tmp_path, **output))
    assert refused.code == 2
    assert said in refused.err
    assert "secret" not in refused.err


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("a#b", "output.path holds the sign #, where other programs end a path. Choose another"),
        ("password=secret", "output.path holds credentials"),
    ],
)
@pytest.mark.parametrize("verb", ["check", "run"])
def test_an_address_that_readers_cannot_have_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    said: str,
    verb: str,
) -> None:
    """Only the absolute address may hold it."""
    (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / folder)
    write_table(tmp_path / "input.parquet", pa.table(PEOPLE))
    refused = command(capsys, verb, configure(tmp_path, path="release"))
    assert refused.code == 2
    assert said in refused.err
    assert "secret" not in refused.err
    assert not Path("release").exists()
    assert command(capsys, "run", configure(tmp_path, path="release", copies=[])).code == 0


@pytest.mark.parametrize(
    ("other", "extra"),
    [("place.City", {}), ("codes.element", {}), ("id", {"pseudonyms": {"id": "codes.x"}})],
)
def test_names_that_a_table_would_have_twice_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: str, extra: dict[str, Any]
) -> None:
    places = [{"city": str(n % 3)} for n in range(200)]
    own = {other: [n % 5 for n in range(200)]}
    write_table(tmp_path / "input.parquet", pa.table(PEOPLE | {"place": places} | own))
    roles = dict.fromkeys(("place", "codes", other), "insensitive")
    privacy = {"k": 5}
    if extra:
        roles[other] = "identifier"
        privacy["unit"] = other
    path = configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier", **roles},
        privacy=privacy,
        output={"copies": ["iceberg"], **extra},
    )
    refused = command(capsys, "run", path)
    assert refused.code == 3
    assert "output.copies: found iceberg, which names what is in the column" in refused.err
    assert command(capsys, "run", path, "--set", "output.copies=[]").code == 0


def test_a_release_has_one_address_whatever_link_leads_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(tmp_path / "input.parquet", pa.table(PEOPLE))
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    path = configure(tmp_path, path=str(tmp_path / "link" / "release"))
    assert command(capsys, "run", path).code == 0
    (tmp_path / "current").symlink_to(tmp_path / "link" / "release")
    for place in ("link/release", "disk/release", "current"):
        assert command(capsys, "verify", tmp_path / place).code == 0
    table = json.loads((tmp_path / "current" / "metadata" / "v1.metadata.json").read_text())
    assert table["location"] == f"file:{tmp_path}/disk/release"


def test_every_type_that_is_published_has_one_of_iceberg() -> None:
    types = {
        pa.int8(): "int", pa.int64(): "long", pa.float32(): "float", pa.float64(): "double",
        pa.bool_(): "boolean", pa.large_string(): "string", pa.binary(): "binary",
        pa.date32(): "date", pa.timestamp("us"): "timestamp",
        pa.timestamp("us", "UTC"): "timestamptz", pa.decimal128(10, 2): "decimal(10,2)",
    }  # fmt: skip
    schema = pa.schema([(str(number), one) for number, one in enumerate(types)])
    schema = schema.append(pa.field("inside", pa.struct([("days", pa.list_(pa.date32()))])))
    manifest = Manifest(
        {
            "run_id": "night",
            "started": "2026-01-01T00:00:00+00:00",
            "fingerprints": {"output": "0"},
            "published": {"rows": 1},
        }
    )
    files = [PublishedFile("data/part-00000.parquet", 4, 1, ""), PublishedFile("a", 1, None, "")]
    contents = iceberg_contents(manifest, schema, files, "hdfs://lake/release")
    table = json.loads(contents["metadata/v1.metadata.json"])
    *plain, inside = (one["type"] for one in table["schemas"][0]["fields"])
    assert plain == list(types.values())
    assert inside["fields"][0]["type"]["element"] == "date"
    assert table["last-column-id"] == len(types) + 3
    assert list(contents) == list(ICEBERG_FILES)
