"""The mechanisms of a selection and its counts, beside audits and slow counts."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import one_by_day
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from anonspark.core.association import chi_square, gini_score
from anonspark.core.exact_noise import Below
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.values.batches import hash_rows
from anonspark.sharing.selection import mechanisms
from anonspark.sharing.selection.counting import Person, count_tables
from anonspark.sharing.selection.domains import Domain
from anonspark.sharing.selection.mechanisms import (
    choose,
    draw_cuts,
    loss_of_a_record,
    rank,
    scale_of,
    width_of,
    with_noise,
)


def seeded(seed: int) -> Below:
    return random.Random(seed).randrange  # noqa: S311 - a test that can be repeated


def lower_bound(k: int, looked_at: int, epsilon: str, seed: int, runs: int = 20_000) -> float:
    """Return what an audit proves of the loss of k noisy tables under replacement.

    The replaced record goes from the first to the last cell of all tables, which alone are drawn.
    The statistic is how many of the 2 k changed cells point to the other table; bounds of its law
    are those of Clopper and Pearson at 0.0005.
    """
    scale = scale_of(looked_at, loss_of_a_record(Fraction(epsilon), "replace"))
    below = seeded(seed)

    def pointing(table: list[int]) -> np.ndarray:
        found = np.zeros(runs, np.int64)
        for run in range(runs):
            for noisy in with_noise([np.array([table])] * k, scale, below):
                found[run] += int(noisy[0, 0] <= 0) + int(noisy[0, 1] >= 1)
        return found

    one, other = pointing([1, 0]), pointing([0, 1])
    best = 0.0
    for threshold in range(2 * k + 1):
        there, here = int((other >= threshold).sum()), int((one >= threshold).sum())
        low = stats.beta.ppf(0.0005, there, runs - there + 1)
        high = stats.beta.ppf(0.9995, here + 1, max(1, runs - here))
        if low > 0:
            best = max(best, math.log(low / high))
    return best


@pytest.mark.parametrize("of", one_by_day(("1", 0.56, 2.65), ("0.5", 0.20, 1.32)), ids=str)
def test_an_audit_of_noisy_tables(of: tuple[str, float, float]) -> None:
    epsilon, proven, by_the_selected = of
    # Scaled by all tables that are looked at: what is proven stays below epsilon.
    found = lower_bound(4, 4, epsilon, 5)
    assert found <= float(epsilon)
    assert found == pytest.approx(proven, abs=0.06)
    # Scaled by the one that is selected, as the paper has it: the audit finds it.
    found = lower_bound(4, 1, epsilon, 6)
    assert found > float(epsilon)
    assert found == pytest.approx(by_the_selected, abs=0.3)


def test_scales() -> None:
    # Of the paper: noise of 14 tables, and of 6, at 0.5.
    half = Fraction(1, 2)
    assert scale_of(14, loss_of_a_record(half, "replace")) == 56
    assert scale_of(6, loss_of_a_record(half, "replace")) == 24
    assert scale_of(14, loss_of_a_record(half, "add_remove")) == 28
    assert loss_of_a_record(half, "replace", 3) == Fraction(1, 12)
    assert [width_of(score, 6) for score in ("gini", "chi_square")] == [512, 512]
    assert width_of("information_gain", 6) == 1001
    with pytest.raises(ValueError, match="without a bound"):
        width_of("information_gain", None)


def test_every_cell_gets_noise_of_its_scale() -> None:
    below = seeded(7)
    scale = Fraction(5, 2)
    drawn = np.array(
        [with_noise([np.zeros((3, 2), np.int64)], scale, below)[0] for _ in range(4_000)]
    )
    p = math.exp(-1 / 2.5)
    mean = 2 * p / (1 - p * p)
    assert np.abs(drawn).mean(axis=0) == pytest.approx(mean, rel=0.08)
    assert np.abs(drawn.mean(axis=0)).max() < 0.25
    # Independent of one another.
    cells = drawn.reshape(len(drawn), -1)
    assert np.abs(np.corrcoef(cells.T) - np.eye(6)).max() < 0.07


def test_all_chance_comes_from_where_it_is_said_to() -> None:
    tables = [np.array([[3, 0], [0, 4], [0, 0]])] * 2
    drawn = [with_noise(tables, Fraction(9, 2), seeded(3)) for _ in range(2)]
    assert np.array_equal(drawn[0], drawn[1])
    chosen = [
        [tuple(choose(tables, 2, Fraction(1, 9), "gini", below)) for _ in range(20)]
        for below in (seeded(3), seeded(3))
    ]
    assert chosen[0] == chosen[1]
    assert len(set(chosen[0])) == 2


def law_of_choices(scores: list[int], rate: float, chosen: int) -> dict[tuple[int, ...], float]:
    """Return the law of permute-and-flip, again and again, by enumeration."""
    found = {(): 1.0}
    for _ in range(chosen):
        longer: dict[tuple[int, ...], float] = {}
        for before, share in found.items():
            left = [one for one in range(len(scores)) if one not in before]
            best = max(scores[one] for one in left)
            orders = list(permutations(left))
            for order in orders:
                rest = share / len(orders)
                for place in order:
                    accepted = math.exp(-(best - scores[place]) * rate)
                    key = (*before, place)
                    longer[key] = longer.get(key, 0.0) + rest * accepted
                    rest *= 1 - accepted
        found = longer
    return found


@pytest.mark.parametrize("chosen", [1, 2])
def test_choices_have_their_law(chosen: int) -> None:
    tables = [np.array([[6, 0], [0, 5]]), np.array([[5, 1], [2, 3]]), np.array([[6, 5], [0, 0]])]
    epsilon, draws, below = Fraction(3, 2), 20_000, seeded(chosen)
    scores = [gini_score(one) for one in tables]
    law = law_of_choices(scores, float(epsilon) / chosen / 512, chosen)
    found = Counter(tuple(choose(tables, chosen, epsilon, "gini", below)) for _ in range(draws))
    for one, share in law.items():
        error = 4 * math.sqrt(share * (1 - share) / draws)
        assert abs(found[one] / draws - share) <= error


def test_ranks_are_those_of_cleaned_tables() -> None:
    flat, sharp = np.array([[50, 50], [50, 50]]), np.array([[90, 10], [10, 90]])
    ranked = rank([flat, sharp, flat], Fraction(1), "chi_square")
    assert [one.index for one in ranked] == [1, 0, 2]
    assert [one.score for one in ranked] == [128.0, 0.0, 0.0]
    # Nothing is left of a table below its noise.
    (empty,) = rank([np.array([[-3, -2], [-1, -9]])], Fraction(5), "information_gain")
    assert empty.score == 0


def test_chi_square_of_very_many_records() -> None:
    few = np.array([[30, 10], [12, 28], [5, 15]], np.int64)
    assert chi_square(few * 2**31) == pytest.approx(chi_square(few) * 2**31)


Law = dict[tuple[int, ...], float]


def law_of_cuts(counts: list[int], quantiles: int, epsilon: Fraction) -> Law:
    """Return the law of `draw_cuts` by its own scores and rates, for every outcome of each draw."""
    law: Law = {}
    outcomes: list[tuple[int, ...]] = [()]
    while outcomes:
        planned = outcomes.pop()
        drawn: list[int] = []
        shares: list[float] = []

        def draw(scores: Sequence[int], a: int, b: int, _: Below) -> int:
            of_choice = law_of_choices(list(scores), a / b, 1)
            if len(drawn) >= len(planned):  # noqa: B023 - called before the next turn
                others = range(1, len(scores))
                outcomes.extend((*drawn, other) for other in others)  # noqa: B023
            choice = planned[len(drawn)] if len(drawn) < len(planned) else 0  # noqa: B023
            # What follows the plan is the first outcome of each later draw.
            drawn.append(choice)  # noqa: B023
            shares.append(of_choice[choice,])  # noqa: B023
            return choice

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mechanisms, "permute_and_flip", draw)
            cuts = tuple(draw_cuts(np.array(counts), quantiles, epsilon, seeded(1)))
        law[cuts] = law.get(cuts, 0.0) + math.prod(shares)
    return law


def reference_law(values: list[int], first: int, last: int, bins: int, rate: float) -> Law:
    """Return the law of cuts of sorted values, by the formulas of docs/algorithms.md."""
    if bins == 1 or first == last:
        return {(): 1.0}
    left, right = bins // 2, math.ceil(bins / 2)
    cuts = range(first + 1, last + 1)
    scores = [-abs(sum(right if value < cut else -left for value in values)) for cut in cuts]
    law: Law = {}
    choices = law_of_choices(scores, rate / max(left, right), 1)
    for cut, share in zip(cuts, (choices[index,] for index in range(len(cuts))), strict=True):
        below, above = ([v for v in values if (v < cut) == side] for side in (True, False))
        for lower, of_lower in reference_law(below, first, cut - 1, left, rate).items():
            for upper, of_upper in reference_law(above, cut, last, right, rate).items():
                cuts_drawn = (*lower, cut, *upper)
                law[cuts_drawn] = law.get(cuts_drawn, 0.0) + share * of_lower * of_upper
    return law


@pytest.mark.parametrize(("quantiles", "proven"), [(2, 0.99), (3, 0.79), (4, 0.93), (5, 0.57)])
def test_cuts_have_their_law_and_no_record_loses_more(quantiles: int, proven: float) -> None:
    rows, epsilon = 4, Fraction(3, 2)
    levels = math.ceil(math.log2(quantiles))
    laws: dict[tuple[int, ...], Law] = {}
    largest = 0.0
    for records in range(5):
        for values in combinations_with_replacement(range(rows), records):
            counts = np.bincount(values, minlength=rows) if values else np.zeros(rows, int)
            law = laws[values] = law_of_cuts(counts.tolist(), quantiles, epsilon)
            rate = float(epsilon) / levels / 2
            assert law == pytest.approx(reference_law([*values], 0, rows - 1, quantiles, rate))
            for index in range(records):
                fewer = laws[(*values[:index], *values[index + 1 :])]
                ratios = [abs(math.log(law[cuts] / fewer[cuts])) for cuts in law]
                largest = max(largest, *ratios)
    assert proven * epsilon <= largest <= epsilon + 1e-9


@given(st.lists(st.integers(0, 9), min_size=2, max_size=12), st.integers(2, 14), st.integers())
def test_cuts_ascend_within_the_grid(counts: list[int], quantiles: int, seed: int) -> None:
    cuts = draw_cuts(np.array(counts), quantiles, Fraction(1, 2), seeded(seed))
    assert 1 <= len(cuts) < quantiles
    assert all(low < high for low, high in pairwise([0, *cuts, len(counts)]))
    table = np.array([*([count, 1] for count in counts), [5, 6], [7, 8]])
    grid = Domain.of_edges("age", [10.0 * row for row in range(1, len(counts))])
    domain, joined = grid.merged(cuts, table)
    assert domain.edges == tuple(10.0 * cut for cut in cuts)
    slow = np.zeros((domain.rows, 2), int)
    for row, records in enumerate(table[:-2]):
        slow[sum(cut <= row for cut in cuts)] += records
    assert joined.tolist() == [*slow[:-2].tolist(), [5, 6], [7, 8]]


@pytest.mark.parametrize("quantiles", [2, 3, 5, 8])
def test_with_much_loss_cuts_are_the_quantiles(quantiles: int) -> None:
    # 40 records each, all of them in rows of their own.
    counts = np.ones(40 * quantiles, int)
    cuts = draw_cuts(counts, quantiles, Fraction(10**6), seeded(1))
    assert cuts == [40 * index for index in range(1, quantiles)]


MARKERS = ["?", "n/a"]
TYPES: dict[str, pa.DataType] = {
    "job": pa.string(),
    "age": pa.float64(),
    "visits": pa.int32(),
    "written": pa.string(),
    "vaccinated": pa.bool_(),
    "day": pa.date32(),
    "price": pa.decimal128(6, 2),
    "ill": pa.string(),
    "person": pa.string(),
}
EDGES = [18.0, 40.5, 65.0]
DOMAINS = [
    Domain.of_values("job", ["a", "b", "c c"]),
    Domain.of_edges("age", EDGES),
    Domain.of_values("visits", ["0", "1", "2"]),
    Domain.of_edges("written", EDGES),
    Domain.of_values("vaccinated", ["false", "true"]),
    Domain.of_values("day", ["2024-02-29", "1999-12-31"]),
    Domain.of_values("price", ["1.50", "-2.00"]),
    Domain.of_groups("job", {"a": "first", "b": "first", "c c": "last"}),
]
TARGET = Domain.of_values("ill", ["no", "yes"])
texts = st.sampled_from(["a", " b ", "c c", "d", "", "  ", "?", " n/a", "A", None])
numbers = st.sampled_from([17.9, 18.0, 40.5, 64.99, 65.0, math.nan, math.inf, -math.inf, None])
written = st.sampled_from([" 18 ", "64.99", "1e9", "NaN", "old", "", None, "-1e9", "?"])
records = st.fixed_dictionaries(
    {
        "job": texts,
        "age": numbers,
        "visits": st.sampled_from([0, 1, 2, 7, -1, None]),
        "written": written,
        "vaccinated": st.sampled_from([True, False, None]),
        "day": st.sampled_from([date(2024, 2, 29), date(1999, 12, 31), date(2000, 1, 1), None]),
        "price": st.sampled_from([Decimal("1.50"), Decimal("-2.00"), Decimal("1.51"), None]),
        "ill": st.sampled_from(["no", "yes", " yes", "perhaps", "", "?", None]),
        "person": st.sampled_from(["p", "q", " q ", "r", "", "?", None]),
    }
)
tables = st.lists(records, max_size=16)


def row_of(domain: Domain, value: Any) -> int:
    """Return the row of one value, by the words of the specification."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return domain.missing
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text.strip() in ("", *MARKERS):
        return domain.missing
    if not domain.edges:
        return dict(domain.values).get(text.strip(), domain.other)
    try:
        number = float(text)
    except ValueError:
        return domain.other
    if math.isnan(number):
        return domain.missing
    return sum(number >= edge for edge in domain.edges)


def slow(rows: list[dict[str, Any]], *, drop: bool) -> list[Counter[tuple[int, int]]]:
    found: list[Counter[tuple[int, int]]] = [Counter() for _ in DOMAINS]
    for row in rows:
        own = row_of(TARGET, row["ill"])
        places = [row_of(one, row[one.name]) for one in DOMAINS]
        if own >= 2 or (
            drop and any(p == one.missing for p, one in zip(places, DOMAINS, strict=True))
        ):
            continue
        for counts, place in zip(found, places, strict=True):
            counts[place, own] += 1
    return found


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array([r[name] for r in rows], TYPES[name]) for name in TYPES})


def counted(rows: list[dict[str, Any]], *, drop: bool, person: Person | None = None) -> list[Any]:
    table = LocalEngine().wrap(table_of(rows))
    return count_tables(table, DOMAINS, TARGET, MARKERS, drop_missing=drop, person=person)


def as_counters(counts: list[Any]) -> list[Counter[tuple[int, int]]]:
    return [
        Counter({(int(r), int(t)): int(own[r, t]) for r, t in zip(*own.nonzero(), strict=True)})
        for own in counts
    ]


@given(tables, st.booleans())
def test_counts_are_those_of_a_slow_count(rows: list[dict[str, Any]], drop: bool) -> None:
    assert as_counters(counted(rows, drop=drop)) == slow(rows, drop=drop)


def kept_records(rows: list[dict[str, Any]], most: int, *, drop: bool) -> list[dict[str, Any]]:
    """Return the records of persons with the smallest keys, of those that count at all."""
    names = list(dict.fromkeys([*(one.name for one in DOMAINS), TARGET.name, "person"]))
    (batch,) = table_of(rows).select(names).to_batches() or [None]
    keys = [] if batch is None else hash_rows(batch, names, 7).tolist()
    of_person: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, row in enumerate(rows):
        person = (row["person"] or "").strip()
        if person not in ("", *MARKERS) and any(slow([row], drop=drop)):
            of_person[person].append((keys[place], place))
    return [rows[place] for own in of_person.values() for _, place in sorted(own)[:most]]


@given(tables, st.booleans(), st.integers(1, 3))
def test_of_a_person_so_many_records_count(
    rows: list[dict[str, Any]], drop: bool, most: int
) -> None:
    found = counted(rows, drop=drop, person=Person("person", most, 7))
    assert as_counters(found) == slow(kept_records(rows, most, drop=drop), drop=drop)


@given(tables, st.lists(records, min_size=1, max_size=8), st.integers(1, 3))
def test_all_records_of_a_person_change_a_table_by_so_many_at_most(
    rows: list[dict[str, Any]], own: list[dict[str, Any]], most: int
) -> None:
    before = [row for row in rows if (row["person"] or "").strip() != "p"]
    after = before + [row | {"person": "p"} for row in own]
    person = Person("person", most, 7)
    for old, new in zip(
        counted(before, drop=False, person=person),
        counted(after, drop=False, person=person),
        strict=True,
    ):
        assert np.abs(new - old).sum() <= most
        assert (new >= old).all()


def test_many_records_of_few_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonspark.sharing.selection.counting._WAITING", 50)
    draw = np.random.default_rng(5)
    n = 2_000
    table = pa.table(
        {
            "person": draw.integers(0, 40, n),
            "job": draw.choice(["a", "b", "x"], n),
            "ill": draw.choice(["no", "yes"], n),
        }
    )
    expected = None
    for part in (table, table.take(pa.array(draw.permutation(n)))):
        batched = pa.concat_tables([part.slice(start, 100) for start in range(0, n, 100)])
        (found,) = count_tables(
            LocalEngine().wrap(batched),
            [Domain.of_values("job", ["a", "b"])],
            TARGET,
            MARKERS,
            drop_missing=False,
            person=Person("person", 3, 1),
        )
        assert found.sum() == 40 * 3
        assert expected is None or (found == expected).all()
        expected = found


def test_numbers_are_declared_as_they_are_written() -> None:
    domain = Domain.of_values("x", ["1", "2.0", "2.5"])
    assert domain.rows_of(pa.array([1.0, 2.0, 2.5, 3.0]), []).tolist() == [0, 1, 2, 3]
    assert domain.rows_of(pa.array([1, 2, None]), []).tolist() == [0, 3, 4]


@given(st.permutations(range(5)), st.permutations(range(2)))
def test_scores_depend_on_counts_only(rows: list[int], classes: list[int]) -> None:
    from anonspark.core.association import gini_score, information_score

    counts = np.array([[3, 9], [0, 0], [7, 1], [1, 0], [20, 4]])
    other = counts[rows][:, classes]
    assert gini_score(other) == gini_score(counts)
    assert information_score(other) == information_score(counts)


def test_bytes_that_are_no_texts_are_values_like_others() -> None:
    content, ends = b"\xff7aa", np.array([0, 2, 3, 4], np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(content)]
    column = pa.Array.from_buffers(pa.string(), 3, buffers)
    for domain in (Domain.of_edges("job", EDGES), Domain.of_values("job", ["b"])):
        assert domain.rows_of(column, MARKERS).tolist() == [domain.other] * 3
