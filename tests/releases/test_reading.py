"""What a recipient reads in a release: counts whose bounds hold the truth, and typed columns."""

from __future__ import annotations

import datetime
import itertools
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from commands import Cli
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from read_releases import DAY, MOMENT, QUASI_IDENTIFIERS, RELEASES, ROWS, people

import anonspark
from anonspark.errors import ConfigurationError, DataError
from anonspark.reading.counting import Count
from anonspark.reading.published import PublishedRelease


@pytest.fixture(scope="module")
def folder(read_releases: Path) -> Path:
    """Give a directory with the releases of the people."""
    return read_releases


@pytest.fixture(scope="module")
def releases(folder: Path) -> dict[str, PublishedRelease]:
    """Give all releases, opened."""
    return {
        name: anonspark.read(
            str(folder / name),
            hierarchies={"sex": str(folder / "sex.csv")} if wanted.get("hierarchy") else None,
        )
        for name, wanted in RELEASES.items()
    }


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database of the people, which answers the same questions."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("people", people())
    yield connection
    connection.close()


def ordered(name: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Draw conditions on an ordered column."""
    compared = st.tuples(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), values).map(
        lambda pair: f"{name} {pair[0]} {pair[1]}"
    )
    between = st.tuples(st.sampled_from(["", "not "]), values, values).map(
        lambda one: f"{name} {one[0]}between {one[1]} and {one[2]}"
    )
    return st.one_of(compared, between, among(name, values))


def among(name: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Draw conditions on a column of any kind."""
    listed = st.lists(values, min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        st.tuples(st.sampled_from(["in", "not in"]), listed).map(
            lambda pair: f"{name} {pair[0]} ({pair[1]})"
        ),
        st.tuples(st.sampled_from(["=", "!="]), values).map(
            lambda pair: f"{name} {pair[0]} {pair[1]}"
        ),
        st.sampled_from([f"{name} is null", f"{name} is not null"]),
    )


TESTS = {
    "age": ordered("age", st.one_of(st.integers(15, 92).map(str), st.just("30.5"))),
    "born": ordered(
        "born", st.integers(-100, 20_100).map(lambda day: f"'{DAY + datetime.timedelta(days=day)}'")
    ),
    "pay": ordered("pay", st.integers(-600, 5100).map(lambda cents: f"{cents / 100:.2f}")),
    "height": ordered("height", st.integers(1400, 2000).map(lambda one: f"{one / 10}e0")),
    "sex": among("sex", st.sampled_from(["'f'", "'m'", "'x'"])),
    "seen": ordered(
        "seen",
        st.integers(0, 10**5).map(lambda one: f"'{MOMENT + datetime.timedelta(minutes=one)}'"),
    ),
    "member": st.sampled_from(
        ["member = true", "member != true", "member in (false)", "member is null"]
    ),
    "postal code": among(
        '"postal code"', st.integers(10_000, 13_000).map(lambda code: f"'{code}'")
    ),
    "diagnosis": among("diagnosis", st.sampled_from(["'flu'", "'cold'", "'a ''b'''"])),
    "visits": ordered("visits", st.integers(-1, 6).map(str)),
}


def questions(columns: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Draw questions about some columns."""
    tests = st.one_of([TESTS[name] for name in (*columns, "diagnosis", "visits")])
    return st.recursive(
        tests,
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' and '.join(parts)})"),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' or '.join(parts)})"),
            inner.map(lambda part: f"not ({part})"),
        ),
        max_leaves=6,
    )


@pytest.mark.parametrize("name", RELEASES)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_the_truth_lies_between_the_bounds(
    name: str,
    data: st.DataObject,
    releases: dict[str, PublishedRelease],
    database: duckdb.DuckDBPyConnection,
) -> None:
    """A database answers the question about the raw records; what was left out is told of."""
    columns = RELEASES[name].get("columns", QUASI_IDENTIFIERS)
    question = data.draw(questions(columns))
    release = releases[name]
    found = release.count(question)
    assert isinstance(found, Count)
    kept = "true"
    if RELEASES[name].get("missing") == "drop":
        kept = " and ".join(f'"{one}" is not null' for one in columns)
    asked = f"select count(*) from people where {kept} and ({question})"  # noqa: S608
    row = database.execute(asked).fetchone()
    assert row is not None
    left_out = release.manifest["summary"]["rows_left_out"]
    assert found.lower <= found.estimate <= found.upper <= found.records == len(release)
    assert found.lower <= row[0] <= found.upper + left_out
    # What is not met for certain is met for certain by the records left.
    if all(f"{one} is" not in question for one in columns):
        other = release.count(f"not ({question})")
        assert isinstance(other, Count)
        assert found.lower + other.upper <= len(release)


def test_groups_add_up(releases: dict[str, PublishedRelease]) -> None:
    """Groups of a column that is published as it is are exact parts, those of sets are bounded."""
    release = releases["interval"]
    whole = release.count("age < 50")
    by_diagnosis = release.count("age < 50", by="diagnosis")
    assert isinstance(whole, Count)
    assert isinstance(by_diagnosis, dict)
    assert list(by_diagnosis) == ["a 'b'", "cold", "flu", None]
    assert sum(one.lower for one in by_diagnosis.values()) == whole.lower
    assert sum(one.records for one in by_diagnosis.values()) == whole.records == ROWS
    assert sum(one.estimate for one in by_diagnosis.values()) == pytest.approx(whole.estimate)
    by_sex = release.count("age < 50 by sex")
    assert isinstance(by_sex, dict)
    assert list(by_sex) == ["f", "m", None]
    assert sum(one.estimate for one in by_sex.values()) == pytest.approx(whole.estimate)
    alone, women = release.count("age < 50 and sex = 'f'"), release.count("sex = 'f'")
    assert (by_sex["f"].lower, by_sex["f"].upper) == (alone.lower, alone.upper)
    assert by_sex["f"].estimate == alone.estimate
    # Those who may be women, not the whole release.
    assert by_sex["f"].records == women.upper < ROWS
    with pytest.raises(ConfigurationError, match="'age', which is generalized to ranges"):
        release.count("sex = 'f' by age")
    with pytest.raises(ConfigurationError, match="Leave one of them out"):
        release.count("sex = 'f' by visits", by="diagnosis")


@pytest.mark.parametrize(
    ("name", "column"),
    [
        *itertools.product(("interval", "bounds", "mean"), ("age", "height", "pay", "visits")),
        ("rules", "age"),
    ],
)
def test_numbers_beyond_all_others(
    name: str, column: str, releases: dict[str, PublishedRelease]
) -> None:
    """They are compared as others are that no value comes near."""
    release = releases[name]
    for asked in (
        "{} > {}",
        "{} > -{}",
        "{} < {}",
        "{} = {}",
        "{} between -{} and {}",
        "not {} > {} and age < 40",
        "{} > {} or visits < 3",
    ):
        beyond, large = (
            release.count(asked.format(column, *[number] * (asked.count("{}") - 1)))
            for number in ("1e400", "1e300")
        )
        assert beyond == large
    assert release.count(f"{column} < {'9' * 5000}") == release.count(f"{column} < 1e300")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5,), "question: found a value of type int. Expected a text, as 'age between 30 and 40'"),
        ((None,), "question: found None. Expected a text"),
        (("age > 30", ["sex"]), "by: found a value of type list. Expected the name of one column"),
    ],
)
def test_what_is_no_text(
    arguments: tuple[Any, ...], message: str, releases: dict[str, PublishedRelease]
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        releases["interval"].count(*arguments)


def test_a_hierarchy_at_hand_tells_more(folder: Path) -> None:
    """Without the file a label stands for itself."""
    without = anonspark.read(str(folder / "full-domain")).count("sex = 'f'")
    path = str(folder / "sex.csv")
    release = anonspark.read(str(folder / "full-domain"), hierarchies={"sex": path})
    found = release.count("sex = 'f'")
    assert isinstance(without, Count)
    assert isinstance(found, Count)
    assert found.lower >= without.lower
    assert found.upper <= without.upper
    assert release.count("sex in ('f', 'm')") == release.count("sex = 'person'")
    with pytest.raises(ConfigurationError, match=r"found 'age'. Expected quasi-identifiers"):
        anonspark.read(str(folder / "interval"), hierarchies={"age": path}).count()


def test_another_hierarchy_is_refused(folder: Path, tmp_path: Path, cli: Cli) -> None:
    """As `mapping` refuses it, whatever is asked: with it a condition may contradict itself."""
    place, other = str(folder / "full-domain"), tmp_path / "other.csv"
    other.write_text("g,woman,*\nn,man,*\n")
    release = anonspark.read(place, hierarchies={"sex": str(other)})
    lacking = r"is not the file that the release was made with: \d of the release's \d labels"
    for _ in range(2):
        for ask in (
            lambda: release.count("sex = 'f'"),
            lambda: release.count("sex = 'woman' and sex = 'f'"),
            lambda: release.count("visits < 3"),
            release.to_arrow,
        ):
            with pytest.raises(DataError, match=rf"hierarchies\.sex: .*other\.csv {lacking}"):
                ask()
    options = ("--hierarchy", f"sex={other}")
    asked = cli("query", place, "sex = 'f'", *options)
    mapped = cli("mapping", place, *options)
    assert (asked.code, asked.out) == (mapped.code, mapped.out) == (3, "")
    assert re.search(f"--hierarchy sex: .*{lacking}", mapped.err.replace("\n", " "))
    assert re.search(f"--hierarchy sex: .*{lacking}", asked.err.replace("\n", " "))
    # What it has beside the labels that are there does no harm.
    other.write_text("f,person\nm,person\nx,person\n")
    release = anonspark.read(place, hierarchies={"sex": str(other)})
    assert release.count("sex in ('f', 'm', 'x')") == release.count("sex = 'person'")


def test_typed_columns(releases: dict[str, PublishedRelease], folder: Path) -> None:
    """Of all styles without hierarchies: the ends that `bounds` publishes are those of labels."""
    told = releases["interval"].to_arrow()
    bounds = parquet.read_table(folder / "bounds" / "data")
    for name in ("age", "born", "pay", "height", "seen"):
        for end in ("min", "max", "missing"):
            assert told[f"{name}_{end}"].equals(
                bounds[f"{name}_{end}"].cast(told.schema.field(f"{name}_{end}").type)
            )
            assert (
                told.schema.field(f"{name}_{end}").type == bounds.schema.field(f"{name}_{end}").type
            )
        assert told[f"{name}_mid"].equals(releases["bounds"].to_arrow()[f"{name}_mid"])
    for name in ("sex", "member", "postal code"):
        pairs = zip(told[f"{name}_set"].to_pylist(), bounds[name].to_pylist(), strict=True)
        assert all(set(one or ()) == set(other or ()) for one, other in pairs)
    means = releases["mean"].to_arrow()
    assert means["age_mid"].equals(means["age"])
    assert "age_min" not in means.column_names
    assert told.column_names[:5] == ["age", "age_min", "age_max", "age_mid", "age_missing"]


def test_typed_columns_of_rules(releases: dict[str, PublishedRelease]) -> None:
    """Half-open intervals say so; months and years have a first and a last day."""
    rows = releases["rules"].to_arrow().to_pylist()
    for row in rows:
        label = row["age"].removesuffix(" or missing")
        if label.startswith("["):
            low, high = label[1:-1].split("-")
            assert (row["age_min"], row["age_max"]) == (float(low), float(high))
            assert row["age_max_included"] is False
        elif label in ("*", "missing"):
            assert row["age_min"] is row["age_max"] is row["age_mid"] is None
        else:
            assert row["age_min"] == row["age_max"] == row["age_mid"] == float(label)
            assert row["age_max_included"] is True
        label = row["born"].removesuffix(" or missing")
        if len(label) == 4:
            assert row["born_min"] == datetime.date(int(label), 1, 1)
            assert row["born_max"] == datetime.date(int(label), 12, 31)
        assert row["born_missing"] == ("missing" in row["born"])


def test_frames(releases: dict[str, PublishedRelease]) -> None:
    """Dates stay dates and decimals decimals."""
    frame = releases["interval"].to_pandas()
    first = frame.dropna(subset=["born_min", "pay_min"]).iloc[0]
    assert type(first["born_min"]) is datetime.date
    assert type(first["pay_min"]) is Decimal
    assert releases["interval"].to_polars().shape == frame.shape
    assert "240 records, k = 4, style interval" in repr(releases["interval"])


def test_what_is_no_release_is_refused(tmp_path: Path) -> None:
    """As by every command."""
    with pytest.raises(DataError, match="no manifest"):
        anonspark.read(str(tmp_path))


def test_the_command(folder: Path, releases: dict[str, PublishedRelease], cli: Cli) -> None:
    """The terminal says what Python returns."""
    place = str(folder / "interval")
    question = "age between 30 and 60 and visits < 3"
    expected = releases["interval"].answer(question)
    found = cli.ends(0, "query", place, question, "--json")
    assert json.loads(found.out) == expected.as_dict()
    assert expected.left_out == 0
    shown = cli("query", place, question)
    count = expected.count
    assert f"at least {count.lower:,} and at most {count.upper:,}" in shown.out
    shown = cli("query", place, f"{question} by diagnosis")
    assert "a 'b'" in shown.out
    assert "at least" in shown.out
    assert cli("query", place, "visits < 3").out.endswith("records, exactly\n")
    cli.ends(2, "query", place, "age betwen 3 and 5", says="character 5")
    # Of a column that was meant the release is asked first.
    for code, of in ((2, place), (3, str(folder))):
        unquoted = cli.ends(code, "query", of, "postal-code = '1'")
        assert ("in double quotes" in unquoted.err.replace("\n", " ")) == (code == 2)
    dropped = cli("query", str(folder / "dropped"), "age < 30")
    assert "left out of the release are not counted" in dropped.out
