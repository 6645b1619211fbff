"""The report of a release, for a program."""

from __future__ import annotations

import os

from anonspark.api.given import named_as_arguments
from anonspark.api.shown import Page
from anonspark.engine.protocol import Engine, Table
from anonspark.release.manifest import read_manifest
from anonspark.release.originals import open_original
from anonspark.reporting.making import make_report
from anonspark.reporting.placing import place_report, report_place


def made_report(
    engine: Engine,
    release: str,
    original: Table | str | None,
    path: str | None,
    *,
    target: str | None = None,
    holdout: Table | str | None = None,
    inside: bool = False,
) -> Page:
    """Make the report of a release, and write it where that is asked for.

    Parameters
    ----------
    engine : Engine
    release : str
        Its directory.
    original : Table, str or None
        What it was made of, or where that is.
    path : str or None
    target : str or None
    holdout : Table, str or None
        As of :func:`anonspark.reporting.making.make_report`.
    inside : bool
        Whether it names the worst classes.
    """
    files = engine.files
    with named_as_arguments({"--out": "path"}):
        place = (
            None if path is None else report_place(files, release, os.fspath(path), inside=inside)
        )
        told = original if isinstance(original, str) else None
        if isinstance(original, str):
            original = open_original(engine, original, read_manifest(files, release))
        html = make_report(
            engine, release, original, told, target=target, holdout=holdout, inside=inside
        )
        if place is not None:
            place_report(files, release, place, html)
    return Page(html, place)
