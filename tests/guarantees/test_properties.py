"""What holds for every release, tried on drawn tables through the whole pipeline."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import data_beside
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import DataError, GuaranteeError
from anonspark.pipeline.run import run as run_pipeline

# Every example is a run of some seconds.
some_runs = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
a_few_runs = settings(some_runs, max_examples=5)

MONDRIAN = ("su-mondrian", "su-mondrian", "smondrian")
OTHER_MODELS = ("canon", "u-canon", "u-canon", "microaggregation", "su-mondrian")

NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
ORDER = ("none", "low", "high")


# What may be asked of the diagnoses of a class.
DIAGNOSES = "abc"
BEYOND_K: list[dict[str, Any]] = data_beside(__file__)["BEYOND_K"]


@dataclass(frozen=True)
class Kind:
    """A kind of quasi-identifier: its column, values to draw, and how labels of it read."""

    name: str
    arrow_type: pa.DataType
    values: st.SearchStrategy[Any]
    parse: Callable[[str], Any]
    divider: str = "-"
    is_set: bool = False
    declaration: Any = "quasi_identifier"


def few_or_many(few: list[Any], many: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw ties most of the time."""
    return st.one_of(st.sampled_from(few), st.sampled_from(few), many)


def parse_boolean(text: str) -> bool:
    return {"true": True, "false": False}[text]


def parse_timestamp(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


KINDS = (
    Kind(
        "age in years",
        pa.int32(),
        few_or_many([-3, 0, 0, 41], st.integers(-(2**31), 2**31 - 1)),
        int,
    ),
    Kind(
        "balance",
        pa.int64(),
        few_or_many([-(2**62), 2**62, 2**62 + 1], st.integers(-(2**63), 2**63 - 2)),
        int,
    ),
    Kind(
        "ratio",
        pa.float64(),
        few_or_many(
            [-0.0, 0.0, 1e-05, -2.5, math.nan], st.floats(allow_nan=False, allow_infinity=False)
        ),
        float,
    ),
    Kind(
        "price.net",
        pa.decimal128(10, 2),
        few_or_many([Decimal("-0.10"), Decimal("3.00")], st.decimals(-(10**7), 10**7, places=2)),
        Decimal,
    ),
    Kind(
        "born",
        pa.date32(),
        few_or_many(
            [date(1969, 12, 31), date(2000, 2, 29)], st.dates(date(1900, 1, 1), date(2100, 1, 1))
        ),
        date.fromisoformat,
        divider="/",
    ),
    Kind(
        "seen",
        pa.timestamp("us", "UTC"),
        few_or_many(
            [datetime(2020, 1, 1, tzinfo=UTC), datetime(1969, 1, 1, 0, 0, 0, 1, UTC)],
            st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
        ),
        parse_timestamp,
        divider="/",
    ),
    Kind("member", pa.bool_(), st.booleans(), parse_boolean, is_set=True),
    Kind(
        "city",
        pa.string(),
        # An empty text and a question mark mean that the value is missing.
        st.sampled_from(["Ulm", "Köln", "Bonn, Rhein", "{x}", '"', " Ulm", "missing", "", "?"]),
        str,
        is_set=True,
    ),
    Kind(
        "degree",
        pa.string(),
        st.sampled_from(ORDER),
        str,
        is_set=True,
        declaration={"role": "quasi_identifier", "order": list(ORDER)},
    ),
)


@dataclass(frozen=True)
class Case:
    """A drawn table and configuration."""

    kinds: list[Kind]
    table: pa.Table
    document: dict[str, Any]

    def value(self, kind: Kind, raw: Any) -> Any:
        """Return what a cell of the input means: None where it is missing."""
        if raw is None or (isinstance(raw, float) and math.isnan(raw)):
            return None
        return None if kind.name == "city" and raw.strip() in ("", "?") else raw

    def records(self) -> dict[int, dict[str, Any]]:
        """Return the records to be published, by their number."""
        records = {}
        for row in self.table.to_pylist():
            values = {kind.name: self.value(kind, row[kind.name]) for kind in self.kinds}
            if self.document["missing"] != "drop" or None not in values.values():
                records[row["record"]] = row | values
        return records

    def is_refused(self) -> bool:
        """Whether nothing can be published: too few records, or missing values not allowed."""
        records = self.records()
        if len(records) < self.document["privacy"]["k"]:
            return True
        found_missing = any(
            row[kind.name] is None for row in records.values() for kind in self.kinds
        )
        return bool(self.document["missing"] == "error" and found_missing)


def satisfies(privacy: dict[str, Any], diagnoses: list[str], everything: list[str]) -> bool:
    """Whether the diagnoses of one class are as they have to be, beside those of all."""
    shares = sorted((diagnoses.count(one) / len(diagnoses) for one in set(diagnoses)), reverse=True)
    if diversity := privacy.get("l_diversity"):
        match diversity.get("kind", "distinct"):
            case "distinct":
                return len(shares) >= diversity["l"]
            case "entropy":
                entropy = -sum(share * math.log(share) for share in shares)
                return entropy >= math.log(diversity["l"]) - 1e-9
            case "recursive":
                return shares[0] < diversity["c"] * sum(shares[1:]) - 1e-9
    if closeness := privacy.get("t_closeness"):
        differences = [
            diagnoses.count(one) / len(diagnoses) - everything.count(one) / len(everything)
            for one in DIAGNOSES
        ]
        distance = sum(map(abs, differences)) / 2
        if "distance" in closeness:
            distance = sum(map(abs, accumulate(differences))) / (len(DIAGNOSES) - 1)
        return distance <= closeness["t"] + 1e-9
    if alpha := privacy.get("alpha_k_anonymity"):
        return shares[0] <= alpha["alpha"] + 1e-9
    if likeness := privacy.get("beta_likeness"):
        gains = [
            diagnoses.count(one) / len(diagnoses) * len(everything) / everything.count(one) - 1
            for one in set(diagnoses)
        ]
        return max(gains) <= likeness["beta"] + 1e-9
    return True


@st.composite
def cases(
    draw: st.DrawFn, models: tuple[str, ...] = MONDRIAN, *, criteria: bool = False, **fixed: Any
) -> Case:
    """Draw a table with its configuration; `fixed` options are not drawn."""
    rows = draw(st.one_of(st.integers(1, 9), st.integers(10, 60)), label="rows")
    kinds = draw(
        st.lists(st.sampled_from(KINDS), min_size=1, max_size=4, unique_by=lambda kind: kind.name)
    )
    columns: dict[str, Any] = {"record": pa.array(range(rows), pa.int64())}
    for kind in kinds:
        missing = draw(st.sampled_from([False, False, True]))
        values = st.one_of(kind.values, st.none()) if missing else kind.values
        drawn = draw(st.lists(values, min_size=rows, max_size=rows))
        columns[kind.name] = pa.array(drawn, kind.arrow_type, from_pandas=False)
    diagnoses = draw(st.lists(st.sampled_from(DIAGNOSES), min_size=rows, max_size=rows))
    columns["diagnosis"] = pa.array(diagnoses)

    def option(name: str, values: list[Any]) -> Any:
        return fixed[name] if name in fixed else draw(st.sampled_from(values), label=name)

    name = option("name", list(models))
    model: dict[str, Any] = {"name": name}
    if "mondrian" in name:
        model |= {
            "split": option("split", ["strict", "relaxed"]),
            "cut": option("cut", ["balanced", "published"]),
            "span": option("span", ["data", "cell"]),
        }
    if "canon" in name:
        model["vantage"] = option("vantage", ["spread", "random"])
    if name != "microaggregation":
        model["rho"] = option("rho", [1, 2, 3])
        model["reference"] = option("reference", ["lof", "density"] if criteria else ["lof"])
        model["minimum_gain"] = option("minimum_gain", [0.0, 0.3] if criteria else [0.0])

    document = {
        "attributes": {
            "record": "insensitive",
            **{kind.name: kind.declaration for kind in kinds},
            "diagnosis": {"role": "sensitive", "order": list(DIAGNOSES)},
        },
        "missing": option("missing", ["category", "category", "drop", "drop", "error"]),
        "privacy": {
            "k": option("k", [1, 2, 2, 3, 3, 5, 5, 8]),
            "allow_k_1": True,
            **(draw(st.sampled_from(BEYOND_K), label="beyond k") if criteria else {}),
        },
        "model": model,
        "output": {"style": option("style", ["interval", "interval", "bounds", "mean"])},
        "execution": {
            "task_rows": option("task_rows", [10**9, 30, 10]),
            "seed": option("seed", [0, -5]),
        },
    }
    note(f"{document}")
    return Case(kinds, pa.table(columns), document)


@dataclass(frozen=True)
class Released:
    """What a run wrote."""

    data: list[dict[str, Any]]
    summary: dict[str, Any]
    classes: list[dict[str, Any]]


Anonymize = Callable[[Case], Released]


@pytest.fixture(scope="module")
def anonymize(tmp_path_factory: pytest.TempPathFactory) -> Anonymize:
    """Run the pipeline on a drawn case and read what it wrote."""
    folder = tmp_path_factory.mktemp("properties")
    numbers = count()

    def run(case: Case) -> Released:
        own = folder / str(next(numbers))
        own.mkdir()
        pq.write_table(case.table, own / "input.parquet")
        document = case.document | {
            "input": {"path": str(own / "input.parquet")},
            "output": case.document["output"] | {"path": str(own / "release")},
        }
        try:
            run_pipeline(LocalEngine(), parse_configuration(document))
        except (DataError, GuaranteeError):
            assert [path.name for path in own.iterdir()] == ["input.parquet"]
            raise
        assert {path.name for path in own.iterdir()} == {"input.parquet", "release"}
        return read_release(own / "release")

    return run


def read_release(path: Path) -> Released:
    (summary,) = pq.read_table(path / "metrics" / "summary").to_pylist()
    classes = pq.read_table(path / "metrics" / "classes").to_pylist()
    return Released(pq.read_table(path / "data").to_pylist(), summary, classes)


def read_interval(kind: Kind, label: str) -> tuple[Any, Any, bool]:
    """Return the bounds of a label, None where there are none, and whether it tells of missing."""
    if label == "missing":
        return None, None, True
    with_missing = label.endswith(" or missing")
    label = label.removesuffix(" or missing")
    if not label.startswith("["):
        value = kind.parse(label)
        return value, value, with_missing
    one = NUMBER if kind.divider == "-" else r"[^/]+"
    bounds = re.fullmatch(rf"\[({one}){kind.divider}({one})\]", label)
    assert bounds is not None, label
    return kind.parse(bounds[1]), kind.parse(bounds[2]), with_missing


def read_set(kind: Kind, label: str) -> set[Any]:
    """Return the categories of a label; None stands for missing ones."""

    def one(text: str) -> tuple[Any, int]:
        if text.startswith('"'):
            value, end = json.JSONDecoder().raw_decode(text)
            return kind.parse(value), end
        found = re.match(r"[^,}]*", text)
        assert found is not None
        return None if found[0] == "missing" else kind.parse(found[0]), found.end()

    if not label.startswith("{"):
        if label == "missing":
            return {None}
        return {kind.parse(json.loads(label) if label.startswith('"') else label)}
    values, place = set(), 1
    while True:
        value, end = one(label[place:])
        values.add(value)
        place += end
        if label[place:] == "}":
            return values
        assert label[place : place + 2] == ", ", label
        place += 2


def read_categories(kind: Kind, style: str, row: dict[str, Any]) -> set[Any]:
    """Return the categories that are published; None stands for missing ones."""
    published = row[kind.name]
    if style == "bounds":
        return {None if value is None else kind.parse(value) for value in published}
    return read_set(kind, published)


def covered(kind: Kind, style: str, row: dict[str, Any]) -> Callable[[Any], bool]:
    """Return whether the published columns of a quasi-identifier cover a value."""
    name = kind.name
    if kind.is_set:
        categories = read_categories(kind, style, row)
        return lambda value: value in categories
    if style == "interval":
        low, high, with_missing = read_interval(kind, row[name])
    else:
        low, high = row[f"{name}_min"], row[f"{name}_max"]
        with_missing = row.get(f"{name}_missing", False)
    return lambda value: with_missing if value is None else low is not None and low <= value <= high


def columns_of(kind: Kind, row: dict[str, Any]) -> tuple[Any, ...]:
    """Return the published columns that tell of a quasi-identifier."""
    names = (kind.name, *(f"{kind.name}_{end}" for end in ("min", "max", "missing")))
    values = (row[name] for name in names if name in row)
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


def assert_sound(case: Case, released: Released) -> None:
    """Check everything that holds for any release."""
    records, k = case.records(), case.document["privacy"]["k"]
    style = case.document["output"]["style"]

    # Every record once, with its own sensitive value.
    diagnoses = {row["record"]: row["diagnosis"] for row in released.data}
    assert len(diagnoses) == len(released.data)
    assert diagnoses == {number: row["diagnosis"] for number, row in records.items()}

    classes = defaultdict(list)
    for row in released.data:
        key = tuple(columns_of(kind, row) for kind in case.kinds)
        classes[key].append(records[row["record"]])
    assert min(len(members) for members in classes.values()) >= k
    everything = [row["diagnosis"] for row in records.values()]
    for members in classes.values():
        own = [member["diagnosis"] for member in members]
        assert satisfies(case.document["privacy"], own, everything)

    for row in released.data:
        for kind in case.kinds:
            if style != "mean" or kind.is_set:
                assert covered(kind, style, row)(records[row["record"]][kind.name]), kind.name
    if style == "mean":
        for key, members in classes.items():
            for kind, published in zip(case.kinds, key, strict=True):
                if not kind.is_set:
                    values = [member[kind.name] for member in members]
                    assert_mean_inside(published, values)

    assert_metrics_agree(case, released, Counter({key: len(classes[key]) for key in classes}))


def assert_mean_inside(published: tuple[Any, ...], values: list[Any]) -> None:
    mean, *some_missing = published
    present = [value for value in values if value is not None]
    assert any(some_missing) == (len(present) < len(values))
    if not present:
        assert mean is None
    elif isinstance(mean, float):
        assert min(map(float, present)) <= mean <= max(map(float, present))
    else:
        assert min(present) <= mean <= max(present)


def assert_metrics_agree(case: Case, released: Released, sizes: Counter[Any]) -> None:
    summary, classes, kinds = released.summary, released.classes, case.kinds
    rows = len(released.data)
    assert sum(row["size"] for row in classes) == rows == summary["rows_published"]
    dropped = case.table.num_rows - rows
    few = 0 < dropped < summary["k"]
    assert summary["rows_in"] == (None if few else case.table.num_rows)
    assert summary["rows_dropped_missing"] == (None if few else dropped)
    assert summary["classes"] == len(classes)
    assert summary["published_classes"] == len(sizes) <= len(classes)
    assert summary["published_min_class_size"] == min(sizes.values())
    assert summary["min_class_size"] == min(row["size"] for row in classes)
    assert summary["max_class_size"] == max(row["size"] for row in classes)
    assert summary["dm"] == sum(row["size"] ** 2 for row in classes)
    assert len({row["class_id"] for row in classes}) == len(classes)

    if summary["gcp"] is None:
        # The bounds of means would follow from it.
        assert case.document["output"]["style"] == "mean"
        assert not all(kind.is_set for kind in kinds)
        assert all(row["ncp"] is None for row in classes)
        return
    # Rounds never lose more than none.
    if summary["baseline_gcp_total"] is not None:
        assert summary["gcp_total"] <= summary["baseline_gcp_total"] + 1e-9
    assert 0 <= summary["gcp"] <= 1
    assert 0 <= summary["iloss"] <= 1
    assert all(0 <= row["ncp"] <= len(kinds) for row in classes)
    lost = sum(row["size"] * row["ncp"] for row in classes)
    assert summary["gcp_total"] == pytest.approx(lost, abs=1e-9)

    if case.document["output"]["style"] == "bounds" and not any(kind.is_set for kind in kinds):
        ends: Counter[Any] = Counter()
        for row in classes:
            key = tuple((row[f"{kind.name}_min"], row[f"{kind.name}_max"]) for kind in kinds)
            ends[key] += row["size"]
        published: Counter[Any] = Counter()
        for key, size in sizes.items():
            published[tuple(columns[:2] for columns in key)] += size
        assert ends == published


@some_runs
@given(case=cases())
def test_any_table(anonymize: Anonymize, case: Case) -> None:
    if case.is_refused():
        with pytest.raises(DataError) as error:
            anonymize(case)
        assert error.value.exit_code == 3
    else:
        assert_sound(case, anonymize(case))


@some_runs
@given(case=cases(OTHER_MODELS, criteria=True))
def test_any_table_model_and_criterion(anonymize: Anonymize, case: Case) -> None:
    diagnoses = [row["diagnosis"] for row in case.records().values()]
    if case.is_refused():
        with pytest.raises(DataError) as error:
            anonymize(case)
        assert error.value.exit_code == 3
    elif not satisfies(case.document["privacy"], diagnoses, diagnoses):
        with pytest.raises(GuaranteeError, match="the whole input violates") as violated:
            anonymize(case)
        assert violated.value.exit_code == 4
    else:
        assert_sound(case, anonymize(case))


@a_few_runs
@given(case=cases(k=1, cut="balanced", missing="category"))
def test_k_1_keeps_the_information(anonymize: Anonymize, case: Case) -> None:
    released = anonymize(case)
    assert_sound(case, released)
    style = case.document["output"]["style"]
    records = case.records()
    # Of means nothing is said.
    assert released.summary["gcp_total"] in (0, None)
    for row in released.data:
        for kind in case.kinds:
            value = records[row["record"]][kind.name]
            if kind.is_set:
                assert read_categories(kind, style, row) == {value}
            elif style == "interval":
                low, high, with_missing = read_interval(kind, row[kind.name])
                assert (low, high, with_missing) == (value, value, value is None)
            else:
                *ends, some_missing = columns_of(kind, row)
                exact = float(value) if isinstance(ends[0], float) and value is not None else value
                assert all(end == exact for end in ends)
                assert some_missing == (value is None)


@a_few_runs
@given(data=st.data(), case=cases(missing="category"))
def test_k_of_all_rows_gives_one_class(
    anonymize: Anonymize, data: st.DataObject, case: Case
) -> None:
    rows = case.table.num_rows
    too_many = data.draw(st.booleans(), label="one record too few")
    assume(rows > 1)
    case.document["privacy"]["k"] = rows + too_many
    if too_many:
        with pytest.raises(DataError, match=rf"needs at least {rows + 1} rows") as error:
            anonymize(case)
        assert error.value.exit_code == 3
    else:
        released = anonymize(case)
        assert_sound(case, released)
        assert released.summary["classes"] == released.summary["published_classes"] == 1
