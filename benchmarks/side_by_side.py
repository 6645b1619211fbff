"""Run what a user would pick instead, and our models, on the same table, and judge them alike.

    make peers
    .venv/bin/python benchmarks/side_by_side.py --tools anonypy su-mondrian --k 10

Tools are installed below ``.peers/``, each into an environment of its own. One that cannot be
installed, fails or takes too long has its reason in the table. What was measured before is kept in
the JSON file and not measured again; what tools published stays in the directory, so that it can be
verified again. Tools run one after another. Needs ``ANONSPARK_DATA``, or ``../shared/data``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from measuring import Watched, machine
from peers.cases import Case, Cases
from peers.environments import InstallationError, install, lock, version_of
from peers.page import notes, section, table, with_section
from peers.registry import CHECKER, MODELS, PEERS
from peers.running import columns, make_table, run_model, run_tool, why
from peers.tool import Job, Tool
from peers.verifying import figures, readable_table, release_as_text, roles, verify
from tables import ADULT_ROWS

from anonspark import __version__

REPOSITORY = Path(__file__).resolve().parents[1]


def main() -> None:
    """Parse the arguments, measure what is missing, print and write the table."""
    names = [*MODELS, *PEERS]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tools", nargs="+", choices=names, default=names, metavar="TOOL")
    parser.add_argument("--rows", type=int, nargs="+", default=[ADULT_ROWS])
    parser.add_argument("--k", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--limit", type=float, default=900.0, help="seconds of a run at most")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--remark", default="", help="what else is to be known of the measurement")
    parser.add_argument("--again", action="store_true", help="measure what was measured, too")
    parser.add_argument(
        "--verify-again", action="store_true", help="verify once more what was published before"
    )
    parser.add_argument("--directory", type=Path, default=REPOSITORY / "build" / "peers")
    parser.add_argument("--json", type=Path, default=REPOSITORY / "build" / "peers.json")
    parser.add_argument("--page", type=Path, help="page to write the section of")
    parser.add_argument(
        "--install", action="store_true", help="install the tools and measure nothing"
    )
    parser.add_argument("--lock", action="store_true", help="resolve the requirements anew")
    options = parser.parse_args()
    if options.lock or options.install:
        prepare(options)
        return
    cases = Cases(options.json)
    for rows in options.rows:
        original = make_table(made(options.directory.absolute()), rows)
        for k in options.k:
            for name in options.tools:
                bench = Bench(options, name, rows, k, original)
                known = cases.get(name, rows, k)
                if options.again or known is None or not known.is_settled(options.limit):
                    cases.put(bench.measure())
                elif options.verify_again and known.status == "done":
                    cases.put(bench.judged(known))
    print("\n".join((*table(cases), *notes(list(cases)))))
    if options.page:
        text = options.page.read_text(encoding="utf-8")
        options.page.write_text(with_section(text, section(cases)), encoding="utf-8")


def made(directory: Path) -> Path:
    """Return a directory, made where it is missing."""
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def prepare(options: argparse.Namespace) -> None:
    """Resolve or install the tools."""
    for tool in (*(PEERS[name] for name in options.tools if name in PEERS), CHECKER):
        if options.lock:
            lock(tool)
        elif why_not := not_installed(tool):
            print(f"{tool.name}: {why_not}", file=sys.stderr)


@cache
def not_installed(tool: Tool) -> str:
    """Install a tool; return why it cannot be installed, nothing where it can."""
    try:
        install(tool)
    except InstallationError as error:
        return str(error) or "its installer says nothing"
    return ""


@cache
def described_machine() -> dict[str, str]:
    """Return where this is measured, and what."""
    return machine()


@dataclass(frozen=True)
class Bench:
    """One tool or model, one table, one k.

    Parameters
    ----------
    options : argparse.Namespace
    name : str
    rows, k : int
    original : Path
        The table.
    """

    options: argparse.Namespace
    name: str
    rows: int
    k: int
    original: Path

    @property
    def folder(self) -> Path:
        """Where the tool works and what it published stays."""
        directory: Path = self.options.directory.absolute()
        return directory / f"{self.rows}-{self.k}-{self.name}"

    def job(self) -> Job:
        """Return what a tool is asked to do."""
        quasi_identifiers, sensitive = columns()
        output = str(self.folder / "returned.csv")
        cores = self.options.cores
        return Job(str(self.original), output, self.k, quasi_identifiers, sensitive, cores)

    def measure(self) -> Case:
        """Run, and judge what was published."""
        tool = PEERS.get(self.name)
        case = Case(
            self.name,
            __version__ if tool is None else version_of(tool),
            self.rows,
            self.k,
            "not installed",
            limit=self.options.limit,
            measured={**described_machine(), "remark": self.options.remark},
        )
        if tool is not None and (reason := not_installed(tool)):
            return replace(case, reason=reason)
        print(f"{self.name}, {self.rows:,} rows, k={self.k}", file=sys.stderr)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if tool is None:
            settings = MODELS[self.name]
            limit = self.options.limit
            done = run_model(settings, self.original, self.k, self.folder, limit)
        else:
            done = run_tool(tool, self.job(), self.folder, self.options.limit)
        return self.judged(replace(case, **self.outcome(done)))

    def outcome(self, done: Watched) -> dict[str, Any]:
        """Return how a run ended."""
        used: dict[str, Any] = {
            "seconds": round(done.seconds, 2),
            "peak_mebibytes": done.together,
        }
        print(f"  {done.seconds:.1f} s, {done.together:,} MiB", file=sys.stderr)
        if done.exit_code is None:
            return {**used, "status": "over"}
        if done.exit_code:
            log = (self.folder / "run.log").read_text(encoding="utf-8", errors="replace")
            return {**used, "status": "failed", "reason": why(done.exit_code, log)}
        return {**used, "status": "done"}

    def judged(self, case: Case) -> Case:
        """Return a case with the figures of what was published."""
        if case.status != "done":
            return case
        tool = PEERS.get(self.name)
        job = self.job()
        arguments: list[str] = []
        published = self.folder / "release"
        if tool is not None:
            try:
                published = readable_table(tool, job, self.folder)
            except (KeyError, ValueError, OSError) as error:
                told = f"its output is not what was expected ({type(error).__name__})"
                return replace(case, status="failed", reason=told)
            sensitive = job.sensitive if tool.keeps_sensitive else None
            arguments = roles(job.quasi_identifiers, sensitive, self.k)
        found = verify(published, arguments, self.original, self.options.limit)
        opinion = None
        if tool is None and self.rows == ADULT_ROWS:
            opinion = self.second_opinion(job)
        return replace(case, figures=figures(found, self.rows), second_opinion=opinion)

    def second_opinion(self, job: Job) -> dict[str, Any]:
        """Return k and l of our release as another tool counts them."""
        if reason := not_installed(CHECKER):
            return {"reason": reason}
        text = release_as_text(self.folder / "release", job.quasi_identifiers, job.sensitive)
        asked = replace(job, table=str(text), output=str(self.folder / "second_opinion.json"))
        folder = made(self.folder / CHECKER.name)
        done = run_tool(CHECKER, asked, folder, self.options.limit)
        if done.exit_code is None:
            return {"reason": f"over {self.options.limit:.0f} s"}
        if done.exit_code:
            log = (folder / "run.log").read_text(encoding="utf-8", errors="replace")
            return {"reason": why(done.exit_code, log)}
        found: dict[str, Any] = json.loads(Path(asked.output).read_text(encoding="utf-8"))
        return found


if __name__ == "__main__":
    main()
