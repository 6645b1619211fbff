"""Bugs on purpose in private selection: each has to be found by the tests.

    .venv/bin/python tools/mutants.py [NAME ...]

Copies the sources and tests, puts one bug into the copy at a time, and runs the tests that are to
find it. Prints a line for each, and how many were found of how many were tried. Ends with 1 if one
was not found.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
COPIED = ("anonspark", "tests", "benchmarks", "pyproject.toml")

NOISE, SCORES = "core/exact_noise.py", "core/attribute_scores.py"
MECHANISMS, WANTED = "sharing/selection/mechanisms.py", "sharing/selection/request.py"
SELECTING, COUNTING, DOMAINS = (
    f"sharing/selection/{name}.py" for name in ("selecting", "counting", "domains")
)
BUDGET, CHAIN, RUN = "sharing/ledger/budget.py", "sharing/ledger/chain.py", "pipeline/run.py"

LAWS = "tests/unit/core/test_exact_noise.py"
RUNS = "tests/unit/sharing/selection/test_mechanisms.py"
COUNTS = "tests/unit/sharing/selection/test_counts_of_selections.py"
LEDGER = "tests/unit/sharing/ledger/test_budget.py"
COMMAND = "tests/releases/test_select.py"
RELEASES = "tests/releases/test_listed_releases.py"


@dataclass(frozen=True)
class Mutant:
    """A bug on purpose.

    Parameters
    ----------
    name : str
    file : str
        Below ``anonspark/``.
    right, wrong : str
        What stands there once, and what takes its place.
    tests : str
        File of the tests that are to find it.
    """

    name: str
    file: str
    right: str
    wrong: str
    tests: str


MUTANTS = [
    # Noise.
    Mutant("noise of another scale", NOISE, "(u + t * v) // s", "(u + t * v) // (s + 1)", LAWS),
    Mutant(
        "u is never refused",
        NOISE,
        "if not _bernoulli_of_at_most_one(u, t, below):",
        "if not _bernoulli_of_at_most_one(0, t, below):",
        LAWS,
    ),
    Mutant("zero comes twice", NOISE, "if negative and y == 0:", "if False:", LAWS),
    Mutant("noise goes one way", NOISE, "return -y if negative else y", "return y", LAWS),
    Mutant("coins turned over", NOISE, "return j % 2 == 1", "return j % 2 == 0", LAWS),
    Mutant("coins off by one", NOISE, "    j = 1\n", "    j = 2\n", LAWS),
    Mutant("steps of exp too long", NOISE, "a -= b", "a -= 2 * b", LAWS),
    Mutant(
        "exp of what is left only",
        NOISE,
        "            return False\n        a -= b",
        "            pass\n        a -= b",
        LAWS,
    ),
    Mutant(
        "no permutation", NOISE, "chosen = below(len(places))", "chosen = len(places) - 1", LAWS
    ),
    Mutant(
        "permutation not uniform",
        NOISE,
        "chosen = below(len(places))",
        "chosen = min(below(len(places)), below(len(places)))",
        LAWS,
    ),
    Mutant(
        "compared with the worst", NOISE, "best = max(scores)", "best = sorted(scores)[-2]", LAWS
    ),
    Mutant(
        "chance of floats",
        MECHANISMS,
        "one + discrete_laplace(scale.numerator, scale.denominator, below)",
        "one + round(np.random.default_rng().laplace(0, float(scale)))",
        RUNS,
    ),
    Mutant(
        "empty cells without noise",
        MECHANISMS,
        "one + discrete_laplace(scale.numerator, scale.denominator, below)",
        "one + (discrete_laplace(scale.numerator, scale.denominator, below) if one else 0)",
        RUNS,
    ),
    Mutant(
        "other and missing without noise",
        MECHANISMS,
        "for row in table.tolist()",
        "for row in table.tolist()[:-2]\n            ] + table.tolist()[-2:",
        RUNS,
    ),
    Mutant(
        "all cells have one noise",
        MECHANISMS,
        "    return [\n        np.array(",
        "    drawn = discrete_laplace(scale.numerator, scale.denominator, below)\n"
        "    return [table + drawn for table in tables] or [\n        np.array(",
        RUNS,
    ),
    Mutant(
        "a seed for noise",
        SELECTING,
        "below: Below = secrets.randbelow",
        "below: Below = __import__('random').Random(0).randrange",
        LAWS,
    ),
    # Scores and widths.
    Mutant("width halved", SCORES, "WIDTH_OF_GINI = 2 * UNITS", "WIDTH_OF_GINI = UNITS", LAWS),
    Mutant(
        "chi-square itself under top",
        MECHANISMS,
        "else gini_score(table)\n",
        "else int(256 * chi_square(table))\n",
        RUNS,
    ),
    Mutant(
        "records at most, one too few",
        SCORES,
        "UNITS * _largest_change(records_at_most - 1)",
        "UNITS * _largest_change(records_at_most - 2)",
        LAWS,
    ),
    Mutant(
        "width without what rounding adds",
        SCORES,
        "_largest_change(records_at_most - 1)) + 2",
        "_largest_change(records_at_most - 1))",
        LAWS,
    ),
    Mutant(
        "records beyond the bound are scored in full",
        SCORES,
        "if records_at_most is None or total <= records_at_most:",
        "if total:",
        LAWS,
    ),
    Mutant(
        "gini rounded up",
        SCORES,
        "UNITS * sum(one * one for one in row) // total",
        "-(-UNITS * sum(one * one for one in row) // total)",
        LAWS,
    ),
    Mutant(
        "information rounded up",
        SCORES,
        "math.floor(UNITS * math.fsum(terms))",
        "math.ceil(UNITS * math.fsum(terms))",
        LAWS,
    ),
    Mutant(
        "negative cells are kept",
        SCORES,
        "return np.maximum(np.concatenate(parts), 0)",
        "return np.concatenate(parts)",
        LAWS,
    ),
    # Composition.
    Mutant(
        "scaled by the chosen number",
        WANTED,
        "scale_of(len(self.candidates), self.of_a_record)",
        "scale_of(self.settings.selection.count, self.of_a_record)",
        COMMAND,
    ),
    Mutant(
        "every choice has all of epsilon",
        MECHANISMS,
        "epsilon / count / width_of(",
        "epsilon / width_of(",
        RUNS,
    ),
    Mutant(
        "replaced as added",
        MECHANISMS,
        'steps = 2 if neighbors == "replace" else 1',
        "steps = 1",
        RUNS,
    ),
    Mutant(
        "a person as a record", MECHANISMS, "epsilon / (steps * records)", "epsilon / steps", RUNS
    ),
    Mutant(
        "rows per person forgotten",
        WANTED,
        "own.neighbors, own.rows_per_person)",
        "own.neighbors)",
        COMMAND,
    ),
    Mutant(
        "tables of the chosen for nothing",
        WANTED,
        "return self.epsilon + self.of_tables",
        "return self.epsilon",
        COMMAND,
    ),
    # Counting.
    Mutant(
        "a target that is not declared counts",
        COUNTING,
        "left_out = own >= self.target.other",
        "left_out = own > self.target.other",
        COUNTS,
    ),
    Mutant("one record of a person too many", COUNTING, "places < most", "places <= most", COUNTS),
    Mutant(
        "any records of a person",
        COUNTING,
        "np.lexsort((table[_KEY].to_numpy(), people))",
        "np.argsort(people, kind='stable')",
        COUNTS,
    ),
    Mutant(
        "records of nobody count",
        COUNTING,
        "(own != _LEFT_OUT) & np.asarray(people.is_valid())",
        "own != _LEFT_OUT",
        COUNTS,
    ),
    Mutant("edges belong to the bin below", DOMAINS, 'side="right"', 'side="left"', COUNTS),
    Mutant(
        "other values are missing",
        DOMAINS,
        "np.where(known, self._rows[places], self.other)",
        "np.where(known, self._rows[places], self.missing)",
        COUNTS,
    ),
    # The ledger.
    Mutant(
        "charged after the draw",
        SELECTING,
        "        entry = charge(",
        "        _draw(wanted, counts, below)\n        entry = charge(",
        COMMAND,
    ),
    Mutant(
        "half is charged",
        SELECTING,
        "wanted.limit, wanted.charged, content)",
        "wanted.limit, wanted.charged / 2, content)",
        COMMAND,
    ),
    Mutant(
        "the largest loss is the sum",
        BUDGET,
        "_append(files, budget, own, budget.spent + loss)",
        "_append(files, budget, own, max(budget.spent, loss))",
        LEDGER,
    ),
    Mutant(
        "twice the limit",
        BUDGET,
        "if self.spent + loss > self.limit:",
        "if self.spent + loss > 2 * self.limit:",
        LEDGER,
    ),
    Mutant(
        "less than the limit",
        BUDGET,
        "if self.spent + loss > self.limit:",
        "if self.spent + loss >= self.limit:",
        LEDGER,
    ),
    Mutant(
        "relations turned over",
        BUDGET,
        'epsilon / 2 if self.neighbors == "add_remove" else epsilon * 2',
        'epsilon * 2 if self.neighbors == "add_remove" else epsilon / 2',
        LEDGER,
    ),
    Mutant(
        "another unit is taken",
        BUDGET,
        "if wanted.unit != self.unit:",
        "if wanted.unit is None:",
        LEDGER,
    ),
    Mutant(
        "another limit is taken",
        BUDGET,
        "if wanted.limit is not None and wanted.limit != self.limit:",
        "if wanted.limit is None and False:",
        LEDGER,
    ),
    Mutant(
        "the chain is not checked",
        CHAIN,
        "if own != (number, digests[-1]):",
        "if own[0] != number:",
        LEDGER,
    ),
    Mutant(
        "sums are not checked",
        BUDGET,
        "if loss >= 0 and sums == (spent, spent + loss) else None",
        "if loss >= 0 else None",
        COMMAND,
    ),
    Mutant(
        "an entry is written over",
        CHAIN,
        "    create_whole(files, path, text)\n",
        "    files.write_atomically(path, text)\n",
        LEDGER,
    ),
    Mutant(
        "releases are listed after they are published",
        RUN,
        "if (register := register_of(context)) is not None:\n"
        "                register.list_staged(context, staged.release)\n"
        "            release = staged.publish()\n",
        "release = staged.publish()\n"
        "            if (register := register_of(context)) is not None:\n"
        "                register.list_staged(context, staged.release)\n",
        RELEASES,
    ),
]


def copy_to(folder: Path) -> None:
    """Copy what the tests need."""
    for name in COPIED:
        source = REPOSITORY / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".pytest_cache")
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)


def tests_pass(folder: Path, tests: str) -> bool:
    """Return whether the tests pass on what is in a folder."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        # The data sets lie beside the repository.
        "ANONSPARK_DATA": os.environ.get("ANONSPARK_DATA")
        or str(REPOSITORY.parent / "shared" / "data"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", tests]
    done = subprocess.run(  # noqa: S603 - our own tests
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        sys.exit(f"{tests} could not be run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


def main(names: list[str]) -> int:
    """Try all mutants, or those named."""
    wanted = [one for one in MUTANTS if not names or one.name in names]
    missed = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        folder = Path(place)
        copy_to(folder)
        for tests in sorted({one.tests for one in wanted}):
            if not tests_pass(folder, tests):
                sys.exit(f"{tests} fail without any bug")
        for one in wanted:
            path = folder / "anonspark" / one.file
            right = path.read_text(encoding="utf-8")
            if right.count(one.right) != 1:
                sys.exit(f"{one.name}: found {right.count(one.right)} places for it in {one.file}")
            path.write_text(right.replace(one.right, one.wrong), encoding="utf-8")
            found = not tests_pass(folder, one.tests)
            path.write_text(right, encoding="utf-8")
            print(f"{'found' if found else 'NOT FOUND'}: {one.name}", flush=True)  # noqa: T201
            if not found:
                missed.append(one.name)
    print(f"{len(wanted) - len(missed)} found of {len(wanted)} tried")  # noqa: T201
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
