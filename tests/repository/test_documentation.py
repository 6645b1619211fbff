"""The documentation agrees with the code: keys, columns, links, examples, rooms, notebooks."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import runpy
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

import nbformat
import pytest
import yaml
from markdown_it import MarkdownIt
from places import REPOSITORY
from typer.main import get_command

from anonspark import errors
from anonspark.comparison.grid import METRICS
from anonspark.config import json_schema, load_configuration
from anonspark.core.figures import TABLES
from anonspark.errors import (
    ConfigurationError,
    DataError,
    EnvironmentProblem,
    GuaranteeError,
    PublishingError,
)

DOCS = REPOSITORY / "docs"
PAGES = sorted(
    [
        REPOSITORY / "README.md",
        REPOSITORY / "CHANGELOG.md",
        REPOSITORY / "CONTRIBUTING.md",
        REPOSITORY / "data" / "README.md",
        *DOCS.glob("*.md"),
    ]
)
page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@cache
def sources() -> list[str]:
    """Return the text of every module of the package."""
    return [path.read_text() for path in (REPOSITORY / "anonspark").rglob("*.py")]


def blocks(page: Path, language: str) -> list[str]:
    return [text for found, text in _FENCE.findall(page.read_text()) if found == language]


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """Names of the headings, made as the usual Markdown viewers make them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in _HEADING.findall(prose(page))
    }


def schema_keys() -> list[str]:
    """Return every key that the JSON Schema knows, as the documentation writes it."""
    schema = json_schema()

    def branches(node: dict[str, Any]) -> list[dict[str, Any]]:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        if "anyOf" not in node:
            return [node]
        return [leaf for one in node["anyOf"] for leaf in branches(one)]

    def walk(node: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for branch in branches(node):
            inner = dict(branch.get("properties", {}))
            # A mapping from names to sections, such as attributes; options are plain values.
            others = branch.get("additionalProperties")
            if isinstance(others, dict) and any("properties" in one for one in branches(others)):
                inner["<name>"] = others
            if not inner and path:
                yield path
            for key, child in inner.items():
                yield from walk(child, (*path, key))

    return sorted({".".join(path) for path in walk(schema, ())})


def section(page: Path, heading: str) -> str:
    """Return the text below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", page.read_text(), re.M | re.S)
    assert found is not None, f"{page.name} has no heading {heading!r}"
    return found[1]


def test_the_walk_over_the_schema_finds_keys_of_every_depth() -> None:
    keys = set(schema_keys())
    assert {"missing", "privacy.k", "input.options", "model.rho", "attributes.<name>.order"} <= keys


@pytest.mark.parametrize("key", schema_keys())
def test_every_key_is_in_the_reference(key: str) -> None:
    assert f"| `{key}` |" in (DOCS / "configuration.md").read_text()


def test_the_reference_has_no_key_that_the_configuration_lacks() -> None:
    rows = re.findall(r"^\| `(\w+\.[\w.<>]+|missing)` \|", prose(DOCS / "configuration.md"), re.M)
    assert set(rows) - set(schema_keys()) == set()


@pytest.mark.parametrize("table", TABLES)
def test_every_metrics_column_is_in_the_reference(table: str) -> None:
    text = section(DOCS / "output.md", table)
    first_cells = re.findall(r"^\| (`.*?) \|", text, re.M)
    documented = [name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(documented) == sorted(figure.name for figure in TABLES[table])


@pytest.mark.parametrize(
    ("file", "row", "expected"), [("choosing-k-and-model.md", "rank_by", list(METRICS))]
)
def test_figures_to_rank_by_and_to_watch_are_in_the_reference(
    file: str, row: str, expected: list[str]
) -> None:
    (line,) = re.findall(rf"^\| `{re.escape(row)}` \|(.*)$", (DOCS / file).read_text(), re.M)
    others = {"gcp", "evaluate.information", "evaluate.association", "evaluation", "summary"}
    assert set(re.findall(r"`([\w.]+)`", line)) - others == set(expected) - others


@page
def test_every_row_is_in_a_table(page: Path) -> None:
    """A blank line too many makes one paragraph of all rows that follow."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text())
    paragraphs = [
        inside.content
        for begins, inside in pairwise(tokens)
        if begins.type == "paragraph_open" and inside.type == "inline"
    ]
    assert not [text for text in paragraphs if text.startswith("|")]
    rows = sum(token.type == "tr_open" for token in tokens)
    written = [line for line in prose(page).splitlines() if re.match(r" *\|.*\|$", line)]
    delimiters = sum(token.type == "table_open" for token in tokens)
    assert rows + delimiters == len(written)


def test_the_minimal_configuration_says_why_a_run_of_it_warns() -> None:
    before, block, _ = (REPOSITORY / "README.md").read_text().partition("```yaml")
    assert block
    assert before.rstrip().endswith("It has no secret seed, so `run` warns. `init` draws one:")


def test_pages_for_users_are_few_and_short() -> None:
    """Others are in the tab Research, which the search shows last."""
    navigation = (REPOSITORY / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    for_users, research = (
        re.findall(r"- ([\w-]+)\.md$", part, re.M) for part in navigation.split("  - Research:\n")
    )
    hooks = (REPOSITORY / "tools" / "site" / "hooks.py").read_text()
    assert [name for name in research if f'"{name}"' not in hooks] == []
    words = [len(re.findall(r"\S*\w\S*", (DOCS / f"{name}.md").read_text())) for name in for_users]
    assert len(words) == 24
    assert sum(words) <= 51_300


_TOO_MUCH = re.compile(
    r"single out no one|Nothing has to be done|Nothing was found that|ranges? that k people"
    r"|for any (person|record)|and not the person|proves the release from|by anyone"
    r"|hides among at least|Only if no column is sensitive|hierarchy: {prefix: \[2\]}` of five"
)


def test_no_page_or_text_promises_what_k_does_not() -> None:
    texts = {"README.md": (REPOSITORY / "README.md").read_text()}
    texts |= {path.name: path.read_text() for path in DOCS.glob("*.md")}
    texts |= dict(enumerate(sources()))
    for name, text in texts.items():
        found = _TOO_MUCH.search(" ".join(re.sub(r'"\n\s*f?"', "", text).split()))
        assert found is None, f"{name}: {found}"


@page
def test_relative_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(prose(page)):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link}: there is no {target}"
        if anchor:
            assert anchor in anchors(target), f"{link}: {target.name} has no such heading"


@page
def test_yaml_examples_are_right(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in blocks(page, "yaml"):
        for name in re.findall(r"\$\{([A-Z_]+)\}", text):
            monkeypatch.setenv(name, "given")
        document = yaml.safe_load(text)
        keys = set(document) if isinstance(document, dict) else set()
        attributes = {"attributes", "quasi_identifiers"} & keys
        # What names a coding is run with it, by the test of its page.
        if {"input", "output"} <= keys and attributes and "coding" not in keys:
            example = tmp_path / "example.yaml"
            example.write_text(text)
            load_configuration(example)


def test_there_are_complete_examples() -> None:
    # Else the test above would pass on nothing.
    for name in ("README.md", "docs/configuration.md"):
        assert any("\noutput:" in text for text in blocks(REPOSITORY / name, "yaml"))


def test_the_page_of_commands_shows_their_help() -> None:
    made = runpy.run_path(str(REPOSITORY / "tools" / "describe_commands.py"))
    page = (DOCS / "commands.md").read_text()
    assert page == made["with_commands"](page), "the help has changed: run `make commands`"


def test_no_line_of_the_help_is_cut() -> None:
    from anonspark.cli.application import application

    group = get_command(application)
    with group.make_context("anonspark", ["demo"], resilient_parsing=True) as context:
        context.terminal_width = 80
        text = group.get_help(context)
    commands = text.partition("First release:")[2].split("\n")
    assert len(commands) > 20
    assert not [line for line in commands if line.endswith("...")]


@pytest.mark.parametrize(
    "error", [ConfigurationError, DataError, GuaranteeError, PublishingError, EnvironmentProblem]
)
def test_exit_codes_are_documented(error: type[Exception]) -> None:
    code = error.exit_code  # type: ignore[attr-defined]
    assert f"| {code} |" in section(DOCS / "commands.md", "Exit codes")
    assert f"## Exit code {code}: " in (DOCS / "troubleshooting.md").read_text()


def test_names_of_the_terms_are_in_the_code() -> None:
    text = section(DOCS / "architecture.md", "Terms in the code")
    code = "\n".join(sources())
    code += (REPOSITORY / "pyproject.toml").read_text()
    cells = re.findall(r"^\| [^|]+ \| (.*) \|$", text, re.M)
    names = [name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)]
    assert len(names) > 30
    parts = {part for name in names for part in name.split(".")} - {"pyproject", "toml", "tool"}
    assert sorted(parts - set(re.findall(r"\w+", code))) == []


def literals(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if is_text(node):
            yield node.value


def is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_error_texts_of_troubleshooting_are_those_of_the_code() -> None:
    ours = prose(DOCS / "troubleshooting.md").partition("## Without a message of ours")[0]
    messages = re.findall(r"^\| `(.+?)` \|", ours, re.M)
    assert len(messages) > 60
    unsaid = {part.strip() for message in messages for part in message.split("...")}
    # First the few modules that have a text in one piece, then all, for a line may divide it.
    for wanted in (True, False):
        for source in sources():
            if not wanted or any(part in source for part in unsaid):
                texts = list(literals(source)) if unsaid else []
                unsaid -= {part for part in unsaid if any(part in text for text in texts)}
    assert not unsaid


def test_error_texts_of_troubleshooting_are_under_their_exit_codes() -> None:
    """Some were under the code of another error. Texts that are put together elsewhere pass."""
    codes = {name: getattr(error, "exit_code", None) for name, error in vars(errors).items()}
    calls = [
        node
        for source in sources()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    said = [
        (code, "".join(text.value for text in ast.walk(call) if is_text(text)))
        for call in calls
        if (code := codes.get(call.func.id))
    ]
    page = prose(DOCS / "troubleshooting.md")
    checked = 0
    for code, rows in re.findall(r"^## Exit code (\d)(.+?)(?=^## )", page, re.M | re.S):
        for message in re.findall(r"^\| `(.+?)` \|", rows, re.M):
            part = max(message.split("..."), key=len).strip()
            found = {of_error for of_error, text in said if part in text}
            assert int(code) in (found or {int(code)}), message
            checked += bool(found)
    assert checked > 30


ROOMS: dict[str, Any] = runpy.run_path(str(REPOSITORY / "tools" / "draw_rooms.py"))
PAGES_ABOUT_ROOMS = [
    *(REPOSITORY / "docs").glob("*.md"),
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "tests/README.md")),
]


def test_the_page_shows_the_imports_of_the_code() -> None:
    page = ROOMS["PAGE"].read_text()
    assert page == ROOMS["with_drawing"](page), "imports have changed: run `make rooms`"


def test_every_module_is_in_a_room() -> None:
    names = ROOMS["rooms"]()
    modules = {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        for path in (REPOSITORY / "anonspark").rglob("*.py")
    }
    outside = {module for module in modules if ROOMS["room_of"](module, names) is None}
    # The first three are what users import, run or ask for; the others hold rooms.
    assert outside == {
        *("anonspark.__init__", "anonspark.__main__", "anonspark._version"),
        *("anonspark.layers.__init__", "anonspark.sharing.__init__"),
    }


@pytest.mark.parametrize("page", PAGES_ABOUT_ROOMS, ids=lambda page: page.name)
def test_files_of_the_package_are_where_pages_say(page: Path) -> None:
    folders = "anonspark|tests|tools|jobs|benchmarks|distribution|compatibility|conf|docs"
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text())
    assert [name for name in named if not (REPOSITORY / name).exists()] == []
    # What is named without the folders above is found by nobody who reads it.
    loose = re.findall(rf"`(?!{folders})((?:\w+/)+\w+\.py)`", page.read_text())
    files = [str(path) for path in (REPOSITORY / "anonspark").rglob("*.py")]
    assert [name for name in loose if any(path.endswith(f"/{name}") for path in files)] == []


NOTEBOOKS = sorted((REPOSITORY / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_begin_with_a_title_and_hold_no_output(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


@pytest.fixture(scope="module")
def ran() -> dict[str, list[Any]]:
    """Run the cells of all three in one process, where none finds a name of the one before."""
    cells = {path.stem: nbformat.read(path, as_version=4).cells for path in NOTEBOOKS}
    together = nbformat.v4.new_notebook()
    for own in cells.values():
        together.cells += [*own, nbformat.v4.new_code_cell("%reset -f")]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPOSITORY / "tools")
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        importlib.import_module("run_notebooks").execute(together, REPOSITORY / "examples")
    return cells


def printed(cells: list[Any]) -> str:
    outputs = [out for cell in cells if cell.cell_type == "code" for out in cell.outputs]
    return "\n".join(
        str(out.get("text", "")) + "".join(map(str, out.get("data", {}).values()))
        for out in outputs
    )


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS])
def test_notebooks_run_without_a_warning(ran: dict[str, list[Any]], name: str) -> None:
    shown = printed(ran[name])
    assert '<div class="anonspark">' in shown
    assert "<svg" in shown
    # No warning, and of progress nothing stays.
    assert not [
        out
        for cell in ran[name]
        for out in cell.get("outputs", [])
        if out.output_type == "stream" and out.name == "stderr"
    ]
    assert " ... 0 s" not in shown
