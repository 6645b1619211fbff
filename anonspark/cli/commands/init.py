"""The commands ``anonspark init`` and ``profile``."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anonspark.cli.command import WITH_ENGINE, Call, command, loads
from anonspark.errors import ConfigurationError
from anonspark.foreign_text import visible

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.engine.protocol import Engine
    from anonspark.presentation.terminal import Block
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
Settings = dict[str, Any]
"""Keywords of :func:`anonspark.profiling.profile.profile_table`."""
SampleSeed = Annotated[int, typer.Option("--seed", help="Draw another sample.")]


def parsed_options(words: Sequence[str] | None, option: str = "--option") -> dict[str, str]:
    """Return options by their names. Raises ConfigurationError if one has no value.

    >>> parsed_options(["header=true", "sep=;"])
    {'header': 'true', 'sep': ';'}
    """
    options = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"{option}: found {word!r}. Expected NAME=VALUE. Correct it")
        options[name] = value
    return options


@command(*WITH_ENGINE)
def profile(  # noqa: PLR0913 - each parameter is an option of the command
    call: Call,
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
) -> None:
    """Show which columns and values identify people.

    Needs no configuration.
    """
    settings: Settings = {"k": k, "sample": sample, "seed": seed, "show_values": show_values}
    result = _profile_data(call, data, data_format, options, settings, html)

    def blocks(seen: Profile) -> Iterator[Block]:
        from anonspark.presentation.blocks import Text
        from anonspark.profiling.page import profile_card

        yield profile_card(seen.source.path, seen)
        yield Text(f"Next: anonspark init {shlex.quote(seen.source.path)}")
        if html is not None:
            yield Text(f"Page: {html}")

    call.show(result, blocks)


def _profile_data(
    call: Call,
    data: str,
    data_format: str | None,
    options: list[str] | None,
    settings: Settings,
    page: str | None = None,
) -> Profile:
    """Recognize the data and profile it, and write the page if a path is given for it."""
    with call.progress.stage("look at the data"):
        from anonspark.profiling.source import find_source

        source = find_source(data, data_format, parsed_options(options))

    def look(engine: Engine) -> Profile:
        from anonspark.profiling.profile import profile_table

        profile = profile_table(engine, source, call.progress, **settings)
        if page is not None:
            from anonspark.profiling.page import write_page

            write_page(engine.files, page, profile)
        return profile

    return call.work(look, work=source.work)


@command(*WITH_ENGINE)
def init(  # noqa: PLR0913 - each parameter is an option of the command
    call: Call,
    data: Data,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File to write. Default: named after the data."),
    ] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Ask about roles, k and the output.")
    ] = False,
    k: Annotated[int, typer.Option("--k", min=2, help="Value of privacy.k.")] = 5,
    decision: Annotated[
        bool, typer.Option("--decision", help="Also write a template for report --decision.")
    ] = False,
    weights: Annotated[
        bool,
        typer.Option("--weights", help="Weigh quasi-identifiers by how few records they identify."),
    ] = False,
    data_format: DataFormat = None,
    options: DataOptions = None,
    sample: SampleRows = 200_000,
    seed: SampleSeed = 0,
) -> None:
    """Propose a configuration from the data, with comments.

    You correct it before you run it.
    """
    if call.as_json and interactive:
        raise ConfigurationError(
            "--json: found together with --interactive, which asks. Expected one of them"
        )
    from anonspark.cli.prompts import ask
    from anonspark.pipeline.repeats import key_texts
    from anonspark.profiling import draft as drafts

    path = out or drafts.default_path(data)
    drafts.require_new(path)
    settings: Settings = {"k": k, "sample": sample, "seed": seed}
    profile = _profile_data(call, data, data_format, options, settings)
    answers = drafts.Answers(None, k, drafts.default_output(path))
    if interactive:
        answers = ask(profile, k, answers.output)
    draft = drafts.draft_configuration(profile, replace(answers, weighted=weights))
    written = drafts.write_draft(draft, path, decision=decision)
    for text in key_texts(profile.keys if draft.possible_units else {}, k).values():
        logging.getLogger("anonspark").warning("%s", text)
    call.say({"written": written}, *(f"Written: {name}" for name in written))
    if call.as_json:
        return
    if interactive and draft.target is not None:
        _offer_orders(call, path, draft.target)
    call.say({}, f"Next: read it, then anonspark check {shlex.quote(path)}")


def _offer_orders(call: Call, path: str, target: str) -> None:
    """Offer to learn orders of categories now, and learn them if the user agrees."""
    question = f"Learn orders of categories that go with {target} now, for you to correct"
    if not typer.confirm(visible(question), default=False):
        return
    from anonspark.presentation.utility import arrangement_blocks

    directory = path.rpartition(".")[0] + ".orders"

    def learn(engine: Engine, configuration: Configuration) -> Arrangement:
        from anonspark.utility.learned_hierarchies import arrange

        return arrange(engine, configuration, target, directory)

    call.show(call.load(path, loads(path, ()), learn, stage="arrange"), arrangement_blocks)
