"""The program ``anonspark``: its commands, its messages and its exit codes."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import UTC, date, datetime
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from anonspark._version import __version__
from anonspark.cli.command import ERR, help_without_command, usage_problem
from anonspark.cli.commands.arrange import arrange
from anonspark.cli.commands.check import check
from anonspark.cli.commands.compare import compare
from anonspark.cli.commands.convert import convert
from anonspark.cli.commands.demo import demo
from anonspark.cli.commands.doctor import doctor
from anonspark.cli.commands.init import init, profile
from anonspark.cli.commands.query import mapping, query
from anonspark.cli.commands.report import evaluate, history, report_release
from anonspark.cli.commands.run import run
from anonspark.cli.commands.schema import schema, verifier
from anonspark.cli.commands.show import show
from anonspark.cli.commands.verify import verify
from anonspark.cli.engine_runner import EndedError, ended_by_signals
from anonspark.cli.logs import LOG, LOG_FORMATS, CommandLog, LogFormat
from anonspark.cli.sharing.clean import clean
from anonspark.cli.sharing.distribute import distribute, union
from anonspark.cli.sharing.ledger import ledger
from anonspark.cli.sharing.select import select_attributes
from anonspark.core.run_ids import RUN_DATE_VARIABLE
from anonspark.errors import (
    AnonsparkError,
    ConfigurationError,
    EnvironmentProblem,
    limit_reached,
)
from anonspark.foreign_text import visible
from anonspark.redaction import redact


class _Sections(TyperGroup):
    """Lists the commands in sections, in the help of the program."""

    def format_commands(self, *arguments: Any) -> None:
        """Write the sections, with columns of the same widths in all of them."""
        _, formatter = arguments
        widest = max(map(len, self.commands))
        for title, names in _SECTIONS.items():
            # Its commands are in a module of their own.
            listed = [*names, *(["ledger"] if title == "Sharing" else [])]
            rows = [
                (name.ljust(widest), self.commands[name].get_short_help_str(80))
                for name in listed
                if name in self.commands
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


application = typer.Typer(
    name="anonspark",
    cls=_Sections,
    help="Anonymize big tables about people: exact, deterministic, verifiable k-anonymity.",
    # Commands below it have the same.
    context_settings={"help_option_names": ["--help", "-h"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

_COMPLETION = frozenset(("--install-completion", "--show-completion"))

# In the order of the help, each with an example.
_SECTIONS: dict[str, dict[str, tuple[Callable[..., None], str]]] = {
    "First release": {
        "profile": (profile, "people.csv --html profile.html"),
        "init": (init, "people.csv"),
        "check": (check, "people.yaml --set privacy.k=20"),
        "run": (run, "people.yaml --report"),
        "verify": (verify, "out/people --original people.csv"),
        "report": (report_release, "out/people --original people.csv"),
    },
    "Use it": {
        "query": (query, 'out/people "age between 30 and 40 by sex"'),
        "show": (show, "out/people"),
        "evaluate": (evaluate, "out/people --original people.csv"),
        "compare": (compare, "people.yaml"),
        "history": (history, "out/history --html history.html"),
        "convert": (convert, "visits.sav visits.parquet"),
    },
    "Sharing": {
        "distribute": (distribute, "plan.yaml --check"),
        "union": (union, "out/north out/south --out out/both"),
        "select": (select_attributes, "people.yaml --dry-run"),
        "arrange": (arrange, "people.yaml --target income"),
    },
    "More": {
        "clean": (clean, "people.yaml"),
        "mapping": (mapping, "out/people > mapping.csv"),
        "demo": (demo, ""),
        "doctor": (doctor, ""),
        "schema": (schema, "> anonspark.schema.json"),
        "verifier": (verifier, "> check_release.py"),
    },
}
for _title, _commands in _SECTIONS.items():
    for _name, (_command, _arguments) in _commands.items():
        _example = f"Example: anonspark {_name} {_arguments}".rstrip()
        application.command(_name, epilog=_example)(_command)
application.add_typer(ledger)


@application.callback(invoke_without_command=True)
def _version(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    _debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help="Show stack traces. They can contain values of the data.",
        ),
    ] = False,
    _log_format: Annotated[
        str,
        typer.Option(
            "--log-format",
            metavar="|".join(LOG_FORMATS),
            help="Write messages as text or as JSON, one object a line.",
        ),
    ] = "plain",
    _run_date: Annotated[
        str,
        typer.Option(
            "--run-date",
            metavar="DAY",
            help="Day that ${run_date} in a configuration stands for, such as 2026-01-31. "
            "Default: today in UTC.",
        ),
    ] = "",
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit
    help_without_command(context)


def main(arguments: Sequence[str] | None = None, *, ends_process: bool = False) -> int:
    """Run a command and return its exit code. The words of the process are the default.

    0 done, 1 a bug of anonspark, 2 wrong usage or configuration, 3 wrong data, 4 a privacy
    criterion does not hold, 5 publishing failed, 6 environment, 130 and 143 interrupted.
    ``ends_process`` says that nothing runs in this process afterwards, which spares some cleaning
    up.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Taken out here, so that they may stand anywhere on the line and count for all messages.
    debug = "--debug" in words
    words = [argument for argument in words if argument != "--debug"]
    log = CommandLog(ERR, debug=debug, ends_process=ends_process)
    LOG.set(log)
    try:
        log.format, words = _take_log_format(words)
        day, words = _take_run_date(words)
    except ConfigurationError as error:
        return log.fail(error.exit_code, str(error), debug=debug)
    with ended_by_signals(), log.opened(), _day_of_run(day):
        return _run_command(words, log)


def _take(words: Sequence[str], option: str, default: str) -> tuple[str, list[str]]:
    """Return the last value of an option, or its default, and the arguments without it.

    >>> _take(["run", "--run-date=2026-01-31", "people.yaml"], "--run-date", "")
    ('2026-01-31', ['run', 'people.yaml'])
    """
    rest: list[str] = []
    value = default
    arguments = iter(words)
    for argument in arguments:
        if argument == option:
            value = next(arguments, "")
        elif argument.startswith(f"{option}="):
            value = argument.partition("=")[2]
        else:
            rest.append(argument)
    return value, rest


def _take_log_format(words: Sequence[str]) -> tuple[LogFormat, list[str]]:
    """Return the format of the log, and the arguments without it.

    >>> _take_log_format(["check", "--log-format", "json"])
    ('json', ['check'])
    """
    name, rest = _take(words, "--log-format", "plain")
    match name:
        case "plain" | "json":
            return name, rest
        case _:
            raise ConfigurationError(
                f"--log-format: found {name or 'nothing'!r}. Expected one of "
                f"{', '.join(LOG_FORMATS)}"
            )


def _take_run_date(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the day of the run, and the arguments without it."""
    today = datetime.now(UTC).date().isoformat()
    day, rest = _take(words, "--run-date", os.environ.get(RUN_DATE_VARIABLE) or today)
    try:
        date.fromisoformat(day)
    except ValueError:
        raise ConfigurationError(
            f"--run-date, {RUN_DATE_VARIABLE}: found {day or 'nothing'!r}. Expected a day as "
            "2026-01-31"
        ) from None
    return day, rest


@contextmanager
def _day_of_run(day: str) -> Iterator[None]:
    """Fix the day of the run for all that reads it, even if midnight passes meanwhile."""
    before = os.environ.get(RUN_DATE_VARIABLE)
    os.environ[RUN_DATE_VARIABLE] = day
    try:
        yield
    finally:
        if before is None:
            del os.environ[RUN_DATE_VARIABLE]
        else:
            os.environ[RUN_DATE_VARIABLE] = before


@cache
def _parsing_command(name: str) -> Callable[..., object]:
    """Build the parser of one command, or of all if there is none of this name: all take longer."""
    named = [command for command in application.registered_commands if command.name == name]
    parsing = copy(application)
    if named:
        parsing.registered_commands, parsing.registered_groups = named, []
    return get_command(parsing)


def _call(words: Sequence[str]) -> int:
    """Call the command and return its exit code, also if completion ends the process."""
    try:
        command = _parsing_command(words[0] if words else "")
        result = command(words, prog_name="anonspark", standalone_mode=False)
    except SystemExit as ended:
        result = ended.code
    return result if isinstance(result, int) else 0


def _run_command(words: Sequence[str], log: CommandLog) -> int:
    """Run a command, report why it failed if it did, and return its exit code."""
    debug = log.debug
    try:
        code = _call(words)
        if code and _COMPLETION.intersection(words):
            return log.fail(
                EnvironmentProblem.exit_code,
                "completion: the shell was not recognized. Expected bash, zsh, fish or PowerShell. "
                "Call it in one of these",
                debug=False,
            )
        return code
    except (AnonsparkError, EndedError) as error:
        return log.fail(error.exit_code, log.message_of(error), debug=debug)
    except (KeyboardInterrupt, typer.Abort):  # in the middle of Spark's start
        return log.fail(128 + signal.SIGINT, str(EndedError(signal.SIGINT)), debug=debug)
    except Exception as error:  # noqa: BLE001 - the last resort, which must not show data
        usage = getattr(error, "format_message", None)
        if usage is not None and getattr(error, "exit_code", None) == 2:
            commands = [*(name for names in _SECTIONS.values() for name in names), "ledger"]
            message = usage_problem(error, words, commands)
            return log.fail(2, visible(redact(message)), debug=False)
        if (limit := limit_reached(error)) is not None:
            return log.fail(limit.exit_code, str(limit), debug=debug)
        if "pyspark" in sys.modules:
            from anonspark.engine.spark.errors import environment_problem

            problem = environment_problem(error)
            if problem is not None:
                return log.fail(EnvironmentProblem.exit_code, problem, debug=debug)
        return log.fail(
            1,
            f"unexpected {type(error).__name__}: a bug of anonspark. "
            "Please report it. --debug shows the details, which may contain data",
            debug=debug,
        )


def run_and_exit() -> None:
    """Run a command and end the process with its exit code."""
    # Imported modules are no garbage while the command runs, and need not be collected at the end.
    gc.set_threshold(100_000)
    try:
        code = main(ends_process=True)
    finally:
        gc.freeze()
    sys.exit(code)
