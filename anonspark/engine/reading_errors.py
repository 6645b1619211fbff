"""What users are told of tables that cannot be read, in the words of all engines."""

from __future__ import annotations

from collections.abc import Sequence

from anonspark.errors import ConfigurationError, DataError


def nothing_there(path: str, key: str) -> str:
    """Return what is told of a path where nothing is."""
    return f"{key}: nothing is at {path}; check the path, and that the cluster can reach it"


def remedy(section: str | None) -> str:
    """Return what may be wrong besides the files."""
    return "its format" if section is None else f"{section}.format and {section}.options"


def not_of_the_format(
    paths: Sequence[str], data_format: str, key: str, section: str | None, reason: str
) -> DataError:
    """Return the error of files that cannot be opened in a format.

    Parameters
    ----------
    paths : sequence of str
    data_format : str
    key : str
        What named the paths.
    section : str or None
        The configuration's section with format and options, if there is one.
    reason : str
        One of Spark's conditions; no value of the data.
    """
    return DataError(
        f"{key}: cannot read {', '.join(paths)} as {data_format} ({reason}); check "
        f"{remedy(section)}"
    )


def no_record(paths: Sequence[str], data_format: str, key: str, section: str | None) -> DataError:
    """Return the error of files of which no record can be read."""
    return DataError(
        f"{key}: no record of {', '.join(paths)} can be read as {data_format}; check the files, "
        f"and {remedy(section)}"
    )


def options_not_taken(
    data_format: str, key: str, section: str | None, kind: str
) -> ConfigurationError:
    """Return the error of options that a format does not take.

    Parameters
    ----------
    data_format : str
    key : str
        What named the paths.
    section : str or None
        The configuration's section with format and options, if there is one.
    kind : str
        What the options are refused with; no value of them.
    """
    where = key if section is None else f"{section}.format, {section}.options"
    return ConfigurationError(
        f"{where}: the data source {data_format!r} does not take these options ({kind}); expected "
        "those that its documentation lists, all it requires; correct them (the details, with "
        "--debug, may show credentials)"
    )


def vanished(where: str) -> DataError:
    """Return the error of files that were there when the table was opened.

    Parameters
    ----------
    where : str
        What named the paths, and the paths.
    """
    return DataError(
        f"{where}: files vanished while they were read; keep the input unchanged during a run, "
        "and run again"
    )


def different_headers(where: str) -> DataError:
    """Return the error of CSV files of one table with different first lines."""
    return DataError(
        f"{where}: CSV files with different headers; expected the same columns in the same order "
        "in all files; write those that differ anew (where all headers have empty or repeated "
        "names, input.options.enforceSchema: true takes columns by their places)"
    )


def unreadable(where: str) -> DataError:
    """Return the error of files that are damaged or hold something else."""
    return DataError(
        f"{where}: files cannot be read in this format, or there are none; check the path, "
        "input.format, input.options, permissions and the files themselves (the details, with "
        "--debug, may show data)"
    )
