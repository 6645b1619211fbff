"""Truthfulness and the linkage attack: planted faults, brute force, and sound releases."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from commands import Cli
from helpers import attribute, configuration_file, divided_classes, local_table, write_table
from references import slow_matching

from anonspark.errors import ConfigurationError, DataError
from anonspark.labels.region_matching import LabelledTable
from anonspark.labels.regions import PublishedAttribute
from anonspark.verification.attacks import linkage as linkages
from anonspark.verification.attacks import truthfulness
from anonspark.verification.attacks.linkage import Linkage
from anonspark.verification.attacks.truthfulness import Truthfulness

pytestmark = pytest.mark.usefixtures("without_spark")

Row = dict[str, Any]


def measured(
    measure: Callable[..., Any],
    release: pa.Table,
    attributes: Sequence[PublishedAttribute],
    table: pa.Table,
    *more: Any,
    **options: Any,
) -> Any:
    """Measure in several tasks, with all classes in each and with classes shared out."""
    release, table = local_table(release, 3), local_table(table, 2)
    figures = measure(LabelledTable(release, attributes), table, *more, **options)
    with divided_classes():
        divided = measure(LabelledTable(release, attributes), table, *more, **options)
    assert divided == figures
    return figures


measure_truthfulness = partial(measured, truthfulness.measure_truthfulness)
measure_linkage = partial(measured, linkages.measure_linkage)


PEOPLE_ATTRIBUTES = [attribute("age", "integer"), attribute("sex", "category")]
SICKNESSES = ("flu", "flu", "gout", None)


def people() -> tuple[list[Row], list[Row]]:
    """Return the originals and a 4-anonymous release of them, in the same order."""
    originals, release = [], []
    for age, sex in ((20, "f"), (40, "m"), (60, "f")):
        for number, sickness in enumerate(SICKNESSES):
            originals.append({"age": age + number, "sex": sex, "sickness": sickness})
            release.append({"age": f"[{age}-{age + 3}]", "sex": sex, "sickness": sickness})
    return originals, release


SOUND = Truthfulness(12, 12, 0, 0, 0, 0, 0, 12, 0, 0, 0)


def judge_people(originals: list[Row], release: list[Row]) -> Truthfulness:
    found = measure_truthfulness(
        pa.Table.from_pylist(release),
        PEOPLE_ATTRIBUTES,
        pa.Table.from_pylist(originals),
        ["sickness"],
    )
    assert found.holds == (not found.describe())
    assert found.unpaired_originals == found.unmatched
    assert found.unpaired_published == found.unmatched_published
    assert all("the original is the table" in one for one in found.describe())
    return found


def link_people(originals: list[Row], release: list[Row]) -> Linkage:
    tables = pa.Table.from_pylist(release), pa.Table.from_pylist(originals)
    return measure_linkage(tables[0], PEOPLE_ATTRIBUTES, tables[1], k=4)


def test_a_sound_release() -> None:
    originals, release = people()
    # Its order is of no account.
    assert judge_people(originals, release[::-1]) == SOUND
    assert SOUND.holds
    linkage = link_people(originals, release)
    assert linkage == Linkage(12, 12, 0, 4, 0, 0)
    assert linkage.holds
    assert linkage.unmatched == 0


def test_a_box_that_does_not_contain_its_record() -> None:
    originals, release = people()
    for row in release[:4]:
        row["age"] = "[20-22]"
    # The one of 23 is the only one without a sickness in the box.
    assert judge_people(originals, release) == replace(
        SOUND,
        without_counterpart=1,
        without_original=1,
        matched=11,
        unmatched=1,
        unmatched_published=1,
    )
    linkage = link_people(originals, release)
    assert linkage.unmatched == 1


def test_a_missing_record() -> None:
    originals, release = people()
    # One of two that are published alike: nobody is without a possible counterpart.
    del release[5]
    found = judge_people(originals, release)
    assert found == replace(SOUND, published=11, missing=1, matched=11, unmatched=1)
    assert not found.holds
    assert link_people(originals, release).fewer_than_k == 4
    # It may be missing if one record was left out on purpose.
    assert replace(found, left_out=1).holds
    # But that is no excuse for a record that nobody has.
    release[0]["age"] = "[30-33]"
    found = replace(judge_people(originals, release), left_out=1)
    assert (found.unmatched, found.unmatched_published) == (2, 1)
    assert not found.holds


def test_a_duplicated_record() -> None:
    originals, release = people()
    found = judge_people(originals, [*release, release[5]])
    assert found == replace(
        SOUND, published=13, surplus=1, without_original=1, unmatched_published=1
    )
    assert not found.holds


def test_a_class_with_the_labels_of_another() -> None:
    originals, release = people()
    # Eight published records of one tuple: k is fine, and so are the sicknesses.
    for row, other in zip(release[:4], release[8:], strict=True):
        row.update(age=other["age"], sex=other["sex"])
    assert judge_people(originals, release) == replace(
        SOUND,
        without_counterpart=4,
        without_original=4,
        matched=8,
        unmatched=4,
        unmatched_published=4,
    )
    assert link_people(originals, release) == Linkage(12, 8, 0, 4, 0, 0)


def test_a_leaked_original_value() -> None:
    originals, release = people()
    release[5].update(age="41", sex="m")
    # It is true, and that is the trouble.
    assert judge_people(originals, release) == SOUND
    linkage = link_people(originals, release)
    # The others of the class have 3 candidates left, the leaked one has a fourth.
    assert linkage == Linkage(12, 12, 3, 3, 1, 0)
    assert not linkage.holds
    # Outside of all other boxes there is no doubt at all.
    originals[5]["age"] = 50
    release[5]["age"] = "50"
    linkage = link_people(originals, release)
    assert linkage == Linkage(12, 12, 4, 1, 1, 1)


def test_a_changed_payload() -> None:
    originals, release = people()
    release[2]["sickness"] = "flu"
    assert judge_people(originals, release) == replace(
        SOUND,
        missing=1,
        surplus=1,
        without_counterpart=1,
        without_original=1,
        matched=11,
        unmatched=1,
        unmatched_published=1,
    )
    # Two that were swapped: every sickness is there as often as before.
    originals, release = people()
    release[0]["sickness"], release[6]["sickness"] = "gout", "flu"
    found = judge_people(originals, release)
    assert (found.missing, found.surplus) == (0, 0)
    assert (found.unmatched, found.unmatched_published) == (2, 2)


def test_a_fault_that_only_a_matching_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    # Who is 5 and who is 6 lie in one box that has one record; every box holds somebody.
    originals = [{"age": age, "sex": "f", "sickness": "flu"} for age in (2, 5, 6)]
    release = [
        {"age": label, "sex": "f", "sickness": "flu"} for label in ("[1-2]", "[2-3]", "[2-9]")
    ]
    found = judge_people(originals, release)
    assert found == Truthfulness(3, 3, 0, 0, 0, 0, 0, 2, 1, 1, 0)
    # Where there are too many for a matching, that is said.
    monkeypatch.setattr(truthfulness, "_MOST_MATCHED", 2)
    monkeypatch.setattr(truthfulness, "_TASK_RECORDS", 2)
    found = judge_people(originals, release)
    assert found == Truthfulness(3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 3)
    # Without a choice there is nothing to match.
    release[0]["age"], release[1]["age"], release[2]["age"] = "[1-3]", "[1-3]", "[4-9]"
    found = judge_people(originals, release)
    assert found == Truthfulness(3, 3, 0, 0, 0, 0, 1, 2, 1, 1, 0)


def test_figures_by_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    count = 300
    originals = [
        {"age": int(age), "sex": sex, "code": code, "cost": cost}
        for age, sex, code, cost in zip(
            generator.integers(0, 40, count),
            generator.choice(["f", "m"], count).tolist(),
            generator.choice(["a", "b", "c"], count, p=[0.6, 0.3, 0.1]).tolist(),
            generator.choice([1.5, float("nan"), 0.0], count, p=[0.7, 0.2, 0.1]).tolist(),
            strict=True,
        )
    ]
    labels = []
    for _ in range(20):
        low, sex = int(generator.integers(0, 35)), ["f", "m", "{f, m}"][generator.integers(0, 3)]
        labels.append((low, low + int(generator.integers(0, 20)), sex))
    release = []
    for row in originals:
        fitting = [one for one in labels if _holds(one, row)]
        if not fitting or generator.random() < 0.05:
            fitting = labels
        low, high, sex = fitting[generator.integers(0, len(fitting))]
        labelled = {"age": f"[{low}-{high}]" if low < high else str(low), "sex": sex}
        if generator.random() < 0.97:
            release += [labelled | {"code": row["code"], "cost": row["cost"]}]
    by_label = {(f"[{a}-{b}]" if a < b else str(a), sex): (a, b, sex) for a, b, sex in labels}

    expected: Counter[str] = Counter()
    own: dict[Any, list[Row]] = defaultdict(list)
    others: dict[Any, Counter[Any]] = defaultdict(Counter)
    for row in originals:
        own[row["code"], str(row["cost"])].append(row)
    for row in release:
        others[row["code"], str(row["cost"])][by_label[row["age"], row["sex"]]] += 1
    for payload in own.keys() | others.keys():
        rows, places = own[payload], list(others[payload])
        room = [others[payload][place] for place in places]
        choices = [[i for i, place in enumerate(places) if _holds(place, row)] for row in rows]
        held = [sum(i in choice for choice in choices) for i in range(len(places))]
        expected["missing"] += max(len(rows) - sum(room), 0)
        expected["surplus"] += max(sum(room) - len(rows), 0)
        expected["without_counterpart"] += sum(not choice for choice in choices)
        expected["without_original"] += sum(max(a - b, 0) for a, b in zip(room, held, strict=True))
        matched = slow_matching(choices, room)
        expected["matched"] += matched
        expected["unmatched"] += len(rows) - matched
        expected["unmatched_published"] += sum(room) - matched
    assert min(expected[name] for name in ("missing", "without_counterpart", "unmatched")) > 0

    attributes = [attribute("age", "integer"), attribute("sex", "category")]
    tables = pa.Table.from_pylist(release), pa.Table.from_pylist(originals)
    arguments = tables[0], attributes, tables[1], ["code", "cost"]
    found = measure_truthfulness(*arguments)
    assert found == Truthfulness(
        originals=count, published=len(release), left_out=0, not_proven=0, **expected
    )
    # Groups that are shared out over tasks have the same figures, as far as they have any.
    monkeypatch.setattr(truthfulness, "_MOST_MATCHED", 50)
    monkeypatch.setattr(truthfulness, "_TASK_RECORDS", 50)
    shared = measure_truthfulness(*arguments)
    assert 100 < shared.not_proven < count
    assert shared.matched + shared.unmatched + shared.not_proven == count
    kept = ("originals", "published", "missing", "surplus")
    kept += ("without_counterpart", "without_original")
    assert all(getattr(shared, name) == getattr(found, name) for name in kept)

    sizes: Counter[Any] = Counter()
    for row in release:
        sizes[by_label[row["age"], row["sex"]]] += 1
    candidates = [sum(n for one, n in sizes.items() if _holds(one, row)) for row in originals]
    present = [number for number in candidates if number]
    linkage = measure_linkage(tables[0], attributes, tables[1], k=30)
    assert linkage == Linkage(
        records=count,
        matched=len(present),
        fewer_than_k=sum(number < 30 for number in present),
        smallest_candidates=min(present),
        singled_out=0,
        re_identified=0,
    )
    assert linkage.fewer_than_k > 0


def _holds(label: tuple[int, int, str], row: Row) -> bool:
    low, high, sex = label
    return low <= row["age"] <= high and row["sex"] in sex


def test_payloads_are_compared_by_value() -> None:
    # Of each column: values of the original, values of the release, and how many differ.
    cases: list[tuple[pa.Array, pa.Array, int]] = [
        (pa.array(["1", " 2", None]), pa.array([1, 2, None], pa.int32()), 0),
        (pa.array([1, 2, None], pa.int64()), pa.array([1, 2, None], pa.int16()), 0),
        (pa.array([1, 2**40, 3]), pa.array([1, None, 3], pa.int32()), 1),
        (pa.array(["1", "x", "1.5"]), pa.array([1, None, 1], pa.int64()), 2),
        (pa.array([0.0, -0.0, float("nan")]), pa.array([-0.0, 0.0, float("nan")]), 0),
        (pa.array([1.0, 2.5, None]), pa.array([1, 2, None]), 1),
        (pa.array([0.1, float("nan"), None]), pa.array([0.1, float("nan"), None], pa.float32()), 0),
        (pa.array([1.0, float("nan"), 2.0]), pa.array([1.0, None, 2.0]), 1),
        (pa.array(["0.10", "7", "x"]), pa.array([Decimal("0.1"), Decimal("7.0"), None]), 1),
        (pa.array([Decimal("0.1"), Decimal("0.15"), None]), pa.array([0.1, 0.15, None]), 0),
        (pa.array(["2020-02-29", None, "1"]), pa.array([date(2020, 2, 29), None, None]), 1),
        (
            pa.array([datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 5, tzinfo=UTC), None]),
            pa.array([date(2020, 1, 1), date(2020, 1, 1), None]),
            1,
        ),
        (pa.array(["true", "0", None]), pa.array([True, False, None]), 0),
        (pa.array([5, 6, 7]), pa.array(["5", "6", "07"]), 1),
        (pa.array(["a", "a ", ""]), pa.array(["a", "a", None]), 2),
        (pa.array([["a", None], ["a"], None]), pa.array([["a"], ["a"], []]), 2),
        (pa.array([b"a", b"", None]), pa.array([b"a", b"b", None]), 1),
    ]
    ages = {"age": [20, 30, 40]}
    labels = {"age": ["20", "30", "40"]}
    for number, (own, others, _) in enumerate(cases):
        # Dots and accents belong to the name.
        ages[f"`{number}.0"] = own
        labels[f"`{number}.0"] = others
    original, release = pa.table(ages), pa.table(labels)
    attributes = [attribute("age", "integer")]
    names = [name for name in original.column_names if name != "age"]
    # The hashes of every column, record by record.
    like = local_table(release).schema
    hashes = {f"hash_{number}": [name] for number, name in enumerate(names)}
    ages_first = [
        one.with_hashes(hashes, like=like).select(["age", *hashes]).collect().to_pandas()
        for one in (local_table(original), local_table(release))
    ]
    left, right = (one.astype("int64").sort_values("age").to_numpy() for one in ages_first)
    assert (left != right).sum(axis=0).tolist() == [0, *(different for _, _, different in cases)]
    judged = measure_truthfulness(release, attributes, original, names[2:4])
    assert (judged.missing, judged.surplus, judged.unmatched) == (2, 2, 2)
    assert measure_truthfulness(release, attributes, original, []).matched == 3


def test_what_cannot_be_compared_is_said() -> None:
    ages = [attribute("age", "integer")]
    release = pa.table({"age": ["[20-30]", "17"], "day": [date(2020, 1, 1)] * 2})
    original = pa.table({"age": ["Ottokar", "17"], "day": [1, 2]})
    with pytest.raises(DataError, match=r"original: column 'day' has type bigint.* date"):
        measure_truthfulness(release, ages, original, ["day"])
    with pytest.raises(DataError, match=r"original: lacks the columns 'x'. Found 'age', 'day'"):
        measure_truthfulness(release, ages, original, ["x"])
    with pytest.raises(DataError, match=r"original: lacks the columns 'age', 'x'. Found 'day'"):
        measure_truthfulness(release, ages, original.drop_columns(["age"]), ["x"])
    with pytest.raises(DataError, match="original: 1 values of column 'age'") as refused:
        measure_truthfulness(release, ages, original, [])
    assert "Ottokar" not in str(refused.value)
    with pytest.raises(DataError, match="population: 1 values of column 'age'") as refused:
        measure_linkage(release, ages, original, k=2)
    assert "Ottokar" not in str(refused.value)
    with pytest.raises(ConfigurationError, match="mean"):
        measure_truthfulness(release, [replace(ages[0], style="mean")], original, [])
    nobody = measure_truthfulness(release.slice(2), ages, original.slice(2), [])
    assert nobody == Truthfulness(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    assert measure_linkage(release, ages, original.slice(2), k=2) == Linkage(0, 0, 0, 0, 0, 0)


def test_k_1_promises_nobody_to_be_hidden(tmp_path: Path, cli: Cli) -> None:
    ages = pa.array(range(40))
    path = write_table(tmp_path / "input.parquet", {"age": ages, "sickness": ["flu"] * 40})
    configured = configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier", "sickness": "sensitive"},
        privacy={"k": 1, "allow_k_1": True},
    )
    cli.ends(0, "run", configured)
    checked = (tmp_path / "release", "--original", path)
    outcome = cli.ends(0, "verify", *checked, "--population", path, "--json")
    found = json.loads(outcome.out)
    assert found["holds"]
    assert found["unique_records"] == 40
    for linkage in found["linkage"].values():
        assert linkage["holds"]
        assert linkage["singled_out"] == linkage["re_identified"] == 40
    outcome = cli.ends(0, "verify", *checked)
    assert "original records, 40 singled out" in outcome.out
    # Whoever requires more of it is told.
    configured = configuration_file(
        tmp_path, attributes={"age": "quasi_identifier", "sickness": "sensitive"}, privacy={"k": 2}
    )
    cli.ends(4, "verify", *checked, "--config", configured, says="linkage attack")
