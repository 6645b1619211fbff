from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from proofs import verification

from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.labels.axes import Axis
from anonspark.labels.regions import PublishedAttribute, leaves_by_label, read_regions
from anonspark.presentation.blocks import Code, Table
from anonspark.release.manifest import Manifest
from anonspark.reporting import marginals as marginals_module
from anonspark.reporting import proof_sections, risk_sections, value_sections
from anonspark.reporting.bins import Bins, merge_bins, plan_bins
from anonspark.reporting.evidence import Disclosure, Evidence
from anonspark.reporting.figures import Figures
from anonspark.reporting.marginals import (
    GroupAxis,
    Marginal,
    OrderedAxis,
    beginnings,
    levels_of,
    numbers_axis,
    plan_groups,
    spread_present,
)
from anonspark.reporting.original import OriginalFigures
from anonspark.reporting.risk_sections import class_sizes
from anonspark.reporting.usefulness import usefulness
from anonspark.verification.attacks.truthfulness import Truthfulness


def days(text: str) -> float:
    return float((date.fromisoformat(text) - date(1970, 1, 1)).days)


# Disclosure


def test_counts_below_k_are_not_shown() -> None:
    rules = Disclosure(10)
    assert [rules.count(people) for people in (1, 9)] == ["fewer than 10"] * 2
    assert [rules.count(people) for people in (0, 10, 1234)] == ["0", "10", "1,234"]


def test_shares_do_not_tell_of_few_records_nor_of_few_others() -> None:
    rules = Disclosure(10)
    assert rules.share(0.003, 1000) == "fewer than 10 records"
    assert rules.share(0.997, 1000) == "all but fewer than 10 records"
    assert rules.share(0.5, 1000) == "50.0%"
    assert rules.share(1.0, 1000) == "100%"
    assert rules.share(0.0, 1000) == "0%"


@given(st.lists(st.integers(0, 10_000), min_size=1), st.integers(1, 100))
def test_what_is_drawn_is_made_of_multiples_of_k(counts: list[int], k: int) -> None:
    rules = Disclosure(k)
    rounded = [rules.rounded(count) for count in counts]
    assert all(
        one % k == 0 and abs(one - count) <= k / 2
        for one, count in zip(rounded, counts, strict=True)
    )
    drawn = [0 if count < k else one for one, count in zip(rounded, counts, strict=True)]
    total = sum(drawn)
    assert rules.shares(counts) == [one / total if total else 0.0 for one in drawn]


@given(st.integers(1, 1000), st.integers(1, 100))
def test_a_share_is_drawn_without_few_records(people: int, k: int) -> None:
    rules = Disclosure(k)
    for some in {0, 1, min(k - 1, people), min(k, people), people // 2, people - 1, people}:
        drawn = rules.rounded_share(some / people, people)
        if rules.hides(some):
            assert drawn == 0
        elif rules.hides(people - some):
            assert drawn == 1
        else:
            assert abs(drawn - some / people) <= k / people / 2 + 1e-9


# Bins


def test_bins_have_round_edges_and_open_ends() -> None:
    values = np.arange(17.0, 91.0)
    bins = plan_bins("whole", values, np.full(len(values), 10.0), 5)
    assert bins.edges == tuple(range(20, 90, 10))
    assert bins.labels[0] == "below 20"
    assert bins.labels[1] == "20 to 29"
    assert bins.labels[-1] == "80 and more"


def test_bins_of_dates_follow_the_calendar() -> None:
    values = np.arange(days("1930-05-17"), days("2006-08-03"), 10)
    bins = plan_bins("date", values, np.ones(len(values)), 5)
    assert bins.labels[:2] == ["before 1940", "1940 to 1949"]
    assert bins.labels[-1] == "2000 and later"


def test_bins_of_timestamps_follow_the_clock() -> None:
    hour = 3_600_000_000
    bins = plan_bins("timestamp", np.arange(48.0) * hour, np.ones(48), 2)
    assert bins.edges[0] == 6 * hour
    assert bins.labels[1] == "1970-01-01 06:00:00 to below 1970-01-01 12:00:00"


def test_bins_of_days_and_of_midnights_have_the_same_short_names() -> None:
    starts = ("2020-01-01", "2020-07-01", "2021-01-01", "2021-02-01", "2021-04-01", "2021-04-03")
    edges = np.array(starts, "datetime64[D]").astype(np.float64)
    days, times = Bins("date", tuple(edges)), Bins("timestamp", tuple(edges * 86_400_000_000))
    assert (
        days.labels
        == times.labels
        == [
            *("before 2020", "2020, 1st half", "2020, 2nd half", "2021-01", "2021-02 to 2021-03"),
            *("2021-04-01 to 2021-04-02", "2021-04-03 and later"),
        ]
    )


@given(
    st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(1, 50)), min_size=1, max_size=60),
    st.integers(1, 40),
)
def test_no_edge_lies_outside_of_k_records(records: list[tuple[int, int]], k: int) -> None:
    values = np.array([value for value, _ in records], np.float64)
    counts = np.array([count for _, count in records], np.float64)
    bins = plan_bins("whole", values, counts, k)
    assert len(bins) <= 16
    for edge in bins.edges:
        assert counts[values < edge].sum() >= k
        assert counts[values >= edge].sum() >= k


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.integers(1, 25))
def test_merged_bins_hold_k_records(counts: list[int], k: int) -> None:
    bins = Bins("real", tuple(float(edge) for edge in range(1, len(counts))))
    table = np.array(counts, np.float64)
    merged, members = merge_bins(bins, [table], k)
    assert [place for group in members for place in group] == list(range(len(counts)))
    assert len(merged) == len(members) == len(merged.labels)
    if sum(counts) >= k:
        assert all(table[group].sum() >= k for group in members)


# Groups


def test_rare_values_are_one_group_of_k() -> None:
    names = [("a",), ("b",), ("c",), ("d",)]
    groups = plan_groups(names, np.array([50.0, 30.0, 10.0, 2.0]), 10, [str])
    # Two records of d alone would be too few: c joins them.
    assert groups.names == ("a", "b", "other values")
    axis = GroupAxis(groups, None)  # type: ignore[arg-type] # not looked at
    parts = axis.columns(pa.array(["a", "b", "c", "d"]))
    assert parts.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]


def test_few_missing_values_are_not_told_alone() -> None:
    groups = plan_groups([("a",), ("b",)], np.array([50.0, 30.0]), 10, [str], missing=3)
    assert groups.names == ("a", "other values or missing")
    assert groups.with_missing


def test_published_sets_name_no_value_that_is_not_sure() -> None:
    groups = plan_groups([("a",), ("b", "c")], np.array([50.0, 30.0]), 10, [str])
    assert groups.names == ("a", "other values")


def test_codes_are_grouped_by_their_beginning() -> None:
    codes = [f"{number}" for number in range(10_000, 70_000, 100)]
    namings = [str, *beginnings(codes)]
    groups = plan_groups([(code,) for code in codes], np.full(len(codes), 3.0), 10, namings)
    assert set(groups.names) == {"1…", "2…", "3…", "4…", "5…", "6…", "other values"}
    assert beginnings(["Ada", "Bob 2"]) == []


def test_values_are_grouped_by_their_hierarchy() -> None:
    rows = [(f"job {place}", f"field {place // 10}", "*") for place in range(40)]
    hierarchy = Hierarchy.from_rows(rows)
    regions = [tuple(leaves_by_label(hierarchy)[f"field {place}"]) for place in range(4)]
    groups = plan_groups(regions, np.full(4, 20.0), 10, [str, *levels_of(hierarchy)])
    assert groups.names[:4] == ("field 0", "field 1", "field 2", "field 3")


# Published columns


def attribute(kind: str, style: str = "interval", **others: Any) -> PublishedAttribute:
    columns = (
        ("x_min", "x_max", "x_missing") if style == "bounds" and kind != "category" else ("x",)
    )
    return PublishedAttribute("x", kind, style, columns, **others)  # type: ignore[arg-type]


def parts_of(edges: tuple[float, ...], columns: list[Any], one: PublishedAttribute) -> Any:
    """Return the parts of published values in bins, missing, and untold."""
    regions, numbers = read_regions(columns, one, means=True)
    axis = OrderedAxis(Bins("real", edges), numbers_axis(one))
    return axis.parts(regions)[numbers]


def test_intervals_of_whole_numbers_cover_both_ends() -> None:
    labels = pa.array(["[17-26]", "20", "missing", "20 or missing", "*"])
    parts = parts_of((20.0,), [labels], attribute("integer"))
    np.testing.assert_allclose(
        parts, [[0.3, 0.7, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1]]
    )
    regions, numbers = read_regions([labels], attribute("integer"))
    middles = spread_present(numbers_axis(attribute("integer")), regions).centers()
    np.testing.assert_allclose(middles[numbers], [21.5, 20, np.nan, 20, np.nan])


def test_intervals_spread_evenly_over_bins() -> None:
    labels = pa.array(["[5-15]", "10", "[25-30]", "[0-100]", "[10-20]", "[5-10]"])
    parts = parts_of((10.0, 20.0), [labels], attribute("decimal"))
    np.testing.assert_allclose(
        parts[:, :3],
        [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1], [0.1, 0.1, 0.8], [0, 1, 0], [1, 0, 0]],
        atol=1e-12,
    )


def test_bounds_and_means_are_read() -> None:
    columns = [pa.array([10, None]), pa.array([29, None]), pa.array([False, True])]
    bounds = parts_of((20.0,), columns, attribute("integer", "bounds"))
    np.testing.assert_allclose(bounds, [[0.5, 0.5, 0, 0], [0, 0, 1, 0]])
    means = parts_of((20.0,), [pa.array([19.5, None])], attribute("integer", "mean"))
    np.testing.assert_allclose(means, [[1, 0, 0, 0], [0, 0, 1, 0]])


def test_regions_are_summed_up_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = ["[17-26]", "20", "missing", "20 or missing", "*", "[0-99]"]
    regions, numbers = read_regions([pa.array(labels)], attribute("integer"))
    own = numbers_axis(attribute("integer"))
    axis = OrderedAxis(Bins("whole", (20.0, 40.0)), own)
    records = np.arange(1.0, 1 + len(labels))[np.argsort(numbers)]
    expected = records @ axis.parts(regions)
    for size in (1, 2, 3, 100):
        monkeypatch.setattr(marginals_module, "_BLOCK", size)
        np.testing.assert_allclose(axis.totals(regions, records), expected)


def test_dates_are_days() -> None:
    labels = pa.array(["[1999-12-31/2000-01-01]"])
    parts = parts_of((days("2000-01-01"),), [labels], attribute("date"))
    np.testing.assert_allclose(parts, [[0.5, 0.5, 0, 0]])


def test_sets_spread_evenly_over_their_values() -> None:
    groups = plan_groups([("a",), ("b",), ("c",)], np.array([30.0, 20.0, 10.0]), 10, [str])
    one = attribute("category")
    regions, numbers = read_regions(
        [pa.array(["a", "{a, b}", "{a, missing}", "missing", "*"])], one
    )
    parts = GroupAxis(groups, Axis.of_regions(one, regions, whole=True)).parts(regions)[numbers]
    # a, b, c, other values, missing, anything (without a hierarchy, * may be missing as well).
    np.testing.assert_allclose(
        parts,
        [
            [1, 0, 0, 0, 0, 0],
            [0.5, 0.5, 0, 0, 0, 0],
            [0.5, 0, 0, 0, 0.5, 0],
            [0, 0, 0, 0, 1, 0],
            [0, 0, 0, 0, 0, 1],
        ],
    )


def test_masked_codes_cover_the_codes_that_there_are() -> None:
    one = attribute("category", rule="prefix")
    axis = Axis.of_texts(one, ["07000", "06123", "9", "06100"])
    labels = pa.array(["061**", "07000", "08***", "*****", "08*** or missing"])
    regions, numbers = read_regions([labels], one)
    values = [("06100", "06123"), ("07000",), (), ("06100", "06123", "07000"), ()]
    assert [axis.texts_of(regions[number]) for number in numbers] == values
    groups = plan_groups([("06100",), ("07000",)], np.array([30.0, 20.0]), 10, [str])
    # 06100, 07000, other values, missing, anything. A code that is not there is another value.
    np.testing.assert_allclose(
        GroupAxis(groups, axis).parts(regions)[numbers],
        [
            [0.5, 0, 0.5, 0, 0],
            [0, 1, 0, 0, 0],
            [0, 0, 1, 0, 0],
            [1 / 3, 1 / 3, 1 / 3, 0, 0],
            [0, 0, 0.5, 0.5, 0],
        ],
        atol=1e-12,
    )


# Class sizes


@pytest.mark.parametrize(
    "sizes", [[[2, 1], [3, 4], [10, 5]], [[10, 7], [11, 1], [900, 1]], [[3, 1]]]
)
def test_sizes_below_k_are_told_together(sizes: list[list[int]]) -> None:
    nothing = Figures((), None)
    manifest = Manifest({"configuration": {"privacy": {"k": 10}}})
    section = class_sizes(Evidence("release", manifest, verification(sizes=sizes), nothing))
    assert section is not None
    rows = section.blocks[1].table.rows  # type: ignore[union-attr]
    total = sum(size * classes for size, classes in sizes)
    numbers = [str(row[2]) for row in rows]
    if total < 10:
        assert numbers == ["fewer than 10"]
    else:
        own = [int(number.replace(",", "")) for number in numbers]
        assert sum(own) == total
        assert min(own) >= 10


# Sections


def evidence(**parts: Any) -> Evidence:
    nothing = Figures((), None)
    manifest = {
        "configuration": {
            "privacy": {"k": 10},
            "output": {"style": "interval"},
            "attributes": {"age": {"role": "quasi_identifier"}},
        },
        "published": {"quasi_identifiers": [{"name": "age", "kind": "integer"}]},
        "fingerprints": {"output": "f"},
        **parts.pop("manifest", {}),
    }
    return Evidence(
        "release", Manifest(manifest), verification(**parts.pop("proof", {})), nothing, **parts
    )


def cells(section: Any, table: int = 0) -> list[list[str]]:
    tables = [getattr(block, "table", block) for block in section.blocks]
    found = [one for one in tables if isinstance(one, Table)][table]
    return [[str(getattr(cell, "holds", cell)) for cell in row] for row in found.rows]


def test_no_credentials_are_in_the_command() -> None:
    whole = replace(
        evidence(),
        release="s3a://me:secret@bucket/release",
        original="s3a://me:secret@bucket/people.csv",
    )
    assert whole.release == "s3a://(redacted)@bucket/release"
    (command,) = (one for one in proof_sections.guarantee(whole).blocks if isinstance(one, Code))
    assert command.text == (
        "anonspark verify 's3a://(redacted)@bucket/release' "
        "--original 's3a://(redacted)@bucket/people.csv'"
    )


SECTIONS = {
    "proof_sections.gates": proof_sections.gates,
    "value_sections.rounds": value_sections.rounds,
}


@cases(__file__, "section", "parts", "expected")
def test_tables_of_sections(section: str, parts: dict[str, Any], expected: list[list[str]]) -> None:
    assert cells(SECTIONS[section](evidence(**parts))) == expected
    assert SECTIONS[section](evidence()) is None
    if "summary" in parts.get("manifest", {}):
        rows = cells(proof_sections.published(evidence(**parts)))
        assert dict(rows)["records of the input"] == "withheld"


@cases(__file__, "missing", "expected")
def test_missing_values_in_the_table_of_loss(missing: list[Any], expected: list[str]) -> None:
    figures = {"ncp": 0.1, "iloss": 0.1, "loss": 0.1, "precision": 1, "generalized_share": 1.0}
    rows = [
        {"attribute": name, "kind": "integer", "weight": 1.0, "missing_rows": count, **figures}
        for name, count in missing
    ]
    assert [row[-1] for row in cells(value_sections.loss(evidence(attributes=rows)))] == expected


def test_few_records_left_out_are_not_told_by_the_utility() -> None:
    counts = {
        "k": 10,
        "rows_in": 1003,
        "rows_dropped_missing": 0,
        "rows_published": 1000,
        "rows_suppressed": 3,
        "rows_left_out": 3,
        "utility_score": 90.0,
    }
    (first, *_) = usefulness(evidence(manifest={"summary": counts})).blocks
    assert "span 10.00% of their column's range on average, and fewer than" in first.text  # type: ignore[union-attr]
    assert first.text.endswith(", and fewer than 10 records were left out.")  # type: ignore[union-attr]


def test_hidden_counts_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    draw = value_sections.bar_chart

    def keep(name: str, chart: Any, *others: Any) -> Any:
        drawn.append(chart)
        return draw(name, chart, *others)

    for module in (value_sections, risk_sections):
        monkeypatch.setattr(module, "bar_chart", keep)
    marginal = Marginal("age", "integer", ("a", "b", "c"), (6, 34, 60), (9.2, 30.8, 60.0))
    whole = evidence(
        proof={"sizes": [[30, 1], [70, 1]], "rows": 100, "risk": [{}]},
        risk_before=verification(risk=[{"at_risk": 0.06}]).risk,
    )
    whole = replace(whole, figures=Figures((marginal,), OriginalFigures(100, {1: 8, 2: 1, 90: 1})))
    section = value_sections.marginals(whole)
    assert [row[1:] for row in cells(section)] == [
        ["fewer than 10", "0%", "fewer than 10", "0%"],
        ["30", "33.3%", "30", "33.3%"],
        ["60", "66.7%", "60", "66.7%"],
    ]
    # Where a bar is pointed at, it says what the table has.
    assert drawn[0].words == [
        ["a", "original: fewer than 10 records", "release: fewer than 10 records"],
        ["b", "original: 30 records, 33.3%", "release: 30 records, 33.3%"],
        ["c", "original: 60 records, 66.7%", "release: 60 records, 66.7%"],
    ]
    assert [one.values[0] for one in drawn[0].series] == [0, 0]
    section = risk_sections.risk(whole)
    assert cells(section, 1)[0][1] == "fewer than 10"
    assert drawn[1].series[0].values[2] == 0
    assert drawn[2].series[0].values[:2] == [0, 0]
    assert sum(drawn[2].series[0].values) == pytest.approx(100)


def test_few_records_left_out_are_told_neither_by_themselves_nor_by_the_total() -> None:
    summary = {"rows_in": 1000, "rows_dropped_missing": 3, "rows_suppressed": 0, "rows_left_out": 0}
    section = proof_sections.published(
        evidence(manifest={"summary": summary}, proof={"rows": 997, "classes": 90})
    )
    rows = dict(cells(section))
    assert rows["left out because a quasi-identifier is missing"] == "fewer than 10"
    assert rows["records published"] == "997"
    assert rows["records of the input"] == "withheld"


def test_records_that_were_left_out_are_no_falsehood() -> None:
    def row(truth: Truthfulness, **manifest: Any) -> list[str]:
        found = evidence(manifest=manifest, proof={"truthfulness": truth})
        return cells(proof_sections.guarantee(found))[2][1:]

    holding = Truthfulness(100, 80, 20, 0, 0, 20, 0, 80, 20, 0, 0)
    broken = replace(holding, without_counterpart=23, not_proven=40)
    assert row(holding) == ["0", "0", "True"]
    assert row(broken) == ["0", "fewer than 10 originals. 40 not proven", "False"]
    summary = {"rows_in": 1003, "rows_dropped_missing": 0, "rows_suppressed": 3, "rows_left_out": 3}
    assert row(holding, summary=summary) == ["0", "0", "True"]
    assert row(broken, summary=summary) == ["0", "withheld", "False"]
