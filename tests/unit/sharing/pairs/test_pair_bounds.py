"""What two releases tell together, beside who really is in both."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from helpers import attribute, local_table
from hypothesis import given
from hypothesis import strategies as st

from anonspark.config.privacy import PrivacyOptions
from anonspark.errors import ConfigurationError, DataError
from anonspark.release.manifest import Manifest
from anonspark.sharing.pairs import classes as class_pairs
from anonspark.sharing.pairs.classes import ReadRelease, TwoReleases, compatible_pairs, read_cells
from anonspark.sharing.pairs.figures import (
    BoundedPairs,
    Diversity,
    Margin,
    PairFigures,
    bound_pairs,
    bound_unknowns,
    figures_of_pairs,
)
from anonspark.sharing.pairs.original import count_pair_candidates
from anonspark.sharing.pairs.relation import People, Relation, Statement, relation_of
from anonspark.verification.claims.claim import Claim
from anonspark.verification.claims.left_out import LeftOut

Label = tuple[str, ...]


def read_release(
    columns: Mapping[str, Sequence[Any]],
    kinds: Mapping[str, Any],
    payload: Sequence[str] = ("disease",),
    left_out: int = 0,
    told: Mapping[str, int] | None = None,
) -> ReadRelease:
    """Describe published records; kinds are those of the quasi-identifiers."""
    attributes = tuple(attribute(name, kind) for name, kind in kinds.items())
    table = None
    if told is not None:
        rows = list(told.items())
        table = pa.table(
            {
                "attribute": pa.array(["disease"] * len(rows), pa.string()),
                "value": pa.array([value for value, _ in rows], pa.string()),
                "records": pa.array([records for _, records in rows], pa.int64()),
            }
        )
    claim = Claim(
        PrivacyOptions(k=2),
        list(kinds),
        tuple(kinds),
        attributes=attributes,
        sensitive=tuple(payload[:1]),
        as_they_came=tuple(payload),
        publishable=(*kinds, *payload),
        left_out=LeftOut(left_out, table),
    )
    arrays = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    return ReadRelease("release", local_table(pa.table(arrays), tasks=2), claim, attributes)


def attack(
    first: ReadRelease, second: ReadRelease, relation: Relation, k: int
) -> tuple[TwoReleases, BoundedPairs, PairFigures]:
    cells = read_cells(first, second)
    compatible = compatible_pairs((first, second), cells, ({}, {}))
    bounded, rounds = bound_pairs(cells, compatible, relation)
    diversity = {name: Diversity(2, required=False) for name in cells.values}
    figures = figures_of_pairs(cells, compatible, bounded, rounds, k=k, diversity=diversity)
    return cells, bounded, figures


def labels_of(cells: TwoReleases, place: int) -> list[Label | None]:
    """Return the published tuple of each class, and None for absence."""
    classes = cells.cells[place].classes
    names = [name for name in classes.column_names if name.startswith("published_")]
    rows = zip(*(classes[name].to_pylist() for name in names), strict=True)
    return [*rows, None]


# The table of ten people in the thesis on central distribution.
SEX, MARRIED = "MMMMMFFFFF", [False, False, True, True, True] * 2
DISEASE = [
    "HIV", "Hepatitis", "HIV", "Ulcer", "Asthma", "HIV", "Ulcer", "Hepatitis", "HIV", "Asthma",
]  # fmt: skip


def ten_people() -> tuple[ReadRelease, ReadRelease]:
    first = read_release(
        {
            "sex": [sex if married else "*" for sex, married in zip(SEX, MARRIED, strict=True)],
            "age": ["28-36" if married else "20-28" for married in MARRIED],
            "marital": ["Married" if married else "Single" for married in MARRIED],
            "disease": DISEASE,
        },
        {"sex": "category", "age": "integer", "marital": "category"},
    )
    second = read_release({"sex": list(SEX), "disease": DISEASE}, {"sex": "category"})
    return first, second


def test_ten_people() -> None:
    cells, bounded, figures = attack(*ten_people(), "same people", 3)
    labels = labels_of(cells, 0), labels_of(cells, 1)
    found = {
        (labels[0][first], labels[1][second]): (lower, upper)
        for first, second, lower, upper in zip(
            bounded.first, bounded.second, bounded.lower, bounded.upper, strict=True
        )
    }
    single = ("*", "20-28", "Single")
    assert found == {
        (single, ("M",)): (2, 2),
        (single, ("F",)): (2, 2),
        (("M", "28-36", "Married"), ("M",)): (3, 3),
        (("F", "28-36", "Married"), ("F",)): (3, 3),
    }
    assert (figures.pairs, figures.proven, figures.impossible, figures.possible) == (4, 4, 0, 2)
    assert (figures.breaches, figures.persons_in_breaches, figures.disclosed) == (2, 4, 0)


def test_ten_people_who_may_be_others() -> None:
    _, bounded, figures = attack(*ten_people(), "unknown", 3)
    assert not bounded.lower.any()
    assert (figures.pairs, figures.proven, figures.breaches, figures.rounds) == (4, 0, 0, 0)


def test_other_numbers_of_a_value_are_other_people() -> None:
    first, _ = ten_people()
    columns = {"sex": list(SEX), "disease": [*DISEASE[:-1], "HIV"]}
    changed = read_release(columns, {"sex": "category"})
    with pytest.raises(DataError, match=r"do not hold the same people.* 2 of 4 payloads") as found:
        attack(first, changed, "same people", 3)
    assert "HIV" not in str(found.value)
    with pytest.raises(DataError, match="do not hold the people of one in the other"):
        attack(first, changed, "second inside first", 3)


def test_people_for_whom_there_is_no_place() -> None:
    """As many of each value, and regions in which they cannot all lie."""
    columns = {"age": ["1-2", "1-2", "3-4"], "disease": ["flu"] * 3}
    first = read_release(columns, {"age": "integer"})
    second = read_release({**columns, "age": ["1-2", "3-4", "3-4"]}, {"age": "integer"})
    with pytest.raises(DataError, match="no people can be in these releases"):
        attack(first, second, "same people", 2)


def test_pairs_that_certainly_hold_no_one_are_left_out() -> None:
    first = read_release({"age": ["1-4", "1-2"], "disease": ["flu"] * 2}, {"age": "integer"})
    second = read_release({"age": ["1-2", "3-4"], "disease": ["flu"] * 2}, {"age": "integer"})
    _, bounded, figures = attack(first, second, "same people", 2)
    assert (figures.pairs, len(bounded.upper), figures.proven, figures.possible) == (3, 2, 2, 2)


def test_candidates_of_originals_where_some_are_absent() -> None:
    """Who is absent from a release is in no pair that an original record is looked up in."""
    first = read_release(
        {"age": ["1-2"] * 2 + ["3-4"] * 2, "disease": ["flu"] * 4}, {"age": "integer"}
    )
    second = read_release({"age": ["1-4"] * 3, "disease": ["flu"] * 3}, {"age": "integer"})
    cells, bounded, _ = attack(first, second, "second inside first", 2)
    assert dict(
        zip(zip(bounded.first, bounded.second, strict=True), bounded.upper, strict=True)
    ) == {(0, 0): 2, (0, 1): 1, (1, 0): 2, (1, 1): 1}
    original = local_table(pa.table({"age": [1, 2, 3, 4]}))
    found = count_pair_candidates(
        (first, second), cells, bounded, original, ({}, {}), k=2, required=(), missing_markers=()
    )
    assert (found.records, found.matched, found.persons_below_k) == (4, 4, 0)


@cases(__file__, "kind", "first", "second", "pairs")
def test_what_meets(kind: Any, first: str | None, second: str | None, pairs: int) -> None:
    """Intervals that touch meet, and so do missing values; sets need a common member."""
    one = read_release({"x": [first], "disease": ["flu"]}, {"x": kind})
    other = read_release({"x": [second], "disease": ["flu"]}, {"x": kind})
    assert attack(one, other, "unknown", 2)[2].pairs == pairs


@cases(__file__, "limit", "told")
def test_too_many_pairs(monkeypatch: pytest.MonkeyPatch, limit: str, told: str) -> None:
    monkeypatch.setattr(class_pairs, limit, 3)
    with pytest.raises(DataError, match=told) as found:
        attack(*ten_people(), "same people", 3)
    assert "ledger" in str(found.value)
    # No pair is one too many.
    monkeypatch.setattr(class_pairs, limit, 12)
    attack(*ten_people(), "same people", 3)


OF_RULES = {
    "codes": attribute("x", "category", rule="prefix"),
    "texts": attribute("x", "category"),
    "widths": attribute("x", "decimal", rule="intervals"),
    "whole": attribute("x", "integer"),
    "floats": attribute("x", "float"),
    "decimals": attribute("x", "decimal"),
    "months": attribute("x", "date", rule="calendar"),
    "days": attribute("x", "date"),
    "flags": attribute("x", "boolean"),
}


def meet(first: str, of_first: str, second: str, of_second: str, raw: str = "") -> int:
    releases = [
        replace(
            read_release({"x": [label], "disease": ["flu"]}, {"x": "category"}),
            attributes=(OF_RULES[own],),
            raw_kinds={"x": raw} if raw else {},
        )
        for label, own in ((first, of_first), (second, of_second))
    ]
    return attack(releases[0], releases[1], "unknown", 2)[2].pairs


@cases(__file__, "first", "of_first", "second", "of_second", "raw", "pairs")
def test_labels_of_rules_meet_labels_of_values(
    first: str, of_first: str, second: str, of_second: str, raw: str, pairs: int
) -> None:
    """What a rule made is compared with what another one made, or none.

    Texts, as those of a hierarchy's file, are read as what the other release has.
    """
    assert meet(first, of_first, second, of_second, raw) == pairs


def test_kinds_that_cannot_meet() -> None:
    with pytest.raises(DataError, match="is of kind boolean, and of kind integer"):
        meet("20", "whole", "true", "flags")


def test_labels_of_two_hierarchies() -> None:
    """Labels stand for leaves, whatever they are called."""
    first = read_release({"x": ["south", "north"], "disease": ["flu"] * 2}, {"x": "category"})
    second = read_release({"x": ["coast", "{Rize}"], "disease": ["flu"] * 2}, {"x": "category"})
    leaves = (
        {"x": {"south": ["Adana", "Konya"], "north": ["Rize", "Bursa"]}},
        {"x": {"coast": ["Adana", "Rize"], "Rize": ["Rize"], "{Rize}": ["Rize"]}},
    )
    cells = read_cells(first, second)
    assert compatible_pairs((first, second), cells, leaves).pairs == 3


def test_no_common_attribute_and_no_payload() -> None:
    first = read_release({"age": ["1", "2"]}, {"age": "integer"}, payload=())
    second = read_release({"town": ["a", "a"]}, {"town": "category"}, payload=())
    cells, bounded, figures = attack(first, second, "same people", 2)
    assert cells.payload == ()
    assert (figures.pairs, figures.payload_pairs, figures.proven) == (2, 2, 2)
    assert bounded.lower.tolist() == bounded.upper.tolist() == [1, 1]
    assert (figures.breaches, figures.disclosed) == (2, 0)


@st.composite
def people(draw: st.DrawFn) -> list[tuple[int, int, str | None]]:
    """Draw an age, a size and a disease each."""
    diseases = st.sampled_from(["flu", "gout", None])
    one = st.tuples(st.integers(0, 5), st.integers(0, 5), diseases)
    return draw(st.lists(one, min_size=1, max_size=12))


def published(
    drawn: Sequence[tuple[int, int, str | None]], groups: Sequence[int], names: str
) -> list[Label]:
    """Return the labels of each person: the ranges of the group."""
    labels = []
    for group in groups:
        own = [person for person, other in zip(drawn, groups, strict=True) if other == group]
        label = []
        for name in names:
            values = [person["xy".index(name)] for person in own]
            label.append(f"[{min(values)}, {max(values)}]" if min(values) < max(values)
                         else str(values[0]))  # fmt: skip
        labels.append(tuple(label))
    return labels


@given(people(), st.randoms(use_true_random=False), st.data())
def test_bounds_hold_the_truth(
    drawn: list[tuple[int, int, str | None]], chance: random.Random, data: st.DataObject
) -> None:
    n = len(drawn)
    relation: Relation = data.draw(
        st.sampled_from(["same people", "second inside first", "first inside second", "unknown"])
    )
    in_source = [[True] * n, [True] * n]
    inner = {"second inside first": 1, "first inside second": 0}.get(relation)
    if inner is not None:
        in_source[inner] = [chance.random() < 0.7 for _ in drawn]
    releases, signatures = [], []
    for place, names in enumerate((data.draw(st.sampled_from(["x", "xy"])), "xy")):
        groups = [chance.randrange(3) for _ in drawn]
        suppressed = data.draw(st.booleans())
        is_published = [
            here and not (suppressed and chance.random() < 0.2) for here in in_source[place]
        ]
        kept = [i for i in range(n) if is_published[i]]
        if not kept:
            return
        labels = published([drawn[i] for i in kept], [groups[i] for i in kept], names)
        left_out = [i for i in range(n) if in_source[place][i] and not is_published[i]]
        counts = Counter(drawn[i][2] for i in left_out)
        # A bound may be larger than what was left out.
        more = 0 if data.draw(st.booleans()) else chance.randrange(3)
        told = dict(counts) if data.draw(st.booleans()) and not more else None
        columns: dict[str, list[Any]] = {
            name: [label[j] for label in labels] for j, name in enumerate(names)
        }
        columns["disease"] = [drawn[i][2] for i in kept]
        kinds = dict.fromkeys(names, "integer")
        releases.append(read_release(columns, kinds, left_out=len(left_out) + more, told=told))
        by_person = dict(zip(kept, labels, strict=True))
        signatures.append([by_person.get(i) for i in range(n)])
    cells, bounded, figures = attack(releases[0], releases[1], relation, 2)
    truth = Counter(zip(*signatures, strict=True))
    labels_of_both = [labels_of(cells, place) for place in (0, 1)]
    found = {}
    for place, first in enumerate(bounded.first):
        key = (labels_of_both[0][first], labels_of_both[1][bounded.second[place]])
        found[key] = (bounded.lower[place], bounded.upper[place])
    for signature, persons in truth.items():
        if signature == (None, None) or (relation == "unknown" and None in signature):
            continue
        lower, upper = found[signature]
        assert lower <= persons <= upper
    assert all(lower == 0 or key in truth for key, (lower, _) in found.items())
    assert figures.breaches == sum(lower > 0 and upper < 2 for lower, upper in found.values())
    for place in (0, 1):
        here, there = signatures[place], signatures[1 - place]
        absent = sum(
            own is None and other is not None for own, other in zip(here, there, strict=True)
        )
        assert bounded.absent[place] <= absent


def test_people_proven_absent() -> None:
    """Whatever is said of the people: by regions that meet nothing, and by numbers of a value."""
    first = read_release(
        {"age": ["20-29"] * 3 + ["70-79"] * 4, "disease": ["flu"] * 3 + ["gout"] * 4},
        {"age": "integer"},
    )
    second = read_release(
        {"age": ["20-25"] * 5 + ["30-39"] * 2, "disease": ["flu"] * 5 + ["gout"] * 2},
        {"age": "integer"},
    )
    _, bounded, figures = attack(first, second, "unknown", 4)
    # Of five with flu three may be in the first; those with gout are of other ages.
    assert bounded.absent == (2 + 2, 4)
    assert (figures.absent_from_first, figures.absent_from_second) == (4, 4)
    few = attack(first, second, "unknown", 5)[2]
    assert (few.absent_from_first, few.absent_from_second) == (None, None)
    same = attack(*ten_people(), "same people", 3)[2]
    assert (same.absent_from_first, same.absent_from_second) == (0, 0)


def by_any_order(
    margins: Sequence[Margin], cells: Sequence[Sequence[int]], shuffle: Callable[[list[int]], None]
) -> list[tuple[int, int]]:
    """Bound one unknown after the other, with what is known by then, until nothing changes."""
    count = len(cells[0])
    bounds = [
        (0, min(int(margin.records[own[i]]) for margin, own in zip(margins, cells, strict=True)))
        for i in range(count)
    ]
    changed = True
    while changed:
        changed = False
        order = list(range(count))
        shuffle(order)
        for i in order:
            lower, upper = bounds[i]
            for margin, own in zip(margins, cells, strict=True):
                others = [bounds[j] for j in range(count) if own[j] == own[i] and j != i]
                total = int(margin.records[own[i]])
                if margin.is_exact[own[i]]:
                    lower = max(lower, total - sum(upper for _, upper in others))
                upper = min(upper, total - sum(lower for lower, _ in others))
            changed |= bounds[i] != (lower, upper)
            bounds[i] = lower, upper
    return bounds


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(st.booleans(), min_size=12, max_size=12),
    st.lists(st.booleans(), min_size=7, max_size=7),
    st.randoms(use_true_random=False),
)
def test_the_order_is_of_no_account(
    table: list[list[int]], possible: list[bool], known: list[bool], chance: random.Random
) -> None:
    numbers = np.array(table)
    keep = np.array(possible[: numbers.size]).reshape(numbers.shape)
    numbers[~keep] = 0
    margins = [
        Margin(numbers.sum(axis=1), np.array(known[: len(numbers)])),
        Margin(numbers.sum(axis=0), np.array(known[4:7])),
    ]
    rows, columns = (own.astype(np.int32) for own in np.nonzero(keep))
    bounds = bound_unknowns(margins[0], margins[1], rows, columns)
    found = list(zip(bounds.lower.tolist(), bounds.upper.tolist(), strict=True))
    expected = by_any_order(margins, (rows.tolist(), columns.tolist()), chance.shuffle)
    assert found == expected
    truth = numbers[keep].tolist()
    assert all(low <= own <= high for own, (low, high) in zip(truth, found, strict=True))


def recipient(**told: Any) -> People:
    """Describe a release of a plan."""
    entry = {
        "run_id": "may",
        "where": {},
        "rows_requested": 100,
        "rows_withheld": 0,
        "source_fingerprint": "people of may",
        **told,
    }
    return People(Manifest({"recipient": entry}), 100)


def plain(fingerprint: str = "seen", path: str = "people.csv", names: str = "ab") -> People:
    """Describe a release of a run."""
    configuration = {"input": {"path": path}, "attributes": {name: {} for name in names}}
    document = {"fingerprints": {"input": fingerprint}, "configuration": configuration}
    return People(Manifest(document), 90)


@cases(__file__, "one", "other", "expected")
def test_what_manifests_tell(
    one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]], expected: str
) -> None:
    """Of few that were withheld: of one plan the same people, of two plans nobody knows."""
    described = {"recipient": recipient, "plain": plain}
    (first, second) = (described[k](**v) for own in (one, other) for k, v in own.items())
    assert relation_of(first, second, None) == expected


@pytest.mark.parametrize("said", ["same people", "inside", None])
def test_stated_relation_replaces_missing_manifests(said: Statement | None) -> None:
    assert relation_of(recipient(), recipient(), said) == "same people"
    smaller, larger = People(None, 10), People(None, 11)
    if said is None:
        with pytest.raises(ConfigurationError, match="without a manifest"):
            relation_of(smaller, larger, said)
        return
    inside = said == "inside"
    assert relation_of(smaller, larger, said) == ("first inside second" if inside else said)
    assert relation_of(plain("other"), smaller, said) == ("second inside first" if inside else said)
