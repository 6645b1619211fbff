"""Write the commands and their options into docs/commands.md, from the help of the program.

``make commands`` runs it. A test compares the page with the help.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from anonspark.cli.application import _SECTIONS, application

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
BEGIN = "<!-- made by `make commands` -->\n"
END = "<!-- end of what `make commands` made -->\n"

PAGES = {
    "profile": "profile.md",
    "convert": "configuration.md#files-of-stata-spss-sas-and-excel",
    "init": "profile.md#the-first-configuration",
    "run": "first-release.md",
    "check": "operations.md",
    "clean": "operations.md",
    "verify": "verification.md",
    "show": "output.md#show-a-release",
    "query": "reading.md",
    "mapping": "reading.md#which-value-has-which-label",
    "evaluate": "utility.md",
    "arrange": "utility.md#learned-orders",
    "select": "selection.md",
    "compare": "choosing-k-and-model.md#compare-settings",
    "distribute": "recipients.md",
    "union": "holders.md#the-union",
    "report": "report.md",
    "history": "operations.md#history",
    "verifier": "verification.md#a-verifier-to-read",
    "schema": "configuration.md#completion-in-editors",
    "ledger": "recipients.md",
}
"""The page that says more about a command."""

COMMON = (
    *("--set", "--master", "--engine", "--run-id", "--resume", "--json", "--quiet"),
    *("--no-progress", "--sign", "--format", "--option"),
)
"""Options of several commands, which the page describes once."""


def _commands() -> Iterator[tuple[str, Any]]:
    """Yield all commands with the words that call them."""
    for name, command in get_command(application).commands.items():  # type: ignore[attr-defined]
        if command.hidden:
            continue
        yield name, command
        for inner, below in getattr(command, "commands", {}).items():
            yield f"{name} {inner}", below


def _paragraphs(command: Any) -> list[str]:
    """Return the paragraphs of a command's help, each as one line."""
    return [" ".join(text.split()) for text in command.help.split("\n\n")]


def _cell(text: str) -> str:
    return (
        " ".join(text.replace("[required]", "").split())
        .replace("|", "\\|")
        .replace("<", "&lt;")
        .replace("$", "`$")
        .replace("}", "}`")
    )


def _row(parameter: Any, context: Any) -> str:
    names, text = parameter.get_help_record(context)
    shown = names.replace("|", "\\|")
    return f"| `{shown}` | {_cell(text)} |"


def _name(parameter: Any) -> str:
    return next(name for name in parameter.opts if name.startswith("--") or "-" not in name)


def _section(name: str, command: Any) -> Iterator[str]:
    yield f"### {name}\n\n"
    more = PAGES.get(name)
    link = f" [More]({more})." if more else ""
    yield " ".join(_paragraphs(command)) + link + "\n\n"
    if command.epilog:
        yield f"```sh\n{command.epilog.removeprefix('Example: ')}\n```\n\n"
    own, common = [], []
    context = command.make_context(name, [], resilient_parsing=True)
    for parameter in command.params:
        option = _name(parameter)
        if option in COMMON:
            common.append(f"`{option}`")
        else:
            own.append(_row(parameter, context))
    if own:
        yield "".join(f"{row}\n" for row in ("| option | meaning |", "| --- | --- |"))
        yield "".join(f"{row}\n" for row in own) + "\n"
    if common:
        yield f"Also: {', '.join(common)}.\n\n"


def describe() -> str:
    """Return the commands by group, the common options, and a section a command."""
    commands = dict(_commands())
    groups = {**_SECTIONS, "Sharing": [*_SECTIONS["Sharing"], "ledger"]}
    lines = [
        f"- **{title}**: {', '.join(f'[`{name}`](#{name})' for name in names)}"
        for title, names in groups.items()
        if title
    ]
    lines += ["", "## Common options", "", "| option | meaning |", "| --- | --- |"]
    rows: dict[str, str] = {}
    for name, command in commands.items():
        context = command.make_context(name, [], resilient_parsing=True)
        for parameter in command.params:
            rows.setdefault(_name(parameter), _row(parameter, context))
    lines += [rows[name] for name in COMMON]
    program = get_command(application)
    context = program.make_context("anonspark", [], resilient_parsing=True)
    lines += [_row(parameter, context) for parameter in program.params]
    lines += ["| `-h, --help` | Show the help of the command and exit. |"]
    lines += ["", "## Each command", ""]
    text = "".join(f"{line}\n" for line in lines)
    return text + "".join("".join(_section(name, command)) for name, command in commands.items())


def with_commands(page: str) -> str:
    """Return a page with the commands of the program as it is."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE}: the two comments around the commands are missing")
    return f"{before}{begin}\n{describe()}{end}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_commands(PAGE.read_text()))
