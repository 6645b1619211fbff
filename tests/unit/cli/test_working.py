"""Work that a signal ends, whichever thread the signal arrives in and whenever it does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from anonspark.cli import working
from anonspark.cli.working import EndedError, ended_by_signals, work_in_thread
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
    cancelled: threading.Event,
    number: signal.Signals,
    send: Callable[[signal.Signals], None],
) -> None:
    told: list[BaseException | None] = []

    def work(_engine: Engine) -> None:
        send(number)
        assert cancelled.wait(PATIENCE)
        raise RuntimeError("a task was cancelled")

    with pytest.raises(EndedError, match="no release was published") as ended:
        work_in_thread(
            work, LocalEngine(), cancelled.set, lambda _engine, error: told.append(error)
        )
    assert ended.value.exit_code == 128 + number
    assert told == [ended.value]
    # The one who cleans up is not disturbed.
    assert {signal.getsignal(one) for one in working.SIGNALS} == {signal.SIG_IGN}


def test_a_signal_while_work_is_handed_over_cancels_it(
    cancelled: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pool(working.ThreadPoolExecutor):
        def submit(self, *arguments: object) -> object:  # type: ignore[override]
            submitted = super().submit(*arguments)  # type: ignore[arg-type]
            signal.raise_signal(signal.SIGTERM)
            return submitted

    monkeypatch.setattr(working, "ThreadPoolExecutor", Pool)

    def work(_engine: Engine) -> None:
        assert cancelled.wait(PATIENCE)
        raise RuntimeError("a task was cancelled")

    with pytest.raises(EndedError):
        work_in_thread(work, LocalEngine(), cancelled.set, None)


def test_work_that_finishes_after_all_has_its_result(cancelled: threading.Event) -> None:
    def work(_engine: Engine) -> str:
        signal.raise_signal(signal.SIGTERM)
        cancelled.wait(PATIENCE)
        return "published"

    assert work_in_thread(work, LocalEngine(), cancelled.set, None) == "published"
