"""What `make dist` packs, for tests that submit to a cluster: built once and kept in build/."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from places import REPOSITORY

from anonspark.kernels.built import digest_of_sources

DISTRIBUTION = REPOSITORY / "distribution"
FOLDER = REPOSITORY / "build" / "packed"


@dataclass(frozen=True)
class Packed:
    """Paths of what is submitted: ``--py-files`` and ``--archives PATH#environment``."""

    package: Path
    archive: Path

    @property
    def arguments(self) -> list[str]:
        """What spark-submit is given; PYSPARK_PYTHON is ./environment/bin/python with it."""
        return ["--py-files", str(self.package), "--archives", f"{self.archive}#environment"]


@cache
def packed_environment() -> Packed:
    """Build zip and archive, the archive only where lock, kernels or packing have changed.

    One process builds at a time, the others wait for it and find what it built.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(f"{sys.prefix} {digest_of_sources()}".encode())
    for source in (REPOSITORY / "requirements.lock", DISTRIBUTION / "environment.py"):
        digest.update(source.read_bytes())
    packed = Packed(
        FOLDER / "anonspark.zip", FOLDER / f"anonspark-env-{digest.hexdigest()[:16]}.tar.gz"
    )
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        build("package_zip.py", packed.package)
        if not packed.archive.exists():
            for outdated in FOLDER.glob("*.tar.gz"):
                outdated.unlink()
            build("environment.py", packed.archive, "--compression", "1")
    return packed


def build(script: str, target: Path, *options: str) -> None:
    command = [sys.executable, str(DISTRIBUTION / script), str(target), *options]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
