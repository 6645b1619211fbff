"""Counts the lines of code of each room: lines without docstrings, comments and blanks.

python tools/size.py            # the rooms of the package, and the tests' lines
python tools/size.py --files    # each module, the longest first
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "anonspark"
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
    for node in ast.walk(ast.parse(source)):
        # Docstrings, of attributes too.
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(lines)


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


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true", help="each module, the longest first")
    rooms, files = count_rooms()
    shown = files.most_common() if parser.parse_args().files else sorted(rooms.items())
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
