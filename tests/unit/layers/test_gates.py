"""Quality gates and the utility score: what is checked, and what is said."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from cases import cases

import anonspark
from anonspark.config import parse_configuration
from anonspark.config.gates import Gate
from anonspark.core.figure_text import k_of
from anonspark.core.model_scores import describe_utility, utility_score, utility_word
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.layers.evaluate.gates import check_gates, require_passed

MINIMAL: dict[str, Any] = {
    "input": {"path": "in"},
    "attributes": {"age": "quasi_identifier", "a.b": "quasi_identifier"},
    "privacy": {"k": 2},
    "output": {"path": "out"},
}
SUMMARY = {"gcp": 0.04, "rows_suppressed": 3, "dm": 100, "rule_gain": None}
ATTRIBUTES = [{"attribute": "age", "ncp": 0.1}, {"attribute": "a.b", "ncp": 0.3}]
RISK = [
    {"round": 1, "attacker": "marketer", "average": 0.9},
    {"attacker": "marketer", "average": 0.2, "highest": None},
]


def configured(**gates: Any) -> dict[str, Gate]:
    return parse_configuration({**MINIMAL, "gates": gates}).gates


def test_figures_within_their_bounds() -> None:
    gates = {
        "gcp": {"min": 0.0, "max": 0.04},
        "rows_suppressed": {"max": 3},
        "attributes.a.b.ncp": {"max": 0.3},
        "risk.marketer.average": {"max": 0.2},
    }
    results = check_gates(configured(**gates), SUMMARY, ATTRIBUTES, RISK)
    assert [one.found for one in results] == [0.04, 3.0, 0.3, 0.2]
    require_passed(results)
    require_passed([])


def test_a_figure_that_is_withheld_is_judged_and_not_told() -> None:
    summary = {**SUMMARY, "rows_suppressed": None}
    (result,) = check_gates(
        configured(rows_suppressed={"max": 3}), summary, [], [], {"rows_suppressed": 3}
    )
    assert (result.found, result.withheld) == (None, True)
    require_passed([result])
    with pytest.raises(GuaranteeError) as refused:
        require_passed(
            check_gates(
                configured(rows_suppressed={"max": 2}), summary, [], [], {"rows_suppressed": 3}
            )
        )
    assert str(refused.value).splitlines()[0] == (
        "gates.rows_suppressed: found a number that is withheld because it counts fewer than k "
        "records. Expected at most 2"
    )


def test_every_figure_out_of_bounds_is_told() -> None:
    gates = {
        "gcp": {"max": 0.03},
        "dm": {"min": 150},
        "rows_suppressed": {"max": 3},
        "rule_gain": {"min": 1},
    }
    with pytest.raises(GuaranteeError) as refused:
        require_passed(check_gates(configured(**gates), SUMMARY, ATTRIBUTES, RISK))
    assert str(refused.value).splitlines() == [
        "gates.gcp: found 0.04, expected at most 0.03, 0.01 less",
        "gates.dm: found 100, expected at least 150, 50 more",
        "gates.rule_gain: this run has no such figure. Remove the gate",
        "nothing was published. Weaken the gates, or choose another model or k",
    ]


@pytest.mark.parametrize("k", [*range(2, 60), 99, 1000, 99_999])
def test_a_fraction_is_the_figure_of_so_many_records(k: int) -> None:
    (gate,) = configured(gcp={"min": f"1/{k + 1}", "max": f"1/{k}"}).values()
    assert (gate.min, gate.max) == (1 / (k + 1), 1 / k)
    document = {**MINIMAL, "evaluate": {"risk": {"threshold": f"1 / {k}"}}}
    threshold = parse_configuration(document).evaluate.risk.threshold
    assert threshold == 1 / k
    assert k_of(threshold) == k
    assert k_of(threshold * (1 - 1e-15)) == k + 1


@pytest.mark.parametrize(
    ("found", "bound", "needed"),
    [
        (1 / 11, 0.09, "0.09 needs k = 12; 1/11 is written '1/11'"),
        (1 / 3, 0.33, "0.33 needs k = 4; 1/3 is written '1/3'"),
        (1 / 10, 0.09, "0.09 needs k = 12"),
        (1 / 10, "1/11", "0.0909091 needs k = 11"),
        (1, 0.5, "0.5 needs k = 2"),
        (1 / 10, 0, None),
    ],
)
def test_a_bound_on_the_highest_risk_says_which_k_it_needs(
    found: float, bound: float | str, needed: str | None
) -> None:
    risk = [{"attacker": name, "highest": found} for name in ("prosecutor", "journalist")]
    name = "risk.{}.highest".format
    for attacker in ("prosecutor", "journalist"):
        gates = configured(**{name(attacker): {"max": bound}})
        (result,) = check_gates(gates, SUMMARY, [], risk)
        text = str(result.describe())
        expected = needed if attacker == "prosecutor" else None
        assert text.partition(" less. ")[2] == (expected or "")


@cases(__file__, "gates", "text")
def test_what_is_no_gate(gates: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        configured(**gates)


def test_figures_without_rounds_are_asked_for_where_there_are_none() -> None:
    gated = {"gates": {"baseline_dm": {"max": 1}}}
    assert parse_configuration({**MINIMAL, **gated}).gates
    with pytest.raises(ConfigurationError, match=r"Set evaluate\.compare_baseline to true"):
        parse_configuration({**MINIMAL, **gated, "model": {"name": "canon"}})


def test_a_figure_that_is_no_number_is_out_of_all_bounds() -> None:
    figures = {**SUMMARY, "gcp": float("nan")}
    for bound in ({"min": 0}, {"max": 1}):
        with pytest.raises(GuaranteeError, match="found nan"):
            require_passed(check_gates(configured(gcp=bound), figures, ATTRIBUTES, RISK))


def test_figures_that_are_asked_for_can_be_gated() -> None:
    document = {
        **MINIMAL,
        "evaluate": {"information": True, "compare_baseline": True},
        "gates": {"entropy": {"max": 1}, "rule_c": {"min": 1}},
    }
    assert list(parse_configuration(document).gates) == ["entropy", "rule_c"]


@pytest.mark.parametrize(
    ("loss", "word"),
    [(0.0, "excellent"), (0.01, "excellent"), (0.02, "very good"), (0.1, "good"), (0.3, "fair"),
     (0.5, "poor"), (1.0, "poor")],
)  # fmt: skip
def test_the_score_in_words(loss: float, word: str) -> None:
    summary = {
        "utility_score": utility_score(loss),
        "k": 7,
        "rows_published": 90,
        "rows_left_out": 10,
        "rows_suppressed": 0,
    }
    told = describe_utility(summary)
    assert told.startswith(f"{word} ({100 - 100 * loss:.1f} of 100 for the detail kept")
    assert told.endswith(f"{loss:.2%} of their column's range on average")
    told = describe_utility({**summary, "rows_suppressed": 5})
    span = max(0.0, (loss - 0.05) / 0.95)
    assert told.endswith(
        f"published values span {span:.2%} of their column's range on average, "
        "and 5.00% of the records are lost altogether"
    )
    told = describe_utility({**summary, "rows_suppressed": None, "rows_left_out": None})
    assert told.endswith(
        " of their column's range on average, and fewer than 7 records were left out"
    )


def test_a_loss_of_all_and_its_last_digit_has_a_word() -> None:
    assert utility_word(utility_score(1 + 2**-52)) == "poor"


def test_groups_of_11_pass_one_in_11() -> None:
    """The threshold that is written as 0.09 stands for groups of 11."""
    people = pa.table({"age": [*range(30, 41), *range(60, 71)]})
    asked: dict[str, Any] = {
        "attributes": {"age": "quasi_identifier"},
        "privacy": {"k": 11},
        "evaluate": {"risk": {"threshold": "1/11"}},
        "gates": {"risk.prosecutor.highest": {"max": "1/11"}},
    }
    with anonspark.anonymize(people, asked) as release:
        (risk,) = (row for row in release.verify().risk if row["attacker"] == "prosecutor")
        assert (risk["highest"], risk["high_highest"]) == (1 / 11, False)
        assert "At most 9.1%" in release.report().html
    asked["gates"] = {"risk.prosecutor.highest": {"max": 0.09}}
    words = r"0\.09 needs k = 12; 1/11 is written '1/11'"
    with pytest.raises(GuaranteeError, match=words):
        anonspark.anonymize(people, asked)
