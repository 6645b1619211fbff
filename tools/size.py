"""Counts the lines of code of each room (without docstrings, comments and blanks), all, and files.

python tools/size.py            # the rooms of the package, and the tests' lines
python tools/size.py --files    # each module, the longest first
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "anonspark"
NUMBERS = ROOT / "tools" / "size.json"

WORDS = frozenset(
    {
        *("told", "tell", "found", "one", "own", "place", "thing", "made", "making", "looking"),
        *("judging", "settling", "beside", "given", "kept", "wanted"),
    }
)
"""Names that do not say what they name."""

GONE = ("told",)
"""Those of them that nothing is called any more, and nothing may be."""

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def count_code_lines(source: str) -> int:
    r"""Return how many lines of `source` have code: no docstring, no comment, no blank line.

    Examples
    --------
    >>> count_code_lines('"What it is."\n\n# Why.\nx = 1  # one\n')
    1
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for text in find_docstrings(ast.parse(source)):
        lines.difference_update(range(text.lineno, (text.end_lineno or 0) + 1))
    return len(lines)


def find_docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the docstrings of a module, those of attributes too."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as text):
                yield text


def room_of(path: Path) -> str:
    """Return the room of a module of the package: its first folder, or `root`."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "root"


def count_rooms() -> tuple[Counter[str], Counter[str]]:
    """Return the code lines of each room and of each module."""
    rooms: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in sorted(PACKAGE.rglob("*.py")):
        lines = count_code_lines(path.read_text(encoding="utf-8"))
        rooms[room_of(path)] += lines
        files[str(path.relative_to(PACKAGE))] = lines
    return rooms, files


def count_words(source: str) -> Counter[str]:
    """Return how often `source` binds each of :data:`WORDS`: as a class, function or variable."""
    names = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.append(name)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.append(name.lower())
    return Counter(name.strip("_") for name in names if name.strip("_") in WORDS)


def count_all() -> dict[str, int]:
    """Return the numbers that are held: lines and files of the package, and words as names."""
    rooms, files = count_rooms()
    words: Counter[str] = Counter()
    lines = 0
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        lines += len(source.splitlines())
        words += count_words(source)
        words += Counter({path.stem} & WORDS)
    totals = {"all": rooms.total(), "lines": lines, "files": len(files), "names": words.total()}
    # Of these there are none left.
    return totals | {name: words[name] for name in GONE}


def lowered(numbers: Mapping[str, int], most: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers that hold from now on: they fall, and never rise.

    Examples
    --------
    >>> lowered({"all": 12, "names": 2}, {"all": 10, "names": 3})
    {'all': 10, 'names': 2}
    """
    return {name: min(number, most.get(name, number)) for name, number in numbers.items()}


def exceeded(numbers: Mapping[str, int], most: Mapping[str, int]) -> list[str]:
    """Return a line for each number that is larger than it may be.

    Examples
    --------
    >>> exceeded({"cli": 12, "core": 3}, {"cli": 10, "core": 3})
    ['cli: 12, at most 10']
    """
    return [
        f"{name}: {number:,}, at most {most.get(name, 0):,}"
        for name, number in numbers.items()
        if number > most.get(name, 0)
    ]


def committed_before() -> dict[str, int]:
    """Return the numbers of the merge base with main, on main of the commit before: none rises."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603

    base = git("merge-base", "HEAD", "main").strip()
    commit = base if base and base != git("rev-parse", "HEAD").strip() else "HEAD^"
    numbers = git("show", f"{commit}:tools/size.json")
    # An archive and a shallow clone have no earlier commit.
    return dict(json.loads(numbers)) if numbers else {}


def main() -> None:
    """Print, check or write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true", help="each module, the longest first")
    parser.add_argument("--check", action="store_true", help="hold the numbers of tools/size.json")
    parser.add_argument("--write", action="store_true", help="lower them to today's numbers")
    asked = parser.parse_args()
    most = json.loads(NUMBERS.read_text(encoding="utf-8"))
    if asked.write:
        kept = lowered(count_all(), most)
        NUMBERS.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        return
    if asked.check:
        problems = exceeded(count_all(), most)
        problems += exceeded(most, most | committed_before())
        if problems:
            sys.exit(
                "\n".join(["More than tools/size.json allows:", *problems])
                + "\nTake as much out elsewhere, in the same commit."
            )
        return
    rooms, files = count_rooms()
    shown = files.most_common() if asked.files else sorted(rooms.items())
    for name, lines in shown:
        sys.stdout.write(f"{lines:7,}  {name}\n")
    tests = sum(
        len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / "tests").rglob("*.py")
    )
    sys.stdout.write(
        f"{rooms.total():7,}  code lines in {len(files)} files; tests {tests:,} lines\n"
    )


if __name__ == "__main__":
    main()
