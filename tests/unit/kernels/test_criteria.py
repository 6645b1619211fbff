"""Criteria of a group against their definitions in fractions, and against published measures."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from drawn_numbers import among
from drawn_numbers import order as order_of
from hypothesis import example, given, note
from hypothesis import strategies as st
from references import (
    BOUNDS,
    attribute_of,
    counts_of_values,
    criterion_about,
    equal_distance,
    hierarchical_distance,
    k_alone,
    may_be_a_group,
    most_values_with_people,
    no_values,
    ordered_distance,
    satisfies_criterion,
    sensitive_attributes,
    violated_criteria,
)

from anonspark.core.criteria import Criteria, PeopleOfGroup, SensitiveAttribute, Units, paired
from anonspark.core.criterion import Criterion
from anonspark.kernels.criteria import (
    clear_counts,
    count_values,
    first_unsatisfied,
    group_satisfies,
    judge,
)
from anonspark.kernels.people import match_values
from anonspark.verification.proof import measures
from anonspark.verification.proof.criteria import measure_classes
from anonspark.verification.proof.measures import SensitiveValues, ValueCounts

# Records of a group with each value of each sensitive attribute.
Counts = list[list[int]]

# Which of the bounds of each kind, whose numbers of bounds differ.
which_bound = st.integers(0, 2 * 3 * 5 * 7 - 1)


@st.composite
def attributes(draw: st.DrawFn) -> tuple[SensitiveAttribute, ...]:
    """Draw sensitive attributes; some of their values do not occur in the input."""
    count = st.one_of(st.just(0), st.integers(1, 3), st.integers(1, 40))
    drawn = []
    for name in draw(st.sampled_from(["x", "xy", "xyz"])):
        domain = draw(st.integers(1, 7))
        counts = draw(st.lists(count, min_size=domain, max_size=domain).filter(any))
        drawn.append(draw(sensitive_attributes(name, np.array(counts))))
    return tuple(drawn)


@st.composite
def columns_of(draw: st.DrawFn, sensitive: tuple[SensitiveAttribute, ...], n: int) -> np.ndarray:
    """Draw the values of n records, those of all attributes numbered through."""
    columns, first = [], 0
    for attribute in sensitive:
        domain = len(attribute.counts)
        few = draw(st.sets(st.integers(0, domain - 1), min_size=1))
        columns.append(among(draw, n, sorted(few)) + first)
        first += domain
    return np.ascontiguousarray(np.stack(columns, axis=1))


def criteria_about(sensitive: tuple[SensitiveAttribute, ...]) -> st.SearchStrategy[Criteria]:
    several = st.lists(criterion_about(sensitive), max_size=3)
    return st.builds(
        lambda k, criteria: Criteria(k, tuple(criteria), sensitive), st.integers(1, 6), several
    )


def about_one(
    counts: list[int],
    kind: str,
    bound: float,
    c: float = math.nan,
    *,
    hierarchy: tuple[list[int], list[int]] = ([], []),
) -> Criteria:
    """Return one criterion about one attribute with these counts in the whole input."""
    return Criteria(1, (Criterion("s", kind, bound, c),), (attribute_of("s", counts, *hierarchy),))


def satisfied(criteria: Criteria, counts: list[int]) -> bool:
    return criteria.satisfied_by(sum(counts), [np.array(counts)])


# Against the definitions --------------------------------------------------------------------------


@given(data=st.data())
def test_the_first_violated_criterion(data: st.DataObject) -> None:
    sensitive = data.draw(attributes())
    criteria = data.draw(criteria_about(sensitive))
    values = data.draw(columns_of(sensitive, data.draw(st.integers(1, 40))))
    counts = counts_of_values(criteria, values)
    violated = violated_criteria(criteria, counts)
    first = criteria.criteria[violated[0]] if violated else None
    arrays = [np.array(own) for own in counts]
    assert criteria.violated_by(len(values), arrays) is first
    assert criteria.satisfied_by(len(values), arrays) == (
        len(values) >= criteria.k and not violated
    )


@given(data=st.data())
def test_groups_of_records(data: st.DataObject) -> None:
    sensitive = data.draw(attributes())
    criteria = data.draw(criteria_about(sensitive))
    values = data.draw(columns_of(sensitive, data.draw(st.integers(1, 30))))
    order = order_of(data.draw, len(values))
    start = data.draw(st.integers(0, len(values) - 1))
    stop = data.draw(st.integers(start + 1, len(values)))
    total = int(criteria.first_value[-1])
    counts, present = np.zeros(total, np.int64), np.full(total, -9, np.int64)
    expected = may_be_a_group(criteria, values, order[start:stop].tolist())
    for _ in range(2):
        # The working memory of one group is that of the next one.
        found = group_satisfies(criteria.requirements, values, order, start, stop, counts, present)
        assert found == expected
        assert not counts.any()


@given(data=st.data())
def test_counts_grow_record_by_record(data: st.DataObject) -> None:
    sensitive = data.draw(attributes())
    criteria = data.draw(criteria_about(sensitive))
    values = data.draw(columns_of(sensitive, data.draw(st.integers(1, 20))))
    total = int(criteria.first_value[-1])
    counts, present = np.zeros(total, np.int64), np.empty(total, np.int64)
    order = np.arange(len(values))[::-1].copy()
    distinct = 0
    for i in range(len(values)):
        distinct = count_values(values, order, i, i + 1, counts, present, distinct)
        own = counts_of_values(criteria, values[order[: i + 1]])
        assert counts.tolist() == [count for column in own for count in column]
        assert sorted(present[:distinct].tolist()) == np.flatnonzero(counts).tolist()
        place = first_unsatisfied(criteria.requirements, counts, present, distinct, i + 1)
        assert place == next(iter(violated_criteria(criteria, own)), -1)
    clear_counts(counts, present, distinct)
    assert not counts.any()


@given(
    people=st.lists(st.integers(0, 8), min_size=1, max_size=30), k=st.integers(1, 6), data=st.data()
)
def test_people_of_a_group(people: list[int], k: int, data: st.DataObject) -> None:
    """A group of more records than k - 1 people have is not looked at, and is about k anyway."""
    repeats = sorted((people.count(one) for one in set(people)), reverse=True)
    units = Units(len(repeats), repeats[0], sum(repeats[: k - 1]))
    criteria = Criteria(k, units=units)
    numbers, pairs = paired(np.array(people, np.int64)[:, None])
    requirements = criteria.requirements_among(pairs)
    stop = data.draw(st.integers(1, len(people)))
    order = order_of(data.draw, len(people))
    counts, present = np.zeros(pairs.number, np.int64), np.empty(pairs.number, np.int64)
    own = {people[place] for place in order[:stop].tolist()}
    holds = group_satisfies(requirements, numbers, order, 0, stop, counts, present)
    assert holds == (len(own) >= k)
    if stop > units.of_fewer_than_k:
        assert holds
    assert not counts.any()


@pytest.mark.parametrize("k", [1, 3, 10])
def test_k_alone(k: int) -> None:
    criteria, order = k_alone(k), np.arange(10)
    none = np.empty(0, np.int64)
    for size in range(1, 11):
        found = group_satisfies(criteria.requirements, no_values(10), order, 0, size, none, none)
        assert found == (size >= k)
        assert criteria.satisfied_by(size, []) == (size >= k)
    assert criteria.violated_by(5, []) is None


def test_no_record_violates_nothing() -> None:
    criteria = about_one([1, 1], "distinct", 2)
    assert criteria.violated_by(0, [np.array([0, 0])]) is None
    assert not criteria.satisfied_by(0, [np.array([0, 0])])


def test_attributes_are_told_apart() -> None:
    # One value of the first attribute, three of the second one.
    sensitive = (attribute_of("x", [4, 4]), attribute_of("y", [2, 3, 3]))
    counts = [np.array([0, 3]), np.array([1, 1, 1])]
    for name, holds in (("x", False), ("y", True)):
        criteria = Criteria(3, (Criterion(name, "distinct", 2),), sensitive)
        assert criteria.satisfied_by(3, counts) == holds
    both = (Criterion("y", "distinct", 3), Criterion("x", "distinct", 2))
    assert Criteria(3, both, sensitive).violated_by(3, counts) is both[1]
    assert Criteria(3, both, sensitive).first_value.tolist() == [0, 2, 5]


# Bounds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3, 7, 1000])
def test_entropy_of_equal_counts_is_exactly_l(count: int) -> None:
    for least in range(1, 60):
        criteria = about_one([1] * 60, "entropy", least)
        assert satisfied(criteria, [count] * least + [0] * (60 - least))
        if least > 1:
            assert not satisfied(criteria, [count + 1] + [count] * (least - 1) + [0] * (60 - least))
            assert not satisfied(criteria, [count] * (least - 1) + [0] * (61 - least))


@given(data=st.data())
def test_distances_that_are_exactly_t(data: st.DataObject) -> None:
    domain = data.draw(st.integers(2, 7))
    count = st.integers(0, 30)
    whole = data.draw(st.lists(count, min_size=domain, max_size=domain).filter(any))
    group = data.draw(st.lists(count, min_size=domain, max_size=domain).filter(any))
    attribute = data.draw(sensitive_attributes("s", np.array(whole)))
    p = [Fraction(own, sum(group)) for own in group]
    q = [Fraction(own, sum(whole)) for own in whole]
    distances: dict[str, Fraction] = {
        "equal distance": equal_distance(p, q),
        "ordered distance": ordered_distance(p, q),
        "hierarchical distance": hierarchical_distance(p, q, attribute),
        "maximum distance": max(abs(a - b) for a, b in zip(p, q, strict=True)),
    }
    for kind, distance in distances.items():
        for bound, holds in ((distance, True), (distance - Fraction(1, 10**9), False)):
            criteria = Criteria(1, (Criterion("s", kind, float(bound)),), (attribute,))
            assert criteria.satisfied_by(sum(group), [np.array(group)]) == holds


@given(data=st.data())
def test_gains_that_are_exactly_beta(data: st.DataObject) -> None:
    domain = data.draw(st.integers(2, 7))
    whole = data.draw(st.lists(st.integers(1, 300), min_size=domain, max_size=domain))
    group = data.draw(st.lists(st.integers(0, 30), min_size=domain, max_size=domain).filter(any))
    beta = worst_figure("beta", attribute_of("s", whole), group, 1)
    assert satisfied(about_one(whole, "beta", beta), group)
    assert satisfied(about_one(whole, "beta", beta * (1 - 1e-9)), group) == (beta == 0)


def test_a_value_that_the_whole_input_lacks_gains_without_bound() -> None:
    assert not satisfied(about_one([5, 5, 0], "beta", 1e9), [1, 1, 1])
    assert satisfied(about_one([5, 5, 0], "beta", 1e-9), [1, 1, 0])


@given(data=st.data())
def test_fewer_records_than_are_missing_mend_nothing(data: st.DataObject) -> None:
    domain = data.draw(st.integers(1, 5))
    count = st.one_of(st.just(0), st.integers(0, 60))
    group = st.lists(count, min_size=domain, max_size=domain).filter(any)
    whole, counts = data.draw(group), np.array(data.draw(group))
    attribute = data.draw(sensitive_attributes("s", np.array(whole)))
    place = data.draw(which_bound)
    present = np.flatnonzero(counts)
    places = np.append(present, np.zeros(domain - len(present), np.int64))
    size = int(counts.sum())
    for kind, bounds in BOUNDS.items():
        note(kind)
        criterion = Criterion("s", kind, bounds[place % len(bounds)], 1.5)
        criteria = Criteria(1, (criterion,), (attribute,))
        first, missing = judge(criteria.requirements, counts, places, len(present), size)
        assert (missing > 0) == (first == 0)
        if missing > 1:
            more = among(data.draw, data.draw(st.integers(1, missing - 1)), range(domain))
            mended = counts + np.bincount(more, minlength=domain)
            assert not satisfied(criteria, mended.tolist())


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6).filter(any))
def test_the_largest_share_may_be_exactly_alpha(group: list[int]) -> None:
    share = max(group) / sum(group)
    assert satisfied(about_one(group, "alpha", share), group)
    assert not satisfied(about_one(group, "alpha", share - 1e-9), group)


@cases(__file__, "counts", "least", "c", "holds")
def test_recursive_diversity(counts: list[int], least: int, c: float, holds: bool) -> None:
    assert satisfied(about_one([9, 9, 9], "recursive", least, c), counts) == holds


@pytest.mark.parametrize(("c", "counts"), [(1.1, [55, 50]), (2.2, [55, 25]), (1.1, [99, 90])])
def test_recursive_diversity_at_its_bound_in_decimals(c: float, counts: list[int]) -> None:
    criteria = about_one([99, 99], "recursive", 2, c)
    assert not satisfied_by_the_measures(criteria.criteria[0], criteria.sensitive[0], counts)
    assert not satisfied(criteria, counts)


def test_printed_distances_of_salaries() -> None:
    # Li, Li and Venkatasubramanian 2007: of nine salaries, 3k to 11k, the class {3k, 4k, 5k} has
    # 0.375 and the class {6k, 8k, 11k} has 0.167.
    first, second = [1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1, 0, 0, 1]
    for counts, distance in ((first, 0.375), (second, 1 / 6)):
        assert satisfied(about_one([1] * 9, "ordered distance", distance), counts)
        assert not satisfied(about_one([1] * 9, "ordered distance", distance - 1e-9), counts)


def test_a_hierarchy_makes_neighbours_near() -> None:
    # Two groups of two values each; the class has the values of one group, or one of each.
    hierarchy = ([4, 4, 5, 5, 6, 6, -1], [0, 0, 0, 0, 1, 1, 2])
    for counts, distance in (([1, 1, 0, 0], 0.5), ([1, 0, 1, 0], 0.25), ([1, 0, 0, 0], 0.625)):
        for bound, holds in ((distance, True), (distance - 1e-9, False)):
            criteria = about_one([5] * 4, "hierarchical distance", bound, hierarchy=hierarchy)
            assert satisfied(criteria, counts) == holds


@pytest.mark.parametrize("kind", ["equal distance", "ordered distance", "maximum distance"])
def test_an_attribute_of_one_value_has_no_distance(kind: str) -> None:
    assert satisfied(about_one([7], kind, 0.0), [3])


# Union --------------------------------------------------------------------------------------------


@given(data=st.data())
def test_two_groups_that_satisfy_a_criterion_satisfy_it_together(data: st.DataObject) -> None:
    domain = data.draw(st.integers(1, 6))
    count = st.one_of(st.just(0), st.integers(0, 4), st.integers(0, 300))
    group = st.lists(count, min_size=domain, max_size=domain).filter(any)
    whole, one, other = data.draw(group), data.draw(group), data.draw(group)
    attribute = data.draw(sensitive_attributes("s", np.array(whole)))
    # The strictest bound that both of them satisfy, as nearly as floats have it.
    least = data.draw(st.integers(1, domain))
    together = [a + b for a, b in zip(one, other, strict=True)]
    for kind in BOUNDS:
        note(kind)
        figures = [worst_figure(kind, attribute, counts, least) for counts in (one, other)]
        if kind in ("distinct", "entropy"):
            criterion = Criterion("s", kind, min(figures))
        elif kind == "recursive":
            criterion = Criterion("s", kind, least, max(figures) * (1 + 1e-9))
        else:
            criterion = Criterion("s", kind, max(figures))
        criteria = Criteria(1, (criterion,), (attribute,))
        if not math.isinf(criterion.c):
            assert satisfied(criteria, one)
            assert satisfied(criteria, other)
            assert satisfied(criteria, together)


@given(data=st.data())
def test_closed_under_union_by_definition(data: st.DataObject) -> None:
    # The reference itself, on groups so small that both often satisfy the criterion.
    domain = data.draw(st.integers(1, 4))
    group = st.lists(st.integers(0, 5), min_size=domain, max_size=domain).filter(any)
    whole, one, other = data.draw(group), data.draw(group), data.draw(group)
    attribute = data.draw(sensitive_attributes("s", np.array(whole)))
    c = data.draw(st.sampled_from([0.5, 1.0, 1.1, 3.0]))
    together = [a + b for a, b in zip(one, other, strict=True)]
    place = data.draw(which_bound)
    for kind, bounds in BOUNDS.items():
        note(kind)
        criterion = Criterion("s", kind, bounds[place % len(bounds)], c)
        if all(satisfies_criterion(criterion, attribute, counts) for counts in (one, other)):
            assert satisfies_criterion(criterion, attribute, together)


def worst_figure(kind: str, attribute: SensitiveAttribute, counts: list[int], least: int) -> float:
    """Return what a criterion bounds, from the definitions."""
    size = sum(counts)
    p = [Fraction(count, size) for count in counts]
    q = [Fraction(count, int(attribute.counts.sum())) for count in attribute.counts.tolist()]
    descending = sorted((count for count in counts if count), reverse=True)
    match kind:
        case "distinct":
            return len(descending)
        case "entropy":
            return math.exp(-sum(n / size * math.log(n / size) for n in descending))
        case "recursive":
            tail = sum(descending[least - 1 :])
            return descending[0] / tail if tail else math.inf
        case "alpha":
            return float(max(p))
        case "equal distance":
            return float(equal_distance(p, q))
        case "ordered distance":
            return float(ordered_distance(p, q))
        case "hierarchical distance":
            return float(hierarchical_distance(p, q, attribute))
        case "maximum distance":
            return float(max(abs(a - b) for a, b in zip(p, q, strict=True)))
        case "beta":
            pairs = [(a, b) for a, b in zip(p, q, strict=True) if a]
            return max(float(a / b - 1) if b else math.inf for a, b in pairs)


# Against the measures of a release ----------------------------------------------------------------


def satisfied_by_the_measures(
    criterion: Criterion, attribute: SensitiveAttribute, counts: list[int]
) -> bool:
    """Return what the verification of a release says, which does not call the kernel."""
    found = np.flatnonzero(counts)
    table = ValueCounts(np.zeros(len(found), np.int64), found, np.array(counts)[found])
    values = SensitiveValues(
        attribute.name,
        attribute.values,
        attribute.shares,
        attribute.parents,
        attribute.heights,
        as_text=attribute.as_text,
        is_ordered=True,
    )
    _, holds = measure_classes(criterion, table, values, None)
    return bool(holds[0])


@given(data=st.data())
def test_the_verification_of_a_release_agrees(data: st.DataObject) -> None:
    domain = data.draw(st.integers(1, 12))
    count = st.one_of(st.just(0), st.integers(0, 3), st.integers(0, 40))
    group = st.lists(count, min_size=domain, max_size=domain).filter(any)
    whole, counts = data.draw(group), data.draw(group)
    attribute = data.draw(sensitive_attributes("s", np.array(whole)))
    c = data.draw(st.sampled_from([0.5, 1.0, 2.0, 3.5]))
    place = data.draw(which_bound)
    for kind, bounds in BOUNDS.items():
        criterion = Criterion("s", kind, bounds[place % len(bounds)], c)
        criteria = Criteria(1, (criterion,), (attribute,))
        agreed = satisfied_by_the_measures(criterion, attribute, counts)
        assert (kind, satisfied(criteria, counts)) == (kind, agreed)


def test_large_domains_agree() -> None:
    random = np.random.default_rng(6)
    domain = 5000
    whole = random.integers(0, 50, domain)
    leaves = np.arange(domain)
    parents = [*(domain + leaves // 100).tolist(), *[domain + 50] * 50, -1]
    heights = [0] * domain + [1] * 50 + [2]
    attribute = attribute_of("s", whole.tolist(), parents, heights)
    for size in (5, 300, 20_000):
        counts = np.bincount(random.integers(0, domain, size), minlength=domain)
        found = np.flatnonzero(counts)
        table = ValueCounts(np.zeros(len(found), np.int64), found, counts[found])
        shares = attribute.shares
        distances: dict[str, float] = {
            "equal distance": measures.equal_distance(table, shares)[0],
            "ordered distance": measures.ordered_distance(table, shares)[0],
            "maximum distance": measures.maximum_distance(table, shares)[0],
            "hierarchical distance": measures.hierarchical_distance(
                table, shares, attribute.parents, attribute.heights
            )[0],
        }
        for kind, distance in distances.items():
            for bound, holds in ((distance + 1e-9, True), (distance - 1e-9, False)):
                criteria = Criteria(1, (Criterion("s", kind, bound),), (attribute,))
                assert criteria.satisfied_by(size, [counts]) == holds


NONE = np.zeros(0, np.int64)

Pairs = list[tuple[int, int]]
"""A value, and a person who has it."""

groups = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=10, unique=True
)


def distinct(least: int, table: Pairs) -> Criteria:
    attribute = SensitiveAttribute("s", "s", pa.array(range(4)), np.ones(4, np.int64), NONE, NONE)
    units = Units(len({u for _, u in table}), len(table), len(table))
    return Criteria(1, (Criterion("s", "distinct", least),), (attribute,), units)


def holds(criteria: Criteria, table: Pairs, stop: int) -> tuple[bool, int]:
    """Return whether the first records are a group that satisfies, and the records that lack."""
    values, pairs = paired(np.array(table, np.int64))
    requirements = criteria.requirements_among(pairs)
    counts = np.zeros(len(requirements.shares), np.int64)
    order = np.arange(len(table))
    own = group_satisfies(requirements, values, order, 0, stop, counts, np.empty_like(counts))
    present = np.unique(values[:stop])
    room = np.concatenate([present, np.zeros(len(counts) - len(present), np.int64)])
    counts[present] = 1
    _, missing = judge(requirements, counts, room, len(present), stop)
    return bool(own), int(missing)


@given(pairs=groups, most=st.integers(1, 5))
@example(pairs=[(0, 0), (1, 0), (1, 1), (2, 1), (2, 0)], most=3)
def test_values_that_have_a_person_each(pairs: Pairs, most: int) -> None:
    ordered = np.array(sorted(pairs), np.int64)
    chosen = match_values(ordered[:, 0].copy(), ordered[:, 1].copy(), most)
    assert len(chosen) == min(most_values_with_people(pairs), most)
    own = ordered[chosen]
    assert len(set(own[:, 0].tolist())) == len(set(own[:, 1].tolist())) == len(chosen)


@given(pairs=groups, least=st.integers(1, 4), data=st.data())
def test_a_group_whichever_of_their_values_people_stand_for(
    pairs: Pairs, least: int, data: st.DataObject
) -> None:
    require_whichever(least, pairs, data.draw(st.integers(1, len(pairs))))


def test_as_many_values_and_people_as_asked_for_that_do_not_match() -> None:
    pairs = [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]
    assert not holds(distinct(3, pairs), pairs, len(pairs))[0]
    require_whichever(3, pairs, len(pairs))


def require_whichever(least: int, pairs: Pairs, stop: int) -> None:
    """Require of the first records that they are judged whatever values their people stand for."""
    own = pairs[:stop]
    criteria = distinct(least, pairs)
    found, missing = holds(criteria, pairs, stop)
    most = most_values_with_people(own)
    assert found == (most >= least)
    people = PeopleOfGroup(len({u for _, u in own}), [min(most, least)])
    assert found == (criteria.violated_by_people(people) is None)
    # What it takes to mend it is never told to be more than it is.
    if not found:
        assert missing >= 1
        for longer in range(stop + 1, min(stop + missing, len(pairs))):
            assert not holds(criteria, pairs, longer)[0]
