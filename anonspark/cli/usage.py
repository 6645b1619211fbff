"""What is said of a command line that is wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence

import typer

from anonspark.errors import ConfigurationError

_PROGRAM = "anonspark"
_UNKNOWN_COMMAND = re.compile(r"No such command '(.*?)'\.")


def help_without_command(context: typer.Context) -> None:
    """Print the help if the command is missing. The exit code is 2.

    The parser has an option for it, which takes the help for the message of an error.

    Parameters
    ----------
    context : typer.Context
        Of the program or of a group of commands.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(ConfigurationError.exit_code)


def usage_problem(error: Exception, given: Sequence[str], commands: Sequence[str]) -> str:
    """Return the message of a wrong command line.

    Parameters
    ----------
    error : Exception
        Of the parser of the command line.
    given : sequence of str
        The command line.
    commands : sequence of str
        All commands.

    Returns
    -------
    str
        With the help to look at: that of the command, where it is known.
    """
    said = error.format_message().rstrip(".")  # type: ignore[attr-defined]
    command = next((one for one in given if not one.startswith("-")), None)
    if command not in commands:
        return f"{_unknown(said, commands)}. See {_PROGRAM} --help"
    option = getattr(error, "option_name", None)
    if option is not None and getattr(error, "possibilities", None) is not None:
        key = _as_override(str(option), given)
        if key is not None:
            said = f"No such option: {option}. It is a key of the configuration: {key}"
    inner = getattr(getattr(error, "ctx", None), "info_name", None) or command
    of_inner = f" {inner}" if inner not in (command, _PROGRAM) else ""
    return f"{said}. See {_PROGRAM} {command}{of_inner} --help"


def _unknown(said: str, commands: Sequence[str]) -> str:
    from anonspark.config.problems import nearest

    match = _UNKNOWN_COMMAND.match(said + ".")
    if match is None:
        return said
    near = nearest(match[1], commands)
    return f"No such command: {match[1]}" + (f". Did you mean {_PROGRAM} {near}?" if near else "")


def _as_override(option: str, given: Sequence[str]) -> str | None:
    """Return the ``--set`` form of a wrong option. None where there is none."""
    from anonspark.config.json_schema import known_schema
    from anonspark.config.key_paths import places_of

    name = option.lstrip("-").partition("=")[0]
    places = places_of(name, known_schema())
    if not places:
        return None
    value = "..."
    for place, one in enumerate(given):
        if one == f"--{name}" and place + 1 < len(given):
            value = given[place + 1]
        elif one.startswith(f"--{name}="):
            value = one.partition("=")[2]
    return " or ".join(f"--set {place}={value}" for place in places)
