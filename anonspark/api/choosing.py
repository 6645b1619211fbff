"""Who does what a program asks for: this process, or Spark."""

from __future__ import annotations

import importlib
import os
from typing import Any

from anonspark.api.release import Release
from anonspark.api.tables import is_of_spark, no_table
from anonspark.engine.choice import Work, choose_engine
from anonspark.errors import ConfigurationError


def functions_for(*given: object, written: tuple[str, ...] = ()) -> Any:
    """Return the module whose functions take what is given: Spark is imported by who uses it.

    Parameters
    ----------
    *given : object
        Tables, or paths of tables; None is nothing.
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
            "tables: found DataFrames of Spark together with others; expected all of one kind; "
            "give spark.createDataFrame(table) for those that are not"
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
        f"release: found an object of the type {type(release).__name__}; expected what "
        "anonspark.anonymize returned, or the directory of a release"
    )
