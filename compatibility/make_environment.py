"""Make an environment that is the locked one but for another version of Spark.

It shares the packages of ``.venv`` and puts what ``compatibility/spark-VERSION.txt`` lists before
them. pyspark comes as a source archive of some hundred megabytes: it is unpacked to where its setup
script would put its files. Building a wheel of it, which is packed and unpacked once more, takes
several times as long.
"""

from __future__ import annotations

import argparse
import copy
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

FOLDER = Path(__file__).resolve().parent

# Where the setup script of pyspark installs the folders of its archive; the others are examples,
# their data and licences.
PLACES = {
    "pyspark": "pyspark",
    "pyspark.egg-info": "pyspark.egg-info",
    "deps/jars": "pyspark/jars",
    "deps/bin": "pyspark/bin",
    "deps/sbin": "pyspark/sbin",
    "lib": "pyspark/python/lib",
}


def main() -> None:
    """Make the environment, anew if it is there."""
    parser = argparse.ArgumentParser(description="Make an environment with another Spark.")
    parser.add_argument("spark", help="version of pyspark, as in 3.5.9")
    parser.add_argument("environment", type=Path, help="folder of the environment to make")
    arguments = parser.parse_args()
    requirements = FOLDER / f"spark-{arguments.spark}.txt"
    if not requirements.is_file():
        known = ", ".join(sorted(path.stem[6:] for path in FOLDER.glob("spark-*.txt")))
        parser.error(f"there is no {requirements}; versions with requirements: {known}")
    make(requirements, arguments.environment.absolute())


def make(requirements: Path, environment: Path) -> None:
    """Make an environment.

    Parameters
    ----------
    requirements : Path
        What differs from the locked environment, with hashes.
    environment : Path
        Folder to make; one that is there is replaced.
    """
    shutil.rmtree(environment, ignore_errors=True)
    venv.create(environment, with_pip=False, symlinks=True)
    packages = Path(_packages_of(environment))
    with tempfile.TemporaryDirectory(prefix="anonspark-compatibility-") as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run(  # noqa: S603  our own pip
            [*pip, "--requirement", requirements, "--dest", folder], check=True
        )
        for archive in Path(folder).glob("*.tar.gz"):
            with tarfile.open(archive) as source:
                # Python 3.11.2, as Debian has it, knows no filters yet.
                source.extraction_filter = getattr(tarfile, "data_filter", None)
                source.extractall(packages, _placed(source))  # noqa: S202  what the lock names
        if wheels := list(Path(folder).glob("*.whl")):
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
            subprocess.run([*install, "--target", packages, *wheels], check=True)  # noqa: S603
    programs = environment / "bin"
    for program in (packages / "pyspark" / "bin").iterdir():
        shutil.copy(program, programs)
    shutil.copy(packages / "pyspark" / "find_spark_home.py", programs)
    locked = _packages_of(Path(sys.prefix))
    # A folder named in a .pth file comes after these packages, and its own .pth files, such as the
    # one of the editable installation, are read by addsitedir alone.
    (packages / "locked.pth").write_text(f"import site; site.addsitedir({str(locked)!r})\n")
    command = programs / "anonspark"
    command.write_text(
        f"#!{programs / 'python'}\n"
        "import sys\n"
        "from anonspark.cli.application import run_and_exit\n"
        "sys.exit(run_and_exit())\n"
    )
    command.chmod(0o755)


def _placed(source: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Name the files of pyspark's source archive as they are installed."""
    for member in source:
        path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
        for folder, place in PLACES.items():
            if member.isfile() and path.is_relative_to(folder):
                placed = copy.copy(member)
                placed.name = str(place / path.relative_to(folder))
                yield placed


def _packages_of(environment: Path) -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return environment / "lib" / version / "site-packages"


if __name__ == "__main__":
    main()
