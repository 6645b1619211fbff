"""The commands ``anonspark query`` and ``mapping``."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, EngineOption, Master, Quiet, hierarchy_files
from anonspark.cli.printing import print_csv, print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import of_paths, work_with_engine

if TYPE_CHECKING:
    from anonspark.engine.protocol import Engine
    from anonspark.reading.mapping import Mapped
    from anonspark.reading.published import Answer


def query(
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
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Count records that meet a condition, with certain bounds."""
    from anonspark.cli.display import show_answer
    from anonspark.reading.hierarchies import OPTION
    from anonspark.reading.published import open_published
    from anonspark.reading.questions import UnquotedNameError, parse_assignments, parse_question

    files = parse_assignments(hierarchies or ())
    # A mistake is told before anything is opened, but for one that its columns may explain.
    with suppress(UnquotedNameError):
        parse_question(question)

    progress = LOG.get().follow(quiet=quiet)

    def ask(engine: Engine) -> Answer:
        with progress.stage("query"):
            opened = open_published(release, files, lambda: nullcontext(engine), OPTION)
            return opened.answer(question)

    answer = work_with_engine(*of_paths(engine_name, release), master, ask)
    if as_json:
        print_json(answer.as_dict())
    else:
        show_answer(OUT, answer)


def mapping(
    release: Annotated[
        str,
        typer.Argument(metavar="RELEASE", help="Directory of a release by full-domain recoding."),
    ],
    hierarchies: Annotated[
        list[str] | None, hierarchy_files("if it is no longer where the run read it")
    ] = None,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Print which value was published as which label, as CSV.

    Needs the files of the hierarchies that the run read.
    """
    from anonspark.reading.mapping import COLUMNS, as_rows, read_mapping
    from anonspark.reading.questions import parse_assignments

    files = parse_assignments(hierarchies or ())
    progress = LOG.get().follow(quiet=quiet)

    def read(engine: Engine) -> list[Mapped]:
        with progress.stage("mapping"):
            return read_mapping(engine, release, files)

    rows = as_rows(work_with_engine(*of_paths(engine_name, release), master, read))
    if as_json:
        print_json(rows)
    else:
        print_csv(COLUMNS, rows)
