"""Files that the system denies: what is denied is named, with a remedy, and nothing is published.

Root may read everything, so commands run as another user where tests run as root.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from cases import cases
from helpers import write_table

OTHER_USER = 65534
COMMANDS = """
import contextlib, io, json, sys
from anonspark.cli.application import main

for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(json.loads(line))
    print(json.dumps([code, err.getvalue()]), flush=True)
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Give a folder of a user who is not root, with tables and a configuration.

    It is none of pytest's, which lets no other user into them.
    """
    with tempfile.TemporaryDirectory(prefix="denied-") as name:
        yield filled(Path(name))


def filled(folder: Path) -> Path:
    """Write into the folder."""
    random = np.random.default_rng(7)
    table = {"age": random.integers(0, 90, 60), "town": ["Adana", "Bursa", "Konya"] * 20}
    for name in ("csv", "parquet", "json"):
        write_table(folder / f"t.{name}", table, name)
    for number in (1, 2):
        write_table(folder / f"parts/{number}.csv", table, "csv")
    (folder / "towns.csv").write_text("Adana,south,*\nBursa,north,*\nKonya,south,*\n")
    town = {"role": "quasi_identifier", "hierarchy": str(folder / "towns.csv")}
    document = {
        "input": {"path": str(folder / "t.csv")},
        "attributes": {"age": "quasi_identifier", "town": town},
        "privacy": {"k": 5},
        "output": {"path": str(folder / "out/release")},
    }
    (folder / "c.yaml").write_text(yaml.dump(document))
    (folder / "seed").write_text("81985529216486895\n")
    (folder / "seed").chmod(0o600)
    (folder / "out").mkdir()
    if os.geteuid() == 0:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, OTHER_USER, OTHER_USER)
    return folder


@pytest.fixture(scope="module")
def commands(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process of a user who is not root, which runs the commands that it is sent."""
    other = {"user": OTHER_USER, "group": OTHER_USER, "extra_groups": []}
    process = subprocess.Popen(
        [sys.executable, "-c", COMMANDS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ
        | {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        **(other if os.geteuid() == 0 else {}),  # type: ignore[call-overload]
    )
    yield process
    process.stdin.close()  # type: ignore[union-attr]
    assert process.wait(60) == 0
    process.stdout.close()  # type: ignore[union-attr]


def answer(commands: subprocess.Popen[str], *arguments: str) -> tuple[int, str]:
    """Run a command there, and return its exit code and what it wrote to standard error."""
    assert commands.stdin is not None
    assert commands.stdout is not None
    commands.stdin.write(json.dumps(arguments) + "\n")
    commands.stdin.flush()
    code, err = json.loads(commands.stdout.readline())
    return code, err


RUN = ["run", "c.yaml", "--no-progress"]


@cases(__file__, "path", "mode", "arguments", "code", "expected")
def test_denied(
    folder: Path,
    commands: subprocess.Popen[str],
    path: str,
    mode: int,
    arguments: list[str],
    code: int,
    expected: list[str],
) -> None:
    denied = folder / path
    before = denied.stat().st_mode
    denied.chmod(mode)
    try:
        ended, err = answer(commands, *arguments)
    finally:
        denied.chmod(before)
    assert ended == code, err
    for part in expected:
        assert part in err
    assert "bug of anonspark" not in err
    assert not list((folder / "out").iterdir())


def test_what_is_not_denied_is_published(folder: Path, commands: subprocess.Popen[str]) -> None:
    code, err = answer(commands, *RUN, "--set", f"output.path={folder}/fresh")
    assert code == 0, err
    if os.geteuid() == 0:
        assert (folder / "fresh/manifest.json").stat().st_uid == OTHER_USER
