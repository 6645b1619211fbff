"""The command ``anonspark convert``."""

from __future__ import annotations

from typing import Annotated

import typer

from anonspark.cli.commands.init import parsed_options
from anonspark.cli.frame import Call, command


@command("as_json", "quiet")
def convert(  # noqa: PLR0913 - each parameter is an option of the command
    call: Call,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE... OUT", help="Files of one table, and the file to write."),
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is at OUT.")] = False,
    sheet: Annotated[str | None, typer.Option(help="Sheet of a workbook.")] = None,
    header_row: Annotated[
        int | None, typer.Option(help="Row of the sheet that names the columns, or 0.")
    ] = None,
    hidden: Annotated[
        str | None, typer.Option(metavar="keep|drop", help="What happens to hidden rows.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of old files.")] = None,
    catalog: Annotated[
        str | None, typer.Option(metavar="FILE", help="SAS catalog with the value labels.")
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="NAME=number|text",
            help="Read a column as bare numbers or as texts, without labels. Can be repeated.",
        ),
    ] = None,
) -> None:
    """Convert files of Stata, SPSS, SAS or Excel to Parquet."""
    from anonspark.conversion.convert import convert as convert_files

    with call.progress.stage("convert"):
        conversion = convert_files(
            files[:-1],
            files[-1],
            overwrite=overwrite,
            sheet=sheet,
            header_row=header_row,
            hidden=hidden,
            encoding=encoding,
            catalog=catalog,
            types=parsed_options(types, "--type"),
        )
    if call.as_json or not call.quiet:
        call.show(conversion, lambda conversion: conversion.blocks)
