"""What programs are given whatever their tables are: runs, claims and reports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from anonspark.api.arguments import given_configuration, named_as_arguments
from anonspark.api.display import Page
from anonspark.api.tables import GIVEN
from anonspark.config import Configuration
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import exit_code_of
from anonspark.layers.publish.prometheus import write_textfile
from anonspark.pipeline.released import Release as Released
from anonspark.pipeline.run import run
from anonspark.progress import Progress
from anonspark.release.manifest import read_manifest
from anonspark.release.originals import open_original
from anonspark.reporting.making import make_report
from anonspark.reporting.placing import place_report, report_place
from anonspark.verification.claims import Claim, claim_of_configuration
from anonspark.verification.roles import Roles, claim_of_roles


def made_report(
    engine: Engine,
    release: str,
    original: Table | str | None,
    path: str | None,
    *,
    target: str | None = None,
    holdout: Table | str | None = None,
    internal: bool = False,
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
    internal : bool
        Whether it names the worst classes.
    """
    files = engine.files
    with named_as_arguments({"--out": "path"}):
        place = (
            None
            if path is None
            else report_place(files, release, os.fspath(path), internal=internal)
        )
        source = original if isinstance(original, str) else None
        if isinstance(original, str):
            original = open_original(engine, original, read_manifest(files, release))
        html, _ = make_report(
            engine, release, original, source, target=target, holdout=holdout, internal=internal
        )
        if place is not None:
            place_report(files, release, place, html)
    return Page(html, place)


def anonymized(
    engine: Engine, configuration: Configuration, table: Table, progress: Progress
) -> Released:
    """Anonymize a table, and report the result to Prometheus where that is asked for."""
    started = datetime.now(UTC)
    summary = None
    code = 0
    try:
        made = run(engine, configuration, progress=progress, table=table)
        summary = made.summary
        return made
    except BaseException as error:
        code = exit_code_of(error)
        raise
    finally:
        write_textfile(
            configuration,
            progress,
            started=started,
            exit_code=code,
            summary=summary,
            files=engine.files,
        )


def claim_of(
    engine: Engine,
    config: Mapping[str, Any] | Configuration | None,
    roles: Roles | None,
    schema: pa.Schema,
    *,
    matched: bool,
) -> Claim:
    """Return what a table of these columns has to keep. See :func:`anonspark.verify`."""
    if roles is not None or config is None:
        return claim_of_roles(roles or Roles(), schema)
    read = engine.files.read_document
    configuration = given_configuration(config, GIVEN, read, needs_seed=False)
    return claim_of_configuration(engine, configuration, schema.names, None, matched=matched)
