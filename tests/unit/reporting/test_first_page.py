from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from cases import cases
from helpers import local_table
from hypothesis import given
from hypothesis import strategies as st
from proofs import verification as verified

import anonspark
from anonspark.core.criterion import Criterion
from anonspark.core.model_scores import Difference
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, DataError
from anonspark.presentation.blocks import Chart, Items, Section, Table, Text, Tile, Tiles, Verdict
from anonspark.presentation.document import Glossary, Term
from anonspark.release.manifest import Manifest
from anonspark.reporting.advice import advice, stricter, weakness_items, weaknesses
from anonspark.reporting.evidence import Disclosure, Evidence
from anonspark.reporting.figures import Figures
from anonspark.reporting.proof_sections import guarantee
from anonspark.reporting.risk_sections import risk, risk_curve, share_above
from anonspark.reporting.summary_tiles import glance, grade
from anonspark.reporting.usefulness import usefulness
from anonspark.reporting.value_sections import learn, require_many
from anonspark.utility.models import Learning, Measure, ModelDifference, ModelLoss, Score
from anonspark.utility.workload import describe_usefulness
from anonspark.verification.attacks.linkage import Linkage
from anonspark.verification.attacks.truthfulness import Truthfulness
from anonspark.verification.proof.criteria import MeasuredCriterion

NOTHING = Figures((), None)


def evidence(
    proven: dict[str, Any] | None = None,
    privacy: dict[str, Any] | None = None,
    manifest: dict[str, Any] | None = None,
    tried: Sequence[MeasuredCriterion] = (),
    **parts: Any,
) -> Evidence:
    configuration = {
        "attributes": {"job": {"role": "sensitive"}, "note": {"role": "insensitive"}},
        "privacy": {"k": 10, **(privacy or {})},
    }
    proof = verified(**(proven or {}), tried=tried)
    document = {
        "configuration": configuration,
        "fingerprints": {"output": proof.published.fingerprint},
        **(manifest or {}),
    }
    return Evidence("release", Manifest(document), proof, NOTHING, **parts)


def tried(kind: Any, bound: float, classes: int, records: int) -> MeasuredCriterion:
    return MeasuredCriterion(Criterion("job", kind, bound), 0.9, classes, records)


def lines(found: Evidence) -> list[str]:
    section = advice(found)
    assert section is not None
    return [
        one.code
        for block in section.blocks
        if isinstance(block, Items)
        for one in block.items
        if one.code
    ]


# What models learn


def learned(
    loss: float,
    error: float | None = 0.005,
    *,
    measure: Measure = "roc_auc",
    records: int = 900,
    majority: float = 0.6,
    accuracy: float = 0.8,
    held_out: bool = True,
) -> Learning:
    """Return what one learner learned of an original, with 0.9 of the measure, and of a release."""
    classes = 2 if measure == "roc_auc" else 3
    original, released = (
        Score(side, "trees", accuracy if measure == "roc_auc" else own, 0.5, 0.5, 0.5, 0.5, own)
        for side, own in (("original", 0.9), ("release", 0.9 - loss))
    )
    found = Difference(-loss, error, None, None, None if error is None else "no difference shown")
    best = ModelLoss(measure, "trees", "trees", loss, error)
    scores, both = [original, released], [ModelDifference("trees", found, found)]
    return Learning("job", classes, held_out, records, 0, majority, scores, both, best, None)


def usefulness_tile(learning: Learning | None) -> Tile:
    counts = {"utility_score": 90.0, "rows_published": 1000, "rows_left_out": 0}
    found = evidence(manifest={"summary": counts}, learning=learning)
    (tiles,) = glance(found).blocks
    assert isinstance(tiles, Tiles)
    return tiles.tiles[3]


@pytest.mark.parametrize(
    ("learning", "value", "tone"),
    [
        (learned(0.02), "95.0%", "good"),
        (learned(0.02, held_out=False), "95.0%", "mixed"),
        (learned(0.1), "75.0%", "mixed"),
        (learned(0.41), "0.0%", "bad"),
    ],
)
def test_the_tile_says_what_evaluate_says(learning: Learning, value: str, tone: str) -> None:
    tile = usefulness_tile(learning)
    assert (tile.value, tile.tone) == (value, tone)
    assert tile.text.casefold() == f"{describe_usefulness(None, learning)}.".casefold()


def test_too_few_test_records_leave_the_tile_to_the_figures() -> None:
    without, few = usefulness_tile(None), usefulness_tile(learned(0.02, 0.2))
    assert (few.value, few.tone) == (without.value, without.tone)
    assert few.text == f"{without.text} How well models learn is unknown. See below."


def test_the_section_tells_how_it_was_measured_with_intervals_and_guessing() -> None:
    section = usefulness(evidence(learning=learned(0.02, records=904)))
    sentence, how, chart = section.blocks[:3]
    assert isinstance(sentence, Text)
    assert sentence.text.startswith("A model trained on the release is 95.0% as good as on the")
    assert isinstance(how, Text)
    assert "tested on about 900 records that were put aside" in how.text
    assert isinstance(chart, Chart)
    assert [list(row) for row in chart.table.rows] == [
        ["trees", "0.9000", "0.8800", "-0.0200 ±0.0098", "no difference shown"],
        ["guessing", "0.5000", "0.5000", "", ""],
    ]
    flattered = usefulness(evidence(learning=learned(0.02, None, held_out=False)))
    assert isinstance(flattered.blocks[1], Text)
    assert "flatter it" in flattered.blocks[1].text
    assert isinstance(flattered.blocks[2], Chart)
    assert flattered.blocks[2].table.rows[0][3:] == ["-0.0200", "too few records"]


@pytest.mark.parametrize(
    ("learning", "told"),
    [
        (learned(0.02, records=9), False),
        (learned(0.02, records=10, majority=1.0), True),
        # Of the most frequent class are all but 9, and all but 10.
        (learned(0.02, records=1000, majority=0.991), False),
        (learned(0.02, records=1000, majority=0.99), True),
        # Areas tell no count, but accuracies do: 1,000 records less 0.9 of them.
        (learned(0.02, records=1000, accuracy=0.999), True),
        (learned(-0.095, measure="accuracy", records=1000), False),
        (learned(-0.09, measure="accuracy", records=1000), True),
        (learned(-0.1, measure="accuracy", records=1000), True),
        (
            replace(learned(0.02), loss=None, without_area="the test records are of one class"),
            False,
        ),
    ],
)
def test_no_score_may_tell_of_few_people(learning: Learning, told: bool) -> None:
    if told:
        require_many(learning, Disclosure(10))
        return
    with pytest.raises(DataError, match=r"^--holdout: .*(fewer than 10 test|of one class)"):
        require_many(learning, Disclosure(10))


def test_what_depends_on_records_that_are_left_out_is_not_learned() -> None:
    summary = {"rows_left_out": 20, "rows_suppressed": 20, "rows_dropped_missing": 0}
    document = {
        "configuration": {"privacy": {"k": 10}},
        "summary": summary,
        "published": {"left_out_values": "withheld"},
    }
    table = local_table(pa.table({"job": ["cook"]}), 1)
    with pytest.raises(ConfigurationError, match=r"^--target: there withholds the values"):
        learn(LocalEngine(), "there", Manifest(document), table, "job", None)
    with pytest.raises(ConfigurationError, match=r"^--target: found no --original"):
        learn(LocalEngine(), "there", Manifest(document), None, "job", None)
    with pytest.raises(ConfigurationError, match=r"^--holdout: .* Name what to learn: --target"):
        learn(LocalEngine(), "there", Manifest(document), table, None, table)
    assert learn(LocalEngine(), "there", Manifest(document), table, None, None) is None


# Grades and risk


@cases(__file__, "lost", "letter")
def test_grades_are_given_for_what_is_lost(lost: float, letter: str) -> None:
    assert grade(lost) == letter


@given(
    st.dictionaries(st.integers(1, 60), st.integers(1, 20), min_size=1),
    st.floats(0.001, 1.0, exclude_max=True),
)
def test_the_curve_counts_records_of_small_groups(sizes: dict[int, int], threshold: float) -> None:
    records = [size for size, groups in sizes.items() for _ in range(size * groups)]
    expected = sum(1 / size > threshold for size in records) / len(records)
    assert share_above(sizes, threshold) == pytest.approx(expected)


# What weakens a release


def test_classes_of_one_value_come_first() -> None:
    found = weakness_items(
        evidence(
            {
                "sensitive": [
                    {"attribute": "pay", "largest_share": 0.3, "homogeneous_classes": 0},
                    {
                        "attribute": "job",
                        "largest_share": 1.0,
                        "homogeneous_classes": 2,
                        "homogeneous_records": 31,
                    },
                    {"attribute": "code", "largest_share": None},
                ]
            }
        )
    )
    assert [one.title for one in found] == [
        "job: 2 classes with one value only",
        "code: not measured",
        "pay: 30% at most",
    ]
    assert [one.tone for one in found] == ["bad", "mixed", ""]
    assert "31 records" in found[0].text


def test_a_class_that_is_almost_one_value_is_told_without_its_records() -> None:
    sensitive = [{"attribute": "job", "largest_share": 17 / 19, "homogeneous_classes": 0}]
    (found,) = weakness_items(
        evidence(
            {"sensitive": sensitive},
            tried=[
                tried("alpha", 0.9, 0, 0),
                tried("alpha", 0.75, 1, 19),
                tried("alpha", 0.5, 7, 90),
            ],
        )
    )
    assert found.title == "job: 89.5% of one class share one value"
    assert "In 7 classes with 90 records one value has more than 50%" in found.text
    assert "19" not in found.text


def test_columns_that_single_out_and_other_warnings_are_told_once() -> None:
    warnings = [
        {"code": "rare_values", "attribute": "note", "text": "published as it is: few"},
        {"code": "equal_values", "attribute": "job", "text": "its values are equal"},
    ]
    found = weakness_items(
        evidence(
            {"warnings": ["attributes.job: its values are equal", "k counts people"]},
            manifest={"warnings": warnings},
        )
    )
    assert [(one.title, one.text) for one in found] == [
        ("note: singles people out by itself", "Published as it is: few."),
        ("job", "Its values are equal."),
        ("The proof", "K counts people."),
    ]


def test_the_weakest_class_is_of_the_attribute_that_most_records_are_told_of() -> None:
    def tile(*sensitive: tuple[str, float, int]) -> Tile:
        measured = [
            {"attribute": name, "largest_share": share, "homogeneous_records": records}
            for name, share, records in sensitive
        ]
        (tiles,) = glance(evidence({"sensitive": measured})).blocks
        assert isinstance(tiles, Tiles)
        return tiles.tiles[4]

    sure = tile(("pay", 1.0, 12), ("job", 1.0, 40), ("town", 0.99, 0))
    assert (sure.value, sure.tone) == ("100% share one value", "bad")
    assert sure.text.endswith("this value is certain.")
    almost = tile(("pay", 0.9, 0), ("job", 0.8, 0))
    assert (almost.value, almost.tone) == ("90% share one value", "mixed")
    assert almost.text.endswith("this value is almost certain.")


# An original that is another table


def test_an_original_that_does_not_match_may_be_another_table() -> None:
    truth = Truthfulness(1000, 6000, 0, 91, 5091, 0, 5608, 0, 808, 5808, 0)
    proof = {"failures": truth.describe(), "truthfulness": truth}
    manifest = {
        "published": {},
        "summary": {
            **{"rows_in": 1000, "rows_dropped_missing": 0, "rows_suppressed": 0},
            **{"rows_left_out": 0, "rows_published": 1000},
        },
    }
    found = evidence(proof, manifest=manifest)
    tiles = texts(glance(found))
    assert "not kept" not in tiles
    assert "Truthfulness was not shown: perhaps the original that was given is another" in tiles
    assert "No record was left out. The run reported this for the table that it read." in tiles
    proven = guarantee(found)
    assert "may be another table than the one that the release was made of" in texts(proven)
    (table,) = (block for block in proven.blocks if isinstance(block, Table))
    (row,) = (row for row in table.rows if str(row[0]).startswith("truthfulness"))
    assert row[2] == "808 originals, 5,808 published records"
    assert "Give the table that it was made of" in texts(advice(found))


# Where people count


def of_people(share: float = 0.9, **proof: Any) -> Evidence:
    """Return a release of 60 records, in classes of 10 and 20 people."""
    risk = {"attacker": "prosecutor", "highest": 0.1, "average": 2 / 30, "at_risk": 1 / 3}
    found: dict[str, Any] = {
        "rows": 60,
        "classes": 2,
        "sizes": [[30, 2]],
        "risk": [{**risk, "threshold": 0.07, "accepted_average": 0.1, "high_highest": True}],
        "people": [[10, 1], [20, 1]],
        "sensitive": [{"attribute": "job", "largest_share": share, "homogeneous_classes": 0}],
        **proof,
    }
    return evidence(found, tried=[tried("alpha", 0.5, 2, 60)])


def test_the_accepted_average_risk_is_shown_with_the_risk() -> None:
    found = of_people()
    assert "At most 10% on average is accepted." in texts(risk(found))
    assert "evaluate.risk.average" not in texts(glance(found))
    row = {**found.verification.risk[0], "accepted_average": 0.05, "high_average": True}
    first_page = texts(glance(of_people(risk=[row])))
    assert "More than 5% on average counts as high (evaluate.risk.average)" in first_page


def texts(section: Section | None) -> str:
    assert section is not None
    told = []
    for block in section.blocks:
        if isinstance(block, Text):
            told.append(block.text)
        if isinstance(block, Tiles):
            told += [f"{one.label} {one.value} {one.text}" for one in block.tiles]
        if isinstance(block, Items):
            told += [f"{one.title} {one.text}" for one in block.items]
        if isinstance(block, Chart):
            told += [block.table.caption, *block.table.columns]
            told += [" ".join(map(str, row)) for row in block.table.rows]
    return " ".join(told)


def test_risks_of_people_are_called_those_of_people() -> None:
    found = of_people()
    curve = texts(risk_curve(found))
    assert "share of the people above each probability" in curve
    assert "7% 33.3%" in curve
    assert "records above" not in curve.casefold()
    known = "for an attacker who knows the quasi-identifiers of one record of a person, and nothing"
    assert f"At most 10%, 6.7% on average, {known} else." in texts(glance(found))
    assert "So high is the risk of 33.3% of the people" in texts(weaknesses(found))
    section = texts(risk(found))
    assert "people at risk unique people" in section
    assert "33.3%" in section
    assert "Ask for classes of 15 people" in texts(advice(found))
    never = [{**found.verification.risk[0], "threshold": 0.0}]
    assert "Ask for classes" not in texts(advice(of_people(risk=never)))
    assert "One of 2 classes does not keep it now." in texts(advice(found))


@pytest.mark.parametrize("share", [0.9, 0.6, 0.3])
def test_what_counts_records_says_nothing_of_people(share: float) -> None:
    found = of_people(share)
    weak, tiles = texts(weaknesses(found)), texts(glance(found))
    for text in (weak, tiles):
        assert "records" in text
        assert "Counted by person, the share may be higher" in text
        assert "learns that" not in text
        assert "with this probability" not in text
    assert ("one value has more than 50% of the records" in weak) == (share > 0.5)


def test_a_verdict_is_mixed_where_something_weakens_it() -> None:
    def verdict(found: Evidence) -> tuple[str, str]:
        (tiles,) = glance(found).blocks
        assert isinstance(tiles, Tiles)
        assert len(tiles.tiles) == 5
        return tiles.tiles[0].value, tiles.tiles[0].tone

    weak = [{"attribute": "job", "largest_share": 0.9, "homogeneous_classes": 0}]
    assert verdict(evidence()) == ("holds", "good")
    assert verdict(evidence({"sensitive": weak})) == ("holds", "mixed")
    assert verdict(evidence({"holds": False})) == ("does not hold", "bad")


@pytest.mark.parametrize(
    ("dropped", "without", "value"),
    [(0, 0, "0"), (None, 0, "fewer than 10"), (40, 20, "60"), (40, None, "40 and a few")],
)
def test_records_lost_are_told_without_few(
    dropped: int | None, without: int | None, value: str
) -> None:
    summary = {
        "rows_in": None if None in (dropped, without) else 1000,
        "rows_dropped_missing": dropped,
        "rows_suppressed": without,
        "rows_left_out": without,
        "rows_published": 900,
    }
    (tiles,) = glance(evidence(manifest={"summary": summary})).blocks
    assert isinstance(tiles, Tiles)
    assert tiles.tiles[2].value == value


# What to do next


@cases(__file__, "parts", "expected", "words")
def test_lines_that_are_advised(
    parts: dict[str, Any], expected: list[str], words: list[str]
) -> None:
    measured = [
        MeasuredCriterion(Criterion(name, kind, bound), 0.9, classes, records)
        for name, kind, bound, classes, records in parts.get("tried", [])
    ]
    found = evidence(**{**parts, "tried": measured})
    assert lines(found) == expected
    assert all(one in texts(advice(found)) for one in words)


def test_every_bound_that_was_tried_is_shown_and_nothing_without_a_run() -> None:
    found = [
        *(tried("equal distance", *one) for one in ((0.5, 2, 30), (0.3, 9, 200), (0.2, 30, 700))),
        *(tried("alpha", *one) for one in ((0.75, 0, 0), (0.5, 40, 800))),
    ]
    section = stricter(evidence(tried=found))
    assert section is not None
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert len(table.rows) == 4
    union = evidence(manifest={"parts": [{"run_id": "a"}]}, tried=found)
    assert advice(union) is None
    assert stricter(union) is None


def test_columns_of_rare_values_that_are_sensitive_have_one_advice() -> None:
    names = ["diag_1", "diag_2", "diag_3"]
    manifest = {
        "warnings": [{"code": "rare_values", "attribute": one, "text": "few"} for one in names],
        "configuration": {
            "privacy": {"k": 10},
            "attributes": {one: {"role": "sensitive"} for one in names},
        },
    }
    section = advice(evidence(manifest=manifest))
    assert section is not None
    (items,) = (block for block in section.blocks if isinstance(block, Items))
    assert [one.title for one in items.items] == [
        "Join the rare values of diag_1, diag_2 and diag_3"
    ]


@cases(__file__, "required", "kind", "bound", "advised")
def test_what_is_required_already_is_not_advised(
    required: dict[str, Any], kind: Any, bound: float, advised: bool
) -> None:
    proof = {"holds": False, "criteria": [{"attribute": "job", **required}]}
    section = advice(evidence(proof, tried=[tried(kind, bound, 1, 1)]))
    assert section is not None
    titles = [
        one.title for block in section.blocks if isinstance(block, Items) for one in block.items
    ]
    assert len(titles) == 1 + advised
    assert (stricter(evidence(proof, tried=[tried(kind, bound, 1, 1)])) is not None) == advised


def test_a_broken_promise_is_not_called_kept_above_its_weaknesses() -> None:
    def text(found: Evidence) -> str:
        block = weaknesses(found).blocks[0]
        assert isinstance(block, Text)
        return block.text

    weak = {"sensitive": [{"attribute": "job", "largest_share": 0.9, "homogeneous_classes": 0}]}
    assert text(evidence(weak)).startswith("None of this breaks the promise.")
    assert text(evidence({**weak, "holds": False})).startswith(
        "The release does not keep its promise"
    )
    assert text(evidence({"holds": False})).startswith("The release does not keep its promise")
    (broken,) = weakness_items(evidence({**weak, "holds": False}))
    assert "every requirement is met" not in broken.text


def test_the_row_of_the_attack_that_succeeded_is_the_one_that_fails() -> None:
    attack = Linkage(9, 9, 0, 10, 1, 0)
    section = guarantee(evidence({"holds": False, "linkage": {"original": attack}}))
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    rows = {str(row[0]): row[1:] for row in table.rows if str(row[0]).startswith("linkage")}
    assert rows == {
        "linkage attack with the original: people with fewer than 10 candidates": [
            "0",
            "0",
            Verdict(True),
        ],
        "linkage attack with the original: records alone in their class that match one record "
        "of it": ["0", "fewer than 10", Verdict(False)],
    }


# Words


def test_the_first_place_of_a_word_is_explained_and_everything_is_escaped() -> None:
    words = Glossary(Term("class", "Equal <records>.", ("classes",)), Term("k-class", "More."))
    text = str(words.explained("<b> Classes, subclass and a k-class. Class & classes"))
    assert text.startswith("&lt;b&gt; <span")
    assert text.count('class="term"') == 2
    assert 'aria-describedby="term-class">Classes<' in text
    assert 'aria-describedby="term-k-class">k-class<' in text
    assert "Equal &lt;records&gt;." in text
    assert text.endswith(". Class &amp; classes")
    assert str(Glossary().explained("a < b")) == "a &lt; b"


@pytest.mark.parametrize("other", ["married", "widowed", "single"])
def test_a_set_of_categories_has_a_grade_by_its_size(other: str) -> None:
    """Two of four values are one of three others, whatever the alphabet says of them."""
    first = ["divorced", other] * 2
    last = sorted({"married", "single", "widowed"} - {other}) * 2
    table = pa.table({"status": first + last, "age": [20] * 4 + [60] * 4})
    config = {
        "attributes": {
            "status": {"role": "quasi_identifier", "weight": 0.01},
            "age": "quasi_identifier",
        },
        "privacy": {"k": 4},
        "model": "smondrian",
    }
    with anonspark.anonymize(table, config) as release:
        assert {row["loss"] for row in release.attributes.to_pylist()} == {0, 1 / 3}
        page = re.sub(r"(<[^>]+>|\s)+", " ", release.report().html)
    assert "age A 0% status D 33.3%" in page or "status D 33.3% age A 0%" in page
