"""Quality gates, and what follows runs over time: drift, logs and progress."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases import cases
from rich.console import Console

import anonspark
from anonspark.cli.logs import CommandLog
from anonspark.comparison.grid import load_grid
from anonspark.config import Configuration, parse_configuration
from anonspark.config.gates import Gate
from anonspark.core.figure_text import k_of
from anonspark.core.model_scores import describe_utility, utility_score, utility_word
from anonspark.errors import ConfigurationError, DataError, GuaranteeError, exit_code_of
from anonspark.layers.evaluate.gates import (
    check_gates,
    measure_drift,
    require_no_drift,
    require_passed,
)
from anonspark.progress import Progress

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


@cases(__file__, "loss", "word")
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


FOLLOWED: dict[str, Any] = {
    "input": {"path": "in"},
    "attributes": {"age": "quasi_identifier", "city": "quasi_identifier"},
    "privacy": {"k": 2},
    "output": {"path": "out"},
}


def configured_run(**sections: Any) -> Configuration:
    return parse_configuration({**FOLLOWED, **sections})


# The section `metrics`


@cases(__file__, "metrics", "text")
def test_what_the_section_refuses(metrics: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        configured_run(metrics=metrics)


def test_the_paths_of_the_metrics_are_redacted() -> None:
    metrics = {"append_to": "s3a://key:hunter2@bucket/metrics"}
    public = configured_run(metrics=metrics).public_dict()
    assert public["metrics"]["append_to"] == "s3a://(redacted)@bucket/metrics"
    assert "hunter2" not in json.dumps(public)


@cases(__file__, "sections", "comparable")
def test_which_runs_are_comparable(sections: dict[str, Any], comparable: bool) -> None:
    same = (
        configured_run().settings_fingerprint() == configured_run(**sections).settings_fingerprint()
    )
    assert same == comparable


def test_paths_of_files_do_not_make_runs_incomparable() -> None:
    def fingerprint(day: str) -> str:
        city = {"role": "quasi_identifier", "hierarchy": f"{day}/city.csv"}
        population = {"population": f"{day}/registry", "max": 0.5}
        return configured_run(
            attributes={"age": city, "city": city},
            model={
                "name": "full-domain",
                "levels": [{"age": 1, "city": 1}],
                "suppression_limit": 0.0,
            },
            privacy={"k": 2, "delta_presence": population},
        ).settings_fingerprint()

    assert (
        fingerprint("monday") == fingerprint("tuesday") != configured_run().settings_fingerprint()
    )


def test_cells_of_a_comparison_are_no_runs_of_the_job(tmp_path: Path) -> None:
    base = {**FOLLOWED, "metrics": {"append_to": "m", "drift": {"gcp": 0.1}}}
    grid = {"base": base, "axes": {"privacy.k": [2, 3]}, "output": "comparison"}
    (tmp_path / "grid.yaml").write_text(json.dumps(grid))
    cells = load_grid(tmp_path / "grid.yaml").cells
    assert [cell.configuration.metrics for cell in cells] == [configured_run().metrics] * 2


# Drift


def test_drift_within_and_beyond_its_bounds() -> None:
    before = {"run_id": "monday", "rows_in": 1000, "gcp": 0.04, "dm": 0, "entropy": None}
    now = {"rows_in": 1100, "gcp": 0.05, "dm": 0, "entropy": 3.5}
    bounds = {"rows_in": 0.1, "gcp": 0.2, "dm": 0.0, "entropy": 0.1}
    drifts = measure_drift(bounds, now, before)
    assert [one.change for one in drifts] == [0.1, pytest.approx(0.25), 0.0, None]
    with pytest.raises(GuaranteeError) as refused:
        require_no_drift(drifts)
    first, last = str(refused.value).splitlines()
    assert first == (
        "metrics.drift.gcp: found 0.05 after 0.04 in run monday, a relative change of 0.25, "
        "expected at most 0.2"
    )
    assert last.startswith("nothing was published")
    assert last.endswith("also in the next run if that has the usual figures")
    require_no_drift(measure_drift(bounds, now, None))
    require_no_drift([])


def test_after_an_allowed_change_the_way_back_needs_a_bound_too() -> None:
    usual, small = {"rows_in": 2100}, {"rows_in": 300, "run_id": "sunday"}
    with pytest.raises(GuaranteeError, match="a relative change of 6, expected at most 1"):
        require_no_drift(measure_drift({"rows_in": 1.0}, usual, small))
    require_no_drift(measure_drift({"rows_in": 6.0}, usual, small))


@pytest.mark.parametrize(("before", "now"), [(0, 1), (1.0, float("nan")), (-1, 1)])
def test_a_change_without_measure_is_beyond_every_bound(before: float, now: float) -> None:
    with pytest.raises(GuaranteeError, match=r"metrics\.drift\.gcp"):
        require_no_drift(measure_drift({"gcp": 1.5}, {"gcp": now}, {"gcp": before, "run_id": "a"}))


# Logs and progress


def test_exit_codes_of_errors() -> None:
    errors = [None, ConfigurationError("a"), DataError("a"), KeyboardInterrupt(), ValueError("a")]
    assert [exit_code_of(error) for error in errors] == [0, 2, 3, 130, 1]


def test_progress_is_followed() -> None:
    progress = Progress()
    heard: list[str] = []
    with progress.followed_by(heard.append):
        with progress.stage("round 2 of 5", rows=10):
            assert (progress.current, progress.round) == ("round 2 of 5", 2)
            progress.report_step("counting")
        assert (progress.current, progress.round) == (None, None)
        with pytest.raises(DataError), progress.stage("verify"):
            raise DataError("no")
    assert progress.current == "verify", "whoever asks after the end learns what failed"
    with progress.stage("publish"):
        pass
    assert heard == ["round 2 of 5", "round 2 of 5, counting", "verify"]
    assert list(progress.seconds) == ["round 2 of 5", "verify", "publish"]


def logged(capsys: pytest.CaptureFixture[str], log: CommandLog) -> str:
    """Log what a command may have to say, and return standard error."""
    logger = logging.getLogger("anonspark")
    before = logger.handlers, logger.level
    with log.opened():
        progress = log.follow(quiet=False, shows_progress=True, run_id="nightly-1")
        with progress.stage("round 2 of 5", rows=10):
            logging.getLogger("anonspark.engine.spark.session").warning("so %s", "what\n2")
        logging.getLogger("elsewhere").info("not told")
        logging.getLogger("elsewhere").error("told by others")
        try:
            with progress.stage("verify"):
                raise GuaranteeError("one\ntwo")
        except GuaranteeError as error:
            log.fail(4, str(error), debug=log.debug)
    assert (logger.handlers, logger.level) == before
    return capsys.readouterr().err


def test_the_log_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    log = CommandLog(Console(stderr=True, force_terminal=True), format="json")
    lines = [json.loads(line) for line in logged(capsys, log).splitlines()]
    warns, ends, other, fails = lines
    now = datetime.now(UTC)
    for line in lines:
        assert 0 <= (now - datetime.fromisoformat(line.pop("time"))).total_seconds() < 60
    about = {"logger": "anonspark", "run_id": "nightly-1", "stage": "round 2 of 5", "round": 2}
    assert warns == about | {
        "level": "WARNING",
        "logger": "anonspark.engine.spark.session",
        "message": "so what\n2",
    }
    assert re.fullmatch(r"round 2 of 5: 10 rows: done in \d\.\d s", ends["message"])
    assert (other["logger"], other["stage"]) == ("elsewhere", None)
    assert fails == {
        "level": "ERROR",
        "logger": "anonspark",
        "message": "one\ntwo",
        "run_id": "nightly-1",
        "stage": "verify",
        "exit_code": 4,
    }


def test_stack_traces_in_the_log_if_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    log = CommandLog(Console(stderr=True), format="json", debug=True)
    *_, fails = [json.loads(line) for line in logged(capsys, log).splitlines()]
    assert "GuaranteeError: one" in fails["traceback"]


def test_the_log_as_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    told = logged(capsys, CommandLog(Console(stderr=True)))
    assert " anonspark nightly-1: round 2 of 5: 10 rows: done in " in told
    assert " anonspark.engine.spark.session nightly-1: so what" in told
    assert "error: one\nerror: two\n" in told
