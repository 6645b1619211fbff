"""Reading a configuration: YAML file, overrides of the command line, all problems at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anonspark.config.coding import CODING, CodingReader
from anonspark.config.configuration import Configuration
from anonspark.config.documents import Document
from anonspark.config.input import format_of_name
from anonspark.config.json_schema import known_schema
from anonspark.config.overrides import Assignment, assign, parse_overrides
from anonspark.config.plain_copy import copy_document
from anonspark.config.problems import validated
from anonspark.config.reading import TextReader, read_local_text
from anonspark.config.seed import fill_in_seed
from anonspark.config.short_forms import positions_of_listed, take_out_of_lists, write_out
from anonspark.config.yaml_reading import read_document
from anonspark.core.section_owners import owner_of
from anonspark.errors import ConfigurationError

SELECTION = "selection"
"""The section that ``anonspark select`` alone reads."""


def read_configuration(
    path: str | Path, expected: str, read: TextReader = read_local_text
) -> tuple[Document, list[str]]:
    """Read the file of a configuration, unchecked.

    Parameters
    ----------
    path : str or Path
    expected : str
        What should be in it, for messages.
    read : callable

    Returns
    -------
    document : Document
        It knows the places of attributes in short forms, too.
    problems : list of str
    """
    document, problems = read_document(path, "a configuration", expected, read, variables=True)
    listed = positions_of_listed(document, document.positions)
    document.positions = {**listed, **document.positions}
    return document, problems


def load_configuration(
    path: str | Path,
    overrides: Sequence[str] = (),
    read: TextReader = read_local_text,
    *,
    needs_seed: bool = True,
) -> Configuration:
    """Read a configuration file.

    Parameters
    ----------
    path : str or Path
        A YAML file on the local disk, or where `read` finds it.
    overrides : sequence of str
        What ``--set`` was given, ``key.path=value`` each. The value is YAML. Later ones win.
    read : callable
        Reads the file, and that of the seed where it is at an address.
    needs_seed : bool
        Whether the seed is looked up in its file or variable: what only reads releases does not
        need it.

    Returns
    -------
    Configuration
        Complete and checked.

    Raises
    ------
    ConfigurationError
        With all problems of the file and of the overrides.
    SparkNeededError
        If nothing is wrong, but a file has to be read through Spark.
    """
    problems: list[str] = []
    assignments = parse_overrides(overrides, problems)
    expected = "a mapping with 'input', 'attributes', 'privacy' and 'output'"
    try:
        document, wrong = read_configuration(path, expected, read)
    except ConfigurationError as error:
        if format_of_name(str(path)) is not None and Path(path).is_file():
            raise ConfigurationError(
                f"{path}: the file is a table by its name, and no configuration. Write one for it "
                f"with anonspark init {path}, or name the configuration",
                *problems,
            ) from None
        raise ConfigurationError(*error.problems, *problems) from None
    overridden = [assignment.keys for assignment in assignments]
    with document.telling(overridden):
        wrong = [*document.still_wrong(wrong, overridden), *problems]
        built = _build(document, assignments, wrong, read, needs_seed=needs_seed)
    return built.with_places(document.places(overridden))


def parse_configuration(
    mapping: Mapping[str, Any],
    overrides: Sequence[str] = (),
    read: TextReader = read_local_text,
    *,
    needs_seed: bool = True,
    with_tops: bool = True,
) -> Configuration:
    """Check a configuration that is in memory.

    Parameters
    ----------
    mapping : mapping
        What the YAML file would hold. It is not changed.
    overrides, read, needs_seed
        As for :func:`load_configuration`.
    with_tops : bool
        Whether the models with levels get hierarchies for texts that have none. Not where models
        are compared, which have the same attributes.

    Returns
    -------
    Configuration
        Complete and checked.

    Raises
    ------
    ConfigurationError
        With all problems.
    SparkNeededError
        As :func:`load_configuration`.
    """
    problems: list[str] = []
    assignments = parse_overrides(overrides, problems)
    return _build(mapping, assignments, problems, read, needs_seed=needs_seed, with_tops=with_tops)


def _build(
    mapping: Mapping[Any, Any],
    assignments: Sequence[Assignment],
    problems: list[str],
    read: TextReader,
    *,
    needs_seed: bool,
    with_tops: bool = True,
) -> Configuration:
    """Apply the overrides, check everything, and raise or return.

    Parameters
    ----------
    mapping : mapping
        The configuration as read.
    assignments : sequence of Assignment
        The overrides, in the order in which they are applied.
    problems : list of str
        What is known to be wrong already.
    read : callable
        Reads the file of the seed.
    needs_seed : bool
        Whether it is read.

    Returns
    -------
    Configuration
        If there are no problems at all.
    """
    document = copy_document(
        {name: value for name, value in mapping.items() if name != SELECTION}, (), problems
    )
    for assignment in assignments:
        if assignment.keys[0] == "attributes" and len(assignment.keys) > 1:
            take_out_of_lists(document, assignment.keys[1])
        copied = copy_document(assignment.value, assignment.keys, problems)
        assign(document, assignment._replace(value=copied), problems)
    write_out(document, problems, with_tops=with_tops)
    coding = None
    if document.get(CODING) is not None:
        reader: CodingReader = owner_of(CODING)
        coding = reader.merge_coding(document, read, problems)
        if coding is None:
            raise ConfigurationError(*dict.fromkeys(problems))
    out_of_reach = fill_in_seed(document, read, problems, needed=needs_seed)
    configuration = validated(Configuration, document, problems, known_schema)
    if configuration is None or problems:
        raise ConfigurationError(*dict.fromkeys(problems))
    if out_of_reach is not None:
        raise out_of_reach
    return configuration if coding is None else configuration.with_coding(coding)
