"""Any document at all: what is wrong with it is told, and never ends in a traceback.

The ordinary tests draw few documents; ``make fuzz`` draws 10,000 of each kind.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from cases import data_beside
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from anonspark.cli import application, engine_runner
from anonspark.comparison.grid import load_grid
from anonspark.config import load_configuration, parse_configuration
from anonspark.errors import ConfigurationError

EXAMPLES = int(os.environ.get("ANONSPARK_FUZZ", "60"))
fuzzed = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)

WHOLE: dict[str, Any] = data_beside(__file__)["WHOLE"]
GRID: dict[str, Any] = {
    "title": "two",
    "base": WHOLE,
    "set": {"evaluate.information": False},
    "axes": [{"privacy.k": [2, 5], "model.name": ["canon", "su-mondrian"]}],
    "evaluation": {"target": "sickness", "holdout": {"path": "h", "format": "csv", "options": {}}},
    "rank_by": "gcp",
    "output": "out",
}

TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", "*", "age", "missing", "null", "~", "1", "1.5", "1e400", "-0", "0x1F", "on", "<<"]
    ),
    st.sampled_from(["a.b", "'", '"', "\t", "\n", "\x85", "\u2028", "\ud800", "é" * 90, "[", "{"]),
    st.sampled_from(["file://user@host/x", "s3a://k:s@b", "hdfs:", "a:b", "://", "2020-02-30"]),
    st.sampled_from(["${HOME}", "${NOT_SET}", "${A:-b}", "${A:-${B}}", "$${", "${", "${}", "${ }"]),
    st.sampled_from(["${run_date}", "${run_date:%Y%m%d}", "${run_date:%}", "${A:-1e9}"]),
    st.sampled_from(["mondrian", "sickness", "pay", "a,b", "x.y"]),
    st.text(max_size=6),
)
NUMBERS = st.one_of(
    st.integers(-3, 12),
    st.sampled_from([2**31, 2**63, -(2**63) - 1, 10**40]),
    # Python writes no number that long, hypothesis neither.
    st.just(5000).map(lambda digits: 10**digits),
    st.floats(allow_nan=True),
    st.sampled_from([math.inf, -math.inf, math.nan, 1e308, 5e-324, -0.0]),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS, st.binary(max_size=3), st.dates())
SHORT_FORMS = ["quasi_identifiers", "sensitive", "identifiers", "insensitive", "model"]
SHORT_FORMS += ["l_diversity", "t_closeness", "beta_likeness", "alpha_k_anonymity", "sickness"]
KEYS = st.one_of(
    st.sampled_from(SHORT_FORMS),
    st.sampled_from(["role", "k", "name", "path", "options", "order", "l", "attribute", "<<", "="]),
    TEXTS,
    NUMBERS.filter(lambda number: number == number),
    st.none(),
    st.booleans(),
    st.dates(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)


def places_of(value: Any) -> list[tuple[Any, Any]]:
    """Return every container of a document with each of its keys or positions."""
    if not isinstance(value, dict | list):
        return []
    steps = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, step) for step in steps] + [
        place for step in steps for place in places_of(value[step])
    ]


@st.composite
def changed(draw: st.DrawFn, whole: dict[str, Any]) -> dict[str, Any]:
    """Draw a document of which some places are other than they should be."""
    document = deepcopy(whole)
    for _ in range(draw(st.integers(1, 4))):
        container, step = draw(st.sampled_from(places_of(document) or [(document, "input")]))
        match draw(st.sampled_from(["replace", "replace", "remove", "add", "swap"])):
            case "replace":
                container[step] = draw(VALUES)
            case "remove":
                if isinstance(container, dict):
                    container.pop(step, None)
                else:
                    del container[step]
            case "add" if isinstance(container, dict):
                container[draw(KEYS)] = draw(VALUES)
            case "add":
                container.append(draw(VALUES))
            case "swap":
                other, place = draw(st.sampled_from(places_of(document)))
                container[step] = deepcopy(other[place])
    return document


TAGS = ["!!seq", "!!map", "!!set", "!!omap", "!!pairs", "!!binary", "!!int", "!!float", "!!bool"]
TAGS += ["!!null", "!!str", "!!timestamp", "!!merge", "!!value", "!!python/tuple", "!x", "!", "!!"]
TAGS += ["!<tag:yaml.org,2002:seq>", "!<x>", "!!python/object/apply:os.system"]
MARKS = [
    "${HOME}",
    "${",
    "}",
    "${run_date:%j}",
    "\nquasi_identifiers: [age]\n",
    "\nmodel: ${A:-x}\n",
]
MARKS += ["&a ", "*a ", "\n<<: *a\n", "\n<<: [1]\n", "\n=: 1\n", "*", "&", "? ", ": ", "- "]
MARKS += ["\n---\n", "\n...\n", "%YAML 3.1\n", "%TAG ! x\n", "# x\n", "\t", "\x00", "\ufeff"]
MARKS += ["|\n", ">-\n", "'", '"', "[", "]", "{", "}", ",", "\\", "\\ud800", '"\\ud800"']
ODD_SCALARS = ["1_0", "0o17", "190:20:30", ".inf", ".nan", "0b2", "0x", "1:60", "2020-13-45"]
PIECES = st.one_of(
    st.sampled_from([f"{tag} " for tag in TAGS]),
    st.sampled_from([f"\n{tag} x: y\n" for tag in TAGS]),
    st.sampled_from([f"\n? {tag} [a, b]\n: c\n" for tag in TAGS]),
    st.sampled_from([f"\n? {tag} {{a: b}}\n: c\n" for tag in TAGS]),
    st.sampled_from(MARKS),
    st.sampled_from(ODD_SCALARS),
    st.just(5000).map(lambda digits: "1" * digits),
    TEXTS,
)


@st.composite
def garbled(draw: st.DrawFn, whole: dict[str, Any]) -> str:
    """Draw the text of a document in which pieces were put in, taken out or doubled."""
    text: str = yaml.safe_dump(whole, sort_keys=False, default_flow_style=draw(st.booleans()))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.sampled_from([0, 0, 1, 5, 30])))
        match draw(st.sampled_from(["insert", "insert", "line", "double"])):
            case "insert":
                text = text[:start] + draw(PIECES) + text[stop:]
            case "line":
                # Where a value begins.
                start = text.find(": ", start) + 2
                text = text[:start] + draw(PIECES) + text[max(start, stop) :]
            case "double":
                text = text[:stop] + text[start:]
    return text


def loads(kind: str, text: str, overrides: tuple[str, ...] = ()) -> None:
    """Load a text as a configuration or a grid; whatever is wrong is an error of one kind."""
    load: Callable[..., Any] = load_configuration if kind == "configuration" else load_grid
    problems: tuple[str, ...] = ("none",)
    try:
        load("somewhere.yaml", overrides, lambda _: text)
    except ConfigurationError as error:
        problems = error.problems
    # One line each, and something on it.
    assert problems
    assert all(problem.strip() and len(problem.splitlines()) == 1 for problem in problems)


KINDS = pytest.mark.parametrize(("kind", "whole"), [("configuration", WHOLE), ("grid", GRID)])


def test_the_whole_documents_are_right() -> None:
    parse_configuration(WHOLE)
    load_grid("grid.yaml", (), lambda _: yaml.safe_dump(GRID, sort_keys=False))


@KINDS
@fuzzed
@given(data=st.data())
def test_documents_with_odd_values(kind: str, whole: dict[str, Any], data: st.DataObject) -> None:
    document = data.draw(changed(whole))
    if kind == "configuration":
        with suppress(ConfigurationError):
            parse_configuration(document)
    loads(kind, written(document))


@KINDS
@fuzzed
@given(data=st.data())
def test_texts_that_are_garbled(kind: str, whole: dict[str, Any], data: st.DataObject) -> None:
    loads(kind, data.draw(garbled(whole)))


STEPS = st.sampled_from(
    ["input", "path", "attributes", "age", "role", "privacy", "k", "model", "x", *SHORT_FORMS]
)
PATHS = st.one_of(st.lists(STEPS, min_size=1, max_size=4).map(".".join), TEXTS)


def written(value: Any) -> str:
    """Write a value in YAML; of one that has no text, as numbers of many digits, nothing."""
    with suppress(yaml.YAMLError, ValueError, TypeError, RecursionError):
        return str(yaml.dump(value, sort_keys=False, default_flow_style=True))
    return ""


OVERRIDES = st.one_of(
    st.tuples(PATHS, st.sampled_from(["=", "=", "==", ""]), st.one_of(TEXTS, PIECES)).map("".join),
    st.tuples(PATHS, VALUES).map(lambda pair: f"{pair[0]}={written(pair[1])}"),
    PIECES,
)


@fuzzed
@given(overrides=st.lists(OVERRIDES, min_size=1, max_size=3))
def test_any_override(overrides: list[str]) -> None:
    loads("configuration", yaml.safe_dump(WHOLE, sort_keys=False), tuple(overrides))


@fuzzed
@given(text=garbled(WHOLE), overrides=st.lists(OVERRIDES, max_size=1), json=st.booleans())
@example(text="!!seq x: y\n", overrides=[], json=False)
@example(text="? !!set {a, b}\n: c\n", overrides=[], json=True)
def test_the_exit_code_is_never_1(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    overrides: list[str],
    json: bool,
) -> None:
    # A document that is right after all needs no engine here.
    nothing = parse_configuration(WHOLE), []
    for name in ("work_with_engine", "work_with_spark"):
        monkeypatch.setattr(engine_runner, name, lambda *_: nothing)
    path = tmp_path / "configuration.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    words = [word for override in overrides for word in ("--set", override)]
    log = ["--log-format", "json"] if json else []
    code = application.main(["clean", str(path), *words, *log])
    told = capsys.readouterr()
    assert code in (0, 2), told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize(
    "value", ["!!binary aGE=", "{1: a, b: c}", "0x" + "f" * 5000, "2020-01-01", "[{1: !!set {a}}]"]
)
def test_axes_with_values_that_json_does_not_hold(value: str) -> None:
    text = yaml.safe_dump(GRID, sort_keys=False, default_flow_style=True, width=math.inf)
    before = "privacy.k: [2, 5]"
    assert before in text
    loads("grid", text.replace(before, f"privacy.k: [{value}, 5]"))
