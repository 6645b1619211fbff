"""What stands beside the data: views, a package, a page to read, and copies as CSV."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from commands import Cli
from forgeries import name_other_version, read_manifest, save_manifest
from helpers import configuration_file, published, write_table
from pyarrow import parquet
from read_releases import RELEASES, ROWS, write_releases
from release_folders import damage, list_files, rewrite, show_unchanged

import anonspark
from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.reading.counting import Count
from anonspark.release.layout import COMPANIONS
from anonspark.verifier import VERIFIER


@pytest.fixture(params=RELEASES)
def name(request: pytest.FixtureRequest) -> str:
    """Give the name of each release."""
    return str(request.param)


@pytest.fixture
def database(
    name: str, read_releases: Path, monkeypatch: pytest.MonkeyPatch
) -> duckdb.DuckDBPyConnection:
    """Give a database that ran the views of a release in its directory."""
    monkeypatch.chdir(read_releases / name)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(Path("views.sql").read_text())
    return connection


def test_the_view_has_the_columns_of_the_reader(
    name: str, read_releases: Path, database: duckdb.DuckDBPyConnection
) -> None:
    """Names, order, types and values."""
    expected = anonspark.read(str(read_releases / name)).to_arrow()
    found = database.sql("select * from records").to_arrow_table()
    assert found.column_names == expected.column_names
    for column in expected.column_names:
        own, theirs = found[column], expected[column]
        if column.endswith("_set"):
            pairs = zip(own.to_pylist(), theirs.to_pylist(), strict=True)
            assert all(sorted(map(str, one)) == sorted(map(str, other)) for one, other in pairs)
        elif column.endswith("_mid") and pa.types.is_floating(theirs.type):
            assert own.to_pylist() == pytest.approx(theirs.to_pylist())
        else:
            assert own.type == theirs.type or pa.types.is_list(theirs.type)
            assert own.to_pylist() == theirs.to_pylist()


def test_the_example_of_the_page_equals_count(
    name: str, read_releases: Path, database: duckdb.DuckDBPyConnection
) -> None:
    """The page of a release asks a question in Python, and the same by hand."""
    page = (read_releases / name / "README.md").read_text()
    (question,) = re.findall(r"release\.count\('(.*)'\)", page)
    found = anonspark.read(str(read_releases / name)).count(question.replace("\\'", "'"))
    assert isinstance(found, Count)
    queries = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert len(queries) == (name in ("interval", "bounds", "dropped"))
    for query in queries:
        assert database.execute(query).fetchone() == (found.lower, found.upper)
        assert found.upper > 0


def test_an_estimate_by_hand(read_releases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The share of each class, with the missing value as one more."""
    monkeypatch.chdir(read_releases / "interval")
    connection = duckdb.connect()
    connection.execute(Path("views.sql").read_text())
    row = connection.execute(
        "select sum(greatest(0, least(age_max, 50) - greatest(age_min, 30) + 1)"
        " / (age_max - age_min + 1 + age_missing::int)) from records where diagnosis = 'flu'"
    ).fetchone()
    found = anonspark.read(".").count("age between 30 and 50 and diagnosis = 'flu'")
    assert isinstance(found, Count)
    assert row is not None
    assert row[0] == pytest.approx(found.estimate)


def test_the_data_package(name: str, read_releases: Path) -> None:
    """What version 1 of the specification requires of a descriptor."""
    release = read_releases / name
    package = json.loads((release / "datapackage.json").read_text())
    assert package["profile"] == "data-package"
    assert re.fullmatch(r"[-a-z0-9._/]+", package["name"])
    (resource,) = package["resources"]
    assert re.fullmatch(r"[-a-z0-9._/]+", resource["name"])
    assert resource["path"]
    assert all((release / path).is_file() for path in resource["path"])
    assert resource["bytes"] == sum((release / path).stat().st_size for path in resource["path"])
    assert resource["mediatype"] == "application/vnd.apache.parquet"
    fields = resource["schema"]["fields"]
    types = {"string", "number", "integer", "boolean", "date", "datetime", "array"}
    assert {field["type"] for field in fields} <= types
    manifest = json.loads((release / "manifest.json").read_text())
    assert [field["name"] for field in fields] == manifest["published"]["columns"]


def test_they_are_listed_and_verified(read_releases: Path, tmp_path: Path, cli: Cli) -> None:
    """A page that was changed is not the one that was published."""
    release = tmp_path / "release"
    shutil.copytree(read_releases / "interval", release)
    listed = json.loads((release / "manifest.json").read_text())["files"]
    assert [file["path"] for file in listed if file["rows"] is None] == sorted(COMPANIONS)
    cli.ends(0, "verify", release)
    page = release / "README.md"
    page.write_text(page.read_text().replace("k = 4", "k = 9"))
    found = cli.ends(4, "verify", release)
    assert "README.md" in found.out + found.err


@pytest.mark.parametrize("name", ["README.md", "datapackage.json", "views.sql", VERIFIER])
@pytest.mark.parametrize("more", ["\nk = 9\n", None])
def test_one_that_is_listed_says_what_this_version_writes(
    read_releases: Path, tmp_path: Path, name: str, more: str | None
) -> None:
    """Whoever changes a release may change its list of files as well."""
    release = tmp_path / "release"
    shutil.copytree(read_releases / "interval", release)
    list_files(release, explained=False)
    assert anonspark.verify(release).holds
    if more is None:
        (release / name).unlink()
    else:
        (release / name).write_text((release / name).read_text() + more)
    list_files(release, explained=False)
    found = anonspark.verify(release)
    assert [f"{name}: not what this version writes" in one for one in found.failures] == [True]


def test_the_same_input_gives_the_same_bytes(read_releases: Path, tmp_path: Path) -> None:
    """Neither the run's name nor a time nor a place is in them."""
    write_releases(tmp_path, ("interval", "full-domain"))
    for name in ("interval", "full-domain"):
        for companion in COMPANIONS:
            own = (tmp_path / name / companion).read_text()
            assert own == (read_releases / name / companion).read_text()
            assert str(tmp_path) not in own


def test_the_page_says_what_there_is(name: str, read_releases: Path) -> None:
    """Its columns, its promise, its labels and its limits."""
    page = (read_releases / name / "README.md").read_text()
    manifest = json.loads((read_releases / name / "manifest.json").read_text())
    assert page.startswith("# Anonymized records, k = 4\n")
    assert all(f"| `{column}` |" in page for column in manifest["published"]["columns"])
    assert ("half-open" in page) == (
        name in ("rules", "open rules", "sets of rules", "full-domain", "rules with ends")
    )
    assert ("does not show how far" in page) == (name == "mean")
    assert ("label of a hierarchy" in page) == (name == "full-domain")
    if name == "dropped":
        assert f"{ROWS - manifest['published']['rows']} records of the table" in page


def test_large_numbers_and_instants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers beyond 2^53 have a middle, and instants are such in any time zone."""
    hours = [1_600_000_000_000_000 + number * 3_600_000_000 for number in range(40)]
    table = {
        "seen": pa.array(hours, pa.timestamp("us", "UTC")),
        "big": pa.array([2**53 + 1 + number for number in range(40)]),
    }
    parquet.write_table(pa.table(table), tmp_path / "people.parquet")
    document = {
        "input": {"path": str(tmp_path / "people.parquet")},
        "attributes": dict.fromkeys(table, "quasi_identifier"),
        "privacy": {"k": 5},
        "output": {"path": str(tmp_path / "release")},
        "execution": {"seed": 5},
    }
    run(LocalEngine(), parse_configuration(document))
    monkeypatch.chdir(tmp_path / "release")
    expected = anonspark.read(".").to_arrow()
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/New_York'")
    connection.execute(Path("views.sql").read_text())
    seen = connection.sql("select seen_min, seen_max, seen_mid from records")
    assert [str(one) for one in seen.types] == ["TIMESTAMP WITH TIME ZONE"] * 3
    for name, column in zip(seen.columns, seen.to_arrow_table(), strict=True):
        assert column.cast(pa.int64()).to_pylist() == expected[name].cast(pa.int64()).to_pylist()
    (big,) = connection.sql("select big_mid from records").to_arrow_table()
    assert big.to_pylist() == pytest.approx(expected["big_mid"].to_pylist())
    assert "seen_min >= '2020-01-01 00:00:00+00'" in Path("README.md").read_text().replace('"', "")


def people(rows: int = 200) -> dict[str, Any]:
    return {
        "age": [20 + n * 7 % 50 for n in range(rows)],
        "job": [("=cmd", "-5", None, "cook")[n % 4] for n in range(rows)],
        "codes": [[n % 3] for n in range(rows)],
    }


@pytest.fixture
def release(tmp_path: Path, cli: Cli) -> Path:
    write_table(tmp_path / "input.parquet", pa.table(people()))
    path = configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier", "job": "insensitive"},
        output={"copies": ["csv"]},
    )
    cli.ends(0, "run", path)
    return tmp_path / "release"


def test_a_copy_has_the_records(release: Path, cli: Cli) -> None:
    lines = (release / "copies" / "part-00000.csv").read_text("utf-8-sig").splitlines()
    rows = published(release).to_pylist()
    shown = {"=cmd": '"\'=cmd"', "-5": '"-5"', "cook": '"cook"', None: ""}
    assert lines == ['"age","job"', *(f'"{row["age"]}",{shown[row["job"]]}' for row in rows)]
    assert "`copies` holds the same records as CSV" in (release / "README.md").read_text()
    package = json.loads((release / "datapackage.json").read_text())
    assert [one["path"] for one in package["resources"]][1] == ["copies/part-00000.csv"]
    verified = cli.ends(0, "verify", release, "--json")
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
def test_other_copies_are_refused(release: Path, cli: Cli, forge: Callable[[Path], None]) -> None:
    forge(release)
    relist(release)
    cli.ends(4, "verify", release, says="not the records of data as CSV")


def test_a_copy_by_another_version_is_compared_too(release: Path, cli: Cli) -> None:
    """A raw table was accepted as a copy, with a warning about the texts."""
    rewrite(release / "copies" / "part-00000.csv", b"name,age\nZebediah Doe,34\n")
    name_other_version(release)
    relist(release)
    refused = cli.ends(4, "verify", release, says="not the records of data as CSV")
    assert "Zebediah" not in refused.err


def test_a_page_that_cannot_be_decompressed_has_no_copy(release: Path, cli: Cli) -> None:
    """It ended with an error of ours."""
    (part,) = (release / "data").glob("part-*.parquet")
    content = bytearray(part.read_bytes())
    content[40:80] = b"\xff" * 40
    show_unchanged(release)
    damage(part, bytes(content))
    list_files(release, explained=False)
    refused = cli.ends(4, "verify", release)
    assert "files are damaged or of another format: data/part-00000.parquet" in refused.err


def test_copies_that_nobody_asked_for(release: Path, cli: Cli) -> None:
    document = read_manifest(release)
    document["configuration"]["output"]["copies"] = []
    save_manifest(release, document)
    cli.ends(4, "verify", release, says="copies/part-00000.csv")


def test_what_csv_cannot_express_is_refused(tmp_path: Path, cli: Cli) -> None:
    write_table(tmp_path / "input.parquet", pa.table(people()))
    attributes = {"age": "quasi_identifier", "codes": "insensitive"}
    for output, code, said in (
        ({"copies": ["csv"]}, 3, "codes: the column has type array<bigint>, which CSV cannot"),
        ({"copies": ["csv"], "format": "orc"}, 2, "found csv, and output.format is the text 'orc'"),
        ({"copies": ["xlsx"]}, 2, "output.copies"),
    ):
        path = configuration_file(tmp_path, attributes=attributes, output=output)
        for asked in ("check", "run"):
            refused = cli(asked, path)
            assert refused.code == code, asked
            assert said in refused.err
    assert not (tmp_path / "release").exists()
