"""Counts patterns of English that are hard to read, in docs, messages and docstrings.

python tools/words.py           # each pattern, per thousand words, and its limit
python tools/words.py --files   # the pages and modules with most of them
python tools/words.py --check   # fails where a limit is passed
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from size import find_docstrings

ROOT = Path(__file__).resolve().parent.parent

PATTERNS = {
    "tell": re.compile(r"\b(?:tell|tells|telling|told)\b", re.IGNORECASE),
    "whoever": re.compile(r"\b(?:whoever|somebody|anybody|nobody)\b", re.IGNORECASE),
    "semicolon": re.compile(r";"),
    "5 %": re.compile(r"\d %"),
    "you": re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE),
}

AT_MOST = {"tell": 0.3, "whoever": 0.1, "semicolon": 1.0, "5 %": 0.0}
AT_LEAST = {"you": 6.0}
"""Only of the pages, because a docstring addresses no one."""

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\]\([^)]*\)|<[^>]+>|https?://\S+")
_ENTITY = re.compile(r"&[#\w]+;")
_WORD = re.compile(r"[A-Za-z][\w'-]*")


def read_prose(markdown: str) -> str:
    r"""Return the prose of a page: without code, links and tables.

    Examples
    --------
    >>> read_prose("You see `a; b`.\n\n| a; b |\n").split()
    ['You', 'see', '.']
    """
    text = _FENCE.sub("", markdown)
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("|"))
    text = _CODE.sub("", "\n".join(lines))
    return _ENTITY.sub("", _LINK.sub("", text))


def read_strings(source: str) -> tuple[str, str]:
    """Return the docstrings of a module, and its messages: other texts of four words or more."""
    tree = ast.parse(source)
    described = {id(text): text for text in find_docstrings(tree)}
    docstrings: list[str] = []
    messages: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in described:
                docstrings.append(node.value.split("\n    Examples\n")[0].replace("``", "`"))
            elif len(_WORD.findall(node.value)) > 3:
                messages.append(node.value)
    return _CODE.sub("", "\n".join(docstrings)), _CODE.sub("", "\n".join(messages))


def read_texts() -> Iterator[tuple[str, str, str]]:
    """Yield the group, the file and the prose of all that is counted."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        yield "pages", str(path.relative_to(ROOT)), read_prose(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "anonspark").rglob("*.py")):
        docstrings, messages = read_strings(path.read_text(encoding="utf-8"))
        name = str(path.relative_to(ROOT))
        yield "docstrings", name, docstrings
        yield "messages", name, messages


def count_patterns(prose: str) -> Counter[str]:
    """Return how often each pattern occurs in `prose`, and how many words it has."""
    counts = Counter({name: len(found.findall(prose)) for name, found in PATTERNS.items()})
    counts["words"] = len(_WORD.findall(prose))
    return counts


def find_excesses(counts: Mapping[str, Counter[str]]) -> list[str]:
    """Return a line for each group and pattern that is beyond its limit."""
    lines = []
    for group, of in counts.items():
        per_thousand = {name: 1000 * of[name] / max(of["words"], 1) for name in PATTERNS}
        for name, most in AT_MOST.items():
            if per_thousand[name] > most:
                lines.append(
                    f"{group}: {name} {per_thousand[name]:.2f} per thousand words, at most {most}"
                )
        for name, least in AT_LEAST.items():
            if group == "pages" and per_thousand[name] < least:
                lines.append(
                    f"{group}: {name} {per_thousand[name]:.2f} per thousand words, at least {least}"
                )
    return lines


def main() -> int:
    """Print the counts, and with `--check` return 1 where a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true", help="the worst of each group")
    parser.add_argument("--check", action="store_true", help="fail where a limit is passed")
    arguments = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    files: dict[tuple[str, str], Counter[str]] = {}
    for group, name, prose in read_texts():
        files[group, name] = count_patterns(prose)
        counts.setdefault(group, Counter()).update(files[group, name])
    if arguments.files:
        for (group, name), of in sorted(
            files.items(), key=lambda item: -sum(item[1][p] for p in AT_MOST)
        ):
            if sum(of[p] for p in AT_MOST):
                print(
                    f"{group:10} {name:60} {of['words']:6} words  "
                    + "  ".join(f"{p} {of[p]}" for p in PATTERNS)
                )
    for group, of in counts.items():
        rates = "  ".join(
            f"{name} {1000 * of[name] / max(of['words'], 1):.2f}" for name in PATTERNS
        )
        print(f"{group:10} {of['words']:7,} words, per thousand: {rates}")
    excesses = find_excesses(counts)
    for line in excesses if arguments.check else ():
        print(line, file=sys.stderr)
    return int(bool(excesses) and arguments.check)


if __name__ == "__main__":
    sys.exit(main())
