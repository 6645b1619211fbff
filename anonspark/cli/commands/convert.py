"""The command ``anonspark convert``."""

from __future__ import annotations

from typing import Annotated

import typer

from anonspark.cli.command import IN_PROCESS, Call, command
from anonspark.cli.commands.init import parsed_options


@command(*IN_PROCESS)
def convert(  # noqa: PLR0913 - each parameter is an option of the command
    call: Call,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE... OUT", help="Files of one table, and the file to write."),
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUT if it exists.")
    ] = False,
    sheet: Annotated[str | None, typer.Option(help="Sheet of a workbook.")] = None,
    header_row: Annotated[int | None, typer.Option(help="Row of the names, or 0.")] = None,
    hidden: Annotated[
        str | None, typer.Option(metavar="keep|drop", help="What becomes of hidden rows.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of an old file.")] = None,
    catalog: Annotated[
        str | None, typer.Option(metavar="FILE", help="Catalog of SAS with the value labels.")
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="NAME=number|text",
            help="Read a column as it is, without labels and display format. Can be repeated.",
        ),
    ] = None,
) -> None:
    """Convert files of Stata, SPSS, SAS or Excel to Parquet.

    Several files become one table. It shows what each column became.
    """
    from anonspark.conversion.convert import convert as convert_files
    from anonspark.conversion.reading import Options

    named = parsed_options(types, "--type")
    options = Options(sheet, header_row, hidden, encoding, catalog, named)
    with call.progress.stage("convert"):
        conversion = convert_files(files[:-1], files[-1], options, overwrite=overwrite)
    call.show(conversion, lambda conversion: [conversion.card], is_answer=False)
