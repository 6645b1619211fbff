"""The frame of every command: common options, loading, engine, progress, and what it prints."""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

import typer
from rich.console import Console, ConsoleDimensions
from rich.text import Text

from anonspark.cli.engine_runner import work_with_engine, work_with_spark
from anonspark.cli.logs import LOG
from anonspark.errors import ConfigurationError, SparkNeededError
from anonspark.foreign_text import json_text, visible, visible_lines
from anonspark.progress import Progress
from anonspark.redaction import redact, redact_values

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.config.reading import TextReader
    from anonspark.engine.choice import EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.presentation.terminal import Block


ConfigurationPath = Annotated[
    str, typer.Argument(metavar="CONFIG", help="YAML file, local or at any Hadoop address.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY.PATH=VALUE", help="Change a key for this command. Can be repeated."
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Spark master, or sc://HOST:PORT of Spark Connect. Default: the one of spark-submit, "
        "else an embedded local Spark.",
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|local|spark",
        help="Where it runs: in this process, or on Spark. auto takes this process if you give no "
        "Spark and the files are local and fit.",
    ),
]
Holdout = Annotated[
    str | None,
    typer.Option(
        metavar="PATH", help="Test the models on this table, which is not part of the original."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print nothing but errors, and the answer of a command that has one."
    ),
]
NoProgress = Annotated[
    bool, typer.Option("--no-progress", help="Show no progress, only warnings and errors.")
]
Details = Annotated[
    bool, typer.Option("--details", help="Show all figures, and what is only claimed.")
]
Sign = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="Sign the release: a private SSH key of Ed25519, or its .pub if the agent has it.",
    ),
]
RunId = Annotated[str | None, typer.Option(help="Name of the run in metrics and manifest.")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue the killed run of this output, or start a new one if there is none. "
        "If several were killed, name one with --run-id. Finished rounds stay if this run fails.",
    ),
]


def with_key(
    overrides: list[str] | None, sign: str | None, path: str = "output.signing_key"
) -> list[str]:
    """Return overrides with the one that ``--sign`` stands for.

    >>> with_key(["privacy.k=5"], "key.pub")
    ['privacy.k=5', 'output.signing_key="key.pub"']
    """
    return [*(overrides or []), *([] if sign is None else [f"{path}={json.dumps(sign)}"])]


def hierarchy_files(what: str) -> Any:
    """Make the option ``--hierarchy``. Its help says what the files are for."""
    return typer.Option(
        "--hierarchy",
        metavar="COLUMN=PATH",
        help=f"File of a column's hierarchy, {what}. Can be repeated.",
    )


def print_json(value: object) -> None:
    """Print a value as JSON, without credentials."""

    def plain(inner: object) -> object:
        if isinstance(inner, Decimal):
            return int(inner)
        return inner.isoformat() if isinstance(inner, date) else str(inner)

    document = json.loads(json.dumps(value, default=plain))
    typer.echo(json_text(redact_values(document), indent=2))


def print_csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Print rows as CSV with a header: None as an empty cell, truth values as in JSON."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = (row[name] for name in columns)
        writer.writerow([str(cell).lower() if isinstance(cell, bool) else cell for cell in cells])
    print_text(text.getvalue())


def print_text(text: str) -> None:
    """Print lines for a program unchanged. A terminal gets escapes for what shows nothing."""
    typer.echo(visible_lines(text) if sys.stdout.isatty() else text, nl=False)


# Wider than any table; rich makes no line of that length of its own accord.
_ENDLESS = 10_000


class Terminal(Console):
    """A console of rich that redacts all texts, also in tables, and escapes what shows nothing.

    A text is one line. It has neither markup nor emoji of rich: those are for :class:`Text`. A file
    or a pipe has no width, so no line is broken there unless ``COLUMNS`` is set.
    """

    def __init__(self, **options: Any) -> None:
        # A command that is called inside of a notebook prints as it does elsewhere.
        super().__init__(force_jupyter=False, markup=False, emoji=False, highlight=False, **options)

    @property
    def size(self) -> ConsoleDimensions:
        """Columns and lines."""
        if self.is_terminal or "COLUMNS" in os.environ:
            return super().size
        return ConsoleDimensions(_ENDLESS, super().size.height)

    @size.setter
    def size(self, size: tuple[int, int]) -> None:
        self._width, self._height = size

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text that is shown. Rich asks here for all that it prints, also in tables."""
        return super().render_str(visible(redact(text)), **options)


OUT = Terminal(soft_wrap=True)
"""Standard output, for results."""

ERR = Terminal(stderr=True, soft_wrap=True)
"""Standard error, for messages and progress."""


_PROGRAM = "anonspark"
_UNKNOWN_COMMAND = re.compile(r"No such command '(.*?)'\.")


def help_without_command(context: typer.Context) -> None:
    """Print the help if the command is missing, and exit with 2.

    The parser has an option for it, but takes the help for the message of an error.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(ConfigurationError.exit_code)


def usage_problem(error: Exception, words: Sequence[str], commands: Sequence[str]) -> str:
    """Write the message of a wrong command line, and which help to look at."""
    message = error.format_message().rstrip(".")  # type: ignore[attr-defined]
    command = next((word for word in words if not word.startswith("-")), None)
    if command not in commands:
        return f"{_unknown(message, commands)}. See {_PROGRAM} --help"
    option = getattr(error, "option_name", None)
    if option is not None and getattr(error, "possibilities", None) is not None:
        key = _as_override(str(option), words)
        if key is not None:
            message = f"No such option: {option}. It is a key of the configuration: {key}"
    inner = getattr(getattr(error, "ctx", None), "info_name", None) or command
    of_inner = f" {inner}" if inner not in (command, _PROGRAM) else ""
    return f"{message}. See {_PROGRAM} {command}{of_inner} --help"


def _unknown(message: str, commands: Sequence[str]) -> str:
    from anonspark.config.problems import nearest

    match = _UNKNOWN_COMMAND.match(message + ".")
    if match is None:
        return message
    near = nearest(match[1], commands)
    return f"No such command: {match[1]}" + (f". Did you mean {_PROGRAM} {near}?" if near else "")


def _as_override(option: str, words: Sequence[str]) -> str | None:
    """Return the ``--set`` form of a wrong option, or None if it is no key of the configuration.

    >>> _as_override("--k", ["run", "people.yaml", "--k", "5"])
    '--set privacy.k=5'
    """
    from anonspark.config.json_schema import known_schema
    from anonspark.config.problems import places_of

    name = option.lstrip("-").partition("=")[0]
    keys = places_of(name, known_schema())
    if not keys:
        return None
    value = "..."
    for index, word in enumerate(words):
        if word == f"--{name}" and index + 1 < len(words):
            value = words[index + 1]
        elif word.startswith(f"--{name}="):
            value = word.partition("=")[2]
    return " or ".join(f"--set {key}={value}" for key in keys)


Result = TypeVar("Result")

Common = Literal["master", "engine", "as_json", "quiet", "no_progress"]

_OPTIONS: dict[Common, tuple[Any, object]] = {
    "master": (Master, None),
    "engine": (EngineOption, "auto"),
    "as_json": (AsJson, False),
    "quiet": (Quiet, False),
    "no_progress": (NoProgress, False),
}

IN_PROCESS: tuple[Common, ...] = ("as_json", "quiet", "no_progress")

CONFIGURED: tuple[Common, ...] = ("master", *IN_PROCESS)
"""Options of a command whose configuration names the engine."""

WITH_ENGINE: tuple[Common, ...] = ("master", "engine", *IN_PROCESS)


@dataclass(frozen=True)
class Call:
    """A call of a command, with the values of its common options."""

    progress: Progress
    master: str | None = None
    engine: str = "auto"
    as_json: bool = False
    quiet: bool = False
    no_progress: bool = False

    def show(
        self,
        result: Result,
        blocks: Callable[[Result], Iterable[Block]],
        *,
        is_answer: bool = True,
        **more: Any,
    ) -> None:
        """Print a result as JSON, with further keys, if ``--json`` is given, else as blocks.

        A mapping or a list is JSON as it is, anything else by its ``as_dict``. With ``--quiet``
        blocks are printed only if they are the answer that the command is called for.
        """
        if self.quiet and not (self.as_json or is_answer):
            return
        if self.as_json:
            document: Any = result if isinstance(result, dict | list) else result.as_dict()  # type: ignore[attr-defined]
            print_json(document | more if more else document)
            return
        from anonspark.presentation.terminal import show_blocks

        show_blocks(OUT, blocks(result))

    def say(self, document: dict[str, object], *lines: str) -> None:
        """Print what was done as JSON if ``--json`` is given, else as lines."""
        from anonspark.presentation.blocks import Text

        self.show(document, lambda _: map(Text, lines), is_answer=False)

    def work(
        self,
        function: Callable[[Engine], Result],
        *paths: str | None,
        written: Sequence[str] = (),
        work: Work | None = None,
        stage: str = "",
    ) -> Result:
        """Choose an engine, and work with it.

        The paths are tables to be read, ``written`` paths to be written. ``work`` describes what
        paths alone do not show. ``stage`` names the progress, and is empty if the function begins
        stages.
        """
        engine_of_call, of_paths = self.work_on(*paths, written=written)
        function = self._staged(function, stage)
        return work_with_engine(engine_of_call, work or of_paths, self.master, function)

    def work_on(self, *paths: str | None, written: Sequence[str] = ()) -> tuple[EngineName, Work]:
        """Return the engine of ``--engine``, and the work on some paths. See :meth:`work`."""
        from anonspark.engine.choice import Work, engine_name

        return engine_name(self.engine), Work(tuple(filter(None, paths)), tuple(written))

    def load(
        self,
        path: str,
        load: Callable[[TextReader], Any],
        function: Callable[[Engine, Any], Result],
        describe: Callable[[Any], tuple[EngineName, Work]] | None = None,
        *,
        stage: str = "",
    ) -> Result:
        """Load a file, choose an engine by it, and work with both.

        Spark starts after a local file was checked, so that errors in it are shown at once. A file
        at an address, as ``hdfs://``, can only be read through Spark's Hadoop, and so can the file
        of the seed that a local one names. If the loaded object has ``places``, messages name the
        line of a key. ``describe`` returns the engine and the work, by default those of a
        configuration.
        """
        from anonspark.config.reading import is_address, read_local_text

        log = LOG.get()

        def loaded_with(reader: TextReader) -> Any:
            loaded = load(reader)
            log.places = getattr(loaded, "places", None)
            return loaded

        if not is_address(path):
            try:
                loaded = loaded_with(read_local_text)
            except SparkNeededError:
                pass  # everything but the file of the seed was found to be right
            else:
                work = self._staged(lambda engine: function(engine, loaded), stage)
                described = (describe or of_configuration)(loaded)
                return work_with_engine(*described, self.master, work)

        def read_then_work(engine: Engine) -> Result:
            def read(source: str) -> str:
                if is_address(source):
                    return engine.files.read_document(source)
                return read_local_text(source)

            loaded = loaded_with(read)
            return self._staged(lambda engine: function(engine, loaded), stage)(engine)

        return work_with_spark(self.master, read_then_work)

    def _staged(
        self, function: Callable[[Engine], Result], stage: str
    ) -> Callable[[Engine], Result]:
        if not stage:
            return function

        def staged(engine: Engine) -> Result:
            with self.progress.stage(stage):
                return function(engine)

        return staged


def of_configuration(configuration: Configuration) -> tuple[EngineName, Work]:
    """Return the engine of a configuration, and the work of a run of it."""
    from anonspark.engine.choice import Work

    return configuration.execution.engine, Work.of(configuration)


def loads(
    path: str, overrides: Sequence[str] | None, *, needs_seed: bool = True
) -> Callable[[TextReader], Configuration]:
    """Return the function that loads a configuration with a reader of files."""
    from anonspark.config import load_configuration

    return lambda read: load_configuration(path, overrides or (), read, needs_seed=needs_seed)


def command(*common: Common) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function whose first parameter is the :class:`Call`.

    It gets the common options besides its parameters. With ``quiet`` among them it shows progress,
    under the name of the run if it has an option ``run_id``.
    """

    def framed(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def called(**options: Any) -> None:
            shared = {name: options.pop(name) for name in common}
            log = LOG.get()
            call = Call(log.progress, **shared)
            if "quiet" in shared:
                shows = not (call.quiet or call.no_progress)
                progress = log.follow(
                    quiet=call.quiet, shows_progress=shows, run_id=options.get("run_id")
                )
                call = replace(call, progress=progress)
            function(call, **options)

        # The parser reads the options of a command from its signature.
        parameters = [*_own_parameters(function), *map(_common_parameter, common)]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        del called.__wrapped__
        return called

    return framed


def _own_parameters(function: Callable[..., None]) -> list[inspect.Parameter]:
    """Return the parameters of a command's function without the call, with resolved types."""
    hints = get_type_hints(function, include_extras=True)
    _, *parameters = inspect.signature(function).parameters.values()
    return [parameter.replace(annotation=hints[parameter.name]) for parameter in parameters]


def _common_parameter(name: Common) -> inspect.Parameter:
    """Return the parameter of a common option.

    >>> str(_common_parameter("engine")).partition(":")[0], _common_parameter("quiet").default
    ('engine', False)
    """
    annotation, default = _OPTIONS[name]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
