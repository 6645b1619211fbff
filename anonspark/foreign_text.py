"""Make foreign texts, such as names, values, paths and messages, safe to show.

A terminal acts on control characters, Markdown and HTML on signs. Every way out of the program
passes texts through one of these functions, so that authors of messages need not think of it:
errors when they are raised, the log by its filter, the terminal by its console, JSON when it is
printed. Templates of pages escape HTML by themselves.
"""

from __future__ import annotations

import json
import re

_INVISIBLE = re.compile(r"[^\x20-\x7e]+")


def visible(text: str) -> str:
    r"""Escape each character that shows nothing, which leaves one line.

    These are what Python calls not printable: controls, directions of writing, ends of lines,
    blanks other than the space, signs without width, and halves of characters.

    >>> visible("age\x1b[2J\n")
    'age\\x1b[2J\\n'
    """
    if text.isprintable():
        return text
    return _INVISIBLE.sub(lambda match: "".join(map(_visible_sign, match[0])), text)


def _visible_sign(sign: str) -> str:
    return sign if sign.isprintable() else sign.encode("unicode_escape").decode()


def visible_lines(text: str) -> str:
    r"""Escape as :func:`visible` does, but keep the ends of lines: for texts of our own.

    >>> visible_lines("age\x1b\nsex").split("\n")
    ['age\\x1b', 'sex']
    """
    return "\n".join(map(visible, text.split("\n")))


def json_text(value: object, indent: int | None = None) -> str:
    r"""Write a value as JSON, with escapes for what shows nothing: it is read back as the same.

    >>> json_text({"a\u202e": "é\x9b"})
    '{"a\\u202e": "é\\u009b"}'
    """
    written = json.dumps(value, indent=indent, ensure_ascii=False)
    return _INVISIBLE.sub(lambda match: "".join(map(_json_sign, match[0])), written)


def _json_sign(sign: str) -> str:
    # Outside of its texts JSON has no other end of a line, and inside none.
    return sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1]


def blanked(page: str) -> str:
    r"""Replace each invisible character of a page by a blank. Ends of lines stay.

    >>> blanked("age\x1b[2J\n")
    'age [2J\n'
    """
    return _INVISIBLE.sub(lambda match: "".join(map(_blank, match[0])), page)


def _blank(sign: str) -> str:
    return sign if sign.isprintable() or sign in "\n\N{NO-BREAK SPACE}" else " "


def code_span(text: str) -> str:
    r"""Write a text as code of Markdown, in which no sign means anything.

    A backtick would end it, and a bar the cell of a table: both are written as escapes.

    >>> code_span("a|b`")
    '`a\\x7cb\\x60`'
    """
    plain = visible(text).replace("`", "\\x60").replace("|", "\\x7c")
    return f"`{plain}`"
