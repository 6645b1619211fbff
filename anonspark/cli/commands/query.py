"""The commands ``anonspark query`` and ``mapping``."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.command import WITH_ENGINE, Call, command, hierarchy_files, print_csv, print_json

if TYPE_CHECKING:
    from anonspark.engine.protocol import Engine
    from anonspark.reading.mapping import MappedValue
    from anonspark.reading.published import Answer


@command(*WITH_ENGINE)
def query(
    call: Call,
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="Directory of a release.")],
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUESTION",
            help="Condition as in SQL: \"age between 30 and 40 and sex = 'f' by diagnosis\".",
        ),
    ] = "",
    hierarchies: Annotated[
        list[str] | None, hierarchy_files("which shows what its labels stand for")
    ] = None,
) -> None:
    """Count records that meet a condition, with certain bounds."""
    from anonspark.cli.display import answer_blocks
    from anonspark.reading.attributes import OPTION
    from anonspark.reading.published import open_published
    from anonspark.reading.questions import UnquotedNameError, parse_assignments, parse_question

    files = parse_assignments(hierarchies or ())
    # A mistake is reported before anything is opened, unless the columns may explain it.
    with suppress(UnquotedNameError):
        parse_question(question)

    def ask(engine: Engine) -> Answer:
        return open_published(release, files, lambda: nullcontext(engine), OPTION).answer(question)

    call.show(call.work(ask, release, stage="query"), answer_blocks)


@command(*WITH_ENGINE)
def mapping(
    call: Call,
    release: Annotated[
        str,
        typer.Argument(metavar="RELEASE", help="Directory of a release by full-domain recoding."),
    ],
    hierarchies: Annotated[
        list[str] | None, hierarchy_files("if it is no longer where the run read it")
    ] = None,
) -> None:
    """Print which value was published as which label, as CSV.

    Needs the files of the hierarchies that the run read.
    """
    from anonspark.reading.mapping import COLUMNS, as_rows, read_mapping
    from anonspark.reading.questions import parse_assignments

    files = parse_assignments(hierarchies or ())

    def read(engine: Engine) -> list[MappedValue]:
        return read_mapping(engine, release, files)

    rows = as_rows(call.work(read, release, stage="mapping"))
    if call.as_json:
        print_json(rows)
    else:
        print_csv(COLUMNS, rows)
