"""What follows runs over time: the section `metrics`, drift, logs and progress."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cases import cases
from rich.console import Console

from anonspark.cli.logs import CommandLog
from anonspark.comparison.grid import load_grid
from anonspark.config import Configuration, parse_configuration
from anonspark.errors import ConfigurationError, DataError, GuaranteeError, exit_code_of
from anonspark.layers.evaluate.gates import measure_drift, require_no_drift
from anonspark.progress import Progress

MINIMAL: dict[str, Any] = {
    "input": {"path": "in"},
    "attributes": {"age": "quasi_identifier", "city": "quasi_identifier"},
    "privacy": {"k": 2},
    "output": {"path": "out"},
}
STARTED = datetime(2026, 11, 21, 1, 30, tzinfo=UTC)


def configured(**sections: Any) -> Configuration:
    return parse_configuration({**MINIMAL, **sections})


# The section `metrics`


@cases(__file__, "metrics", "text")
def test_what_the_section_refuses(metrics: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        configured(metrics=metrics)


def test_the_paths_of_the_metrics_are_redacted() -> None:
    metrics = {
        "append_to": "s3a://key:hunter2@bucket/metrics",
    }
    public = configured(metrics=metrics).public_dict()
    assert public["metrics"]["append_to"] == "s3a://(redacted)@bucket/metrics"
    assert "hunter2" not in json.dumps(public)


@cases(__file__, "sections", "comparable")
def test_which_runs_are_comparable(sections: dict[str, Any], comparable: bool) -> None:
    same = configured().settings_fingerprint() == configured(**sections).settings_fingerprint()
    assert same == comparable


def test_paths_of_files_do_not_make_runs_incomparable() -> None:
    def fingerprint(day: str) -> str:
        city = {"role": "quasi_identifier", "hierarchy": f"{day}/city.csv"}
        population = {"population": f"{day}/registry", "max": 0.5}
        return configured(
            attributes={"age": city, "city": city},
            model={
                "name": "full-domain",
                "levels": [{"age": 1, "city": 1}],
                "suppression_limit": 0.0,
            },
            privacy={"k": 2, "delta_presence": population},
        ).settings_fingerprint()

    assert fingerprint("monday") == fingerprint("tuesday") != configured().settings_fingerprint()


def test_cells_of_a_comparison_are_no_runs_of_the_job(tmp_path: Path) -> None:
    base = {**MINIMAL, "metrics": {"append_to": "m", "drift": {"gcp": 0.1}}}
    grid = {"base": base, "axes": {"privacy.k": [2, 3]}, "output": "comparison"}
    (tmp_path / "grid.yaml").write_text(json.dumps(grid))
    cells = load_grid(tmp_path / "grid.yaml").cells
    assert [cell.configuration.metrics for cell in cells] == [configured().metrics] * 2


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
    require_no_drift(measure_drift(bounds, now, None))
    require_no_drift([])


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


def test_stack_traces_in_the_log_if_they_are_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = CommandLog(Console(stderr=True), format="json", debug=True)
    *_, fails = [json.loads(line) for line in logged(capsys, log).splitlines()]
    assert "GuaranteeError: one" in fails["traceback"]


def test_the_log_as_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    told = logged(capsys, CommandLog(Console(stderr=True)))
    assert " anonspark nightly-1: round 2 of 5: 10 rows: done in " in told
    assert " anonspark.engine.spark.session nightly-1: so what" in told
    assert "error: one\nerror: two\n" in told
