"""Releases of every type of column and of fields of structs: labels are read back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cases import cases
from commands import Cli
from helpers import configuration_file, local_table, of_any_run, published, write_table
from people_of_structs import ROLES, SECTIONS, people

from anonspark.config import load_configuration, parse_configuration
from anonspark.engine.local import columnar_files
from anonspark.engine.local.engine import LocalEngine
from anonspark.labels.region_matching import LabelledTable
from anonspark.labels.regions import PublishedAttribute
from anonspark.pipeline.run import run
from anonspark.verification.attacks.presence import count_regions

OWN: dict[str, Any] = SECTIONS | {
    "privacy": {**SECTIONS["privacy"], "allow_alone": True},
    "output": {"pseudonyms": {"person.id": "person"}},
}


def value(record: dict[str, Any] | None, path: Sequence[str]) -> Any:
    for name in path:
        record = None if record is None else record[name]
    return record


def flat() -> pa.Table:
    """Return the same people with columns, which have dots in their names."""
    records = people().to_pylist()
    return pa.table({name: [value(one, name.split(".")) for one in records] for name in ROLES})


def released(folder: Path, table: pa.Table, format: str = "parquet") -> Path:
    write_table(folder / "input.parquet", table, format)
    source = {"format": format}
    path = configuration_file(folder, **OWN, input=source)
    run(LocalEngine(), load_configuration(str(path)))
    return folder / "release"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("nested"), people())


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
    table = people()
    if format == "json":
        table = table.drop_columns(["counts"])
    found = of_any_run(released(tmp_path, table, format))
    assert found["data"] == of_any_run(expected)["data"]


def test_tables_in_memory(tmp_path: Path, expected: Path) -> None:
    engine = LocalEngine()
    document = OWN | {
        "input": {"path": "given"},
        "output": {**OWN["output"], "path": str(tmp_path / "release")},
    }
    run(engine, parse_configuration(document), table=engine.wrap(people()))
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
    released(tmp_path, people())
    # Where k counts people, nothing is asked of other identifiers.
    assert asked == {*ROLES} - {"person.name"}


def test_originals_are_read_the_same_way(release: Path, tmp_path: Path, cli: Cli) -> None:
    original = release.parent / "input.parquet"
    # Nothing tells the format of the release of that name.
    other = write_table(tmp_path / "people.json", people().drop_columns(["counts"]), "json")
    for one in (original, other):
        outcome = cli.ends(0, "verify", release, "--original", one, "--json")
        found = json.loads(outcome.out)
        assert found["linkage"]["original"]["matched"] == 240
    for name in ("evaluate", "report"):
        more = ["--out", tmp_path / "report.html"] if name == "report" else []
        outcome = cli.ends(0, name, release, "--original", original, *more)


@pytest.mark.parametrize("wanted", ["address.city", "address"])
def test_a_text_is_no_object(tmp_path: Path, cli: Cli, wanted: str) -> None:
    lines = [json.dumps({"age": n, "address": {"city": "a"} if n else "x"}) for n in range(9)]
    (tmp_path / "input.json").write_text("\n".join(lines))
    source = {"path": str(tmp_path / "input.json"), "format": "json"}
    roles = {"age": "quasi_identifier", wanted: "insensitive"}
    outcome = cli.ends(3, "run", configuration_file(tmp_path, attributes=roles, input=source))
    assert f"the column {wanted!r} has values of kinds that have no type in common" in outcome.err


@cases(__file__, "attributes", "told")
def test_what_cannot_be_an_attribute(
    tmp_path: Path, cli: Cli, attributes: dict[str, str], told: str
) -> None:
    write_table(tmp_path / "input.parquet", people())
    roles = {"person.age": "quasi_identifier", **attributes}
    outcome = cli.ends(3, "run", configuration_file(tmp_path, attributes=roles), says=told)
    assert "Zebediah" not in outcome.err


def test_a_profile_lists_fields(release: Path, cli: Cli) -> None:
    outcome = cli("profile", release.parent / "input.parquet", "--json")
    found = {one["name"]: one for one in json.loads(outcome.out)["columns"]}
    assert list(found) == [
        *("person.name", "person.id", "person.age", "person.size"),
        *("address.city", "address.geo.height", "address.geo.depth", "address.geo.secret"),
        *("address.street", "visit.disease", "visit.day", "visit.tags", "tags", "counts"),
    ]
    assert found["address.city"]["role"] == "quasi_identifier"
    assert found["person.name"]["role"] is None
    assert "name of a person" in found["person.name"]["reason"]
    assert found["tags"]["reason"] == "an array, a map or binary: not judged, not published"


def test_a_draft_lists_fields(release: Path, tmp_path: Path, cli: Cli) -> None:
    draft = tmp_path / "draft.yaml"
    cli.ends(0, "init", release.parent / "input.parquet", "--out", draft)
    assert "address.city: quasi_identifier" in draft.read_text()
    assert "# tags  # an array, a map or binary: not judged, not published" in draft.read_text()
    cli.ends(0, "check", draft)


ROWS = 180

# Classes are tight, for every column is in the order of this one.
PLACES = np.sort(np.random.default_rng(15).integers(0, 40, ROWS)) - 20
MISSING = np.arange(ROWS) % 19 == 0
DECIMALS = (
    *((1, 0), (1, 1), (5, 0), (5, 2), (5, 5), (9, 0), (18, 0), (18, 18), (19, 0), (28, 10)),
    *((38, 0), (38, 18), (38, 38)),
)


def decimals(digits: int, scale: int) -> pa.Array:
    """Return decimals from the least to the largest of a type, as far as 18 digits tell them."""
    step = max(1, (10 ** min(digits, 18) - 1) // 20)
    units = (int(place) // (3 if digits == 1 else 1) * step for place in PLACES)
    return pa.array([Decimal(one).scaleb(-scale) for one in units], pa.decimal128(digits, scale))


def decimal_columns() -> dict[str, pa.Array]:
    return {f"decimal_{digits}_{scale}": decimals(digits, scale) for digits, scale in DECIMALS}


def other_columns() -> dict[str, pa.Array]:
    days = [int(place) + 20 for place in PLACES]
    moments = [datetime(1, 1, 1) + timedelta(days=3000 * day, microseconds=day) for day in days]
    return {
        "byte": pa.array((PLACES * 6).astype(np.int8)),
        "short": pa.array((PLACES * 1600).astype(np.int16)),
        "int": pa.array((PLACES * 107_000_000).astype(np.int32)),
        "long": pa.array([2**62 + int(place) for place in PLACES]),
        "least long": pa.array([-(2**63) + day for day in days]),
        "float": pa.array((10.0 ** (PLACES * 1.5)).astype(np.float32)),
        "double": pa.array(-(10.0 ** (-PLACES * 15.0))),
        "denormal": pa.array(PLACES * 5e-324),
        "zero": pa.array(np.where(PLACES % 2, -0.0, 0.0)),
        "boolean": pa.array(PLACES > 3),
        "date": pa.array([one.date() for one in moments]),
        "timestamp": pa.array([one.replace(tzinfo=UTC) for one in moments]),
        "timestamp_ntz": pa.array(moments),
        "far date": pa.array((PLACES * 200_000).astype(np.int32)).cast(pa.date32()),
        "far timestamp": pa.array(PLACES * 10**16).cast(pa.timestamp("us", "UTC")),
        "far timestamp_ntz": pa.array(PLACES * 10**16).cast(pa.timestamp("us")),
        "gap": pa.array([datetime(1582, 10, 1) + timedelta(day) for day in days]),
        "text": pa.array([["01", "1", "1.0", "1e0", " 1", "NaN", "{1}"][day // 6] for day in days]),
    }  # fmt: skip


def masked(columns: dict[str, pa.Array]) -> pa.Table:
    mask = pa.array(MISSING)
    return pa.table(
        {name: pc.if_else(mask, pa.scalar(None, one.type), one) for name, one in columns.items()}
    )


def publish_and_verify(
    tmp_path: Path, cli: Cli, table: pa.Table, **sections: Any
) -> dict[str, Any]:
    """Publish a table, and return what `verify` finds with it as original and population."""
    path = str(write_table(tmp_path / "input.parquet", table.append_column(
        "sickness", pa.array([f"S{place % 5}" for place in range(ROWS)])
    )))  # fmt: skip
    configured = configuration_file(tmp_path, **{"privacy": {"k": 4}, **sections})
    cli.ends(0, "run", configured)
    same = ("--original", path, "--population", path)
    outcome = cli.ends(0, "verify", tmp_path / "release", *same, "--json")
    found: dict[str, Any] = json.loads(outcome.out)
    truth, linkage = found["truthfulness"], found["linkage"]["original"]
    assert truth["matched"] == truth["originals"] == found["rows"]
    assert linkage["unmatched"] == 0
    assert linkage["smallest_candidates"] >= 4
    assert found["classes_not_covered"] == 0
    return found


def roles(names: list[str], **changed: Any) -> dict[str, Any]:
    every = {name: changed.get(name, "quasi_identifier") for name in names}
    return every | {"sickness": "sensitive"}


@pytest.mark.parametrize("columns", [decimal_columns, other_columns])
@pytest.mark.parametrize(("style", "missing"), [("interval", "category"), ("bounds", "drop")])
def test_every_type_is_read_back(
    tmp_path: Path, cli: Cli, columns: Any, style: str, missing: str
) -> None:
    table = masked(columns())
    text = {"role": "quasi_identifier", "type": "text"}
    found = publish_and_verify(
        tmp_path,
        cli,
        table,
        attributes=roles(table.column_names, text=text),
        missing=missing,
        output={"style": style},
    )
    # Labels that hold everything would hold it whatever is wrong with them.
    assert found["classes"] > 15


def test_hierarchies_of_decimals_are_read_back(tmp_path: Path, cli: Cli) -> None:
    table = masked({name: one for name, one in decimal_columns().items() if "_1_" not in name})
    rule = {"role": "quasi_identifier", "hierarchy": {"intervals": [0.25, 5, 1e5]}}
    every: dict[str, Any] = dict.fromkeys(table.column_names, rule)
    for name in ("decimal_5_0", "decimal_5_2", "decimal_38_0"):
        lines = {
            f"{value};up to {place // 6};*"
            for value, place in zip(table[name].to_pylist(), PLACES, strict=True)
            if value is not None
        }
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(sorted(lines)) + "\n")
        every[name] = {"role": "quasi_identifier", "hierarchy": str(path)}
    publish_and_verify(
        tmp_path, cli, table, attributes=every | {"sickness": "sensitive"}, missing="category"
    )


def test_means_of_decimals(tmp_path: Path, cli: Cli) -> None:
    table = masked(decimal_columns())
    path = write_table(tmp_path / "input.parquet", table)
    configured = configuration_file(
        tmp_path,
        attributes=dict.fromkeys(table.column_names, "quasi_identifier"),
        missing="category",
        output={"style": "mean"},
    )
    cli.ends(0, "run", configured)
    cli.ends(0, "verify", tmp_path / "release")
    # They hide what the regions are, which is no fault of the release.
    cli.ends(2, "verify", tmp_path / "release", "--original", path, says="'mean' hides the regions")


def test_decimals_are_compared_with_texts_and_integers() -> None:
    own = [PublishedAttribute("x", "decimal", "interval", ("x",), type="decimal128(38, 0)")]
    number = 12345678901234567890123456789012345678
    release = pa.table({"x": [f"[{number - 1}-{number}]"]})
    for values, expected in (
        ([str(number), str(number - 1), str(number - 2), "17.0", "-1e3"], 2),
        ([Decimal(number), Decimal(number + 1)], 1),
        ([17, -1], 0),
    ):
        kind = {str: pa.string(), Decimal: pa.decimal128(38, 0), int: pa.int64()}[type(values[0])]
        population = pa.table({"x": pa.array(values, kind)})
        counts = count_regions(LabelledTable(local_table(release), own), local_table(population))
        assert counts.population.tolist() == [expected]
