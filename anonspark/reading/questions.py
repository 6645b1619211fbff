"""Questions as text: ``age between 30 and 40 and sex = 'f' by diagnosis``, parsed.

The words are those of SQL::

    question    = [ any ] [ "by" column ]
    any         = all { "or" all }
    all         = one { "and" one }
    one         = "not" one | "(" any ")" | column test
    test        = ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) literal
                | [ "not" ] "between" literal "and" literal
                | [ "not" ] "in" "(" literal { "," literal } ")"
                | "is" [ "not" ] ( "null" | "missing" )
    literal     = number | 'text' | date | "true" | "false"
    column      = word | "any name in double quotes"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, TypeAlias

from anonspark.errors import ConfigurationError

Operator = Literal["=", "!=", "<", "<=", ">", ">="]

_MOST_CHARACTERS = 10_000
_DEEPEST = 100

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<date>\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?(?![\w.]))
    | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?(?![\w.]))
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
    | (?P<word>[^\W\d][\w.]*)
    | (?P<sign><=|>=|<>|!=|==|[=<>(),])
    )""",
    re.VERBOSE,
)
_DIGITS = re.compile(r"[+-]?\.?\d")
_NUMBERS = (
    "a number as 1000, -2.5 or 1.5e3, without other characters and with at most three digits in "
    "the exponent"
)
_QUOTES = (
    "A column whose name has other characters than letters, digits and underscores is written in "
    "double quotes"
)
_BEFORE_NAMES = ("", "or", "not", "by")
_WORDS = ("and", "or", "not", "between", "in", "is", "null", "missing", "by", "true", "false")


@dataclass(frozen=True)
class Token:
    """A word of a question, without quotes, and the position of its first character, from 1.

    ``kind`` is ``number``, ``date``, ``text``, ``column``, ``sign``, ``end``, or the word itself.
    """

    kind: str
    text: str
    position: int


@dataclass(frozen=True)
class Comparison:
    """A comparison of a column with a literal: ``age >= 30``."""

    column: Token
    operator: Operator
    value: Token


@dataclass(frozen=True)
class Among:
    """A test for several values: ``sex in ('f', 'm')``."""

    column: Token
    values: tuple[Token, ...]


@dataclass(frozen=True)
class IsMissing:
    """A test for missing values: ``sex is null``."""

    column: Token


@dataclass(frozen=True)
class Not:
    """The negation of a condition."""

    part: Condition


@dataclass(frozen=True)
class All:
    """Conditions joined by ``and``. Without any it is true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Any:
    """Conditions joined by ``or``. Without any it is false."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Comparison | Among | IsMissing | Not | All | Any


@dataclass(frozen=True)
class Question:
    """The condition of a question, and the column whose values are counted apart, or None."""

    condition: Condition
    by: Token | None


class UnquotedNameError(ConfigurationError):
    """A question is wrong at what may belong to a column's name, and no names are known."""


def parse_question(text: str, names: Collection[str] | None = None) -> Question:
    """Parse a question. An empty one asks for all records.

    With the ``names`` of the columns a message can propose the intended one. Raises
    UnquotedNameError if ``names`` is None and a name without quotes may be the fault, else
    ConfigurationError with the position, what was found, and what was expected.

    >>> question = parse_question("age >= 30 by sex")
    >>> question.condition.operator, question.condition.value.text, question.by.text
    ('>=', '30', 'sex')
    """
    if len(text) > _MOST_CHARACTERS:
        raise ConfigurationError(
            f"query: found {len(text):,} characters. Expected at most {_MOST_CHARACTERS:,}"
        )
    return _Parser(text, names).question()


def asking_error(position: int, actual: str, expected: str) -> ConfigurationError:
    """Return the error that a question is wrong at a character, counted from 1."""
    return ConfigurationError(f"query: character {position}: found {actual}. Expected {expected}")


def _unquoted_error(
    text: str, start: int, position: int, actual: str, expected: str, names: Collection[str] | None
) -> ConfigurationError:
    """Return the error at a position, from 0, behind a name that began at ``start``."""
    read = text[start : position + 1]
    meant = [name for name in names or () if name.startswith(read) and name != read]
    hint = _QUOTES
    if meant:
        nearest = max(meant, key=lambda name: _common_length(name, text[start:]))
        quoted = nearest.replace('"', '""')
        hint += f'. Did you mean "{quoted}"?'
    error = asking_error(position + 1, actual, f"{expected}. {hint}")
    return UnquotedNameError(*error.problems) if names is None else error


def _common_length(first: str, second: str) -> int:
    """Count the first characters that two texts have in common.

    >>> _common_length("marital", "marriage")
    3
    """
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def parse_assignments(texts: Sequence[str]) -> dict[str, str]:
    """Parse texts that name the files of hierarchies. Raises ConfigurationError if one does not.

    >>> parse_assignments(["country=countries.csv"])
    {'country': 'countries.csv'}
    """
    paths: dict[str, str] = {}
    for text in texts:
        column, sign, path = text.partition("=")
        if not (column and sign and path):
            raise ConfigurationError("--hierarchy: expected COLUMN=PATH, as country=countries.csv")
        paths[column] = path
    return paths


def _tokens(text: str, names: Collection[str] | None) -> Iterator[Token]:
    """Yield the tokens of a question, and the end. An error shows the name that lacks quotes.

    >>> [token.kind for token in _tokens("age >= 30", None)]
    ['column', 'sign', 'number', 'end']
    """
    position, end = 0, len(text.rstrip())
    # An error may be in a name without quotes that the previous token began.
    previous_start, previous_kind = 0, ""
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            if text[start] in "'\"`":
                raise asking_error(start + 1, "a quote", "another one that closes it")
            piece, expected = repr(text[start]), "a column, a value or a sign"
            if _DIGITS.match(text, start) and previous_kind not in _BEFORE_NAMES:
                piece, expected = "a number with something behind it", _NUMBERS
            # The upper end of a range may also follow "and".
            if previous_kind not in (*_BEFORE_NAMES, "and", "column"):
                raise asking_error(start + 1, piece, expected)
            continues_name = previous_kind == "column" and start == position
            name_start = previous_start if continues_name else start
            raise _unquoted_error(text, name_start, start, piece, expected, names)
        kind = str(match.lastgroup)
        piece = match[kind]
        start, position = match.start(kind) + 1, match.end()
        previous_start, previous_kind = start - 1, kind
        if kind in ("text", "quoted"):
            quote = piece[0]
            content = piece[1:-1].replace(quote * 2, quote)
            yield Token("text" if kind == "text" else "column", content, start)
        elif kind == "word":
            lower = piece.lower()
            previous_kind = lower if lower in _WORDS else "column"
            yield Token(previous_kind, piece, start)
        else:
            sign = {"<>": "!=", "==": "="}.get(piece, piece)
            yield Token(kind, sign, start)
    yield Token("end", "", end + 1)


class _Parser:
    """Parses a question by recursive descent: a method for each rule of the grammar above."""

    def __init__(self, text: str, names: Collection[str] | None) -> None:
        self.text = text
        self.names = names
        self.tokens = list(_tokens(text, names))
        self.at = 0
        self.depth = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.next
        self.at += 1
        return token

    def takes(self, *kinds: str) -> bool:
        if self.next.kind in kinds:
            self.at += 1
            return True
        return False

    def is_sign(self, *signs: str) -> bool:
        return self.next.kind == "sign" and self.next.text in signs

    def expect_sign(self, sign: str) -> None:
        if not self.is_sign(sign):
            self.fail(f"{sign!r}")
        self.take()

    def fail(self, expected: str) -> None:
        raise asking_error(self.next.position, self.actual(), expected)

    def actual(self) -> str:
        token = self.next
        match token.kind:
            case "end":
                return "the end"
            case "text" | "number" | "date":
                return f"a {token.kind}"
            case _:
                return repr(token.text)

    def question(self) -> Question:
        condition: Condition = All(())
        if self.next.kind not in ("by", "end"):
            condition = self.any()
        by = None
        if self.takes("by"):
            by = self.column()
        if self.next.kind != "end":
            self.fail(
                "the end, because by takes one column. Ask once for each"
                if by
                else "and, or, by, or the end"
            )
        return Question(condition, by)

    def column(self) -> Token:
        if self.next.kind != "column":
            self.fail("the name of a column (in double quotes if it is a word of the query)")
        return self.take()

    def any(self) -> Condition:
        return self.joined("or", self.all, Any)

    def all(self) -> Condition:
        return self.joined("and", self.term, All)

    def joined(
        self, word: str, part: Callable[[], Condition], kind: type[All] | type[Any]
    ) -> Condition:
        parts = [part()]
        while self.takes(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else kind(tuple(parts))

    def term(self) -> Condition:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"at most {_DEEPEST} conditions inside one another")
        try:
            if self.takes("not"):
                return Not(self.term())
            if self.is_sign("("):
                self.take()
                inner = self.any()
                self.expect_sign(")")
                return inner
            return self.test(self.column())
        finally:
            self.depth -= 1

    def test(self, column: Token) -> Condition:
        """Parse a condition on a column: a comparison, ``between``, ``in`` or ``is null``."""
        if self.takes("is"):
            negated = self.takes("not")
            if not self.takes("null", "missing"):
                self.fail("null")
            return _negated(IsMissing(column), negated=negated)
        if self.is_sign("=", "!=", "<", "<=", ">", ">="):
            operator: Operator = self.take().text  # type: ignore[assignment]
            return Comparison(column, operator, self.literal())
        negated = self.takes("not")
        if self.takes("between"):
            low = self.literal()
            if not self.takes("and"):
                self.fail("and, with the upper end")
            high = self.literal()
            conditions = All((Comparison(column, ">=", low), Comparison(column, "<=", high)))
            return _negated(conditions, negated=negated)
        if self.takes("in"):
            self.expect_sign("(")
            values = [self.literal()]
            while self.is_sign(","):
                self.take()
                values.append(self.literal())
            self.expect_sign(")")
            return _negated(Among(column, tuple(values)), negated=negated)
        expected = "between or in" if negated else "=, !=, <, <=, >, >=, between, in or is null"
        start, position = column.position - 1, self.next.position - 1
        if self.next.kind != "end" and self.text[start:position] == column.text:
            raise _unquoted_error(self.text, start, position, self.actual(), expected, self.names)
        self.fail(expected)
        raise AssertionError("fail raises")

    def literal(self) -> Token:
        if self.next.kind not in ("number", "text", "date", "true", "false"):
            self.fail("a number, a date, true, false, or a text in single quotes")
        return self.take()


def _negated(condition: Condition, *, negated: bool) -> Condition:
    """Return a condition or its negation."""
    return Not(condition) if negated else condition
