"""Measures of classes and risks of re-identification against definitions and printed cases."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from helpers import local_table
from hypothesis import given
from hypothesis import strategies as st

from anonspark.config.gates import RiskOptions
from anonspark.core.criterion import Criterion
from anonspark.pipeline.figures import decide_gain
from anonspark.release.risk import (
    attack_with_weights,
    attacks,
    attacks_with_population,
    individual_risk,
    risk_row,
)
from anonspark.verification.proof.classes import count_published_classes
from anonspark.verification.proof.measures import (
    ValueCounts,
    distinct_values,
    entropy,
    equal_distance,
    hierarchical_distance,
    largest_share,
    maximum_distance,
    ordered_distance,
    recursive_c,
    relative_gain,
)

# Of a class, records of each value of the domain.
Histograms = list[list[int]]


def value_counts(histograms: Histograms) -> ValueCounts:
    """Return the table of some classes."""
    matrix = np.array(histograms, np.int64)
    classes, values = np.nonzero(matrix)
    return ValueCounts(classes, values, matrix[classes, values])


def shares(histogram: list[int]) -> list[float]:
    return [count / sum(histogram) for count in histogram]


@st.composite
def classes(draw: st.DrawFn) -> Histograms:
    """Draw classes over one domain, many of their counts 0, none of them empty."""
    domain = draw(st.integers(1, 12))
    count = st.one_of(st.just(0), st.integers(0, 3), st.integers(0, 10_000))
    histogram = st.lists(count, min_size=domain, max_size=domain).filter(any)
    return draw(st.lists(histogram, min_size=1, max_size=6))


@st.composite
def references(draw: st.DrawFn, domain: int) -> list[float]:
    """Draw a distribution, some of its shares 0."""
    weight = st.one_of(st.just(0), st.integers(0, 1000))
    weights = draw(st.lists(weight, min_size=domain, max_size=domain).filter(any))
    return shares(weights)


@st.composite
def trees(draw: st.DrawFn, leaves: int) -> tuple[list[int], list[int]]:
    """Draw parents and heights: subtrees are joined at random until one is left."""
    parents, heights = [-1] * leaves, [0] * leaves
    open_nodes = list(range(leaves))
    while len(open_nodes) > 1 or (draw(st.booleans()) and len(parents) < 30):
        width = draw(st.integers(1, len(open_nodes)))
        chosen = draw(st.permutations(open_nodes))[:width]
        node = len(parents)
        parents.append(-1)
        heights.append(max(heights[child] for child in chosen) + draw(st.integers(1, 2)))
        for child in chosen:
            parents[child] = node
            open_nodes.remove(child)
        open_nodes.append(node)
        if width == 1 and len(parents) > 40:
            break
    if len(open_nodes) > 1:
        node = len(parents)
        for child in open_nodes:
            parents[child] = node
        parents.append(-1)
        heights.append(max(heights) + 1)
    return parents, heights


def slow_hierarchical(
    p: list[float], q: list[float], parents: list[int], heights: list[int]
) -> float:
    """Return the distance by its definition (Li et al. 2007)."""
    children = {
        node: [child for child, parent in enumerate(parents) if parent == node]
        for node in range(len(parents))
    }

    def extra(node: int) -> float:
        if node < len(p):
            return p[node] - q[node]
        return sum(extra(child) for child in children[node])

    total = 0.0
    for node in range(len(p), len(parents)):
        extras = [extra(child) for child in children[node]]
        positive = sum(value for value in extras if value > 0)
        negative = -sum(value for value in extras if value < 0)
        total += heights[node] / heights[-1] * min(positive, negative)
    return total


@given(classes())
def test_counts_entropy_and_shares_follow_their_definitions(histograms: Histograms) -> None:
    table = value_counts(histograms)
    for number, histogram in enumerate(histograms):
        p = [share for share in shares(histogram) if share]
        assert distinct_values(table)[number] == len(p)
        expected = -sum(share * math.log(share) for share in p)
        assert entropy(table)[number] == pytest.approx(expected, abs=1e-12)
        assert largest_share(table)[number] == max(p)
        assert table.sizes[number] == sum(histogram)


@given(classes(), st.integers(1, 5))
def test_recursive_c_follows_its_definition(histograms: Histograms, least: int) -> None:
    table = value_counts(histograms)
    found = recursive_c(table, least)
    assert found.dtype == np.float64
    for number, histogram in enumerate(histograms):
        counts = sorted(filter(None, histogram), reverse=True)
        tail = sum(counts[least - 1 :])
        assert found[number] == (counts[0] / tail if tail else math.inf)


@given(st.data(), classes())
def test_gains_follow_their_definition(data: st.DataObject, histograms: Histograms) -> None:
    q = data.draw(references(len(histograms[0])))
    unknown = data.draw(st.sampled_from([0.0, 0.01, 0.5, 1.0]))
    found = relative_gain(value_counts(histograms), np.array(q), unknown)
    largest = [share * (1 - unknown) + unknown for share in q]
    for number, histogram in enumerate(histograms):
        pairs = [(a, b) for a, b in zip(shares(histogram), largest, strict=True) if a]
        expected = max((a - b) / b if b else math.inf for a, b in pairs)
        assert found[number] == pytest.approx(max(expected, 0.0), rel=1e-9, abs=1e-12)


def test_a_printed_gain() -> None:
    # Cao and Karras 2012: of values with shares 0.4 and 0.01, one that gains 0.1 in a class gains
    # a quarter of what it had, or ten times as much.
    gained = relative_gain(value_counts([[50, 1, 49], [40, 11, 49]]), np.array([0.4, 0.01, 0.59]))
    np.testing.assert_allclose(gained, [0.25, 10.0])


@given(st.data(), classes())
def test_distances_follow_their_definitions(data: st.DataObject, histograms: Histograms) -> None:
    domain = len(histograms[0])
    q = data.draw(references(domain))
    parents, heights = data.draw(trees(domain))
    table, reference = value_counts(histograms), np.array(q)
    equal = equal_distance(table, reference)
    ordered = ordered_distance(table, reference)
    maximum = maximum_distance(table, reference)
    hierarchical = hierarchical_distance(
        table, reference, np.array(parents, np.int64), np.array(heights, np.int64)
    )
    for number, histogram in enumerate(histograms):
        p = shares(histogram)
        differences = [a - b for a, b in zip(p, q, strict=True)]
        assert equal[number] == pytest.approx(sum(map(abs, differences)) / 2, abs=1e-12)
        expected = sum(abs(sum(differences[: i + 1])) for i in range(domain))
        assert ordered[number] == pytest.approx(expected / max(domain - 1, 1), abs=1e-12)
        assert maximum[number] == pytest.approx(max(map(abs, differences)), abs=1e-12)
        if heights[-1]:
            expected = slow_hierarchical(p, q, parents, heights)
            assert hierarchical[number] == pytest.approx(expected, abs=1e-12)
        else:
            assert hierarchical[number] == 0


@given(classes())
def test_a_class_like_the_whole_table_has_no_distance(histograms: Histograms) -> None:
    counts = np.sum(histograms, axis=0)
    table, reference = value_counts([counts.tolist()]), counts / counts.sum()
    assert equal_distance(table, reference)[0] == pytest.approx(0, abs=1e-12)
    assert ordered_distance(table, reference)[0] == pytest.approx(0, abs=1e-12)
    assert maximum_distance(table, reference)[0] == pytest.approx(0, abs=1e-12)


def test_a_difference_of_shares_is_no_closeness() -> None:
    asked = Criterion("s", "maximum distance", 0.2)
    assert asked.describe() == "shares within 0.2 of the whole table's"
    assert "closeness" not in " ".join((asked.type.measured, asked.type.title, asked.type.short))


def test_printed_distances_of_salaries() -> None:
    # Li, Li and Venkatasubramanian 2007: of nine salaries, 3k to 11k, the classes {3k, 4k, 5k} and
    # {6k, 8k, 11k} have 0.375 and 0.167.
    table = value_counts([[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1, 0, 0, 1]])
    distances = ordered_distance(table, np.full(9, 1 / 9))
    np.testing.assert_allclose(distances, [0.375, 1 / 6])


def test_a_two_level_hierarchy_is_the_equal_distance() -> None:
    table = value_counts([[3, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 7]])
    reference = np.array([0.1, 0.2, 0.3, 0.4])
    parents, heights = np.array([4, 4, 4, 4, -1]), np.array([0, 0, 0, 0, 1])
    np.testing.assert_allclose(
        hierarchical_distance(table, reference, parents, heights), equal_distance(table, reference)
    )


@pytest.mark.parametrize("values", range(1, 40))
def test_entropy_of_equal_counts_is_exact(values: int) -> None:
    for count in (1, 3, 7):
        assert entropy(value_counts([[count] * values]))[0] == np.log(values)


def test_large_domain_of_few_values_stays_small() -> None:
    # Classes times domain would be 4 * 10^10 figures.
    count, domain = 200_000, 200_000
    generator = np.random.default_rng(1)
    low = generator.integers(0, domain // 2, count)
    high = generator.integers(domain // 2, domain, count)
    table = ValueCounts(
        np.repeat(np.arange(count), 2),
        np.stack([low, high], axis=1).ravel(),
        np.ones(2 * count, np.int64),
    )
    reference = np.full(domain, 1 / domain)
    parents = np.concatenate([domain + np.arange(domain) // 1000, np.full(200, domain + 200), [-1]])
    heights = np.concatenate([np.zeros(domain), np.ones(200), [2]])
    for number in (0, count - 1):
        p = np.zeros(domain)
        p[[low[number], high[number]]] = 0.5
        expected = np.abs(np.cumsum(p - reference)).sum() / (domain - 1)
        found = ordered_distance(table, reference)[number]
        assert found == pytest.approx(expected, abs=1e-10)
    found = hierarchical_distance(table, reference, parents, heights)
    # All but one of 1000 leaves of two groups, half a step; two of 200 groups, a whole one.
    group = 0.5 - 1000 / domain
    leaf = 1000 / domain - 1 / domain
    np.testing.assert_allclose(found, 0.5 * 2 * leaf + 2 * group, atol=1e-10)


def test_no_class_has_no_figure() -> None:
    none = np.zeros(0, np.int64)
    table = ValueCounts(none, none, none)
    reference = np.array([0.5, 0.5])
    for figures in (
        distinct_values(table),
        entropy(table),
        recursive_c(table, 2),
        largest_share(table),
        equal_distance(table, reference),
        ordered_distance(table, reference),
        hierarchical_distance(table, reference, np.array([2, 2, -1]), np.array([0, 0, 1])),
    ):
        assert figures.shape == (0,)


@cases(__file__, "numbers", "values", "counts")
def test_malformed_tables_are_refused(
    numbers: list[int], values: list[int], counts: list[int]
) -> None:
    with pytest.raises(ValueError, match=r"class|value|differ"):
        ValueCounts(*(np.array(column, np.int64) for column in (numbers, values, counts)))


@pytest.mark.parametrize(
    "parents", [[2, 2, 2], [-1, 2, -1], [2, 1, -1], [3, 2, -1, -1], [1, -1], [3, 3, 2, -1]]
)
def test_malformed_trees_are_refused(parents: list[int]) -> None:
    table = value_counts([[1, 1]])
    heights = np.ones(len(parents), np.int64)
    with pytest.raises(ValueError, match="not a tree"):
        hierarchical_distance(table, np.array([0.5, 0.5]), np.array(parents), heights)


VALUES = {
    "text": st.sampled_from(["flu", "tumour", None]),
    "number": st.sampled_from([0.0, -0.0, 1.5, None]),
}
RECORDS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 1), *VALUES.values()), max_size=40
)


@given(records=RECORDS, tasks=st.integers(1, 4))
def test_records_of_classes_with_one_value(
    records: list[tuple[str, int, str | None, float | None]], tasks: int
) -> None:
    schema = pa.schema(
        [("age", pa.string()), ("zip", pa.int64()), ("text", pa.string()), ("number", pa.float64())]
    )
    rows = [dict(zip(schema.names, record, strict=True)) for record in records]
    table = local_table(pa.Table.from_pylist(rows, schema), tasks=tasks)

    counted = count_published_classes(table, ["age", "zip"], list(VALUES), counted=list(VALUES))
    found = counted.homogeneous

    sizes = Counter((age, code) for age, code, *_ in records)
    for place, name in enumerate(VALUES, start=2):
        values: dict[tuple[str, int], set[object]] = {}
        for record in records:
            values.setdefault(record[:2], set()).add(record[place])
        assert found[name] == sum(sizes[one] for one, own in values.items() if len(own) == 1)
        column = [record[place] for record in records]
        assert counted.values[name] == Counter(Counter(column).values())
        assert counted.missing[name] == column.count(None)
    assert counted.sizes == Counter(sizes.values())
    assert counted.fingerprint == count_published_classes(table, ["age", "zip"]).fingerprint


CLASSES = st.lists(
    st.integers(1, 9).flatmap(lambda f: st.tuples(st.just(f), st.integers(f, 20))),
    min_size=1,
    max_size=20,
)


@given(classes=CLASSES, threshold=st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_with_a_population(classes: list[tuple[int, int]], threshold: float) -> None:
    released, population = zip(*classes, strict=True)
    found = attacks_with_population(
        np.array(released, np.int64), np.array(population, np.int64), threshold
    )
    n = sum(released)
    # Record by record.
    prosecutor = [1 / f for f, _ in classes for _ in range(f)]
    journalist = [1 / among for f, among in classes for _ in range(f)]
    for attack, risks in zip(found, (prosecutor, journalist), strict=False):
        assert attack.highest == max(risks)
        assert attack.lowest == min(risks)
        assert attack.at_risk == pytest.approx(sum(risk > threshold for risk in risks) / n)
        assert attack.at_highest == pytest.approx(risks.count(max(risks)) / n)
        assert attack.at_lowest == pytest.approx(risks.count(min(risks)) / n)
    assert found[0].average == pytest.approx(len(classes) / n)
    marketer = sum(f / among for f, among in classes) / n
    assert found[1].average == pytest.approx(max(len(classes) / sum(population), marketer))
    assert found[2].average == pytest.approx(marketer)
    alone = [(f, among) for f, among in classes if f == 1]
    assert found[0].unique == pytest.approx(len(alone) / n)
    both = sum(among == 1 for _, among in alone)
    assert found[1].unique == pytest.approx(both / len(alone) if alone else 0.0)
    assert [attack.attacker for attack in found] == ["prosecutor", "journalist", "marketer"]


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_without_a_population_everybody_is_in_the_release(sizes: list[int]) -> None:
    own = np.array(sizes, np.int64)
    with_population = attacks_with_population(own, own, 0.3)
    for one, other in zip(attacks(Counter(sizes), 0.3), with_population, strict=True):
        assert vars(one) == pytest.approx(vars(other))


def test_rules_compare_with_what_is_acceptable() -> None:
    (prosecutor, _, marketer) = attacks({4: 1, 16: 1}, 0.2)
    row = risk_row(prosecutor, RiskOptions(threshold=0.2, at_risk=0.1, average=0.1, unique=0.0))
    assert row["high_highest"] is True
    assert row["high_at_risk"] is True
    assert row["high_average"] is False
    assert row["high_unique"] is False
    assert row["at_risk"] == 0.2
    assert risk_row(marketer, RiskOptions())["high_highest"] is None
    assert risk_row(marketer, RiskOptions(average=0.05))["high_average"] is True
    lenient = RiskOptions(threshold=0.25, at_risk=0.0, average=0.1)
    (prosecutor, *_) = attacks({4: 1, 16: 1}, lenient.threshold)
    assert risk_row(prosecutor, lenient)["high_highest"] is False
    assert risk_row(prosecutor, lenient)["high_at_risk"] is False


@cases(__file__, "after", "utility", "risk")
def test_rho_gain_succeeds_where_both_rules_hold(
    after: tuple[int, int, int], utility: int, risk: int
) -> None:
    rules = decide_gain((1817, 7549, 5), after)
    assert tuple(rules.values()) == (utility, risk, utility * risk)


@cases(__file__, "records")
def test_individual_risk_is_that_of_sdcmicro(records: list[list[float]]) -> None:
    """The figures are those that sdcMicro and its guide publish: f, F and risk of each record."""
    sizes, population, printed = zip(*records, strict=True)
    found = individual_risk(np.array(sizes, np.int64), np.array(population, np.float64))
    assert found == pytest.approx(printed, rel=5e-7)


def mean_inverse(size: int, population: float) -> float:
    """Add up 1 / F by its negative binomial distribution, given f records of a sample."""
    share = size / population
    probability, total, rest, people = share**size, 0.0, 1.0, size
    while rest > 1e-13:
        total += probability / people
        rest -= probability
        probability *= (1 - share) * people / (people - size + 1)
        people += 1
    return total


@given(size=st.integers(1, 12), times=st.floats(1.01, 60.0))
def test_individual_risk_is_the_mean_of_the_inverse_of_the_population(
    size: int, times: float
) -> None:
    (found,) = individual_risk(np.array([size]), np.array([size * times]))
    expected = mean_inverse(size, size * times)
    if size <= 2:
        assert found == pytest.approx(expected, rel=1e-9)
    else:
        # The approximation overstates the risk a little.
        assert expected <= found * (1 + 1e-9)
        assert found < expected * (1.04 if size == 3 else 1.02)


@given(size=st.integers(1, 9), times=st.sampled_from([1e-9, 0.5, 1.0, 1.0 + 1e-12, 1.0 + 1e-5]))
def test_a_population_is_at_least_its_sample(size: int, times: float) -> None:
    (found,) = individual_risk(np.array([size]), np.array([size * times]))
    assert found == pytest.approx(1 / size, rel=1e-5)
    assert found <= 1 / size


@given(
    classes=st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from([1.0, 1.5, 7.25, 300.0])), min_size=1
    )
)
def test_the_outsider_record_by_record(classes: list[tuple[int, float]]) -> None:
    sizes = np.array([size for size, _ in classes], np.int64)
    population = np.array([size * times for size, times in classes])
    found = attack_with_weights(sizes, population, 0.2)
    risk = [float(one) for one in np.repeat(individual_risk(sizes, population), sizes)]
    assert found.attacker == "outsider"
    assert found.expected == pytest.approx(sum(risk))
    assert found.average == pytest.approx(sum(risk) / len(risk))
    assert (found.highest, found.lowest) == pytest.approx((max(risk), min(risk)))
    assert found.at_risk == pytest.approx(sum(one > 0.2 for one in risk) / len(risk), abs=1e-9)
    alone = [1 / times for size, times in classes if size == 1]
    assert found.unique == pytest.approx(sum(alone) / max(len(alone), 1))
