"""An environment for each tool, so that none becomes a dependency of ours or of another's.

Versions are pinned with hashes in ``requirements/NAME.txt``, compiled from ``requirements/NAME.in``
by :func:`lock`. Environments are below ``.peers/``, with the uv that makes them.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

from peers.tool import Tool

__all__ = ["InstallationError", "install", "lock", "python_of", "version_of"]

FOLDER = Path(__file__).resolve().parents[2] / ".peers"
REQUIREMENTS = Path(__file__).resolve().parent / "requirements"
UV_VERSION = "0.13.9"

_READY = "ready"


class InstallationError(Exception):
    """A tool cannot be installed; says why."""


def python_of(tool: Tool) -> Path:
    """Return the interpreter of a tool's environment."""
    return FOLDER / tool.name / "bin" / "python"


def version_of(tool: Tool) -> str:
    """Return the version that a tool's requirements pin."""
    pinned = re.search(
        rf"^{re.escape(tool.distribution)}==([^\s\\]+)", _requirements(tool).read_text(), re.M
    )
    return pinned[1] if pinned else "unknown"


def install(tool: Tool) -> None:
    """Make the environment of a tool, unless it is there as its requirements want it.

    Raises
    ------
    InstallationError
        If it cannot be made.
    """
    environment = FOLDER / tool.name
    requirements = _requirements(tool)
    wanted = hashlib.sha256(tool.python.encode() + requirements.read_bytes()).hexdigest()
    marker = environment / _READY
    if marker.is_file() and marker.read_text(encoding="ascii") == wanted:
        return
    shutil.rmtree(environment, ignore_errors=True)
    print(f"Installing {tool.name} {version_of(tool)} into {environment}", file=sys.stderr)
    uv = _uv()
    _do([uv, "venv", "--quiet", "--python", tool.python, str(environment)])
    sync = [uv, "pip", "sync", "--quiet", "--require-hashes", "--python", str(python_of(tool))]
    _do([*sync, str(requirements)])
    marker.write_text(wanted, encoding="ascii")


def lock(tool: Tool) -> None:
    """Resolve what a tool needs anew into its requirements.

    Raises
    ------
    InstallationError
        If there is no resolution.
    """
    compile_ = [_uv(), "pip", "compile", "--quiet", "--generate-hashes", "--no-header"]
    compile_ += ["--python-version", tool.python, "--no-annotate"]
    if tool.without_dependencies:
        compile_.append("--no-deps")
    requirements = _requirements(tool)
    _do([*compile_, str(requirements.with_suffix(".in")), "--output-file", str(requirements)])


def _requirements(tool: Tool) -> Path:
    return REQUIREMENTS / f"{tool.name}.txt"


def _uv() -> str:
    """Return uv, installed first into an environment of its own where it is not there."""
    uv = FOLDER / "uv" / "bin" / "uv"
    if not uv.is_file():
        _do([sys.executable, "-m", "venv", str(FOLDER / "uv")])
        pip = [str(uv.with_name("python")), "-m", "pip", "install", "--quiet"]
        _do([*pip, f"uv=={UV_VERSION}"])
    return str(uv)


def _do(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise InstallationError(first_error(done.stderr) or f"{Path(command[0]).name} failed")


def first_error(text: str) -> str:
    """Return the line of an installer's output that says what is wrong, without its decoration."""
    lines = [re.sub(r"^\W+", "", line) for line in text.splitlines()]
    told = next((line for line in lines if line.lower().startswith("error")), "")
    told = told or next(filter(None, lines), "")
    return re.sub(r"(?i)^error:\s*", "", told)[:200]
