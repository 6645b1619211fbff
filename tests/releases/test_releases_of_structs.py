"""Attributes that are fields of structs: a release is that of a table with ordinary columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases import cases
from helpers import command, configuration_file, of_any_run, published, write_table

from anonspark.config import load_configuration, parse_configuration
from anonspark.engine.local import columnar_files
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run

ATTRIBUTES: dict[str, Any] = {
    "person.name": "identifier",
    "person.id": "identifier",
    "person.age": "quasi_identifier",
    "address.city": "quasi_identifier",
    "address.geo.height": {"role": "quasi_identifier", "type": "number"},
    "visit.disease": "sensitive",
    "visit.day": "insensitive",
}

SECTIONS: dict[str, Any] = {
    "attributes": ATTRIBUTES,
    "missing": "category",
    "privacy": {
        "k": 4,
        "unit": "person.id",
        "allow_alone": True,
        "l_diversity": {"attribute": "visit.disease", "l": 2},
    },
    "output": {"pseudonyms": {"person.id": "person"}},
    "execution": {"seed": 2**61 + 5},
}


def people(rows: int = 240) -> list[dict[str, Any]]:
    """Return people with structs in structs, some of them missing."""
    return [
        {
            "person": {"name": f"Zebediah {n}", "id": n // 2, "age": 20 + n * 7 % 40},
            "address": None
            if n % 31 == 0
            else {
                "city": ["Adana", "Bursa", "Konya"][n % 3],
                "geo": None if n % 29 == 0 else {"height": str(n * 11 % 90), "secret": n},
                "street": f"Street {n}",
            },
            "visit": {
                "disease": ["flu", "cold", "gout"][n * n % 3],
                "day": f"2026-01-{n % 28 + 1}",
            },
            "tags": ["a", "b"][: n % 3],
            "counts": [("a", n)],
        }
        for n in range(rows)
    ]


SCHEMA = pa.schema(
    [
        ("person", pa.struct([("name", pa.string()), ("id", pa.int64()), ("age", pa.int64())])),
        (
            "address",
            pa.struct(
                [
                    ("city", pa.string()),
                    ("geo", pa.struct([("height", pa.string()), ("secret", pa.int64())])),
                    ("street", pa.string()),
                ]
            ),
        ),
        ("visit", pa.struct([("disease", pa.string()), ("day", pa.string())])),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)


def nested() -> pa.Table:
    return pa.Table.from_pylist(people(), SCHEMA)


def value(record: dict[str, Any] | None, path: Sequence[str]) -> Any:
    for name in path:
        record = None if record is None else record[name]
    return record


def flat() -> pa.Table:
    """Return the same people with columns, which have dots in their names."""
    return pa.table(
        {name: [value(one, name.split(".")) for one in people()] for name in ATTRIBUTES}
    )


def released(folder: Path, table: pa.Table, format: str = "parquet") -> Path:
    write_table(folder / "input.parquet", table, format)
    source = {"format": format}
    path = configuration_file(folder, **SECTIONS, input=source)
    run(LocalEngine(), load_configuration(str(path)))
    return folder / "release"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("nested"), nested())


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("flat"), flat())


def test_the_release_is_that_of_ordinary_columns(release: Path, expected: Path) -> None:
    assert of_any_run(release) == of_any_run(expected)
    assert published(release).schema.names == [
        *("person", "person.age", "address.city", "address.geo.height"),
        *("visit.disease", "visit.day"),
    ]


@pytest.mark.parametrize("format", ["json", "orc"])
def test_other_formats(tmp_path: Path, expected: Path, format: str) -> None:
    table = nested()
    if format == "json":
        table = table.drop_columns(["counts"])
    found = of_any_run(released(tmp_path, table, format))
    assert found["data"] == of_any_run(expected)["data"]


def test_tables_in_memory(tmp_path: Path, expected: Path) -> None:
    engine = LocalEngine()
    document = SECTIONS | {
        "input": {"path": "given"},
        "output": {**SECTIONS["output"], "path": str(tmp_path / "release")},
    }
    run(engine, parse_configuration(document), table=engine.wrap(nested()))
    assert of_any_run(tmp_path / "release")["data"] == of_any_run(expected)["data"]


def test_fields_that_are_not_listed_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    read = columnar_files._read_row_group

    def watched(path: str, metadata: Any, number: int, names: Sequence[str]) -> Any:
        if path.endswith("input.parquet"):
            asked.update(names)
        return read(path, metadata, number, names)

    monkeypatch.setattr(columnar_files, "_read_row_group", watched)
    released(tmp_path, nested())
    # Where k counts people, nothing is asked of other identifiers.
    assert asked == {*ATTRIBUTES} - {"person.name"}


def test_originals_are_read_the_same_way(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = release.parent / "input.parquet"
    # Nothing tells the format of the release of that name.
    other = write_table(tmp_path / "people.json", nested().drop_columns(["counts"]), "json")
    for one in (original, other):
        outcome = command(capsys, "verify", release, "--original", one, "--json")
        assert outcome.code == 0, outcome.err
        found = json.loads(outcome.out)
        assert found["linkage"]["original"]["matched"] == 240
    for name in ("evaluate", "report"):
        more = ["--out", tmp_path / "report.html"] if name == "report" else []
        outcome = command(capsys, name, release, "--original", original, *more)
        assert outcome.code == 0, outcome.err


@pytest.mark.parametrize("wanted", ["address.city", "address"])
def test_a_text_is_no_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wanted: str
) -> None:
    lines = [json.dumps({"age": n, "address": {"city": "a"} if n else "x"}) for n in range(9)]
    (tmp_path / "input.json").write_text("\n".join(lines))
    source = {"path": str(tmp_path / "input.json"), "format": "json"}
    roles = {"age": "quasi_identifier", wanted: "insensitive"}
    outcome = command(capsys, "run", configuration_file(tmp_path, attributes=roles, input=source))
    assert outcome.code == 3
    assert f"the column {wanted!r} has values of kinds that have no type in common" in outcome.err


@cases(__file__, "attributes", "told")
def test_what_cannot_be_an_attribute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], attributes: dict[str, str], told: str
) -> None:
    write_table(tmp_path / "input.parquet", nested())
    roles = {"person.age": "quasi_identifier", **attributes}
    outcome = command(capsys, "run", configuration_file(tmp_path, attributes=roles))
    assert outcome.code == 3
    assert told in outcome.err
    assert "Zebediah" not in outcome.err


def test_a_profile_lists_fields(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = command(capsys, "profile", release.parent / "input.parquet", "--json")
    found = {one["name"]: one for one in json.loads(outcome.out)["columns"]}
    assert list(found) == [
        *("person.name", "person.id", "person.age"),
        *("address.city", "address.geo.height", "address.geo.secret", "address.street"),
        *("visit.disease", "visit.day", "tags", "counts"),
    ]
    assert found["address.city"]["role"] == "quasi_identifier"
    assert found["person.name"]["role"] is None
    assert "name of a person" in found["person.name"]["reason"]
    assert found["tags"]["reason"] == "an array, a map or binary: not judged, not published"


def test_a_draft_lists_fields(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = tmp_path / "draft.yaml"
    outcome = command(capsys, "init", release.parent / "input.parquet", "--out", draft)
    assert outcome.code == 0, outcome.err
    assert "address.city: quasi_identifier" in draft.read_text()
    assert "# tags  # an array, a map or binary: not judged, not published" in draft.read_text()
    assert command(capsys, "check", draft).code == 0
