"""Pack the environment for ``spark-submit --archives``: what executors import beside Spark.

    python distribution/environment.py dist/anonspark-env-0.1.0.tar.gz [--compression 4]

The packages are those of the environment that runs this, which `make setup` installed by the hashes
of requirements.lock: their versions are compared with the lock, and each file with the SHA-256 that
its wheel came with. Left out are pyspark, which every cluster brings along for its executors, the
Java runtime, what only development needs, and the packages' own tests. The machine code of our
kernels goes along, and Numba does not: executors never compile.

`NODE_PYTHON=/usr/bin/python3.11` makes the packed environment use that interpreter on the nodes; it
is the one that made the environment otherwise. The archive holds no interpreter of its own.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import venv_pack
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from anonspark.kernels.building import build
from anonspark.kernels.built import folder_of_package

REPOSITORY = Path(__file__).resolve().parents[1]
LOCK = REPOSITORY / "requirements.lock"
PINNED = re.compile(r"^[^\s#].*==.*?(?= \\\\?$)", re.MULTILINE)

# Spark puts its own pyspark and py4j on the path of every driver and executor.
BROUGHT_BY_SPARK = {"pyspark", "py4j"}
# A twentieth of the archive, and nobody imports them.
TEST_FOLDERS = ("tests", "test_data", "sample_data")


def main() -> None:
    """Pack the environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("--compression", type=int, default=4, help="0 (quick) to 9 (small)")
    arguments = parser.parse_args()
    arguments.target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.target.parent) as folder:
        environment = Path(folder) / "environment"
        create_environment(environment)
        venv_pack.pack(
            prefix=str(environment),
            output=str(arguments.target),
            format="tar.gz",
            compress_level=arguments.compression,
            force=True,
        )
    # A temporary file was renamed, which only its owner may read: nodes read as other users.
    arguments.target.chmod(0o644)
    print(arguments.target)


def create_environment(folder: Path) -> None:
    """Create the environment that is packed.

    Parameters
    ----------
    folder : Path
        Must not exist.
    """
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    packages = Path(
        sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)})
    )
    pinned = {
        canonicalize_name(requirement.name): str(requirement.specifier).removeprefix("==")
        for requirement in map(Requirement, PINNED.findall(LOCK.read_text(encoding="utf-8")))
        if requirement.marker is None or requirement.marker.evaluate()
    }
    needed = dependencies("anonspark", "spark") | dependencies("anonspark", "files")
    for name, package in sorted(needed.items()):
        if pinned.get(name) != package.version:
            sys.exit(
                f"{name} {package.version} is installed, requirements.lock has "
                f"{pinned.get(name)}; remove .venv, and make sets it up anew"
            )
        copy_package(package, packages)
    copy_machine_code(folder)
    use_interpreter(folder, os.environ.get("NODE_PYTHON") or None)


def dependencies(name: str, extra: str) -> dict[str, Distribution]:
    """Return what a package needs here with an extra, without itself and what Spark brings along.

    Parameters
    ----------
    name : str
        An installed package.
    extra : str
        One of its extras.

    Returns
    -------
    dict
        Canonical name to package.
    """
    needed: dict[str, Distribution] = {}
    waiting = [(name, ""), (name, extra)]
    seen = set(waiting)
    while waiting:
        current, of_extra = waiting.pop()
        package = distribution(current)
        if current != name:
            needed[current] = package
        for line in package.requires or ():
            requirement = Requirement(line)
            required = canonicalize_name(requirement.name)
            if requirement.marker and not requirement.marker.evaluate({"extra": of_extra}):
                continue
            for wanted in ("", *requirement.extras):
                if required not in BROUGHT_BY_SPARK and (required, wanted) not in seen:
                    seen.add((required, wanted))
                    waiting.append((required, wanted))
    return needed


def copy_package(package: Distribution, packages: Path) -> None:
    """Copy a package's files, each compared with the SHA-256 that its wheel came with.

    Parameters
    ----------
    package : Distribution
        As installed by pip.
    packages : Path
        The `site-packages` folder to copy to.
    """
    for file in package.files or ():
        # Scripts lie outside of the packages' folder, and nobody calls them on a node.
        if file.parts[0] == ".." or any(part in TEST_FOLDERS for part in file.parts):
            continue
        source = Path(str(package.locate_file(file)))
        if file.hash is not None:
            digest = hashlib.new(file.hash.mode, source.read_bytes()).digest()
            if base64.urlsafe_b64encode(digest).decode().rstrip("=") != file.hash.value:
                sys.exit(f"{source} was changed; remove .venv, and make sets it up anew")
        elif not source.exists():  # compiled by Python, and removed again
            continue
        target = packages / file
        target.parent.mkdir(parents=True, exist_ok=True)
        # With its time, by which Python knows that its compiled file is current.
        shutil.copy2(source, target)


def copy_machine_code(folder: Path) -> None:
    """Build the machine code of all kernels, where that was not done before, and copy it.

    Parameters
    ----------
    folder : Path
        The environment.
    """
    try:
        files = build(folder_of_package())
    except OSError as error:
        sys.exit(str(error))
    target = folder / "share" / "anonspark"
    target.mkdir(parents=True)
    for file in files:
        shutil.copy2(file, target)


def use_interpreter(folder: Path, interpreter: str | None) -> None:
    """Write down which interpreter the environment uses on the nodes.

    Parameters
    ----------
    folder : Path
        The environment.
    interpreter : str or None
        Its path there; None leaves the one that made the environment.
    """
    if interpreter is None:
        return
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if Path(interpreter).name not in (name, "python3"):
        sys.exit(f"NODE_PYTHON: found {interpreter!r}; expected the path of a {name}")
    for link in ("python", "python3", name):
        (folder / "bin" / link).unlink(missing_ok=True)
    (folder / "bin" / "python").symlink_to(interpreter)
    for link in ("python3", name):
        (folder / "bin" / link).symlink_to("python")
    settings = f"home = {Path(interpreter).parent}\ninclude-system-site-packages = false\n"
    (folder / "pyvenv.cfg").write_text(settings, encoding="utf-8")


if __name__ == "__main__":
    main()
