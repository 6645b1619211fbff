"""Commands of the package, run in this process as a user types them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from anonspark.errors import PublishingError


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """Run a command in this process."""
    # Not above: each process of pytest imports this module.
    from anonspark.cli.application import main

    capsys.readouterr()
    logger = logging.getLogger("anonspark")
    handlers, level = logger.handlers, logger.level
    try:
        code = main([str(argument) for argument in arguments])
    finally:
        # They write to what stands in for standard error during this test only.
        logger.handlers = handlers
        logger.setLevel(level)
    return Outcome(code, *capsys.readouterr())


class Cli:
    """Commands of a test: ``cli("run", path)`` returns how it ended."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Outcome:
        """Run a command."""
        return command(self._capsys, *arguments)

    def ends(self, code: int, *arguments: object, says: str | tuple[str, ...] = ()) -> Outcome:
        """Run a command, and require its exit code and what standard error holds."""
        outcome = self(*arguments)
        assert outcome.code == code, outcome.err
        for text in (says,) if isinstance(says, str) else says:
            assert text in outcome.err, outcome.err
        return outcome


@contextmanager
def interrupted(step: str) -> Iterator[None]:
    """Let a step of a run fail as on a full disk, and require that the run ends so."""
    from anonspark.pipeline import run

    def fail(*_: object, **__: object) -> None:
        raise PublishingError("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, step, fail)
        with pytest.raises(PublishingError, match="the disk is full"):
            yield
