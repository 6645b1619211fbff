"""What can be said of a change in twenty seconds: ``make quick``.

Changed are the files that differ from where this branch left ``main``, committed or not. Their
format and lint are checked, the imports between rooms, the types, and the unit tests of the rooms
that changed run, those of the changed modules first. Nothing of it starts Java. What has not ended
when the time is over is stopped, and what did not run is said: it does not replace ``make test``.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

REPOSITORY = Path(__file__).resolve().parent.parent
PROGRAMS = Path(sys.executable).parent
PACKAGE = "anonspark"
UNIT_TESTS = Path("tests/unit")

# Pytest says with it that no test was found.
_NOTHING_FOUND = 5

# Seconds that those which are stopped have together, to say how far they came.
_TO_STOP = 1.5


@dataclass
class Check:
    """A program that is running, and where it writes to."""

    name: str
    process: subprocess.Popen[str]
    output: IO[str]


def changed_files(repository: Path, base: str) -> list[Path]:
    """Return the files that are there and differ from where this branch left another, by path."""
    start = _git(repository, "merge-base", "HEAD", base)
    since = start[0] if start else "HEAD"
    names = _git(repository, "diff", "--name-only", "--diff-filter=d", since)
    names += _git(repository, "ls-files", "--others", "--exclude-standard")
    return sorted({Path(name) for name in names})


def tests_of(changed: list[Path], repository: Path) -> tuple[list[str], list[str]]:
    """Choose the tests of changed files.

    Returns
    -------
    list of str
        Files and folders for pytest: changed unit tests, tests that are named as a changed module,
        and then the rooms of changed modules.
    list of str
        What changed and has no unit tests of its own, or is tested elsewhere.
    """
    first: list[Path] = []
    rooms: list[Path] = []
    left: list[str] = []
    for path in changed:
        if path.is_relative_to(UNIT_TESTS):
            if path.name.startswith("test_"):
                # Or the rows of its tests, which are in YAML beside it.
                first.append(path.with_suffix(".py"))
        elif path.parts[0] == PACKAGE and len(path.parts) > 2:
            room = UNIT_TESTS / path.parts[1]
            if not (repository / room).is_dir():
                left.append(f"{path} (there is no {room})")
                continue
            first.extend(
                found.relative_to(repository)
                for found in sorted((repository / room).rglob(f"test_{path.stem}.py"))
            )
            rooms.append(room)
        elif path.suffix == ".py":
            left.append(str(path))
    return [str(path) for path in dict.fromkeys(first + sorted(set(rooms)))], left


def main(arguments: list[str] | None = None) -> int:
    """Check what changed, and return 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", default="main", help="what it is compared with (main)")
    parser.add_argument("--seconds", type=float, default=18, help="when to stop (18)")
    options = parser.parse_args(arguments)
    end = time.monotonic() + options.seconds

    changed = changed_files(REPOSITORY, options.base)
    if not changed:
        print(f"Nothing differs from {options.base}.")
        return 0
    tests, left = tests_of(changed, REPOSITORY)
    checks = [_start(name, command) for name, command in _commands(changed, tests).items()]
    wrong, unfinished = [], []
    for check, code in zip(checks, _wait(checks, end), strict=True):
        if code is None:
            unfinished.append(check.name)
        elif code not in (0, _NOTHING_FOUND):
            wrong.append(check.name)
        _show(check, code)
    for name in unfinished:
        print(f"Stopped after {options.seconds:g} s, not finished: {name}.")
    print(f"Not tested: {', '.join([*left, 'whatever needs Java, or uses what changed'])}.")
    print(f"Wrong: {', '.join(wrong)}." if wrong else "Nothing wrong was found.")
    return 1 if wrong else 0


def _commands(changed: list[Path], tests: list[str]) -> dict[str, list[str]]:
    sources = [str(path) for path in changed if path.suffix == ".py"]
    commands = {}
    if sources:
        ruff = str(PROGRAMS / "ruff")
        commands["format"] = [ruff, "format", "--check", *sources]
        commands["lint"] = [ruff, "check", *sources]
    if tests:
        # No more than what shows a mistake at once; the folder of the cache is left alone, for
        # another run may use it.
        commands["unit tests"] = [
            *(sys.executable, "-m", "pytest", "-x", "-q", "--durations=0", "--durations-min=2"),
            *("-p", "no:cacheprovider", "-m", "not system and not night"),
            *("--hypothesis-profile=quick", *tests),
        ]
    if any(path.parts[0] == PACKAGE and path.suffix == ".py" for path in changed):
        commands["rooms"] = [str(PROGRAMS / "lint-imports")]
        # Its cache makes it a matter of seconds after the first time.
        commands["types"] = [str(PROGRAMS / "mypy")]
    return commands


def _start(name: str, command: list[str]) -> Check:
    output = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - read when it has ended
    process = subprocess.Popen(
        command,
        cwd=REPOSITORY,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        # What is stopped has then said how far it came.
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    return Check(name, process, output)


def _wait(checks: Sequence[Check], end: float) -> list[int | None]:
    """Return the exit code of each check, None of one that was stopped at the end of the time."""
    codes = [_code_by(check, end) for check in checks]
    stopped = [check for check, code in zip(checks, codes, strict=True) if code is None]
    for check in stopped:
        # As Ctrl-C does: pytest then still says what it has run.
        check.process.send_signal(signal.SIGINT)
    for check in stopped:
        if _code_by(check, end + _TO_STOP) is None:
            check.process.kill()
            check.process.wait()
    return codes


def _code_by(check: Check, end: float) -> int | None:
    try:
        return check.process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


def _show(check: Check, code: int | None) -> None:
    check.output.seek(0)
    lines = check.output.read().splitlines()
    check.output.close()
    said = next((line for line in reversed(lines) if line.strip()), "nothing said")
    print(f"{check.name}: {said}")
    if code not in (0, None, _NOTHING_FOUND):
        print("\n".join(f"  {line}" for line in lines))


def _git(repository: Path, *arguments: str) -> list[str]:
    answer = subprocess.run(
        ["git", *arguments],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.splitlines() if answer.returncode == 0 else []


if __name__ == "__main__":
    sys.exit(main())
