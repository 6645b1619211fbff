"""Progress: a heartbeat in logs, what a command begins with, and words from deep below a stage."""

from __future__ import annotations

import io
import logging
import threading

import pytest
from rich.console import Console

from anonspark import progress as module
from anonspark.progress import Heartbeat, InnerProgress, Progress, report_step

PATIENCE = 120
"""Seconds after which another thread is given up, on a machine that is busy."""


class Clock:
    """Waits for so many seconds when the test says so."""

    def __init__(self, beats: int) -> None:
        self.left = beats
        self.waited: list[float] = []
        self.over = threading.Event()

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self.left -= 1
        if self.left < 0:
            self.over.set()
        return self.left < 0


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_long_stage_has_a_line_after_2_seconds_and_every_30(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "anonspark")
    clock = Clock(beats=4)
    beats = Heartbeat("verify: 10 rows", clock.wait)
    beats.report_step("counting classes")
    beats.start()
    assert clock.over.wait(PATIENCE)
    beats.stop()
    assert messages(caplog) == [
        "verify: 10 rows ...",
        *(f"verify: 10 rows: counting classes, {seconds} s so far" for seconds in (30, 60, 90)),
    ]
    assert clock.waited == [2.0, 28.0, 30.0, 30.0, 30.0]


def test_a_stage_beats_as_long_as_it_lasts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "anonspark")
    clock = Clock(beats=3)
    monkeypatch.setattr(module, "Heartbeat", lambda stage: Heartbeat(stage, clock.wait))
    with Progress().stage("publish"):
        assert clock.over.wait(PATIENCE)
    first, *beats, last = messages(caplog)
    assert (first, beats) == ("publish ...", ["publish, 30 s so far", "publish, 60 s so far"])
    assert last.startswith("publish: done in ")


def test_nobody_beats_for_a_log_that_is_not_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "anonspark")
    before = threading.active_count()
    with Progress().stage("publish"):
        assert threading.active_count() == before
    assert not caplog.records


def test_who_is_handed_no_progress_tells_the_stage_at_hand() -> None:
    progress = Progress()
    heard: list[str] = []
    report_step("nobody listens")
    with progress.followed_by(heard.append):
        with progress.stage("verify"):
            report_step("counting classes")
            inner = InnerProgress(outer=progress)
            with inner.stage("round 1 of 2"):
                report_step("forming classes")
            report_step("comparing")
        report_step("nobody listens")
    assert heard == [
        "verify",
        "verify, counting classes",
        "verify, round 1 of 2",
        "verify, forming classes",
        "verify, comparing",
    ]


def test_what_a_command_begins_with_is_shown_until_its_first_stage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "anonspark")
    progress = Progress()
    progress.begin("start Spark")
    assert progress.current == "start Spark"
    with progress.stage("read the input"):
        pass
    progress.begun()
    words = [message.partition(":")[0] for message in messages(caplog)]
    assert words == ["start Spark", "read the input"]
    assert list(progress.seconds) == ["read the input"], "starting is no stage of a run"


def test_what_did_not_begin_is_not_called_done(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "anonspark")
    progress = Progress()
    progress.begin("start Spark")
    progress.begun(failed=True)
    assert messages(caplog) == []
    assert progress.current == "start Spark", "whoever asks after the end learns what failed"


def test_a_terminal_shows_what_is_going_on() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    progress = Progress(console)
    progress.begin("start")
    with progress.stage("read the input", rows=1234):
        report_step("checking values")
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    for words in ("start", "read the input: 1,234 rows: checking values", "done in"):
        assert words in shown
