"""Describe what `make dist` writes: a bill of materials in CycloneDX, and SHA-256 sums.

    python distribution/describe.py bill TOOL dist/anonspark-0.1.0.cdx.json
    python distribution/describe.py sums dist/SHA256SUMS dist/anonspark-0.1.0.zip ...

The bill lists the packages of requirements.lock that running needs on this Python and system, with
the SHA-256 of their files. The archive has these without pyspark, py4j, numba and llvmlite. TOOL is
`cyclonedx-py` of tools/publishing/requirements.lock. Both files have the same bytes always.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[1]


def needed() -> str:
    """Return the part of the lock that running needs here, without markers."""
    command = [sys.executable, "tools/runtime_requirements.py", "requirements.lock"]
    lock = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    blocks = []
    for block in re.split(r"^(?=[a-z0-9])", lock.stdout, flags=re.MULTILINE):
        line, separator, hashes = block.partition(" \\\n")
        if separator:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate():
                blocks.append(f"{requirement.name}{requirement.specifier}{separator}{hashes}")
    return "".join(blocks)


def write_bill(tool: str, target: Path) -> None:
    """Write the bill of materials, which the tool validates by the schema of CycloneDX."""
    target.parent.mkdir(parents=True, exist_ok=True)
    options = ["--pyproject", "pyproject.toml", "--mc-type", "library", "--output-reproducible"]
    subprocess.run(
        [tool, "requirements", "-", *options, "--output-file", target.resolve()],
        cwd=REPOSITORY,
        input=needed(),
        check=True,
        text=True,
        # A lock names no dependencies between packages, which the tool warns of.
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )


def write_sums(target: Path, files: Sequence[Path]) -> None:
    """Write the sums of files beside them, as `sha256sum --check` reads them."""
    lines = []
    for path in sorted(files):
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    target.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    what, first, *others = sys.argv[1:]
    if what == "bill":
        write_bill(first, Path(others[0]))
        print(others[0])
    else:
        write_sums(Path(first), [Path(other) for other in others])
        print(first)
