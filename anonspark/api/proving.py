"""Reading what is published, and proof of it, of one release and of several together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from os import PathLike
from typing import Any

from anonspark.api.choosing import as_text, functions_for, place_of
from anonspark.api.given import (
    given_configuration,
    named_as_arguments,
    names_of,
    real_number,
    require_configuration,
    text_of,
    whole_number,
    with_arguments,
)
from anonspark.api.release import Release
from anonspark.api.results import JointVerification, Verification, own
from anonspark.api.tables import GIVEN, Frame
from anonspark.config import Configuration
from anonspark.engine.choice import Work, choose_engine
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.errors import ConfigurationError
from anonspark.reading.published import PublishedRelease, open_published
from anonspark.sharing.pairs.relation import Statement
from anonspark.sharing.pairs.releases import Attack, audit_releases
from anonspark.verification.audit import audit_release
from anonspark.verification.roles import Roles, required_roles

# Arguments that are not called like the options of the command line.
_NAMES = {
    "--quasi-identifier": "quasi_identifiers",
    "--with": "releases",
    "--same-people": "same_people=True",
    "--inside": "inside=True",
}


def verify(  # noqa: PLR0913 - each keyword says something else
    table: Frame | Release[Any] | str,
    config: Mapping[str, Any] | Configuration | None = None,
    *,
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    k: int | None = None,
    l: int | None = None,  # noqa: E741
    t: float | None = None,
    unit: Sequence[str] = (),
    suppressed: str | None = None,
    original: Frame | str | None = None,
    population: Frame | str | None = None,
) -> Verification:
    """Verify a release, or an anonymized table of any tool.

    Parameters
    ----------
    table : DataFrame, Release or str
        Published records: a table of a kind that :func:`anonspark.anonymize` takes, a release that
        it returned, or the directory of a release or of a table of another tool.
    config : mapping, Configuration or None
        The promise to check: its attributes, privacy, missing values and risk.
    quasi_identifiers, sensitive : sequence of str
        Columns of these roles, without a configuration. Each quasi-identifier is a column, or two:
        ``<name>_min`` and ``<name>_max``.
    k : int
        The smallest class size that is required, without a configuration. Default: 2.
    l : int or None
        The number of different values that each class must have of each of ``sensitive``, without
        a configuration.
    t : float or None
        The largest distance, from 0 to 1, of the values of each class from those of all records,
        without a configuration. Ordered if their type has an order, equal for texts.
    unit : sequence of str
        Columns that identify a person, without a configuration. A class must have k people.
    suppressed : str or None
        Text of suppressed values, without a configuration. Records with it in all
        quasi-identifiers are left out and counted. An empty text is also a missing value.
    original : DataFrame, str or None
        The table that it was made of, to check truth and to attack by linkage.
    population : DataFrame, str or None
        A table that an attacker may have, to attack by linkage and for the journalist's risk.

    Returns
    -------
    Verification
        ``holds`` and ``failures`` are the result. ``require()`` raises if something failed.

    Raises
    ------
    ConfigurationError
        If you pass neither configuration nor quasi-identifiers, or both, or a file cannot be used.
    DataError
        If columns are missing, or cannot be read.

    Notes
    -----
    The work is that of ``anonspark verify``. Without a configuration, the promise of the manifest
    is checked.

    Examples
    --------
    >>> import anonspark, pandas
    >>> ages = pandas.DataFrame({"age": ["20-29", "20-29", "30-39"]})
    >>> proof = anonspark.verify(ages, quasi_identifiers=["age"], k=2)
    >>> proof.holds, proof.published.smallest
    (False, 1)
    """
    said = Roles(
        names_of("quasi_identifiers", quasi_identifiers),
        names_of("sensitive", sensitive),
        None if k is None else whole_number("k", k, 2),
        None if l is None else whole_number("l", l, 2),
        None if t is None else real_number("t", t),
        names_of("unit", unit),
        None if suppressed is None else text_of("suppressed", suppressed),
    )
    with named_as_arguments(_NAMES):
        roles = required_roles(said, None if config is None else "a configuration")
    if config is not None:
        require_configuration(config)
    original, population = as_text(original), as_text(population)
    beside_files = isinstance(original, str) or isinstance(population, str)
    if isinstance(table, Release) and config is None and roles is None and not beside_files:
        return table.verify(original=original, population=population)
    if isinstance(table, Release | str | os.PathLike):
        return _verify_files(place_of(table), config, roles, original, population)
    if beside_files:
        raise ConfigurationError(
            "original, population: found a path together with a table in memory. Expected tables "
            "of the "
            "same kind. Read the file first, or give the directory of the release"
        )
    verification: Verification = functions_for(table, original, population).verify(
        table, config, roles, original=original, population=population
    )
    return verification


def _verify_files(
    path: str,
    config: Mapping[str, Any] | Configuration | None,
    roles: Roles | None,
    original: Any,
    population: Any,
) -> Verification:
    """Verify the directory of a release, or a table of another tool.

    Raises
    ------
    ConfigurationError
        If tables in memory are given beside it.
    """
    beside = [one for one in (original, population) if one is not None]
    if not all(isinstance(one, str) for one in beside):
        raise ConfigurationError(
            "original, population: found a table together with the directory of a release. "
            "Expected paths. For a table in memory give what anonymize returned, and nothing else"
        )
    with named_as_arguments(_NAMES), functions_for(path, *beside).working() as (engine, _):
        configuration = None
        if config is not None:
            configuration = given_configuration(
                config, GIVEN, engine.files.read_document, needs_seed=False
            )
        found = audit_release(
            engine, path, configuration, roles=roles, original=original, population=population
        )
    return own(Verification, found)


def verify_together(
    releases: Sequence[str | Release[Any]],
    *,
    same_people: bool = False,
    inside: bool = False,
    joint_k: int | None = None,
    original: Any = None,
) -> JointVerification:
    """Verify releases, and attack every two of them together, only from their files.

    Parameters
    ----------
    releases : sequence of (str or Release)
        At least two directories, or releases that :func:`anonymize` returned.
    same_people : bool
        Whether all of them are about the same people, if their manifests do not show it.
    inside : bool
        Whether the people of the smaller of two releases are among those of the larger, if their
        manifests do not show it.
    joint_k : int or None
        People who should stay alike in two releases together. None takes the promise of the
        manifests.
    original : DataFrame, str or None
        The table that they were made of, or its path.

    Returns
    -------
    JointVerification
        ``holds`` and ``failures`` are the result, ``pairs`` has the figures of every two.
        ``require()`` raises if something failed.

    Raises
    ------
    ConfigurationError
        If there are fewer than two releases, or one is named twice or publishes means.
    DataError
        If releases cannot be compared, or their people do not fit your parameters.

    Notes
    -----
    The work is that of ``anonspark verify --with``.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": range(40), "size": [7 * n % 40 for n in range(40)]})
    >>> def made(name):
    ...     return anonspark.anonymize(people, k=5, quasi_identifiers=[name])
    >>> with made("age") as first, made("size") as second:
    ...     proof = anonspark.verify_together([first, second], same_people=True)
    ...     proof.holds, proof.pairs[0].figures.proven
    (True, 0)
    """
    if same_people and inside:
        raise ConfigurationError(
            "same_people, inside: found both. The people of two releases are the same, or those "
            "of one are among those of the other: leave one of the two out"
        )
    said: Statement | None = "same people" if same_people else "inside" if inside else None
    if joint_k is not None:
        joint_k = whole_number("joint_k", joint_k, 2)
    paths, original = list(map(place_of, releases)), as_text(original)
    table = None if isinstance(original, str) else original
    with (
        named_as_arguments(_NAMES),
        functions_for(*([table] if table is not None else [*paths, original])).working(table) as (
            engine,
            (opened,),
        ),
    ):
        beside = original if opened is None else opened
        found = audit_releases(engine, paths, attack=Attack(said, joint_k, beside))
    pairs = [
        replace(one, warnings=[with_arguments(text, _NAMES) for text in one.warnings])
        for one in found.pairs
    ]
    return JointVerification(found.releases, pairs)


def read(
    path: str | PathLike[str] | Release[Any], *, hierarchies: Mapping[str, str] | None = None
) -> PublishedRelease:
    """Open a release from its own files, as a recipient.

    Parameters
    ----------
    path : str, path or Release
        Its directory, or the release that :func:`anonspark.anonymize` returned.
    hierarchies : mapping of str to str or None
        Files of hierarchies by attribute, if you received them with the release. A release holds
        only the labels of such a hierarchy, and not what they stand for.

    Returns
    -------
    PublishedRelease
        ``count`` answers questions with certain bounds. ``to_pandas``, ``to_polars`` and
        ``to_arrow`` return typed columns next to the labels.

    Raises
    ------
    ConfigurationError
        If a hierarchy cannot be read.
    DataError
        If there is no complete release.
    GuaranteeError
        If its manifest is damaged.

    Notes
    -----
    Only the manifest is read until you ask for something. A hierarchy without the labels of the
    release is refused then. Spark is needed for files at other addresses than this machine, and
    for formats other than Parquet and ORC. The files are not verified: see ``anonspark verify``.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": [20 + n % 8 for n in range(40)], "visits": [1, 2] * 20})
    >>> config = {
    ...     "attributes": {"age": "quasi_identifier", "visits": "insensitive"},
    ...     "privacy": {"k": 10},
    ... }
    >>> with anonspark.anonymize(people, config) as made:
    ...     release = anonspark.read(made.path)
    ...     print(release.count("age between 20 and 22 and visits = 1"))
    ...     list(release.to_pandas().columns)
    7.5 (certain: 5 to 10)
    ['age', 'age_min', 'age_max', 'age_mid', 'visits']
    """
    place = place_of(path)
    work = Work((place,))
    choice = choose_engine("auto", work, None)
    return open_published(place, hierarchies, _spark if choice.name == "spark" else _local)


def _local() -> nullcontext[Engine]:
    return nullcontext(LocalEngine())


@contextmanager
def _spark() -> Iterator[Engine]:
    from anonspark.engine.spark.engine import SparkEngine
    from anonspark.engine.spark.session import open_session
    from anonspark.engine.spark.settings import our_settings

    with open_session() as spark, our_settings(spark):
        yield SparkEngine(spark)
