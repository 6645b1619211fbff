"""What is shown, kept, counted or refused, at k - 1, k and k + 1 records or people.

A row of the tables is a rule. ``tools/mutants.py`` puts each comparison one off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers import attribute as published_attribute
from references import attribute_of

from anonspark.config.loading import parse_configuration
from anonspark.core.atom_reuse import AtomDemand, Soundness, Stratum
from anonspark.core.columns import CLASS_ID, SIZE, SUBJECT, UNIT
from anonspark.core.criteria import Criteria, Units
from anonspark.core.criterion import MOST_VALUES, Criterion, proposed_l
from anonspark.core.figure_text import rounded_share, share_of_records
from anonspark.core.labels import _date_label
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import AnonsparkError
from anonspark.labels.class_bounds import Bounds, BoundsReader
from anonspark.labels.regions import read_regions
from anonspark.layers.evaluate.gates import Drift, GateResult
from anonspark.layers.evaluate.small_counts import is_few, published_counts, published_missing
from anonspark.layers.generalize.classes import _level
from anonspark.layers.partition import cutting, median_cut
from anonspark.layers.prepare.inspection import require_enough_rows
from anonspark.layers.prepare.unit_counts import count_units, has_units, satisfied_by_people
from anonspark.layers.publish import staging
from anonspark.layers.publish.file_assignment import MoreThan, _LargeClasses
from anonspark.pipeline.rounds import Residual
from anonspark.pipeline.warnings.published_values import published_value_warnings
from anonspark.pipeline.warnings.release_warning import blank_row_warnings, dropped_record_warnings
from anonspark.pipeline.warnings.value_sizes import ValueSizes
from anonspark.presentation.release import _records
from anonspark.profiling import draft
from anonspark.profiling.counting import _measured, _Totals
from anonspark.profiling.draft import Answers
from anonspark.reporting.bins import Bins, merge_bins
from anonspark.reporting.evidence import Disclosure
from anonspark.reporting.marginals import OrderedLabels, numbers_axis, ordered_marginal, plan_groups
from anonspark.reporting.original import BinCounts
from anonspark.reporting.risk_sections import size_bins
from anonspark.sharing.coding.agreement import is_at_least
from anonspark.sharing.ledger.check import list_coalitions
from anonspark.sharing.ledger.joint_classes import (
    CLASS,
    Demand,
    MembersOf,
    Signatures,
    sensitive_column,
)
from anonspark.sharing.pairs.original import _LookUp
from anonspark.sharing.recipients import strategy
from anonspark.sharing.recipients.joint_check import requires_check
from anonspark.sharing.recipients.nested import _DivideAtoms
from anonspark.staged.records import Rows
from anonspark.verification.attacks.attack import INSENSITIVE, linked_values_warnings
from anonspark.verification.attacks.linkage import (
    FEWER,
    MATCHED,
    OF_CLASS,
    RECORDS,
    CountCandidates,
    Linkage,
    measure_linkage,
)
from anonspark.verification.proof.classes import PublishedClasses
from anonspark.verification.proof.criteria import satisfies
from anonspark.verification.proof.homogeneity import homogeneity_of
from anonspark.verification.proof.measures import (
    PeopleOfClasses,
    SensitiveValues,
    ValueCounts,
    _ranks_and_mass,
    matched_values,
)
from anonspark.verification.proof.recount import broken_promises
from anonspark.verification.proof.unit_criteria import MeasuredUnits
from anonspark.verifier import check_release

K = 5
RULES = Disclosure(K)
NO_NODES = np.zeros(0, np.int64)
FEW, ALL_BUT_FEW = "fewer than 5 records", "all but fewer than 5 records"


def configuration(*options: str) -> Any:
    document = {
        "input": {"path": "t.parquet"},
        "output": {"path": "r"},
        "attributes": {"age": "quasi_identifier", "town": "insensitive"},
    }
    return parse_configuration(document, options)


def refused(check: Callable[[], Any]) -> str | None:
    """Return the error of a check, None where it passes."""
    try:
        check()
    except AnonsparkError as error:
        return str(error)
    return None


def warned(warnings: Any) -> bool:
    return bool(list(warnings))


def marginal(missing: float, untold: float = 0.0, *, original: bool = True) -> Any:
    """Return the labels and records of a chart of ages, of 20 records of each of two values."""
    published = published_attribute("age", "integer")
    regions, numbers = read_regions([pa.array(["10", "40", "missing", "*"])], published)
    records = np.bincount(numbers, [20.0, 20.0, missing, untold], len(regions))
    bins = Bins("whole", (20.0,))
    labels = OrderedLabels(numbers_axis(published), regions, records, bins)
    counts = BinCounts(np.array([20.0, 20.0]), missing) if original else None
    chart = ordered_marginal(SimpleNamespace(name="age", kind="integer"), labels, counts, K)  # type: ignore[arg-type]
    return [*chart.labels], chart.before, chart.after


def records_about(people: int, *, records: int = 1) -> Rows:
    """Return records of so many people. One of them has as many as asked for."""
    units = [*range(people), *[0] * (records - 1)]
    return Rows(LocalEngine().table(pa.table({UNIT: pa.array(units, pa.int64())})))


def units_of(people: int) -> list[int]:
    units = count_units(records_about(people, records=3), ["patient"], K)
    return [units.number, units.most_records, units.of_fewer_than_k]


def has_k_units(people: int, records: int) -> bool:
    """Return it where fewer than k people have 8 records at most."""
    rows = records_about(people, records=records - people + 1)
    criteria = Criteria(K, units=Units(100, 4, 8))
    return has_units(rows, records, criteria)  # type: ignore[arg-type]


def questions_about_people(rows: int) -> str:
    """Return how many sides of a cut are asked for their people, or what it says without asking."""
    node = SimpleNamespace(number=0, rows=rows + 100)
    criteria = Criteria(K, units=Units(100, 2, K))
    asking = cutting.sides_have_units(node, None, rows, criteria)  # type: ignore[arg-type]
    try:
        return f"{len(list(next(asking)))} asked"
    except StopIteration as stopped:
        return str(stopped.value)


def boundaries_further_out(left_rows: int) -> int:
    """Return how many boundaries of a node are looked at, if there is one with so many records."""
    node, boundaries = SimpleNamespace(number=0, rows=100), []

    def runs(*_: object) -> Iterator[None]:
        yield
        return [(7, left_rows, 0)]  # type: ignore[return-value]

    def count(_: object, listed: list[object], __: object) -> Iterator[None]:
        boundaries.extend(listed)
        yield
        return [[] for _ in listed]  # type: ignore[return-value]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(median_cut, "find_ranks", runs)
        patch.setattr(median_cut, "_values_before", count)
        request = SimpleNamespace(key=0)
        asking = median_cut._further_out(node, request, None, Criteria(K), [])  # type: ignore[arg-type]
        next(asking)
        next(asking, None)
    return len(boundaries)


def people_satisfy(people: int, rows: int) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        counted = SimpleNamespace(number=people)
        patch.setattr("anonspark.layers.prepare.unit_counts.count_people", lambda *_: counted)
        return satisfied_by_people(None, rows, Criteria(K))  # type: ignore[arg-type]


def rest_of_a_recipient(left: int, *, withheld: int = 7) -> str | None:
    """Prepare the release of which so many records are left."""
    making = SimpleNamespace(
        rows_requested=left + withheld, rows_withheld=withheld, open_input=None, described=None
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategy, "prepare", lambda *_: None)
        return refused(
            lambda: strategy.prepare_source(None, configuration("privacy.k=5"), "", making)  # type: ignore[arg-type]
        )


def published(smallest: int) -> PublishedClasses:
    return PublishedClasses(100, 10, smallest, 50, {smallest: 1}, 0, 0)


def names_of_groups(counts: list[int], missing: float = 0.0) -> tuple[list[str], bool]:
    """Return the groups of values a, b, ... and whether the others have the missing ones."""
    letters = [(letter,) for letter in "abcdefgh"[: len(counts)]]
    groups = plan_groups(letters, np.array(counts, np.float64), K, [str], missing)
    return list(groups.names), groups.with_missing


def joint(of_one: list[int], of_other: list[int], values: list[int] | None = None) -> Any:
    """Check the joint classes of two recipients, of people by their classes in each release."""
    sensitive = ["disease"]

    def members(recipient: str, classes: list[int]) -> MembersOf:
        table = pa.table(
            {
                SUBJECT: pa.array([str(n).encode() for n in range(len(classes))], pa.binary()),
                CLASS: pa.array(classes, pa.int64()),
                sensitive_column(0): pa.array(values or [0] * len(classes), pa.int64()),
            }
        )
        return MembersOf(recipient, recipient, LocalEngine().table(table), sensitive)

    signatures = Signatures.of([members("a", of_one), members("b", of_other)], sensitive)
    demand = Demand(K, {"disease": 2} if values else {})
    rows = signatures.check(["a", "b"], demand)
    return [(row["persons_below"], row["holds"]) for row in rows]


def coalitions(recipients: int, size: int) -> int | None:
    """Return the number of coalitions where six are too many, None if that many are refused."""
    names = [f"r{n}" for n in range(recipients)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anonspark.sharing.ledger.check.MOST_COALITIONS", 5)
        try:
            return len(list_coalitions(names, public=[], together=[], size=size, of_plan=names))
        except AnonsparkError:
            return None


def satisfied(kind: str, figure: float) -> bool:
    c = {"c": 3.0} if kind == "recursive" else {}
    criterion = Criterion("disease", kind, {"distinct": 5.0, "recursive": 5.0}.get(kind, 0.5), **c)
    return bool(satisfies(criterion, np.array([figure]))[0])


def words_of_rare(records: int, *, k: int = K) -> str | None:
    """Return the share in the warning of a value of so many records, None without a warning."""
    sizes = {"town": ValueSizes(1000, {records: 1, 1000 - records: 1})}
    warnings = list(
        published_value_warnings(sizes, configuration(f"privacy.k={k}", "privacy.allow_k_1=true"))
    )
    return warnings[0].text if warnings else None


def candidates_of_a_record(candidates: int) -> int:
    """Return how many records of an original have fewer than k candidates, where each has these."""
    search = SimpleNamespace(
        axes=["age"],
        points=lambda *_: (np.zeros((3, 1), np.int64), np.zeros((3, 1), bool)),
        sum_figures=lambda *_: np.full(3, float(candidates)),
    )
    sizes = np.array([candidates])
    (counts,) = CountCandidates(K, search, sizes, sizes)(iter([pa.record_batch({})]))  # type: ignore[arg-type]
    rows = dict(zip(counts["figure"].to_pylist(), counts["records"].to_pylist(), strict=True))
    return rows[FEWER]


def linkage_of(*figures: tuple[int, int, int]) -> list[int]:
    """Return who is singled out by a proof, from classes, their records and those alone."""
    totals = [(RECORDS, 0, 9, 0), (MATCHED, 0, 9, 0)]
    rows = [*totals, *((OF_CLASS, *figure) for figure in figures)]
    columns = zip(*((*row, 1) for row in rows), strict=True)
    names = ("figure", "class", "records", "alone", "smallest")
    table = pa.table(dict(zip(names, map(list, columns), strict=True)))
    labels = SimpleNamespace(
        attributes=[],
        prepare=lambda *_, **__: None,
        map_records=lambda *_: LocalEngine().table(table),
    )
    linkage = measure_linkage(labels, None, k=K)  # type: ignore[arg-type]
    return [linkage.singled_out, linkage.re_identified]


def words_for_values(values: int) -> str:
    """Return the advice for a sensitive attribute of so many values, of which one has no record."""
    shares = np.array([1 / values] * values + [0.0])
    column = SensitiveValues(
        "d", pa.array(range(values + 1)), shares, NO_NODES, NO_NODES, as_text=False, is_ordered=True
    )
    privacy = configuration("privacy.k=5").privacy
    return homogeneity_of(column, 100, None)._remedy("d", privacy, is_only=True)


def values_with_people(people: int) -> int:
    """Return the values that have another person each, of which two have so many people."""
    nobody = PeopleOfClasses(np.array([9]), np.array([9]), NO_NODES, NO_NODES, NO_NODES)
    table = ValueCounts(np.array([0, 0]), np.array([0, 1]), np.array([people, 9]), nobody)
    return int(matched_values(table, nobody, 2)[0])


def labels_of_several_values() -> list[bool]:
    published = published_attribute("a", "category")
    reader = BoundsReader(
        published, "category", pa.string(), has_hierarchy=False, has_missing_label=True
    )
    sets = pa.array([["a"], ["a", "b"], [None]], pa.list_(pa.string()))
    read = reader.read([pa.array(["a", "{a, b}", "missing"])]), reader._read_sets(sets)
    return [flag for bounds in read for flag in bounds.wider.tolist()]


def as_floats(low: int, high: int) -> bool:
    flags = np.ones(1, bool)
    return bool(Bounds(pa.array([low]), pa.array([high]), *[flags] * 2).fine[0])


def candidates_in_a_pair(candidates: int, single_value: int = -1, figure: str = "below") -> int:
    """Do so for two releases, of which the pairs may leave a single sensitive value."""
    side = SimpleNamespace(
        axes=["age"],
        regions=(),
        points=lambda *_: (np.zeros((3, 1), np.int64), np.zeros((3, 1), bool)),
    )
    names = ("records", "matched", "below", "disclosed", "disclosed_required", "a", "b")
    schema = pa.schema([(name, pa.int64()) for name in names])
    nothing = np.zeros(0, np.int64)
    look_up = _LookUp(side, side, nothing, nothing, nothing, np.zeros(1, bool), K, schema)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "anonspark.sharing.pairs.original.sum_candidates",
            lambda *_: (np.full(3, candidates), np.full((3, 1), single_value)),
        )
        (sums,) = look_up(iter([pa.record_batch({"age": [1, 2, 3]})]))
    return int(sums[figure][0].as_py())


def is_superseded(earlier: str, later: str) -> bool:
    """Return whether a release counts as later, by when the runs of both started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            staging, "read_manifest", lambda _, path: SimpleNamespace(document={"started": path})
        )
        paths = SimpleNamespace(replaced=earlier, output=later)
        return staging._is_superseded(LocalEngine().files, paths)  # type: ignore[arg-type]


def judged_by_the_verifier(fewest: int, *, people: bool) -> list[str]:
    """Return what the verifier in a release says of a class of so many records or people."""
    failures: list[str] = []
    release = SimpleNamespace(
        privacy={"k": K, "unit": ["patient"]} if people else {"k": K},
        pseudonyms=None,
        classes=["age"],
        plain={"patient"},
        published={"rows": 20 + fewest},
        not_checked=[],
        judge=lambda holds, text: failures.append(text) if not holds else None,
    )
    of_classes = pa.table({"age": [1, 2], "records": [20, fewest if not people else 20]})
    pairs = [(1, n) for n in range(20)] + [(2, n) for n in range(fewest)]
    of_people = pa.table(
        {
            "age": [a for a, _ in pairs],
            "patient": [b for _, b in pairs],
            "records": [1] * len(pairs),
        }
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            check_release,
            "count",
            lambda _, names, *__: of_people if "patient" in names else of_classes,
        )
        check_release.check_classes(release)  # type: ignore[arg-type]
    return [text.split(":")[0] for text in failures if text.startswith("k =")]


def values_of_few(records: int) -> list[int]:
    """Return the figures of a profile of a column with values of so many records and of 20."""
    batch = pa.record_batch(
        {
            "place": pa.array([0, 0], pa.int32()),
            "value": pa.array([7, 8], pa.int64()),
            "records": pa.array([records, 20], pa.int64()),
        }
    )
    *_, totals = _Totals(K)(iter([batch]))
    return totals["number"].to_pylist()


def enough_of_people(number: int) -> str | None:
    profile = SimpleNamespace(
        columns=[], unit=None, rows=number, source=SimpleNamespace(path="t.csv")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draft, "_roles", lambda *_: {})
        return refused(lambda: draft.draft_configuration(profile, Answers(None, K, "out")))  # type: ignore[arg-type]


def card_of(dropped: int) -> str:
    """Return what the card of a run counts."""
    counts = {"rows_in": 100 + dropped, "rows_suppressed": 0, "rows_left_out": 0}
    counts["rows_dropped_missing"] = dropped
    return _records({"rows_published": 100, "k": K, **published_counts(counts, K)})


def words_of_linkage(fewer: int) -> str:
    (text,) = linked_values_warnings({INSENSITIVE: Linkage(100, 100, fewer, 1, 0, 0, K)})
    return text


AT_K: dict[str, tuple[Callable[[int], Any], list[Any]]] = {
    # What is shown.
    "a count is withheld": (lambda n: is_few(n, K), [True, False, False]),
    "the counts of a summary": (
        lambda n: published_counts(
            {"rows_in": 100, "rows_dropped_missing": n, "rows_suppressed": 9, "rows_left_out": 9}, K
        )["rows_in"],
        [None, 100, 100],
    ),
    "missing values of dropped records": (
        lambda n: published_missing([n], n, K),
        [[None], [5], [6]],
    ),
    "what one attribute leaves of them": (
        lambda n: published_missing([40 - n, 20], 40, K),
        [[None] * 2, [35, 20], [34, 20]],
    ),
    "values that are missing twice": (
        lambda n: published_missing([20, 20 + n], 40, K),
        [[None] * 2, [20, 25], [20, 26]],
    ),
    "a rounded share": (lambda n: rounded_share(n, 100, K), [None, 0.05, 0.05]),
    "words for a share": (
        lambda n: share_of_records(n, 1000, K),
        [FEW, "0.5% of the records", "0.6% of the records"],
    ),
    "words for nearly all": (
        lambda n: share_of_records(10_000 - 100 * n, 10_000, 100 * K),
        ["all but fewer than 500 records", "95% of the records", "94% of the records"],
    ),
    "a count of a report": (RULES.count, ["fewer than 5", "5", "6"]),
    "a rounded count": (RULES.rounded_text, ["fewer than 5", "5", "5"]),
    "shares in a total": (lambda n: RULES.shares([n, 20])[0], [0.0, 0.2, 0.2]),
    "a share of a report": (lambda n: RULES.share(n / 1000, 1000), [FEW, "0.5%", "0.6%"]),
    "nearly all of a report": (
        lambda n: RULES.share(1 - n / 1000, 1000),
        [ALL_BUT_FEW, "99.5%", "99.4%"],
    ),
    "a share in a chart": (lambda n: RULES.rounded_share(n / 100, 100), [0.0, 0.05, 0.05]),
    "nearly all in a chart": (lambda n: RULES.rounded_share(1 - n / 100, 100), [1.0, 0.95, 0.95]),
    "a group of values": (
        lambda n: names_of_groups([30, 20, n, 50])[0][:-1],
        [["d", "a"], ["d", "a", "b", "c"], ["d", "a", "b", "c"]],
    ),
    "the other values": (
        lambda n: names_of_groups([30, 20, n - 2, 2])[0][:-1],
        [["a"], ["a", "b"], ["a", "b"]],
    ),
    "missing values among them": (
        lambda n: names_of_groups([30, 20], missing=float(n)),
        [(["a", "other values or missing"], True), *[(["a", "b", "other values"], False)] * 2],
    ),
    "missing values in a chart": (
        lambda n: marginal(n)[:2],
        [
            (["below 20", "20 and more or missing"], (20, 24)),
            (["below 20", "20 and more", "missing"], (20, 20, 5)),
            (["below 20", "20 and more", "missing"], (20, 20, 6)),
        ],
    ),
    "any value in a chart": (
        lambda n: marginal(0, n, original=False)[2],
        [(22.0, 22.0), (20.0, 20.0, 5.0), (20.0, 20.0, 6.0)],
    ),
    "bins of a histogram": (
        lambda n: merge_bins(Bins("real", (1.0,)), [np.array([n, 20.0])], K)[1],
        [[[0, 1]], [[0], [1]], [[0], [1]]],
    ),
    "bins of class sizes": (
        lambda n: size_bins({n: 1, 50: 2}, K)[0][0],
        ["up to 50", "5 to 6", "5 to 6"],
    ),
    "words for rare values": (
        lambda n: (text := words_of_rare(n)) and FEW in text,
        [True, None, None],
    ),
    "words of a card": (
        card_of,
        [
            "100 published, fewer than 5 dropped (missing quasi-identifier)",
            "100 published, 5 dropped (missing quasi-identifier)",
            "100 published, 6 dropped (missing quasi-identifier)",
        ],
    ),
    "words for an attack": (
        words_of_linkage,
        ["for fewer than 5 records", "for about 5.0% of the records", "for about 5.0% of the"],
    ),
    "rows without a value": (lambda n: warned(blank_row_warnings(n, K)), [False, True, True]),
    "dropped records": (lambda n: warned(dropped_record_warnings(n, 20, K)), [False, True, True]),
    # What is kept.
    "criteria": (lambda n: Criteria(K).satisfied_by(n, []), [False, True, True]),
    "people of records": (lambda n: has_k_units(n, 8), [False, True, True]),
    "records of so many that no person is asked": (
        lambda n: has_k_units(2, n + 4),
        [False, True, True],
    ),
    "people of records that are left": (lambda n: people_satisfy(n, n), [False, True, True]),
    "few people of many records": (lambda n: people_satisfy(n, 9), [False, True, True]),
    "sides of a cut whose people are counted": (
        questions_about_people,
        ["1 asked", "1 asked", "True"],
    ),
    "people of a side": (
        lambda n: cutting._satisfy(SimpleNamespace(number=n), Criteria(K)),  # type: ignore[arg-type]
        [False, True, True],
    ),
    "boundaries further out": (boundaries_further_out, [0, 1, 1]),
    "people with different values": (
        lambda n: (
            Criteria(
                K, (Criterion("d", "distinct", K),), (attribute_of("d", [9] * 9),)
            ).violated_by_people(SimpleNamespace(matched=[n]))  # type: ignore[arg-type]
            is None
        ),
        [False, True, True],
    ),
    "a stratum of a plan": (lambda n: Soundness(K).holds(Stratum(n)), [False, True, True]),
    "values of a stratum": (
        lambda n: Soundness(1, {"a": K}).holds(Stratum(9, {"a": frozenset(range(n))})),
        [False, True, True],
    ),
    "records left out, as a class": (
        lambda n: Residual(None, n, [], True, None).may_show_values(Criteria(K)),  # type: ignore[arg-type]
        [False, True, True],
    ),
    "the privacy of a part": (
        lambda n: is_at_least(
            configuration(f"privacy.k={n}").privacy, configuration("privacy.k=5").privacy
        ),
        [False, True, True],
    ),
    "records of a class that stay together": (
        lambda n: len(next(_LargeClasses(K)(iter([pa.record_batch({CLASS_ID: [1], SIZE: [n]})])))),
        [0, 0, 1],
    ),
    "equal records that stay together": (
        lambda n: len(next(MoreThan("rows", K)(iter([pa.record_batch({"rows": [n]})])))),
        [0, 0, 1],
    ),
    # What is counted.
    "people with the most records": (
        units_of,
        ["privacy.k: 5 needs at least 5 people", [5, 3, 6], [6, 3, 6]],
    ),
    "records of few in a profile": (
        lambda n: _measured(("a",), np.array([n, 20]), 0, K).few,
        [4, 0, 0],
    ),
    "records of few of a column": (values_of_few, [[2, 0, 4], [2, 0, 0], [2, 0, 0]]),
    "candidates of a record": (candidates_of_a_record, [3, 0, 0]),
    "candidates in two releases": (candidates_in_a_pair, [3, 0, 0]),
    "people of joint classes": (
        lambda n: joint([1] * n + [2] * 9, [1] * (n + 9)),
        [[(4, False)], [(0, True)], [(0, True)]],
    ),
    "an atom of a plan that stays": (
        lambda n: _DivideAtoms(AtomDemand(K, 2), repeated=False)._stays(np.ones(n, np.int64)),
        [False, True, True],
    ),
    # What is refused.
    "a class, by the verifier": (
        lambda n: judged_by_the_verifier(n, people=False),
        [["k = 5"], [], []],
    ),
    "people, by the verifier": (
        lambda n: judged_by_the_verifier(n, people=True),
        [["k = 5 people"], [], []],
    ),
    "rows to begin with": (
        enough_of_people,
        ["has 4 rows, and k = 5 needs that many", *["no column of t.csv can be proposed"] * 2],
    ),
    "rows of the input": (
        lambda n: refused(lambda: require_enough_rows(n, n, K)),
        ["privacy.k: 5 needs at least 5 rows, the input has 4. Nothing", None, None],
    ),
    "the rest of a recipient": (rest_of_a_recipient, ["7 of 11 records are withheld", None, None]),
    "the smallest class": (
        lambda n: "".join(broken_promises(published(n), k=K)) or None,
        ["the smallest class of the release has 4 records, expected at least k = 5", None, None],
    ),
    "people of a class": (
        lambda n: "".join(MeasuredUnits(("patient",), {n: 1, 9: 3}).broken(K)) or None,
        ["the records of a class of the release are about 4 people", None, None],
    ),
}


@pytest.mark.parametrize("rule", AT_K)
def test_at_k(rule: str) -> None:
    function, expected = AT_K[rule]
    for count, outcome in zip((K - 1, K, K + 1), expected, strict=True):
        try:
            answer = function(count)
        except AnonsparkError as error:
            answer = str(error)
        if isinstance(outcome, str) and " " in outcome and isinstance(answer, str):
            assert outcome in answer, count
        else:
            assert answer == outcome, count


BESIDE: Mapping[str, tuple[Callable[[], Any], Any]] = {
    "no record is no small number": (lambda: is_few(0, K), False),
    "one record is": (lambda: is_few(1, 2), True),
    "a rounded share of none": (lambda: rounded_share(0, 100, K), 0.0),
    "a rounded share of all": (lambda: rounded_share(103, 103, K), 1.0),
    "words for none": (lambda: share_of_records(0, 100, K), "0% of the records"),
    "words for all": (lambda: share_of_records(3, 3, K), "all records"),
    "no missing value in a chart": (lambda: marginal(0)[0], ["below 20", "20 and more"]),
    "half a person is rounding": (lambda: RULES.share(0.0004, 1000), "0.04%"),
    "more than half is a person": (lambda: RULES.share(0.0005, 1000), FEW),
    "half a person too few": (lambda: RULES.share(0.0045, 1000), "0.45%"),
    "all but half a person": (lambda: RULES.share(1 - 0.5 / 1024, 1024), ALL_BUT_FEW),
    "all but half a person too few": (lambda: RULES.share(1 - 4.5 / 1024, 1024), "99.6%"),
    "rows that were dropped are named": (
        lambda: (refused(lambda: require_enough_rows(6, 4, K)) or "").count("2 more were dropped"),
        1,
    ),
    "a recipient of whom nothing is withheld": (lambda: rest_of_a_recipient(2, withheld=0), None),
    "joint classes of k = 1": (
        lambda: [
            requires_check(SimpleNamespace(demand=Demand(k, values)))  # type: ignore[arg-type]
            for k, values in ((1, {}), (2, {}), (1, {"disease": 2}))
        ],
        [False, True, True],
    ),
    "values of joint classes": (
        lambda: joint([1] * 6, [1] * 6, [0, 1, 2, 0, 1, 2]) + joint([1] * 6, [1] * 6, [0, 1] * 3),
        [(0, True)] * 4,
    ),
    "too few of them": (lambda: joint([1] * 6, [1] * 6, [3] * 6), [(0, True), (6, False)]),
    "coalitions that are few enough": (lambda: [coalitions(5, 1), coalitions(4, 2)], [5, None]),
    "all recipients together": (lambda: [coalitions(3, 3), coalitions(3, 4)], [1, 1]),
    "k = 1 promises no one": (
        lambda: [
            Linkage(9, 9, 0, 1, singled_out, 0, k).holds
            for k, singled_out in ((1, 3), (2, 3), (2, 0))
        ],
        [True, False, True],
    ),
    "a bound of at least": (
        lambda: [satisfied("distinct", n) for n in (4, 5, 6)],
        [False, True, True],
    ),
    "a bound of at most": (
        lambda: [satisfied("equal distance", n) for n in (0.49, 0.5, 0.51)],
        [True, True, False],
    ),
    "a bound of below": (
        lambda: [satisfied("recursive", n) for n in (2.9, 3.0, 3.1)],
        [True, False, False],
    ),
    "with k = 1 only unique values are rare": (
        lambda: [(words_of_rare(n, k=1) or "").count("no other record") for n in (1, 2)],
        [1, 0],
    ),
    "with k = 2 they are named apart": (
        lambda: (words_of_rare(1, k=2) or "").count("one that no other record has"),
        1,
    ),
    "criteria that every class satisfies": (
        lambda: [
            Criterion("d", kind, bound, *c).demands_nothing
            for kind, bound, *c in (
                *(("distinct", 1), ("distinct", 2), ("alpha", 0.99), ("alpha", 1), ("beta", 1)),
                *(("recursive", 1, 1.5), ("recursive", 1, 1.0), ("recursive", 2, 1.5)),
            )
        ],
        [True, False, False, True, False, True, False, False],
    ),
    "criteria that are as strict": (
        lambda: [
            [
                Criterion("d", kind, bound, c).is_as_strict_as(Criterion("d", kind, 3, 2.0))
                for bound, c in ((2, 2.0), (3, 2.0), (4, 2.0), (3, 1.5), (3, 2.5))
            ]
            for kind in ("distinct", "alpha", "recursive")
        ],
        [
            [False, True, True, True, False],
            [True, True, False, True, True],
            [False, True, True, True, False],
        ],
    ),
    "values to ask for": (
        lambda: [
            proposed_l(values, largest)
            for values, largest in (
                *((1, 0.5), (2, 0.5), (9, 0.5), (10, 0.5), (10, 0.51)),
                *((MOST_VALUES, 0.1), (MOST_VALUES + 1, 0.1)),
            )
        ],
        [None, 2, 2, 3, 2, 3, None],
    ),
    "records of fewer people than one": (
        lambda: count_units(records_about(3, records=3), ["patient"], 1).of_fewer_than_k,
        0,
    ),
    "days beside those of years that Python does not know": (
        lambda: [_date_label(days) for days in (19_000, -700_000, -800_000)],
        ["2022-01-08", "0053-06-19", "-0221-09-04"],
    ),
    "a record without candidates": (lambda: candidates_of_a_record(0), 0),
    "a record without candidates in two releases": (lambda: candidates_in_a_pair(0), 0),
    "a single value that has number 0": (lambda: candidates_in_a_pair(K, 0, "disclosed"), 3),
    "releases of runs that started at one time, at no time, and in the other order": (
        lambda: [is_superseded(*times) for times in (("1", "1"), ("", "1"), ("2", "1"))],
        [True, False, False],
    ),
    "classes of one record, in a proof": (
        lambda: [linkage_of((0, 2, 2), (1, 1, 1)), linkage_of((0, 1, 1), (1, 1, 1))],
        [[1, 1], [2, 2]],
    ),
    "advice for values": (
        lambda: [words_for_values(n).split()[:3] for n in (1, 2)],
        [["Apart", "from", "missing"], ["Require", "at", "least"]],
    ),
    "values of as many people as asked for": (
        lambda: [values_with_people(n) for n in (1, 2, 3)],
        [1, 2, 2],
    ),
    "a hierarchy of one value": (
        lambda: [
            array.tolist() for array in _ranks_and_mass(np.array([1.0]), np.array([-1], np.int64))
        ],
        [[0], [1.0]],
    ),
    "whole numbers that floats tell apart": (
        lambda: [as_floats(2**53 - 1, 2**53), as_floats(-(2**53), 1), as_floats(1, 2**53 + 2)],
        [False, False, True],
    ),
    "labels of several values": (labels_of_several_values, [False, True, False] * 2),
    "levels without a hierarchy": (
        lambda: _level(SimpleNamespace(hierarchy=None), None, np.array([0.0, 0.5])).tolist(),  # type: ignore[arg-type]
        [0, 1],
    ),
    "gates of at least": (
        lambda: [GateResult("gcp", n, 2.0, None).describe() for n in (2.0, 2.5)],
        [None, None],
    ),
    "a gate that is missed": (
        lambda: [
            (GateResult("gcp", n, low, high).describe() or "").count("found 1.5, expected")
            for n, low, high in ((1.5, 2.0, None), (1.5, None, 1.5), (1.5, None, 1.0))
        ],
        [1, 0, 1],
    ),
    "a drift": (
        lambda: [Drift("gcp", n, 100.0, 0.5, "r").describe() is None for n in (149, 150, 151)],
        [True, True, False],
    ),
    "a drift that fewer than k records explain": (
        lambda: [Drift("rows_in", n, 100.0, 0.5, "r").is_sure(K - 1) for n in (153, 154, 155)],
        [False, False, True],
    ),
    "people with one record do not repeat": (
        lambda: [Units(9, most, 4).repeat for most in (1, 2)],
        [False, True],
    ),
}


@pytest.mark.parametrize("rule", BESIDE)
def test_beside(rule: str) -> None:
    function, expected = BESIDE[rule]
    assert function() == expected
