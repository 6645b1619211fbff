"""The commands ``anonspark init`` and ``profile``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, EngineOption, Master, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import load_then_work, loads, of_configuration, work_with_engine
from anonspark.errors import ConfigurationError
from anonspark.foreign_text import visible

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.engine.protocol import Engine
    from anonspark.profiling.profile import Profile
    from anonspark.utility.learned_hierarchies import Arrangement

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="A file, directory or pattern, at any address that Spark reads."
    ),
]
DataFormat = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="Format of the data. Default: recognized."),
]
DataOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Option of the format, such as header=true. Can be repeated.",
    ),
]
SmallK = Annotated[
    int, typer.Option("--k", min=2, help="Count records whose values fewer than k records share.")
]
SampleRows = Annotated[
    int,
    typer.Option("--sample", min=1000, metavar="ROWS", help="Rows to compare columns by."),
]
SampleSeed = Annotated[int, typer.Option("--seed", help="Draw another sample.")]


def parsed_options(given: Sequence[str] | None) -> dict[str, str]:
    """Return options by their names.

    Raises
    ------
    ConfigurationError
        If one has no value.
    """
    found = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"--option: found {one!r}; expected NAME=VALUE; correct it")
        found[name] = value
    return found


def profile(  # noqa: PLR0913 - each parameter is an option of the command
    data: Data,
    k: SmallK = 5,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Also write a page.")] = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show example values of each column.")
    ] = False,
    data_format: DataFormat = None,
    options: DataOptions = None,
    sample: SampleRows = 200_000,
    seed: SampleSeed = 0,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show which columns and values identify people.

    Needs no configuration.
    """
    progress = LOG.get().follow(quiet=quiet)
    with progress.stage("look at the data"):
        from anonspark.engine.choice import engine_name as named
        from anonspark.profiling.source import find_source

        source = find_source(data, data_format, parsed_options(options))

    def look(engine: Engine) -> Profile:
        from anonspark.profiling.page import write_page
        from anonspark.profiling.profile import profile_table

        found = profile_table(
            engine, source, progress, k=k, sample=sample, seed=seed, show_values=show_values
        )
        if html is not None:
            write_page(engine.files, html, found)
        return found

    found = work_with_engine(named(engine_name), source.work, master, look)
    if as_json:
        print_json(found.as_dict())
        return
    from anonspark.cli.profile_display import show_profile

    show_profile(OUT, found)
    if html is not None:
        OUT.print(f"Page: {html}")


def init(  # noqa: PLR0913 - each parameter is an option of the command
    data: Data,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File to write. Default: named after the data."),
    ] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Ask about roles, k and the output.")
    ] = False,
    k: Annotated[int, typer.Option("--k", min=2, help="Value of privacy.k.")] = 5,
    data_format: DataFormat = None,
    options: DataOptions = None,
    sample: SampleRows = 200_000,
    seed: SampleSeed = 0,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Propose a configuration from the data, with comments.

    You correct it before you run it.
    """
    if as_json and interactive:
        raise ConfigurationError(
            "--json: found together with --interactive, which asks; expected one of them"
        )
    progress = LOG.get().follow(quiet=quiet)
    with progress.stage("look at the data"):
        from anonspark.engine.choice import engine_name as named
        from anonspark.profiling.draft import Answers, draft_configuration
        from anonspark.profiling.source import find_source
        from anonspark.profiling.writing import (
            default_output,
            default_path,
            require_new,
            write_draft,
        )

        path = out or default_path(data)
        require_new(path)
        source = find_source(data, data_format, parsed_options(options))

    def look(engine: Engine) -> tuple[Profile, dict[str, dict[str, int]]]:
        from anonspark.profiling.long_tails import count_categories, may_have_tail
        from anonspark.profiling.profile import profile_table

        found = profile_table(engine, source, progress, k=k, sample=sample, seed=seed)
        with progress.stage("count categories"), engine.reading((source.path,), "DATA: "):
            table = found.source.open(engine)
            return found, count_categories(table, may_have_tail(found), found.missing_markers)

    profile, tails = work_with_engine(named(engine_name), source.work, master, look)
    answers = Answers(None, k, default_output(path))
    if interactive:
        from anonspark.cli.asking import ask

        answers = ask(profile, k, answers.output)
    draft = draft_configuration(profile, answers, tails, path)
    written = write_draft(draft, path)
    if as_json:
        print_json({"written": written})
        return
    for name in written:
        OUT.print(f"Written: {name}")
    if interactive and draft.target is not None:
        _offer_orders(path, draft.target, master, quiet=quiet)
    command = f"anonspark check {shlex.quote(path)}"
    OUT.print(f"Next: read it, then {command}")


def _offer_orders(path: str, target: str, master: str | None, *, quiet: bool) -> None:
    """Ask whether orders of categories are to be learned now."""
    question = f"Learn orders of categories that go with {target} now, for you to correct"
    if not typer.confirm(visible(question), default=False):
        return
    from anonspark.cli.utility_display import show_arrangement

    progress = LOG.get().follow(quiet=quiet)
    directory = path.rpartition(".")[0] + ".orders"

    def learn(engine: Engine, configuration: Configuration) -> Arrangement:
        from anonspark.utility.learned_hierarchies import arrange

        with progress.stage("arrange"):
            return arrange(engine, configuration, target, directory)

    found = load_then_work(path, loads(path, ()), of_configuration, master, learn)
    show_arrangement(OUT, found)
