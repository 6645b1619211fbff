"""Who does what a program asks for: this process, or Spark."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any, Final

from anonspark.api.given import whole_number
from anonspark.api.release import Release
from anonspark.api.tables import is_of_spark, no_table
from anonspark.engine.choice import Work, choose_engine
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_plain
from anonspark.errors import ConfigurationError
from anonspark.verification.homogeneity import homogeneity_of
from anonspark.verification.sensitive import describe_values


def functions_for(*given: object, written: tuple[str, ...] = ()) -> Any:
    """Return the module whose functions take what is given: Spark is imported by who uses it.

    Parameters
    ----------
    *given : object
        Tables, or paths of tables. None is nothing.
    written : tuple of str
        Paths that are written to.

    Raises
    ------
    ConfigurationError
        If tables of Spark and others are given together.
    """
    tables = [one for one in given if one is not None and not isinstance(one, str)]
    of_spark = [is_of_spark(one) for one in tables]
    if any(of_spark) and not all(of_spark):
        raise ConfigurationError(
            "tables: found DataFrames of Spark together with others. Expected all of one kind. "
            "Give spark.createDataFrame(table) for those that are not"
        )
    if tables:
        name = "spark" if of_spark[0] else "local"
    else:
        paths = tuple(one for one in given if isinstance(one, str))
        name = choose_engine("auto", Work(paths, written), None).name
    return importlib.import_module(f"anonspark.api.{name}")


def functions_for_table(table: object) -> Any:
    """Return the module whose functions take a table, which has to be one in memory.

    Raises
    ------
    ConfigurationError
        If it is nothing, or a path.
    """
    if table is None or isinstance(table, str | os.PathLike):
        raise no_table(table)
    return functions_for(table)


def as_text(given: Any) -> Any:
    """Return a path as a text, and everything else as it is."""
    return os.fspath(given) if isinstance(given, os.PathLike) else given


def place_of(release: object) -> str:
    """Return the directory of a release.

    Parameters
    ----------
    release : Release, str or path
        What :func:`anonspark.anonymize` returned, or a directory.

    Raises
    ------
    ConfigurationError
        If it is anything else, or a release that was closed.
    """
    if isinstance(release, Release):
        release.require_open()
        return release.path
    if isinstance(release, (str, os.PathLike)):
        return os.fspath(release)
    raise ConfigurationError(
        f"release: found an object of the type {type(release).__name__}. Expected what "
        "anonspark.anonymize returned, or the directory of a release"
    )


PROPOSED: Final = "proposed"
"""Stands for the l that ``anonspark init`` would propose."""


def with_diversity(
    document: Mapping[str, Any],
    l: int | str | None,  # noqa: E741 - its name in the literature
    table: Any,
    functions: Any,
) -> dict[str, object]:
    """Return what keywords ask for, with l-diversity of the sensitive attributes.

    Parameters
    ----------
    document : mapping
        Of :func:`anonspark.api.given.wanted_configuration`, made of keywords.
    l : int, str or None
        For every sensitive attribute. None asks for none.
    table : DataFrame
        Whose values are counted where l is to be proposed.
    functions : module
        The functions that take the table.

    Raises
    ------
    ConfigurationError
        If it is no number of values, or nothing is sensitive.

    Notes
    -----
    Where l is proposed, one job for each sensitive column.
    """
    names = [name for name, role in document["attributes"].items() if role == "sensitive"]
    if l is None or (l == PROPOSED and not names):
        return dict(document)
    if l == PROPOSED:
        with functions.working(table) as (_, (given,)):
            bounds = _proposed(given, names)
    elif names:
        bounds = dict.fromkeys(names, whole_number("l", l, 2))
    else:
        raise ConfigurationError(
            "l: found it without a sensitive column. Name one with sensitive, or leave l out"
        )
    criteria = [{"attribute": name, "l": bound} for name, bound in bounds.items()]
    return {**document, "privacy": {**document["privacy"], "l_diversity": criteria}}


def _proposed(table: Table, names: list[str]) -> dict[str, int]:
    """Return the l that is proposed for each column, without those that none can be asked of."""
    schema = table.schema
    # What cannot be anonymized is refused where all other mistakes are.
    sound = [
        name
        for name in names
        if schema.names.count(name) == 1 and is_plain(schema.field(name).type)
    ]
    found = {name: homogeneity_of(describe_values(table, name), 0, None) for name in sound}
    return {name: one.proposed_l for name, one in found.items() if one.proposed_l is not None}
