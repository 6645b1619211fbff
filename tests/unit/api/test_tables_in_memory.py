"""Tables of pandas, polars and Arrow are anonymized here: their types, and what comes back."""

from __future__ import annotations

import shutil
import tempfile
import traceback
import uuid
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import data_beside

import anonspark
from anonspark.api import anonymize, distribute, verify
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.sharing.pairs.releases import Attack, audit_releases
from anonspark.verification.claims.roles import Roles

CONFIGURATION: dict[str, Any] = data_beside(__file__)["CONFIGURATION"]


def people() -> pa.Table:
    rows = range(60)
    return pa.table(
        {
            "age": [20 + 7 * row % 31 for row in rows],
            "city": [None if row % 11 == 0 else "ABC"[row % 3] for row in rows],
            "born": [date(1980 + row % 20, 1 + row % 12, 3) for row in rows],
            "illness": [("cold", "flu")[row % 2] for row in rows],
            "not listed": list(rows),
        }
    )


def arrow_of_odd_texts(table: pa.Table) -> pa.Table:
    table = table.set_column(1, "city", table["city"].cast(pa.large_string()))
    return table.set_column(3, "illness", table["illness"].dictionary_encode())


def polars_with_categories(table: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(table)).with_columns(pl.col("illness").cast(pl.Categorical))


def pandas_with_categories(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas().astype({"illness": "category"})


def with_moments(table: pa.Table, zone: str | None) -> pd.DataFrame:
    frame = table.to_pandas()
    return frame.assign(born=pd.to_datetime(frame["born"]).dt.tz_localize(zone))


KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "arrow of odd texts": arrow_of_odd_texts,
    "pandas": lambda table: table.to_pandas(),
    "pandas with categories": pandas_with_categories,
    "polars": pl.from_arrow,
    "polars with categories": polars_with_categories,
    # They have no days in general, but midnights and texts.
    "pandas with moments": lambda table: with_moments(table, None),
    "pandas with moments of a zone": lambda table: with_moments(table, "Europe/Berlin"),
    "polars with moments": lambda table: pl.from_arrow(table).with_columns(
        pl.col("born").cast(pl.Datetime)
    ),
    "polars with texts": lambda table: pl.from_arrow(table).with_columns(pl.col("born").cast(str)),
}


def rows_of(table: Any) -> list[dict[str, Any]]:
    """Return the records of a table of any kind."""
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    if isinstance(table, pl.DataFrame):
        table = table.to_arrow()
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_a_release(kind: str) -> None:
    given = KINDS[kind](people())
    with anonymize(people(), CONFIGURATION) as expected, anonymize(given, CONFIGURATION) as release:
        assert type(release.data) is type(given)
        assert rows_of(release.data) == rows_of(expected.data)
        assert set(rows_of(release.data)[0]) == {"age", "city", "born", "illness"}
        assert release.verify(original=given).holds
        proof = verify(release.data, CONFIGURATION, original=given)
    assert proof.holds
    assert proof.published.smallest >= 5


def test_moments_that_are_no_days() -> None:
    table = with_moments(people(), "Europe/Berlin")
    table.loc[3, "born"] += pd.Timedelta(hours=13)
    roles: dict[str, Any] = {"age": "quasi_identifier", "born": "quasi_identifier"}
    wanted = {"attributes": roles, "privacy": {"k": 5}}
    with anonymize(table, wanted) as release:
        # A moment of a zone is one of UTC.
        assert release.to_pandas()["born"].str.contains(r" 2[23]:00:00").any()
    # A record that is left out decides nothing.
    table["age"] = table["age"].astype("Int64")
    table.loc[3, "age"] = None
    with anonymize(table, {**wanted, "missing": "drop"}) as release:
        assert not release.to_pandas()["born"].str.contains(":").any()
    roles["born"] = {"role": "quasi_identifier", "type": "timestamp"}
    with anonymize(table, {**wanted, "missing": "drop"}) as release:
        assert release.to_pandas()["born"].str.contains(":").any()
    roles["born"] = {"role": "quasi_identifier", "hierarchy": {"calendar": ["month", "year"]}}
    with anonymize(table, {**wanted, "missing": "drop"}) as release:
        assert not release.to_pandas()["born"].str.contains(":").any()
    with pytest.raises(DataError, match="not midnight in Europe/Berlin"):
        anonymize(table, {**wanted, "missing": "category"})


@pytest.mark.parametrize("kind", ["Int64", "Int8"])
def test_whole_numbers_stay_what_they_are(kind: str) -> None:
    """As floats, those beyond 2^53 would be others."""
    first = 1 if kind == "Int8" else 2**53 + 1
    given = pd.DataFrame(
        {
            "age": [20 + row % 12 for row in range(60)],
            "case": pd.array([None, *range(first, first + 59)], dtype=kind),
            "well": pd.array([None, *[True] * 59], dtype="boolean"),
        }
    )
    roles: dict[str, Any] = {"k": 5, "quasi_identifiers": ["age"], "insensitive": ["case", "well"]}
    with anonymize(given, **roles) as release:
        for found in (release.data, release.to_pandas(), anonspark.read(release.path).to_pandas()):
            assert found["case"].dtype == kind
            assert set(found["case"].dropna()) == set(given["case"].dropna())
            assert found["well"].dtype == "boolean"
        assert release.verify(original=given).holds
        assert verify(release.data, quasi_identifiers=["age"], original=given).holds
    complete = given.dropna().astype({"case": kind.lower(), "well": "bool"})
    with anonymize(complete, **roles) as release:
        assert release.data.dtypes[["case", "well"]].to_list() == [kind.lower(), "bool"]


def test_ends_of_whole_numbers_stay_what_they_are() -> None:
    first = 2**53 + 1
    cases = pd.array([None] * 6 + [*range(first, first + 54)], "Int64")
    given = pd.DataFrame({"case": cases, "visits": 1})
    attributes = {"case": "quasi_identifier", "visits": "insensitive"}
    wanted = {"attributes": attributes, "privacy": {"k": 5}}
    with anonymize(given, {**wanted, "missing": "category"}) as release:
        found = anonspark.read(release.path).to_pandas()
    assert found["case_min"].dtype == found["case_max"].dtype == "Int64"
    assert found["case_min"].min() == first


@pytest.mark.parametrize("kind", ["arrow", "polars"])
def test_sensitive_values_that_cannot_be_compared_are_passed_over(kind: str) -> None:
    rows = range(60)
    columns = {
        "age": [20 + row % 12 for row in rows],
        "codes": [["A", "B"][: row % 3] for row in rows],
        "visit": [{"ward": row % 4} for row in rows],
        "scan": [bytes([row % 7]) for row in rows],
        "illness": [("cold", "flu")[row // 12 % 2] for row in rows],
    }
    given = KINDS[kind](pa.table(columns))
    names = ["codes", "visit", "scan", "illness"]
    with anonymize(given, k=5, quasi_identifiers=["age"], sensitive=names) as release:
        proof = release.verify(original=given)
        page = anonspark.report(release)
    assert proof.holds
    # What has an l, which is proposed of what can be compared, comes first.
    assert [one.homogeneous_classes for one in proof.sensitive] == [0, None, None, None]
    assert [one.partition(",")[0] for one in proof.warnings] == [
        "attributes.codes: has type array<string>",
        "attributes.visit: has type struct<ward:bigint>",
        "attributes.scan: has type binary",
    ]
    assert "codes: has type array" in proof._repr_html_()
    assert "codes: not measured" in page.html


def test_groups_of_truth_values_have_them_as_keys() -> None:
    """Whatever the role of the column."""
    flags = [row % 2 == 0 for row in range(60)]
    given = pa.table({"age": [20 + row % 6 for row in range(60)], "well": flags})
    with anonymize(given, k=5, quasi_identifiers=["well"]) as release:
        generalized = anonspark.read(release.path).count(by="well")
    with anonymize(given, k=5, quasi_identifiers=["age"], insensitive=["well"]) as release:
        as_it_was = anonspark.read(release.path).count(by="well")
    assert isinstance(generalized, dict)
    assert isinstance(as_it_was, dict)
    assert [*map(repr, generalized)] == [*map(repr, as_it_was)] == ["False", "True"]


def test_whole_numbers_that_are_too_large_are_called_so() -> None:
    given = pa.table({"case": pa.array([2**63 + row % 6 for row in range(60)], pa.uint64())})
    with pytest.raises(DataError, match="case: its whole numbers need more than 18 digits"):
        anonymize(given, k=5, quasi_identifiers=["case"])


def test_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with anonymize(people(), CONFIGURATION):
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []
    diverse = {"k": 5, "l_diversity": {"attribute": "illness", "l": 3}}
    with pytest.raises(GuaranteeError, match="distinct l-diversity"):
        anonymize(people(), CONFIGURATION | {"privacy": diverse})
    assert list(tmp_path.iterdir()) == []
    own = tmp_path / "own"
    own.mkdir()
    with anonymize(people(), CONFIGURATION, staging=str(own)):
        assert list(own.iterdir())
    assert list(own.iterdir()) == []


def test_a_release_is_kept_as_a_folder(tmp_path: Path) -> None:
    with anonymize(people(), CONFIGURATION) as release:
        kept = shutil.copytree(release.path, tmp_path / "kept")
        assert release.records == release.to_arrow().num_rows > 0
    proof = verify(kept)
    assert (proof.holds, proof.published.rows) == (True, release.records)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"found list. Expected .* pandas or polars"):
        anonymize([1, 2], CONFIGURATION)
    with pytest.raises(DataError, match="age"):
        anonymize(people().drop_columns("age"), CONFIGURATION)
    with pytest.raises(ConfigurationError, match=r"execution\.engine: found spark"):
        anonymize(people(), CONFIGURATION | {"execution": {"engine": "spark"}})


def test_a_proof_without_a_configuration() -> None:
    ages = pl.DataFrame({"age": ["20-29", "20-29", "30-39"]})
    proof = verify(ages, quasi_identifiers=["age"], k=2)
    assert not proof.holds
    assert proof.published.smallest == 1


PLAN: dict[str, Any] = data_beside(__file__)["PLAN"]


def test_labels_of_32_bits_are_compared_as_such(tmp_path: Path) -> None:
    """Their text has the few digits of 32 bits, which as 64 bits are another number."""
    sizes = pa.array([20 + row % 20 / 7 for row in range(120)], pa.float32())
    given = pa.table({"size": sizes, "illness": ["cold", "flu"] * 60})
    model = {"name": "smondrian"}
    roles: dict[str, Any] = {"quasi_identifiers": ["size"], "sensitive": ["illness"], "k": 5}
    with anonymize(given, **roles, model=model) as release:
        as_another_tool_has_it = str(tmp_path / "published.parquet")
        pq.write_table(release.data, as_another_tool_has_it)
        pq.write_table(given, tmp_path / "original.parquet")
        assert verify(release.data, **roles, original=given).failures == []
        assert verify(release.data, **roles, population=given).failures == []
        original = str(tmp_path / "original.parquet")
        assert verify(release, original=original).failures == []
        assert verify(as_another_tool_has_it, **roles, original=original).failures == []
        # The manifest of the other one tells what the values are.
        both = audit_releases(
            LocalEngine(),
            [release.path, as_another_tool_has_it],
            roles=Roles(("size",), ("illness",), 5),
            attack=Attack("same people"),
        )
        assert both.holds
        assert both.pairs[0].figures.pairs == len(release.classes)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "categories"])
def test_records_that_another_tool_suppressed(kind: str) -> None:
    day = date(2020, 1, 1)
    columns: dict[str, Any] = {
        "age": ["20-30", "20-30", "*", " *", "30-40", "30-40"],
        "illness": ["cold", "flu", "flu", "*", "flu", "cold"],
        "seen": [day, day.replace(month=2), day, day, day, day.replace(month=2)],
    }
    table = pa.table(columns)
    if kind == "categories":
        given = table.to_pandas().astype({"age": "category", "illness": "category"})
    else:
        given = KINDS[kind](table)
    roles: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["illness", "seen"]}
    found = verify(given, **roles, k=2, l=2, t=0.3, suppressed="*")
    assert (found.failures, found.suppressed, found.published.sizes) == ([], 2, {2: 2})
    measured = {one.criterion.attribute: one.measured for one in found.criteria[2:]}
    # Of 5 known illnesses 3 are flu, of 6 days 4 are the first.
    assert measured == pytest.approx({"illness": 0.1, "seen": 1 / 6})
    assert verify(given, **roles).published.sizes == {1: 2, 2: 2}
    for wrong in ({"t": "0.2"}, {"l": 2.5}, {"suppressed": 1}, {"unit": "age"}):
        with pytest.raises(ConfigurationError, match=f"^{next(iter(wrong))}: found "):
            verify(given, **roles, **wrong)
    with pytest.raises(ConfigurationError, match=r"^quasi_identifiers, sensitive, t: found"):
        verify(given, {"attributes": {}}, **roles, t=0.1)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_a_plan(kind: str, tmp_path: Path) -> None:
    table = people().rename_columns(["age", "city", "born", "illness", "person"])
    given = KINDS[kind](table)
    with distribute(given, PLAN, staging=str(tmp_path)) as made:
        assert list(made.releases) == ["office", "press"]
        assert type(made.coalitions) is type(given)
        told = rows_of(made.coalitions)
        assert [list(row["recipients"]) for row in told] == [["office", "press"]]
        assert told[0]["smallest"] >= 5
        assert told[0]["holds"]
        office = made.releases["office"]
        assert set(office.data.columns if kind != "arrow" else office.data.column_names) >= {
            "age",
            "illness",
        }
        assert office.verify().holds
        assert "born" not in office.manifest["configuration"]["attributes"]
    assert list(tmp_path.iterdir()) == []


def test_a_plan_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    table = people().rename_columns(["age", "city", "born", "illness", "person"])
    apart = PLAN | {"strategy": "independent"}
    with pytest.raises(GuaranteeError, match="office, press"):
        distribute(table, apart, staging=str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"execution\.engine: found spark"):
        distribute(table, PLAN | {"set": {"execution.engine": "spark"}}, staging=str(tmp_path))
    with pytest.raises(ConfigurationError, match="recipients"):
        distribute(table, {}, staging=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


ROWS = 60
AGES = [row % 12 for row in range(ROWS)]
HALF = [row // 2 for row in range(ROWS)]
DAYS = pd.date_range("2000", periods=ROWS)
ARGUMENTS: dict[str, Any] = {"k": 5, "progress": False}
IDENTIFIERS: dict[str, Any] = {
    "uuid": pd.Series([uuid.UUID(int=half) for half in HALF]),
    "time": pd.Series([time(half % 24, half) for half in HALF]),
    "period": pd.Series(pd.period_range("2000", periods=ROWS, freq="D")[HALF]),
    "interval": pd.Series(pd.interval_range(0, ROWS)[HALF]),
    "category of dates": pd.Series(pd.Categorical(DAYS[HALF])),
    "float16": pd.Series(np.array(HALF, "float16")),
    "decimal256": pa.array([Decimal(half) for half in HALF], pa.decimal256(60, 2)),
    "run-end-encoded": pa.RunEndEncodedArray.from_arrays([2 * n + 2 for n in range(30)], range(30)),
}


@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_identifiers_of_any_type(kind: str) -> None:
    table = pa.table({"age": AGES, "who": pa.array(IDENTIFIERS[kind])})
    with anonspark.anonymize(
        table, quasi_identifiers=["age"], identifiers=["who"], **ARGUMENTS
    ) as release:
        assert release.to_arrow().column_names == ["age"]
        warned = [one["attribute"] for one in release.manifest["warnings"]][:1]
        # A day, or a fraction of another name, numbers no people.
        assert warned == ([] if kind in ("category of dates", "float16") else ["who"])


TO_TWO = {one: {"approved": "yes", "columns": ["age"]} for one in ("office", "press")}


@pytest.mark.parametrize("kind", ["uuid", "time", "period"])
def test_subjects_of_any_type(kind: str) -> None:
    table = pd.DataFrame({"age": AGES[::2], "who": IDENTIFIERS[kind][::2]})
    roles = {"age": "quasi_identifier", "who": "identifier"}
    plan = {
        "base": {"attributes": roles, "privacy": {"k": 5}},
        "subject": "who",
        "recipients": TO_TWO,
    }
    with anonspark.distribute(table, plan, progress=False) as made:
        assert list(made.coalitions["persons"]) == [30]


def test_halves_of_floats_are_numbers() -> None:
    table = pd.DataFrame({"age": AGES, "size": np.array(HALF, "float16")})
    roles: list[dict[str, list[str]]] = [
        {"quasi_identifiers": ["age", "size"]},
        {"quasi_identifiers": ["age"], "sensitive": ["size"]},
        {"quasi_identifiers": ["age"], "insensitive": ["size"]},
    ]
    for own in roles:
        with anonspark.anonymize(table, **own, **ARGUMENTS) as release:
            assert release.verify(original=table).holds
    assert [one.kind for one in anonspark.profile(table, progress=False).columns][1] == "number"


@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive", "insensitive"])
def test_decimals_of_more_digits_than_files_have(role: str) -> None:
    numbers = pa.array([Decimal(half) for half in HALF], pa.decimal256(60, 2))
    table = pa.table({"age": AGES, "size": numbers})
    arguments: dict[str, Any] = {"quasi_identifiers": ["age"], **ARGUMENTS, role: ["size"]}
    with pytest.raises(DataError, match=r"attributes\.size: .*decimal\(60,2\).* 38 digits"):
        anonspark.anonymize(table, **arguments)


@pytest.mark.parametrize("kind", ["uuid", "time", "decimal256"])
def test_what_cannot_be_compared_is_not_verified(kind: str) -> None:
    table = pa.table({"size": pa.array(IDENTIFIERS[kind])})
    with pytest.raises(DataError, match=r"column 'size' has type .* cannot be compared. Convert"):
        anonspark.verify(table, quasi_identifiers=["size"])
    assert len(anonspark.profile(table, progress=False).columns) == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive", "insensitive", "identifiers"])
def test_durations_have_no_unit_that_anybody_knows(library: str, role: str) -> None:
    stays = [timedelta(days=half) for half in HALF]
    kind = pd if library == "pandas" else pl
    table = kind.DataFrame({"age": AGES, "stay": stays})
    arguments: dict[str, Any] = {"quasi_identifiers": ["age"], **ARGUMENTS, role: ["stay"]}
    if role == "identifiers":
        with anonspark.anonymize(table, **arguments) as release:
            assert release.manifest["warnings"][0]["attribute"] == "stay"
        return
    with pytest.raises(DataError, match=r"attributes\.stay: .* duration\[.*days or seconds"):
        anonspark.anonymize(table, **arguments)


def test_durations_in_structs() -> None:
    visits = [{"stay": timedelta(days=half), "ward": half % 2} for half in HALF]
    table = pa.table({"age": AGES, "visit": visits})
    wards = ["age", "visit.ward"]
    with anonspark.anonymize(table, quasi_identifiers=wards, **ARGUMENTS) as release:
        assert release.verify(original=table).holds
    for roles in ({"insensitive": ["visit.stay"]}, {"insensitive": ["visit"]}):
        with pytest.raises(DataError, match=r"attributes\.visit.*duration\["):
            anonspark.anonymize(table, quasi_identifiers=["age"], **roles, **ARGUMENTS)


PERSON = "Jane Doe"


def with_column(values: Any) -> pd.DataFrame:
    return pd.DataFrame({"age": AGES}).assign(note=values)


def of_polars(data_type: Any) -> pl.DataFrame:
    return pl.DataFrame({"age": AGES, "note": pl.Series(range(ROWS)).cast(data_type)})


TABLES: dict[str, tuple[Callable[[], Any], str]] = {
    "mixed": (lambda: with_column([5] + [PERSON] * (ROWS - 1)), "objects of the types int, str"),
    "paths": (lambda: with_column([Path(PERSON)] * ROWS), "objects of the type PosixPath"),
    "sparse": (lambda: with_column(pd.arrays.SparseArray(AGES)), "values of the type Sparse"),
    "complex": (lambda: with_column(np.arange(ROWS) * 1j), "values of the type complex128"),
    "large": (lambda: with_column([10**25] * ROWS), "whole numbers of more than 64 bits"),
    "surrogates": (lambda: with_column([PERSON + "\ud800"] * ROWS), "texts that are no Unicode"),
    "Int128 of polars": (lambda: of_polars(pl.Int128), "values of the type Int128"),
    "objects of polars": (
        lambda: pl.DataFrame({"age": AGES, "note": pl.Series([{PERSON}] * ROWS, dtype=pl.Object)}),
        "values of the type Object",
    ),
}


@pytest.mark.parametrize("case", ["mixed", "surrogates", "Int128 of polars"])
def test_a_column_without_a_role(case: str) -> None:
    table = TABLES[case][0]()
    with anonspark.anonymize(table, quasi_identifiers=["age"], **ARGUMENTS) as release:
        assert release.to_arrow().column_names == ["age"]
        assert release.verify(original=table, population=table).holds
        assert anonspark.evaluate(release, table, progress=False).workload.median == 0
        anonspark.report(release, original=table, progress=False)
    assert anonspark.verify(table, quasi_identifiers=["age"], k=5).holds
    found = anonspark.compare(table, quasi_identifiers=["age"], **ARGUMENTS)
    assert [row["status"] for row in found.rows] == ["done"]


@pytest.mark.parametrize("case", TABLES)
def test_a_column_that_is_used_is_refused_without_its_values(case: str) -> None:
    make, kind = TABLES[case]
    table = make()
    # A profile passes over it.
    judged = {one.name: one.type for one in anonspark.profile(table, progress=False).columns}
    assert judged.keys() == {"age", "note"}
    assert judged["note"].startswith(kind)
    plan = {
        "base": {"attributes": {"age": "quasi_identifier", "note": "identifier"}},
        "subject": "note",
        "recipients": TO_TWO,
    }
    plan["base"]["privacy"] = {"k": 5}  # type: ignore[index]
    uses: list[Callable[[], Any]] = [
        lambda: anonspark.anonymize(table, quasi_identifiers=["note"], **ARGUMENTS),
        lambda: anonspark.verify(table, quasi_identifiers=["note"]),
        lambda: anonspark.compare(table, quasi_identifiers=["note"], **ARGUMENTS),
    ]
    if case not in ("mixed", "paths", "large", "surrogates"):
        # In a plan, a column of objects of pandas is one of texts.
        uses.append(lambda: anonspark.distribute(table, plan, progress=False))
    for role in ("sensitive", "insensitive", "identifiers"):
        one: dict[str, Any] = {"quasi_identifiers": ["age"], role: ["note"], **ARGUMENTS}
        uses.append(lambda one=one: anonspark.anonymize(table, **one))  # type: ignore[misc]
    plain = with_column(AGES)
    with anonspark.anonymize(plain, quasi_identifiers=["age", "note"], **ARGUMENTS) as release:
        uses += [
            lambda: release.verify(original=table),
            lambda: release.verify(population=table),
            lambda: anonspark.evaluate(release, table, progress=False),
        ]
        for use in uses:
            with pytest.raises(DataError) as caught:
                use()
            assert f"note: found {kind}" in str(caught.value)
            assert PERSON not in "".join(traceback.format_exception(caught.value))


def test_columns_of_one_name() -> None:
    table = pd.DataFrame(zip(AGES, AGES, AGES, strict=True), columns=["age", "z", "z"])
    with anonspark.anonymize(table, quasi_identifiers=["age"], **ARGUMENTS) as release:
        assert release.verify(original=table).holds
    with pytest.raises(DataError, match="2 columns of one name, 'z', 'z'"):
        anonspark.anonymize(table, quasi_identifiers=["z"], **ARGUMENTS)
    with pytest.raises(DataError, match="table: has 2 columns"):
        anonspark.profile(table, progress=False)


def test_a_lazy_table_that_fails() -> None:
    lazy = pl.LazyFrame({"age": AGES, "note": [PERSON] * ROWS}).cast({"note": pl.Int64})
    with pytest.raises(DataError, match="computing the lazy LazyFrame failed with") as caught:
        anonspark.anonymize(lazy, quasi_identifiers=["age", "note"], **ARGUMENTS)
    assert PERSON not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "given", [None, "people.csv", Path("people.csv"), pl.Series([1]), pd.Series([1])]
)
def test_what_is_no_table(given: Any) -> None:
    functions: list[Callable[[], Any]] = [
        lambda: anonspark.anonymize(given, quasi_identifiers=["age"], **ARGUMENTS),
        lambda: anonspark.compare(given, quasi_identifiers=["age"], **ARGUMENTS),
        lambda: anonspark.distribute(given, {}, progress=False),
    ]
    if not isinstance(given, str | Path):
        functions.append(lambda: anonspark.profile(given, progress=False))
        functions.append(lambda: anonspark.verify(given, quasi_identifiers=["age"]))
    for function in functions:
        with pytest.raises(ConfigurationError, match=r"table: found \w+. Expected a DataFrame of"):
            function()


def test_a_batch_is_a_table() -> None:
    batch = pa.record_batch({"age": AGES})
    with anonspark.anonymize(batch, quasi_identifiers=["age"], **ARGUMENTS) as release:
        assert release.to_arrow().num_rows == ROWS
