"""Profiles of small tables, counted by hand, and what is proposed of columns."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.association import NEARLY, Dependency, find_dependencies, most_frequent
from anonspark.core.recognition.names import meaning_of
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, DataError
from anonspark.profiling.counting import count_columns, measure_sets, readings_of, weigh_columns
from anonspark.profiling.draft import Answers, draft_configuration
from anonspark.profiling.page import dependency_texts, markers_text, profile_page
from anonspark.profiling.profile import MISSING_MARKERS, Profile, profile_table
from anonspark.profiling.roles import Described, propose_roles, unit_of
from anonspark.profiling.source import find_source
from anonspark.progress import Progress

K = 3


def profile_of(path: Path, **options: Any) -> Profile:
    return profile_table(LocalEngine(), find_source(str(path)), Progress(), k=K, **options)


def write_csv(path: Path, rows: list[list[str]], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened, delimiter=delimiter).writerows(rows)
    return path


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["", "?", " ? ", "a", "b", "007", "7", "1.5", "2026-01-31", "2026-02-30"]
            ),
            st.one_of(st.none(), st.integers(-3, 3)),
            st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, float("inf"), float("nan")])),
        ),
        max_size=40,
    )
)
def test_columns_are_counted_as_defined(rows: list[tuple[str, int | None, float | None]]) -> None:
    types = (pa.string(), pa.int64(), pa.float64())
    columns = [pa.array([row[at] for row in rows], own) for at, own in enumerate(types)]
    engine = LocalEngine()
    table = engine.wrap(pa.table(columns, ["text", "whole", "float"]))
    counted, found = count_columns(table, readings_of(table.schema, MISSING_MARKERS), K)
    # Blank rows are none.
    rows = [
        row
        for row in rows
        if row[0].strip() not in ("", "?")
        or row[1] is not None
        or (row[2] is not None and row[2] == row[2])
    ]
    assert counted == len(rows)
    texts = [row[0] for row in rows if row[0].strip() not in ("", "?")]
    wholes = [row[1] for row in rows if row[1] is not None]
    floats = [row[2] for row in rows if row[2] is not None and row[2] == row[2]]
    for one, values in zip(found, (texts, wholes, floats), strict=True):
        counts: Counter[Any] = Counter(values)
        assert one.missing == len(rows) - len(values)
        assert one.distinct == len(counts)
        assert one.unique == sum(number == 1 for number in counts.values())
        assert one.few == sum(number for number in counts.values() if number < K)
        assert one.largest == max(counts.values(), default=0)
    assert found[0].numbers == sum(text in ("007", "7", "1.5") for text in texts)
    assert found[0].whole == sum(text in ("007", "7") for text in texts)
    assert found[0].padded == texts.count("007")
    assert found[0].days == texts.count("2026-01-31")
    assert found[2].infinite == floats.count(float("inf"))


def people(rows: int) -> list[list[str]]:
    draw = np.random.default_rng(5)
    return [
        [
            f"P{number:05}",
            f"person{number}@example.org",
            str(draw.integers(18, 90)),
            f"{draw.integers(100):05}",
            draw.choice(["f", "m", "?"]),
            draw.choice(["flu", "cold", "cough"]),
            f"{draw.integers(1, 29):02}.{draw.integers(1, 13):02}.19{draw.integers(10, 99)}",
        ]
        for number in range(rows)
    ]


HEADER = ["person_id", "contact", "age", "zip", "sex", "diagnosis", "birth_date"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("profile") / "people.csv", [HEADER, *people(3000)])


def test_a_table_is_described(table: Path) -> None:
    found = profile_of(table)
    assert (found.rows, found.sample_rows, found.is_sampled) == (3000, 3000, False)
    assert [one.name for one in found.columns] == HEADER
    assert [one.kind for one in found.columns] == [
        "text", "text", "whole number", "code", "text", "text", "other date",
    ]  # fmt: skip
    assert [one.role for one in found.columns] == [
        "identifier", "identifier", "quasi_identifier", "quasi_identifier", "quasi_identifier",
        "sensitive", None,
    ]  # fmt: skip
    assert found.columns[1].looks_like == "e-mail address"
    assert found.columns[1].told_by == "values"
    assert "2026-01-31" in found.columns[6].reason
    assert found.measured == ["age", "zip", "sex", "diagnosis", "birth_date"]
    assert found.unit is None
    assert all(one.examples == () for one in found.columns)


def test_values_are_shown_only_if_asked_for(table: Path) -> None:
    shown = profile_of(table, show_values=True)
    assert set(shown.columns[5].examples) == {"flu", "cold", "cough"}
    assert "flu" in str(shown.as_dict())
    told = str(profile_of(table).as_dict())
    assert "example.org" not in told
    assert "flu" not in told
    assert "example.org" not in repr(shown)


def test_order_and_files_change_nothing(table: Path, tmp_path: Path) -> None:
    with table.open(encoding="utf-8", newline="") as opened:
        header, *rows = list(csv.reader(opened))
    rows = [rows[place] for place in np.random.default_rng(1).permutation(len(rows))]
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in range(3):
        write_csv(folder / f"part{part}.csv", [header, *rows[part::3]])
    for sample in (200_000, 1000):
        first, second = (profile_of(one, sample=sample).as_dict() for one in (table, folder))
        assert first | {"path": ""} == second | {"path": ""}


def test_a_sample_is_drawn_by_its_seed(table: Path) -> None:
    first, again, other = (profile_of(table, sample=1000, seed=seed) for seed in (0, 0, 1))
    assert first.sample_rows == again.sample_rows == 1000
    assert first.is_sampled
    assert first.as_dict() == again.as_dict()
    assert first.uniqueness != other.uniqueness
    # What is counted over all rows is the same.
    assert [one.counts for one in first.columns] == [one.counts for one in other.columns]


def test_records_that_are_alike_are_drawn_each_by_itself(tmp_path: Path) -> None:
    # Nine records of ten are one and the same.
    rows = [["x", "0"]] * 9000 + [["y", str(n)] for n in range(1000)]
    path = write_csv(tmp_path / "alike.csv", [["kind", "size"], *rows])
    found = profile_of(path, sample=2000)
    assert found.sample_rows == 2000
    kind = next(one for one in found.uniqueness.sets if one.columns == ("kind",))
    assert abs(kind.separation - 0.18) < 0.03


def test_people_with_several_records(tmp_path: Path) -> None:
    rows = [[str(n // 3 + 1000), str(n % 50), "flu"] for n in range(900)]
    path = write_csv(tmp_path / "visits.csv", [["patient_id", "age", "disease"], *rows])
    assert profile_of(path).unit == "patient_id"


def test_numbers_with_a_comma_are_to_be_converted(tmp_path: Path) -> None:
    lines = [[f"{150 + n % 40},{n % 10}", "1.234,5", str(n % 7), f"{n % 60},5", "x,5"]
             for n in range(200)]  # fmt: skip
    lines[0][0] = "170"
    header = ["height", "income", "ward", "age", "other"]
    path = write_csv(tmp_path / "german.csv", [header, *lines], ";")
    found = profile_of(path)
    assert [one.kind for one in found.columns] == [
        "other number", "other number", "whole number", "other number", "text",
    ]  # fmt: skip
    assert [one.role for one in found.columns] == [None, None, "quasi_identifier", None, None]
    assert "1234.5" in found.columns[0].reason
    assert "1234.5" in found.columns[3].reason


def test_what_gives_a_quasi_identifier_away_is_told(tmp_path: Path) -> None:
    lines = [[str(20 + n % 40), f"w{n % 12}", f"d{n % 12}", f"{n % 12 % 6 * 1000 + 10001}"]
             for n in range(700)]  # fmt: skip
    path = write_csv(tmp_path / "wards.csv", [["age", "ward", "disease", "zip"], *lines], ";")
    found = profile_of(path)
    pairs = {(one.column, one.determines) for one in found.dependencies}
    assert pairs == {
        ("ward", "zip"), ("disease", "zip"), ("disease", "ward"), ("ward", "disease"),
    }  # fmt: skip
    told = dependency_texts(found)
    assert "ward gives zip away in all records" in told
    assert "disease gives zip away in all records. Published as it is, it reveals more" in told[3]
    assert "disease gives zip away in all records" in profile_page(found)
    assert "age: 0% of the records" in profile_page(found)
    draft = draft_configuration(found, Answers(None, 5, "out"))
    reasons = {one.name: one.reason for one in draft.attributes}
    assert reasons["disease"].endswith(". Gives ward, zip away: it reveals more than ranges do")
    assert "away" not in reasons["ward"]
    # It is said of what a person has published, too.
    roles: dict[str, Any] = {"zip": "quasi_identifier", "ward": "insensitive"}
    draft = draft_configuration(found, Answers(roles, 5, "out"))
    reasons = {one.name: one.reason for one in draft.attributes}
    assert reasons["ward"] == "you said so. Gives zip away: it reveals more than ranges do"


def test_words_that_mean_missing(tmp_path: Path) -> None:
    words = ["-", " k.A. ", "NULL", "?"]
    lines = [[str(20 + n % 40), f"{n % 90:05}", "none"] for n in range(200)]
    for place, word in enumerate(words):
        lines[place][0] = word
    path = write_csv(tmp_path / "marked.csv", [["age", "zip", "test"], *lines], ";")
    found = profile_of(path)
    age, zip_code, test = found.columns
    assert (age.kind, age.counts.missing, age.counts.distinct) == ("whole number", 4, 40)
    assert set(age.counts.markers) == {"-", "k.A.", "NULL", "?"}
    assert zip_code.counts.markers == test.counts.markers == ()
    assert test.counts.missing == 0
    assert found.missing_markers == ("", "?", "-", "NULL", "k.A.")
    assert found.as_dict()["missing_markers"] == ["", "?", "-", "NULL", "k.A."]
    assert "input.missing_markers: age: " in (markers_text(found) or "")
    assert "input.missing_markers: age: " in profile_page(found)


def test_what_is_nested_is_said_and_passed_over(tmp_path: Path) -> None:
    table = pa.table({"age": [1, 2, 2], "places": [[1], [2], None], "raw": [b"a", b"b", b"c"]})
    pq.write_table(table, tmp_path / "nested.parquet")
    found = profile_of(tmp_path / "nested.parquet")
    assert [one.kind for one in found.columns] == ["whole number", "nested", "nested"]
    assert [one.role for one in found.columns] == ["quasi_identifier", None, None]


@cases(__file__, "name", "delimiter", "options")
def test_the_form_of_csv_is_recognized(
    tmp_path: Path, name: str, delimiter: str, options: dict[str, str]
) -> None:
    path = write_csv(tmp_path / name, [["a", "b, c"], ["1", "2"], ["3", "4"]], delimiter)
    assert find_source(str(path)).options == options


def test_a_name_that_is_there_twice_is_named(tmp_path: Path) -> None:
    rows = [["age", "sex", "age", "ill"], *([str(n), "f", str(n + 1), "flu"] for n in range(20))]
    path = write_csv(tmp_path / "twice.csv", rows)
    assert find_source(str(path)).options["header"] == "true"
    with pytest.raises(DataError) as refused:
        LocalEngine().open_table([str(path)], "csv", {"header": "true"}, key="DATA")
    assert f"DATA: {path}: has 2 columns of one name, 'age', 'age'." in str(refused.value)
    assert "Drop or rename the others" in str(refused.value)


def test_a_file_without_header_and_one_of_old(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "bare.csv", [["a", "1"], ["b", "2"]])
    assert find_source(str(path)).options == {"header": "false"}
    path = write_csv(tmp_path / "unclear.csv", [["a", "b"], ["c", "d"]])
    with pytest.raises(ConfigurationError, match=r"DATA: .*: nothing shows whether the first line"):
        find_source(str(path))
    assert find_source(str(path), options={"header": "true"}).options == {"header": "true"}
    (tmp_path / "old.csv").write_bytes("größe,x\n1,2\n".encode("latin-1"))
    found = find_source(str(tmp_path / "old.csv")).options
    assert found == {"encoding": "windows-1252", "header": "true"}
    with gzip.open(tmp_path / "packed.csv.gz", "wt") as opened:
        opened.write('a;b\n"say ""x""";2\n')
    found = find_source(str(tmp_path / "packed.csv.gz")).options
    assert found == {"sep": ";", "header": "true"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty. Expected records"),
        (b"id,age\n", "the file has no records, unless .*--option header=false"),
        (b"PAR1\x15\x04\x15\x00\x4c", "the file is Parquet by its first bytes.*--format parquet"),
        (b"ORC\x0a\x00\x00", "the file is ORC by its first bytes.*--format orc"),
    ],
)
def test_what_is_no_csv_or_has_no_records(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(DataError, match=f"DATA: .*a.csv: {said}"):
        find_source(str(tmp_path / "a.csv"))


def test_a_column_may_be_called_as_a_parquet_file_begins(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [["PAR1", "x"], ["1", "2"], ["3", "4"]])
    assert find_source(str(path)).options == {"header": "true"}


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="DATA: no file is at"):
        find_source(str(tmp_path / "nowhere.csv"))
    with pytest.raises(ConfigurationError, match=r"DATA: .*--format"):
        find_source("hdfs:///people")
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "empty.parquet")
    with pytest.raises(DataError, match=r"is empty. Expected rows"):
        profile_of(tmp_path / "empty.parquet")
    (tmp_path / "bad.csv.gz").write_bytes(b"no gzip at all")
    with pytest.raises(DataError, match="is damaged"):
        find_source(str(tmp_path / "bad.csv.gz"))


tables = st.integers(1, 5).flatmap(
    lambda columns: st.lists(
        st.tuples(*[st.integers(0, 3)] * columns).map(tuple), min_size=1, max_size=25
    )
)


def codes_of(records: list[tuple[int, ...]]) -> list[np.ndarray]:
    return [
        np.unique(np.array(column, np.int64), return_inverse=True)[1].astype(np.int64)
        for column in zip(*records, strict=True)
    ]


def unique_rows(records: list[tuple[int, ...]], places: tuple[int, ...]) -> set[int]:
    keys = [tuple(record[place] for place in places) for record in records]
    counts = Counter(keys)
    return {row for row, key in enumerate(keys) if counts[key] == 1}


@given(tables)
def test_sets_are_measured_as_defined(records: list[tuple[int, ...]]) -> None:
    n, columns = len(records), len(records[0])
    names = [f"c{place}" for place in range(columns)]
    found = measure_sets(names, codes_of(records), K)
    wanted = [places for size in (1, 2, 3) for places in combinations(range(columns), size)]
    assert [one.columns for one in found.sets] == [
        tuple(names[place] for place in places) for places in wanted
    ]
    for one, places in zip(found.sets, wanted, strict=True):
        keys = [tuple(record[place] for place in places) for record in records]
        counts = Counter(keys)
        told_apart = [first != second for first, second in combinations(keys, 2)]
        assert one.distinct == len(counts)
        assert one.distinction == len(counts) / n
        assert abs(one.separation - (sum(told_apart) / len(told_apart) if n > 1 else 0)) < 1e-12
        assert one.unique == sum(counts[key] == 1 for key in keys)
        assert one.few == sum(counts[key] < K for key in keys)
        # Unique by the set, and by no smaller one, of whatever size.
        subsets = [own for size in range(len(places)) for own in combinations(places, size) if own]
        smaller = set().union(*(unique_rows(records, own) for own in subsets))
        assert one.minimal_unique == len(unique_rows(records, places) - smaller)
    for size, number in enumerate(found.unique_by_size, start=1):
        sets = [own for own in wanted if len(own) <= size]
        assert number == len(set().union(*(unique_rows(records, own) for own in sets)))


@given(tables)
def test_nothing_depends_on_the_order_of_records(records: list[tuple[int, ...]]) -> None:
    names = [f"c{place}" for place in range(len(records[0]))]
    assert measure_sets(names, codes_of(records), K) == measure_sets(
        names, codes_of(records[::-1]), K
    )


@given(tables)
def test_weights_are_those_of_the_formula(records: list[tuple[int, ...]]) -> None:
    n, columns = len(records), len(records[0])
    names = [f"c{place}" for place in range(columns)]
    # The first column is a key: it is unique in each record, and not measured.
    measured = measure_sets(names[1:], codes_of(records)[1:], K)
    keyed = [(row, *record[1:]) for row, record in enumerate(records)]
    shares = []
    for place in range(columns):
        gains: dict[int, list[int]] = {}
        for size in range(min(3, columns)):
            for others in combinations([one for one in range(columns) if one != place], size):
                before = unique_rows(keyed, others) if others else set()
                after = unique_rows(keyed, tuple(sorted((*others, place))))
                gains.setdefault(size, []).append(len(after) - len(before))
        shares.append(np.mean([np.mean(gain) for gain in gains.values()]))
    inverse = 1 / np.sqrt(np.array(shares) / (np.mean(shares) or 1) + 0.1)
    weights = weigh_columns(measured, names, n)
    assert list(weights) == names
    for weight, slow in zip(weights.values(), inverse / inverse.mean(), strict=True):
        assert abs(weight / slow - 1) <= 0.05 + 1e-9
        assert weight == float(f"{weight:.2g}")
    assert abs(np.mean(list(weights.values())) - 1) <= 0.05


def test_weights_of_columns_that_identify_no_record() -> None:
    records = [(row % 2, row % 3) for row in range(60)]
    measured = measure_sets(["a", "b"], codes_of(records), K)
    assert weigh_columns(measured, ["a", "b"], 60) == {"a": 1.0, "b": 1.0}


def test_the_best_sets_come_first() -> None:
    records = [(row % 2, row % 3, row % 5) for row in range(30)]
    found = measure_sets(["a", "b", "c"], codes_of(records), K)
    assert [one.columns for one in found.of_size(2)] == [("b", "c"), ("a", "c"), ("a", "b")]
    assert [one.columns for one in found.causing(9)] == [("a", "b", "c")]
    assert found.causing(9)[0].minimal_unique == 30


@given(tables)
def test_dependencies_hold_as_defined(records: list[tuple[int, ...]]) -> None:
    names = [f"c{place}" for place in range(len(records[0]))]
    found = {
        (one.column, one.determines): one
        for one in find_dependencies(names, codes_of(records), names)
    }
    for first, second in ((a, b) for a in range(len(names)) for b in range(len(names)) if a != b):
        counts = Counter(record[first] for record in records)
        repeated = [record for record in records if counts[record[first]] > 1]
        one = found.get((names[first], names[second]))
        values = Counter(record[second] for record in repeated)
        if 2 * len(repeated) < len(records) or not repeated or len(values) == 1:
            assert one is None
            continue
        right = 0
        for value in counts:
            of_value = Counter(record[second] for record in repeated if record[first] == value)
            right += max(of_value.values(), default=0)
        base = max(values.values())
        told = right >= NEARLY * len(repeated) and right - base >= 0.8 * (len(repeated) - base)
        assert (one is not None) == told
        if one is not None:
            assert (one.holds, one.records) == (right / len(repeated), len(repeated))
            assert one.exact == (right == len(repeated))


def test_an_approximate_dependency() -> None:
    city = np.repeat(np.arange(10), 20)
    code = city.copy()
    code[:5] = 9
    found = find_dependencies(["code", "city"], [code, city], ["code"])
    assert [(one.determines, one.holds, one.exact) for one in found] == [("city", 0.975, False)]
    assert most_frequent(code, city) == 195
    names, codes = ["code", "city", "same"], [code, city, code]
    asked = find_dependencies(names, codes, ["code"], ["same"])
    assert [(one.column, one.determines) for one in asked] == [("code", "same")]


def column(name: str, **facts: Any) -> Described:
    usual: dict[str, Any] = {
        "kind": "text", "form": None, "rows": 1000, "missing": 0, "distinct": 10, "unique": 0,
        "few": 0, "largest": 300, "infinite": 0, "separation": 0.8,
    }  # fmt: skip
    return Described(name=name, meaning=meaning_of(name), **usual | facts)


def role(name: str, **facts: Any) -> str | None:
    others = [column("sex"), column("age", kind="whole number")]
    return propose_roles([column(name, **facts), *others])[name].role


@cases(__file__, "name", "facts", "expected")
def test_roles(name: str, facts: dict[str, Any], expected: str | None) -> None:
    assert role(name, **facts) == expected


def test_not_too_many() -> None:
    names = ["age", "sex", "zip", "race", "city", "country", "education", "job", "language",
             "marital"]  # fmt: skip
    found = propose_roles([column(name) for name in names])
    # What is known of people most often comes first.
    assert [name for name, one in found.items() if one.role is None] == ["marital", "language"][
        ::-1
    ]
    diseases = [column(f"diag_{number}") for number in range(6)]
    roles = [one.role for one in propose_roles(diseases).values()]
    assert roles == ["sensitive"] * 4 + [None] * 2


def test_what_others_give_away() -> None:
    columns = [column("city"), column("zip"), column("age"), column("birth_date", kind="date")]
    found = propose_roles(columns, [Dependency("zip", "city", 1.0, 900)])
    assert [one.role for one in found.values()] == [
        None, "quasi_identifier", None, "quasi_identifier",
    ]  # fmt: skip
    assert found["city"].reason == "zip gives it away"
    # The other way round it is kept, and so is what is told of most records only.
    kept = propose_roles(columns[:2], [Dependency("zip", "city", 0.97, 900)])
    assert kept["city"].role == "quasi_identifier"


def test_what_tells_most_where_names_tell_nothing() -> None:
    columns = [column(f"x{number}", separation=number / 20) for number in range(12)]
    found = propose_roles(columns)
    chosen = [name for name, one in found.items() if one.role == "quasi_identifier"]
    assert chosen == [f"x{number}" for number in range(4, 12)]
    assert found["x11"].reason == "meaning unknown. Differs in 55% of all pairs"
    # What names say goes first, and what one of them gives away is left out.
    named = [column("sex", separation=0.5), column("age"), *columns]
    found = propose_roles(named, [Dependency("age", "x11", 1.0, 1000)])
    chosen = [name for name, one in found.items() if one.role == "quasi_identifier"]
    assert chosen == ["sex", "age", *(f"x{number}" for number in range(5, 11))]
    assert found["x11"].reason == "meaning unknown, and age gives it away"


def test_units() -> None:
    repeated = column("patient_id", kind="whole number", distinct=500, unique=100)
    single = column("visit_id", kind="whole number", distinct=1000, unique=1000)
    columns = [single, repeated]
    assert unit_of(columns, propose_roles(columns)) == "patient_id"
    assert unit_of([single], propose_roles([single])) is None
    lacking = column("patient_id", kind="whole number", distinct=500, unique=100, missing=1)
    assert unit_of([lacking], propose_roles([lacking])) is None


def test_no_key_where_names_tell_nothing() -> None:
    # Its values are shared, but by too few; of numbers ranges are published.
    columns = [
        column("x", distinct=400, few=960, separation=0.999),
        column("y", kind="whole number", distinct=400, few=960, separation=0.998),
        column("z", separation=0.6),
    ]
    found = propose_roles(columns)
    assert [one.role for one in found.values()] == [None, "quasi_identifier", "quasi_identifier"]
    assert "shared by k records" in found["x"].reason


def test_keys_of_people_are_identifiers_and_units() -> None:
    visits = {"kind": "whole number", "largest": 5}
    columns = [
        column("nr", distinct=400, few=990, separation=0.999, **visits),
        column("hhid", distinct=300, few=990, separation=0.998, **visits),
        *(column(f"x{number}", separation=0.6) for number in (2, 3, 4)),
    ]
    found = propose_roles(columns)
    assert [one.role for one in found.values()] == [None, "identifier", *["quasi_identifier"] * 3]
    assert found["nr"].reason == "400 values in 1,000 rows, as a number of people has"
    assert found["hhid"].reason == "by its name it numbers households, and it repeats"
    # k households are of k people at least.
    assert unit_of(columns, found) == "hhid"
    assert unit_of(columns[:1], propose_roles(columns[:1])) is None
    person = [*columns, column("pid", distinct=400, **visits)]
    assert unit_of(person, propose_roles(person)) == "hhid"


@cases(__file__, "names", "weighs", "expected")
def test_weights(names: list[str], weighs: Any, expected: str | None) -> None:
    columns = [column(name, kind="number", weighs=weighs) for name in names[:1]]
    columns += [column(name, kind="number") for name in names[1:]]
    proposal = propose_roles(columns)[names[0]]
    assert proposal.role == expected
    assert ("evaluate: {risk: {weights: " in proposal.reason) is proposal.is_weight
    assert unit_of(columns, propose_roles(columns)) is None


def test_an_index_that_the_header_does_not_name() -> None:
    for name in ("_c0", "Unnamed: 0", "__index_level_0__", "rownames"):
        found = propose_roles([column(name, kind="whole number", distinct=400), column("age")])
        assert found[name].role == "identifier", name
        assert "index of rows" in found[name].reason
        assert unit_of([column(name, distinct=400)], found) is None
    # Without a header no column has a name.
    found = propose_roles([column("_c0"), column("_c1")])
    assert found["_c0"].role == "quasi_identifier"


def test_dates_of_birth_alone_give_an_age_away() -> None:
    for name in ("birth_order", "birthplace", "birthcontrol", "birth_weight"):
        columns = [column("age", kind="whole number"), column(name, kind="whole number")]
        assert propose_roles(columns)["age"].role == "quasi_identifier", name
    columns = [column("age", kind="whole number"), column("birth", distinct=2)]
    assert propose_roles(columns)["age"].role == "quasi_identifier"
    for name, facts in {
        "birth_date": {"kind": "date"}, "birth_year": {"kind": "whole number", "length": 4},
    }.items():  # fmt: skip
        columns = [column("age", kind="whole number"), column(name, **facts)]
        assert propose_roles(columns)["age"].role is None, name
