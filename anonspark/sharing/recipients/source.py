"""The source of a plan: opened, checked and frozen, and where its releases go."""

from __future__ import annotations

from dataclasses import replace

from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.values.text_reader import reader_of_texts
from anonspark.errors import DataError
from anonspark.layers.prepare.hierarchies import read_hierarchies
from anonspark.layers.prepare.inspection import require_enough_rows
from anonspark.layers.publish.paths import require_apart, require_target
from anonspark.sharing.ledger.key import Key
from anonspark.sharing.recipients.frozen_source import FrozenSource, freeze, require_subjects
from anonspark.sharing.recipients.plan import Plan, Recipient
from anonspark.sharing.recipients.source_snapshot import RowsOf, plan_freezing


def read_source(
    engine: Engine, plan: Plan, key: Key, path: str, table: Table | None = None
) -> FrozenSource:
    """Read the source of a plan once, and write the private copy.

    Parameters
    ----------
    engine : Engine
    plan : Plan
    key : Key
        Of the names of people.
    path : str
        A new directory, private.
    table : Table or None
        The source. None opens what the base names.

    Raises
    ------
    ConfigurationError, DataError

    Notes
    -----
    One pass over the source that writes Parquet, and a shuffle of the names of people.
    """
    configuration = plan.source
    with engine.reading(configuration.input.paths):
        # A table brings its types, whatever the plan says of files.
        version = engine.input_version(configuration) if table is None else {"format": "parquet"}
        configuration = configuration.with_input(version)
        opened = engine.open_source(reader_of_texts(configuration)[0]) if table is None else table
        freezing = plan_freezing(
            opened.schema,
            configuration,
            read_hierarchies(engine.files, configuration),
            [_rows_of(recipient) for recipient in plan.recipients],
            plan.names,
            plan.file.subject,
            key,
            plan.file.record,
        )
        frozen = replace(freeze(engine, opened, freezing, path), version=version)
    if plan.file.subject:
        require_subjects(frozen, plan.file.subject, plan.file.record)
    return frozen


def _rows_of(recipient: Recipient) -> RowsOf:
    configuration = recipient.configuration
    present = configuration.quasi_identifiers if configuration.missing == "drop" else []
    return RowsOf(recipient.conditions, tuple(present))


def require_rows(plan: Plan, rows: list[int]) -> None:
    """Check that there is something to give to everybody.

    Parameters
    ----------
    plan : Plan
    rows : list of int
        Records that each recipient may have.

    Raises
    ------
    DataError
        Naming everybody who would get fewer than k.
    """
    problems = []
    for recipient, number in zip(plan.recipients, rows, strict=True):
        try:
            require_enough_rows(number, number, recipient.configuration.privacy.k)
        except DataError as error:
            problems += [f"recipients.{recipient.name}: {problem}" for problem in error.problems]
    if problems:
        raise DataError(*problems)


def require_places(files: Files, plan: Plan) -> None:
    """Check that releases, ledger, source and staging lie apart, and that releases lie at ours.

    Raises
    ------
    ConfigurationError
        Naming the key, or the keys of both places.
    """
    paths = {
        f"recipients.{recipient.name}.output.path": recipient.configuration.output.path
        for recipient in plan.recipients
    }
    for key, path in {"output": plan.output, **paths}.items():
        require_target(files, key, path)
    if plan.file.ledger is not None:
        paths["ledger.path"] = plan.file.ledger.path
    if plan.base.execution.staging_path is not None:
        paths["base.execution.staging_path"] = plan.base.execution.staging_path
    for number, path in enumerate(plan.base.input.paths_of_files):
        if not set(path) & set("*?[{"):
            paths[f"base.input.path[{number}]"] = path
    require_apart(files, paths)
