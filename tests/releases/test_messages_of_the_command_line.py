"""What a user is told whose command line is wrong."""

from __future__ import annotations

import pytest
from helpers import command


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("run", "Missing argument 'CONFIG'; see anonspark run --help"),
        ("rnu x", "No such command: rnu; did you mean anonspark run?; see anonspark --help"),
        ("run x --k 10", "it is a key of the configuration: --set privacy.k=10; see anonspark run"),
        ("run x --k=10", "--set privacy.k=10; see anonspark run --help"),
        ("check x --l-diversity 2", "--set privacy.l_diversity=2; see anonspark check --help"),
        ("run x --model mondrian", "--set model.name=mondrian; see anonspark run --help"),
        ("run x --nonsense", "No such option: --nonsense; see anonspark run --help"),
        ("ledger show", "Missing argument 'PATH'; see anonspark ledger show --help"),
        ("check x --run-date 31.1.2026", "found '31.1.2026'; expected a day as 2026-01-31"),
    ],
)
def test_what_is_said_of_a_wrong_line(
    capsys: pytest.CaptureFixture[str], line: str, told: str
) -> None:
    shown = command(capsys, *line.split())
    assert shown.code == 2
    assert told in shown.err
