"""Work that a signal ends, whichever thread the signal arrives in and whenever it does."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from anonspark.cli import engine_runner
from anonspark.cli.command import ERR
from anonspark.cli.engine_runner import EndedError, ended_by_signals, work_in_thread
from anonspark.cli.logs import LOG, CommandLog
from anonspark.core import extensions
from anonspark.engine.choice import Work
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine

# What is never reached where a signal ends the work.
PATIENCE = 60


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Put the handlers back that the work replaces."""
    with ended_by_signals():
        yield


@pytest.fixture
def cancelled() -> threading.Event:
    """Tell when the work is cancelled."""
    return threading.Event()


def _in_its_own_thread(number: signal.Signals) -> None:
    signal.pthread_kill(threading.get_ident(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("send", [_in_its_own_thread, signal.raise_signal])
def test_a_signal_in_any_thread_cancels_the_work(
    cancelled: threading.Event, number: signal.Signals, send: Callable[[signal.Signals], None]
) -> None:
    def work(_engine: Engine) -> None:
        send(number)
        assert cancelled.wait(PATIENCE)
        raise RuntimeError("a task was cancelled")

    with pytest.raises(EndedError, match="No release was published") as ended:
        work_in_thread(work, LocalEngine(), cancelled.set)
    assert ended.value.exit_code == 128 + number
    # The one who cleans up is not disturbed.
    assert {signal.getsignal(one) for one in engine_runner.SIGNALS} == {signal.SIG_IGN}


def test_a_signal_while_work_is_handed_over_cancels_it(
    cancelled: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pool(engine_runner.ThreadPoolExecutor):
        def submit(self, *arguments: object) -> object:  # type: ignore[override]
            submitted = super().submit(*arguments)  # type: ignore[arg-type]
            signal.raise_signal(signal.SIGTERM)
            return submitted

    monkeypatch.setattr(engine_runner, "ThreadPoolExecutor", Pool)

    def work(_engine: Engine) -> None:
        assert cancelled.wait(PATIENCE)
        raise RuntimeError("a task was cancelled")

    with pytest.raises(EndedError):
        work_in_thread(work, LocalEngine(), cancelled.set)


def test_work_that_finishes_after_all_has_its_result(cancelled: threading.Event) -> None:
    def work(_engine: Engine) -> str:
        signal.raise_signal(signal.SIGTERM)
        cancelled.wait(PATIENCE)
        return "published"

    assert work_in_thread(work, LocalEngine(), cancelled.set) == "published"


@pytest.mark.parametrize("ends_process", [True, False])
def test_who_does_without_pandas(monkeypatch: pytest.MonkeyPatch, ends_process: bool) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    before = LOG.set(CommandLog(ERR, ends_process=ends_process))
    try:
        finders = engine_runner.work_with_engine(
            "local", None, None, lambda _engine: [*sys.meta_path]
        )
    finally:
        LOG.reset(before)
    assert any(isinstance(one, engine_runner.WithoutPandas) for one in finders) == ends_process


@pytest.mark.parametrize(
    ("path", "advised"), [("people.csv", True), ("hdfs://there/people", False)]
)
def test_files_that_fit_into_one_process_are_advised_to_do_without_spark(
    path: str, advised: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engine_runner, "work_with_spark", lambda *_: "done")
    with caplog.at_level("INFO", logger="anonspark"):
        done = engine_runner.work_with_engine("spark", Work((path,)), None, lambda _engine: "")
    assert done == "done"
    assert [one.message for one in caplog.records if "--engine local" in one.message] == [
        "these files fit into one process, which is mostly faster without Spark. Try --engine "
        "local, or execution.engine: local in a configuration"
    ] * advised


def test_pandas_is_there_for_models_of_other_packages() -> None:
    extensions._points.cache_clear()
    finder = engine_runner.WithoutPandas()
    with pytest.raises(ModuleNotFoundError, match="'pandas'"):
        finder.find_spec("pandas")
    finder.find_spec("numpy")
    assert extensions.extension(extensions.MODELS, "of another package") is None
    # What a package imports as it is loaded is found as usual.
    finder.find_spec("pandas")
    extensions._points.cache_clear()
