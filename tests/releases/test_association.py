"""What a release still tells of a target: of releases that tell all, nothing, or lies."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Any

import evaluated
import numpy as np
import pyarrow as pa
import pytest
from commands import Cli
from evaluated import KINDS, ROWS, people, write_raw_release, write_release
from helpers import write_table
from hypothesis import given, settings
from hypothesis import strategies as st

from anonspark.core.association import association_loss, removed_uncertainty
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import DataError
from anonspark.labels.regions import PublishedAttribute
from anonspark.utility import association, class_counts, learning
from anonspark.utility.association import Association
from anonspark.utility.evaluation import open_evaluation
from anonspark.utility.learning import describe_target


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return write_table(tmp_path / "original.parquet", people())


def found_in(release: Path, original: Path) -> Association:
    found = open_evaluation(LocalEngine(), str(release), str(original), "ill").association()
    assert found is not None
    return found


def test_a_release_that_is_its_original_loses_nothing(original: Path, tmp_path: Path) -> None:
    found = found_in(write_raw_release(tmp_path / "raw"), original)
    assert found.loss == 0
    assert [one.name for one in found.attributes] == ["age", "born", "job", "weight"]
    assert all(one.before == one.after for one in found.attributes)


def test_a_release_that_tells_nothing_loses_all(original: Path, tmp_path: Path) -> None:
    data: dict[str, Any] = {name: ["*"] * ROWS for name in KINDS}
    data["ill"] = people()["ill"]
    found = found_in(write_release(tmp_path / "all", data, ill="sensitive"), original)
    assert found.loss is not None
    assert found.loss > 0.99


def edges_of(values: list[Any]) -> list[Any]:
    """Return the last values of all bins but the last, as the specification says it."""
    present = sorted(value for value in values if value is not None)
    return sorted(
        {
            next(v for v in present if 20 * sum(x <= v for x in present) >= i * len(present))
            for i in range(1, 20)
        }
    )


def bins_of(values: list[Any]) -> list[int]:
    """Return the bin of each value, as the specification says it."""
    edges = edges_of(values)
    return [
        len(edges) + 1 if value is None else sum(edge < value for edge in edges) for value in values
    ]


@pytest.mark.parametrize("name", ["age", "born", "weight"])
def test_bins_are_those_of_sorted_values(original: Path, tmp_path: Path, name: str) -> None:
    table = people()
    opened = open_evaluation(
        LocalEngine(), str(write_raw_release(tmp_path / "raw")), str(original), "ill"
    )
    found = opened.association()
    assert found is not None
    before = next(one.before for one in found.attributes if one.name == name)
    counted = np.zeros((22, 2), np.int64)
    classes = [str(one) for one in table["ill"].to_pylist()]
    for own, ill in zip(bins_of(table[name].to_pylist()), classes, strict=True):
        counted[own, int(ill == "yes")] += 1
    slow = removed_uncertainty(counted, counted.astype(float), counted.sum(axis=0))
    assert before == pytest.approx(slow, abs=1e-12)


def test_wider_labels_are_spread(original: Path, tmp_path: Path) -> None:
    table = people()
    data: dict[str, Any] = {
        "job": [
            "{clerk, cook}" if one in ("clerk", "cook") else "*" for one in table["job"].to_pylist()
        ],
        "ill": table["ill"],
    }
    found = found_in(write_release(tmp_path / "jobs", data, ill="sensitive"), original)
    jobs = ["clerk", "cook", "driver", "nurse", None]
    own, told = np.zeros((5, 2), np.int64), np.zeros((5, 2))
    for job, ill in zip(table["job"].to_pylist(), table["ill"].to_pylist(), strict=True):
        t = int(ill == "yes")
        own[jobs.index(job), t] += 1
        if job in ("clerk", "cook"):
            told[:2, t] += 1 / 2
        else:
            # Missing is one more value.
            told[:, t] += 1 / 5
    before = removed_uncertainty(own, own.astype(float), own.sum(axis=0))
    after = removed_uncertainty(own, told, own.sum(axis=0))
    assert found.attributes[0].before == pytest.approx(before, abs=1e-9)
    assert found.attributes[0].after == pytest.approx(after, abs=1e-6)
    assert found.loss == pytest.approx(association_loss([before], [after]), abs=1e-6)


def with_ranges(patch: pytest.MonkeyPatch, most: int) -> None:
    """Let parts with a few numbers count ranges of them."""
    patch.setattr(class_counts, "_FEW_RECORDS", 2 * most)
    patch.setattr(class_counts, "_LOOKED_AT", 4 * most)
    patch.setattr(class_counts, "_MOST_RANGES", most)
    for module in (association, class_counts):
        patch.setattr(module, "PART_BYTES", 200)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 2)), min_size=1, max_size=100),
    st.sampled_from([1.0, 1e-9, 1e15, -3.5]),
    st.integers(2, 6),
)
def test_quantiles_by_what_parts_tell(
    records: list[tuple[int, int]], unit: float, most: int
) -> None:
    numbers, classes = (np.array(own) for own in zip(*records, strict=True))
    # The last class is none; both others are there.
    numbers, classes = np.append(numbers, [0, 0]) * unit + 1, np.append(classes, [0, 1])
    ill = pa.array(np.array(["no", "yes", None], object)[classes], pa.string())
    table = LocalEngine().table(pa.table({"number": numbers, "ill": ill}))
    attribute = PublishedAttribute("number", "float", "interval", ("number",), type="double")
    target = describe_target(table, "ill", [])
    with pytest.MonkeyPatch.context() as patch:
        with_ranges(patch, most)
        (found,) = class_counts.count_classes(
            table, [attribute], {}, target, [], drops_missing=False
        )
    in_order = np.sort(numbers[classes < 2])
    ranks = [-(-i * len(in_order) // 20) for i in range(1, 20)]
    edges = sorted({float(in_order[rank - 1]) for rank in ranks})
    assert found.bins.edges.tolist() == edges
    bins = np.searchsorted(edges, numbers)
    for place, name in enumerate(target.classes):
        own = bins[classes == ["no", "yes"].index(name)]
        assert (
            found.records[:, place].tolist() == np.bincount(own, minlength=len(edges) + 2).tolist()
        )


@pytest.mark.parametrize("most", [2, 10])
def test_numbers_of_many_values_are_looked_for_near_quantiles(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    release = write_raw_release(tmp_path / "raw")
    exactly = found_in(release, original)
    with_ranges(monkeypatch, most)
    monkeypatch.setattr(learning, "_DENSE", 1)
    assert found_in(release, original) == exactly


Region = tuple[Fraction, Fraction] | frozenset[str] | None
"""Both ends included, or texts; None for everything, missing values among it."""


@dataclass(frozen=True)
class Slow:
    """One attribute as the specification says it, in fractions.

    ``regions`` has the region of each record, and whether its value may be missing, too.
    """

    values: list[Any]
    regions: list[tuple[Region, bool]]

    def bins(self) -> list[int]:
        if any(isinstance(value, str) for value in self.values):
            texts = sorted({value for value in self.values if value is not None})
            return [len(texts) if own is None else texts.index(own) for own in self.values]
        return bins_of(self.values) if self.present else [1] * len(self.values)

    @property
    def present(self) -> list[Any]:
        return [value for value in self.values if value is not None]

    @cached_property
    def edges(self) -> list[Any]:
        return edges_of(self.values)

    @cached_property
    def whole(self) -> bool:
        return all(Fraction(value).denominator == 1 for value in self.present)

    def spread(self, region: Region, missing: bool) -> list[Fraction]:
        """Return the share of a region in each bin; the last one is that of missing."""
        present = self.present
        if any(isinstance(value, str) for value in present) or isinstance(region, frozenset):
            texts = sorted(set(present))
            covered = frozenset(texts) if region is None else region
            missing = missing or region is None
            total = len(covered) + missing
            shares = [Fraction(int(text in covered), total) for text in texts]
            return [*shares, Fraction(int(missing), total)]
        if region is None:
            if not present:
                return [Fraction(0), Fraction(1)]
            region, missing = (Fraction(min(present)), Fraction(max(present))), True
        low, high = region
        has_length = not self.whole and low < high
        total = high - low + (not has_length)
        missing_share = Fraction(0) if has_length else Fraction(int(missing), 1) / (total + missing)

        def below(edge: Fraction) -> Fraction:
            end = min(high, edge)
            if end < low:
                return Fraction(0)
            covered = end - low + (not has_length)
            return covered / (total + (missing and not has_length))

        ends = [Fraction(0), *(below(Fraction(edge)) for edge in self.edges), 1 - missing_share]
        shares = [after - before for before, after in pairwise(ends)]
        return [*shares, missing_share]

    def told(self, classes: list[int]) -> tuple[float | None, float | None]:
        bins = self.bins()
        spreads = [self.spread(*one) for one in self.regions]
        number = len(spreads[0])
        original = [[Fraction(0)] * 2 for _ in range(number)]
        released = [[Fraction(0)] * 2 for _ in range(number)]
        for own, shares, t in zip(bins, spreads, classes, strict=True):
            original[own][t] += 1
            for v, share in enumerate(shares):
                released[v][t] += share
        counts = [classes.count(0), classes.count(1)]
        return self.known(original, original, counts), self.known(original, released, counts)

    def known(
        self, original: list[list[Fraction]], told: list[list[Fraction]], counts: list[int]
    ) -> float | None:
        records = sum(counts)
        uncertainty = -sum(n / records * log2(n / records) for n in counts if n)
        if not uncertainty:
            return None
        total = 0.0
        for own, row in zip(original, told, strict=True):
            for t in range(2):
                if own[t]:
                    share = Fraction(counts[t] + 1, records + 2)
                    total += float(own[t] / records) * log2((row[t] + share) / (sum(row) + 1))
        return 1 + total / uncertainty


def drawn_attribute(data: st.DataObject, kind: str, rows: int) -> tuple[Slow, list[Any], list[str]]:
    """Return an attribute, its column in the original, and its published labels."""
    few = data.draw(st.sampled_from([1, 3, 40]))
    is_missing = st.booleans() if data.draw(st.booleans()) else st.just(False)
    values: list[Any] = []
    for _ in range(rows):
        number = data.draw(st.integers(0, few - 1))
        missing = data.draw(is_missing) and bool(values)
        if kind == "text":
            values.append(None if missing else "abcdefgh"[number % 8])
        else:
            scale = 4 if kind == "decimal" else 1
            values.append(None if missing else Fraction(number, scale))
    values[0] = values[0] if values[0] is not None else values[1]
    slow = Slow(values, [])
    labels = []
    for value in values:
        wide = data.draw(st.sampled_from(["value", "wide", "missing too", "everything"]))
        too = wide == "missing too" and any(one is None for one in values)
        if wide == "everything":
            slow.regions.append((None, False))
            labels.append("*")
        elif kind == "text":
            others = data.draw(st.sets(st.sampled_from(sorted(set(slow.present)))))
            covered = (
                frozenset({*others, *([] if value is None else [value])})
                if wide != "value"
                else (frozenset([value] if value is not None else []))
            )
            too = too or value is None
            slow.regions.append((covered, too))
            names = [*sorted(covered), *(["missing"] if too else [])]
            labels.append(names[0] if len(names) == 1 else "{" + ", ".join(names) + "}")
        elif value is None:
            slow.regions.append((None, True))
            labels.append("*")
        else:
            by = data.draw(st.integers(0, 5)) if wide != "value" else 0
            low, high = value - by, value + data.draw(st.integers(0, 5)) * (by > 0)
            slow.regions.append(((low, high), too))
            written, divider = (day_of, "/") if kind == "date" else (str_of, "-")
            label = written(low) if low == high else f"[{written(low)}{divider}{written(high)}]"
            labels.append(label + (" or missing" if too else ""))
    columns: dict[str, Any] = {
        "text": lambda one: one,
        "integer": int,
        "date": lambda one: date(1970, 1, 1) + timedelta(days=int(one)),
        "decimal": lambda one: Decimal(one.numerator) / one.denominator,
    }
    return slow, [None if one is None else columns[kind](one) for one in values], labels


def day_of(number: Fraction) -> str:
    return str(date(1970, 1, 1) + timedelta(days=int(number)))


def str_of(number: Fraction) -> str:
    return str(int(number)) if number.denominator == 1 else str(float(number))


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_it_is_what_the_specification_says_in_fractions(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    rows = 50
    folder = tmp_path_factory.mktemp("slow")
    classes = data.draw(st.lists(st.integers(0, 1), min_size=rows, max_size=rows))
    if len(set(classes)) < 2:
        return
    kinds = {"age": "integer", "born": "date", "job": "text", "paid": "decimal"}
    types = {
        "paid": pa.decimal128(8, 2),
        "born": pa.date32(),
        "age": pa.int64(),
        "job": pa.string(),
    }
    slow, original, published = {}, {}, {}
    for name, kind in kinds.items():
        slow[name], column, published[name] = drawn_attribute(data, kind, rows)
        original[name] = pa.array(column, types[name])
    ill = [["no", "yes"][one] for one in classes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(evaluated.KINDS, "paid", ("decimal", "decimal128(8, 2)"))
        release = write_release(folder / "r", {**published, "ill": ill}, ill="sensitive")
    table = write_table(folder / "original.parquet", {**original, "ill": ill})
    found = found_in(release, table)
    before, after = [], []
    for name, own in found.by_name.items():
        expected = slow[name].told(classes)
        assert (own.before, own.after) == pytest.approx(expected, abs=1e-6), name
        before.append(expected[0])
        after.append(expected[1])
    loss = association_loss(before, after)
    assert found.loss == (None if loss is None else pytest.approx(loss, abs=1e-4))


def test_parts_and_names_decide_no_digit(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people()
    jobs = ["{clerk, cook}", "{driver, nurse, missing}", "*"]
    data = {
        "age": [f"[{place % 40}-{place % 40 + 30}]" for place in range(ROWS)],
        "job": [jobs[place % 3] for place in range(ROWS)],
        "ill": table["ill"],
    }
    found = found_in(write_release(tmp_path / "one", data, ill="sensitive"), original)
    for module in (association, class_counts):
        monkeypatch.setattr(module, "PART_BYTES", 200)
    assert found_in(tmp_path / "one", original) == found
    # Other names, in another order.
    other = {"clerk": "z", "cook": "b", "driver": "a", "nurse": "c"}
    renamed = dict(data)
    renamed["job"] = ["{b, z}" if own == jobs[0] else own for own in data["job"]]
    renamed["job"] = ["{a, c, missing}" if own == jobs[1] else own for own in renamed["job"]]
    ill = ["1 of 2" if own == "yes" else "2 of 2" for own in table["ill"].to_pylist()]
    renamed["ill"] = ill
    release = write_release(tmp_path / "two", renamed, ill="sensitive")
    columns = {
        "age": table["age"],
        "job": [other.get(own) for own in table["job"].to_pylist()],
        "ill": ill,
    }
    again = found_in(release, write_table(tmp_path / "other.parquet", columns))
    assert again == found


def test_records_without_a_target_are_left_out(tmp_path: Path) -> None:
    table = people()
    ill = [None if place % 7 == 0 else one for place, one in enumerate(table["ill"].to_pylist())]
    some = table.set_column(table.schema.get_field_index("ill"), "ill", pa.array(ill))
    release = write_raw_release(tmp_path / "raw")
    with_some = found_in(release, write_table(tmp_path / "some.parquet", some))
    kept = some.filter(pa.compute.is_valid(some["ill"]))
    without = found_in(release, write_table(tmp_path / "kept.parquet", kept))
    assert [one.before for one in with_some.attributes] == [
        one.before for one in without.attributes
    ]


def test_the_order_of_rows_decides_no_digit(original: Path, tmp_path: Path) -> None:
    release = write_raw_release(tmp_path / "raw")
    mixed = people().take(np.random.default_rng(4).permutation(ROWS))
    assert found_in(release, original) == found_in(
        release, write_table(tmp_path / "mixed.parquet", mixed)
    )


def test_a_release_that_lost_a_class(original: Path, tmp_path: Path) -> None:
    table = people()
    kept = table.filter(pa.compute.equal(table["ill"], "no"))
    data = {"job": ["*"] * len(kept), "ill": kept["ill"]}
    found = found_in(write_release(tmp_path / "one", data, ill="sensitive"), original)
    (job,) = found.attributes
    assert job.after is not None
    # It misleads: nobody seems to be ill.
    assert -100 < job.after < 0


@pytest.mark.parametrize("damaged", [False, True])
def test_no_value_is_told(tmp_path: Path, cli: Cli, damaged: bool) -> None:
    planted = ["Quetzal the nurse", "Okapi the cook"]
    table = pa.table({"job": planted * 30, "age": range(60), "ill": ["yes", "no", "no"] * 20})
    original = write_table(tmp_path / "planted.parquet", table)
    data = {
        "age": ["Quetzal is no age" if damaged else "[0-59]"] * 60,
        "job": ["{" + ", ".join(planted) + "}"] * 60,
        "ill": table["ill"],
    }
    release = write_release(tmp_path / "release", data, ill="sensitive")
    if damaged:
        with pytest.raises(DataError, match="published columns of 'age' cannot be read") as error:
            found_in(release, original)
        assert "Quetzal" not in str(error.value)
    for words in ((), ("--json",)):
        shown = cli.ends(
            3 if damaged else 0,
            "evaluate",
            release,
            "--original",
            original,
            "--target",
            "ill",
            *words,
        )
        for value in ("Quetzal", "Okapi"):
            assert value not in shown.out + shown.err


def test_it_is_printed(original: Path, tmp_path: Path, cli: Cli) -> None:
    release = write_raw_release(tmp_path / "raw")
    words = ("evaluate", release, "--original", original, "--target", "ill")
    shown = cli.ends(0, *words)
    assert "Association of quasi-identifiers with ill: loss 0.0000" in shown.out
    told = json.loads(cli(*words, "--json").out)["association"]
    assert told["loss"] == 0
    assert [set(one) for one in told["attributes"]] == [{"name", "before", "after"}] * 4
