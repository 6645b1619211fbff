"""Fetch what a lock of Maven's coordinates names: ``python tools/fetch_jars.py LOCK FOLDER``.

A line of the lock is the SHA-256 of a file and its coordinates, ``group:name:version`` and maybe a
classifier. Files that are there already are compared, too. Ends with 1 where a file cannot be had
or is not the one that was locked. ``MAVEN`` names another registry.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

REGISTRY = "https://repo1.maven.org/maven2"


class Locked(NamedTuple):
    """A file of the lock."""

    sha256: str
    group: str
    name: str
    version: str
    classifier: str = ""

    @property
    def file(self) -> str:
        """Its name."""
        return "-".join(filter(None, (self.name, self.version, self.classifier))) + ".jar"

    @property
    def path(self) -> str:
        """Where a registry has it."""
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.file}"


def read_lock(text: str) -> list[Locked]:
    """Return the files of a lock."""
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return [Locked(sha256, *coordinates.split(":")) for sha256, coordinates in lines]


def sha256_of(path: Path) -> str:
    """Return the hash of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(locked: Locked, folder: Path, registry: str) -> str | None:
    """Fetch one file where it is not there; return what is wrong, None if nothing is."""
    target = folder / locked.file
    if not target.exists():
        part = target.with_suffix(".part")
        try:
            address = f"{registry}/{locked.path}"
            with urllib.request.urlopen(address, timeout=60) as answer, part.open("wb") as file:  # noqa: S310
                shutil.copyfileobj(answer, file)
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            part.unlink(missing_ok=True)
            return f"{locked.file}: cannot be fetched from {registry}: {error}"
        part.rename(target)
    found = sha256_of(target)
    if found != locked.sha256:
        target.unlink()
        return f"{locked.file}: SHA-256 is {found}; expected {locked.sha256}; it was removed"
    return None


def main(lock: str, folder: str) -> int:
    """Fetch all files of a lock."""
    registry = os.environ.get("MAVEN", REGISTRY)
    Path(folder).mkdir(parents=True, exist_ok=True)
    wrong = [
        problem
        for locked in read_lock(Path(lock).read_text())
        if (problem := fetch(locked, Path(folder), registry)) is not None
    ]
    sys.stderr.write("".join(f"{line}\n" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
