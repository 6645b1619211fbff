"""anonspark inside a notebook or somebody's own program: DataFrames in, DataFrames out."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from anonspark.api.distribution import Distribution
from anonspark.api.reading import read
from anonspark.api.release import Frame, Release
from anonspark.config import Configuration
from anonspark.engine.choice import Work, choose_engine
from anonspark.errors import ConfigurationError
from anonspark.holders.union import Union
from anonspark.reading.published import PublishedRelease
from anonspark.selection.writing import Selection
from anonspark.verification.claims import Roles
from anonspark.verification.pair_relation import Statement
from anonspark.verification.release_pairs import Attack, JointVerification
from anonspark.verification.result import Verification

__all__ = [
    "Distribution",
    "PublishedRelease",
    "Release",
    "Selection",
    "anonymize",
    "distribute",
    "read",
    "select",
    "union",
    "verify",
    "verify_together",
]


def anonymize(
    table: Frame, config: Mapping[str, Any] | Configuration, *, staging: str | None = None
) -> Release[Frame]:
    """Anonymize a table.

    Parameters
    ----------
    table : DataFrame
        Of Spark, pandas or polars, or a table of Arrow; about people, with a column of each
        attribute that the configuration lists. Spark anonymizes its own, this process all others.
    config : mapping or Configuration
        As in the YAML file; ``input.path`` and ``output.path`` are not needed.
    staging : str or None
        Private directory that all executors reach, for what is worked on: it holds raw values
        until this function returns, and the release afterwards. None takes a temporary directory
        of this machine, where nothing runs elsewhere.

    Returns
    -------
    Release
        Whose tables are of the kind that was given.

    Raises
    ------
    ConfigurationError
        If the configuration is wrong, the table of another kind, or Spark runs on a cluster and
        ``staging`` is not given.
    EnvironmentProblem
        If the DataFrame is one of Spark Connect, or memory runs out.
    DataError
        If the table does not fit the configuration.
    GuaranteeError
        If a criterion or gate does not hold; nothing is left.
    PublishingError
        If the staging directory cannot be written.

    Notes
    -----
    The same work as a run of the command line. A DataFrame of Spark is computed once, and once more
    if it has identifiers, of which then only they and the quasi-identifiers are asked for. It is
    computed with the settings that its session has, and everything else is done with those of
    `anonspark.engine.spark.settings.SQL_SETTINGS`, which are put back afterwards: where the
    session's own mean something else, as another time zone does, the table's attributes are
    written to the staging directory once and read again from there. Calls from several threads
    take turns.

    Examples
    --------
    >>> import pandas
    >>> people = pandas.DataFrame({"age": [20 + n % 8 for n in range(40)], "visits": [1, 2] * 20})
    >>> config = {
    ...     "attributes": {"age": "quasi_identifier", "visits": "insensitive"},
    ...     "privacy": {"k": 5},
    ... }
    >>> with anonymize(people, config) as release:
    ...     len(release.data), release.verify(original=people).holds
    (40, True)

    And inside of Spark:

    >>> people = spark.range(40).selectExpr("20 + id % 8 AS age", "id % 3 AS visits")
    >>> with anonymize(people, config) as release:
    ...     release.data.count(), release.verify(original=people).holds
    (40, True)
    """
    release: Release[Frame] = _functions_for(table).anonymize(table, config, staging)
    return release


def distribute(
    table: Frame,
    plan: Mapping[str, Any],
    *,
    staging: str | None = None,
    run_id: str | None = None,
) -> Distribution[Frame]:
    """Make a release for each recipient of a plan, or none if together they tell too much.

    Parameters
    ----------
    table : DataFrame
        Of the kinds that :func:`anonymize` takes.
    plan : mapping
        As in the YAML file of a plan; ``base.input.path`` and ``output`` are not needed.
    staging : str or None
        Private directory that all executors reach, as of :func:`anonymize`; the releases are in it
        afterwards.
    run_id : str or None
        Name of the run, which a ledger is told; None makes a random one.

    Returns
    -------
    Distribution
        The releases by recipient, and what the joint check found.

    Raises
    ------
    ConfigurationError
        If plan or base are wrong, or the table is of another kind.
    EnvironmentProblem
        If the DataFrame is one of Spark Connect, or memory runs out.
    DataError
        If the table does not fit the plan.
    GuaranteeError
        If a criterion does not hold, of a release or of several together; nothing is left.
    PublishingError
        If staging or ledger cannot be written.

    Notes
    -----
    The work of ``anonspark distribute``: see :func:`anonspark.recipients.distribute.distribute`.
    A DataFrame of Spark is computed once, of its columns those alone that the plan names; where
    its session's settings mean something else than ours, it is kept in the memory and on the disks
    of the executors.

    Examples
    --------
    >>> import pandas
    >>> people = pandas.DataFrame(
    ...     {"name": range(40), "age": range(40), "size": [7 * n % 40 for n in range(40)]}
    ... )
    >>> roles = {"name": "identifier", "age": "quasi_identifier", "size": "quasi_identifier"}
    >>> plan = {
    ...     "base": {"attributes": roles, "privacy": {"k": 5}},
    ...     "subject": "name",
    ...     "recipients": {
    ...         "office": {"approved": "yes", "columns": ["age", "size"]},
    ...         "press": {"approved": "yes", "columns": ["age"], "where": {"size": {"min": 10}}},
    ...     },
    ... }
    >>> with distribute(people, plan) as given:
    ...     sorted(given.releases), min(given.coalitions["smallest"]) >= 5
    (['office', 'press'], True)
    """
    given: Distribution[Frame] = _functions_for(table).distribute(table, plan, staging, run_id)
    return given


def select(table: Frame, config: Mapping[str, Any], *, run_id: str | None = None) -> Selection:
    """Choose attributes of a table under differential privacy, and charge a budget.

    Parameters
    ----------
    table : DataFrame
        Of the kinds that :func:`anonymize` takes.
    config : mapping
        As in the YAML file, with the sections ``selection`` and ``ledger``; ``input.path`` is not
        needed.
    run_id : str or None
        Name of the run, which the ledger is told; None makes a random one.

    Returns
    -------
    Selection
        ``attributes`` in the order of choice; ``told`` is the content of ``selection.json``.

    Raises
    ------
    ConfigurationError
        If the configuration is wrong, or something is at the output.
    DataError
        If columns are missing, or there are more records than is said.
    GuaranteeError
        If the limit of the budget would be exceeded: nothing was drawn.
    PublishingError
        If ledger or output cannot be written.

    Notes
    -----
    The work of ``anonspark select``: one pass, see :func:`anonspark.selection.selecting.select`.
    """
    found: Selection = _functions_for(table).select(table, config, run_id)
    return found


def union(
    releases: Sequence[str | Release[Any]],
    out: str,
    *,
    holder_column: str | None = None,
    seed: int | None = None,
) -> Union:
    """Publish releases of several holders, who follow one coding, as one, and prove that anew.

    Parameters
    ----------
    releases : sequence of (str or Release)
        At least two: directories, or what :func:`anonymize` returned.
    out : str
        Directory of the union, where nothing is yet.
    holder_column : str or None
        Name of a column that tells who held a record, by the name of the release's directory. Each
        class is then of one holder. None tells nobody.
    seed : int or None
        Key of the order of the records, 64 bits, signed; a secret. None draws one.

    Returns
    -------
    Union
        ``path``, ``parts``, ``summary``, ``privacy``, ``risk`` and ``warnings``.

    Raises
    ------
    ConfigurationError
        If releases do not fit together, or something is at ``out``.
    DataError
        If a release is not complete.
    GuaranteeError
        If a release does not keep its promise, or the union not that of the coding.
    PublishingError
        If the union cannot be written.

    Notes
    -----
    The work of ``anonspark union``: see :func:`anonspark.holders.union.unite`.
    """
    paths = [one.path if isinstance(one, Release) else one for one in releases]
    choice = choose_engine("auto", Work(tuple(paths), (out,)), None)
    functions: Any = importlib.import_module(f"anonspark.api.{choice.name}")
    made: Union = functions.union(paths, out, holder_column, seed)
    return made


def verify(
    table: Frame,
    config: Mapping[str, Any] | Configuration | None = None,
    *,
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    k: int | None = None,
    original: Frame | None = None,
    population: Frame | None = None,
) -> Verification:
    """Measure what an anonymized table, of whatever tool, keeps of a promise.

    Parameters
    ----------
    table : DataFrame
        Published records; of the kinds that :func:`anonymize` takes.
    config : mapping, Configuration or None
        What to require; of it count attributes, privacy, missing values and risk.
    quasi_identifiers, sensitive : sequence of str
        Without a configuration, the attributes of these roles; each quasi-identifier is a column,
        or two: ``<name>_min`` and ``<name>_max``.
    k : int
        Without a configuration, the smallest class size required; 2 if it is not given.
    original : DataFrame or None
        The table that it was made of, for truthfulness and the linkage attack.
    population : DataFrame or None
        What an attacker may have, for the linkage attack and the journalist's risk.

    Returns
    -------
    Verification
        ``holds`` and ``failures`` tell the result; ``require()`` raises where something failed.

    Raises
    ------
    ConfigurationError
        If neither configuration nor quasi-identifiers are given, or both, or a file cannot be used.
    DataError
        If columns are missing, or cannot be read.

    Notes
    -----
    The jobs of :func:`anonspark.verification.audit.audit_release`.

    Examples
    --------
    >>> import pandas
    >>> ages = pandas.DataFrame({"age": ["20-29", "20-29", "30-39"]})
    >>> proof = verify(ages, quasi_identifiers=["age"], k=2)
    >>> proof.holds, proof.published.smallest
    (False, 1)
    """
    roles = None
    if quasi_identifiers or sensitive or k is not None:
        if config is not None:
            raise ConfigurationError(
                "quasi_identifiers, sensitive, k: found together with a configuration, which "
                "says the same; leave one of the two out"
            )
        roles = Roles(tuple(quasi_identifiers), tuple(sensitive), 2 if k is None else k)
    verification: Verification = _functions_for(table).verify(
        table, config, roles, original=original, population=population
    )
    return verification


def verify_together(
    releases: Sequence[str | Release[Any]],
    *,
    same_people: bool = False,
    inside: bool = False,
    joint_k: int | None = None,
    original: str | None = None,
) -> JointVerification:
    """Attack releases together, from their files alone, and verify each by itself.

    Parameters
    ----------
    releases : sequence of (str or Release)
        At least two: directories, or what :func:`anonymize` returned.
    same_people : bool
        Where their manifests do not tell: whether all of them are about the same people.
    inside : bool
        Where their manifests do not tell: whether the people of the smaller of two releases are
        among those of the larger.
    joint_k : int or None
        People that nobody should be told apart from by two releases; None for what the manifests
        promise.
    original : str or None
        Path of the table that they were made of.

    Returns
    -------
    JointVerification
        ``holds`` and ``failures`` tell the result, ``pairs`` the figures of every two;
        ``require()`` raises where something failed.

    Raises
    ------
    ConfigurationError
        If there are fewer than two releases, one is named twice or publishes means.
    DataError
        If releases cannot be compared, or their people cannot be related as it is said.

    Notes
    -----
    The jobs of :func:`anonspark.verification.release_pairs.audit_releases`.

    Examples
    --------
    >>> import pandas
    >>> people = pandas.DataFrame({"age": range(40), "size": [7 * n % 40 for n in range(40)]})
    >>> def made(name):
    ...     return anonymize(
    ...         people, {"attributes": {name: "quasi_identifier"}, "privacy": {"k": 5}}
    ...     )
    >>> with made("age") as first, made("size") as second:
    ...     proof = verify_together([first, second], same_people=True)
    ...     proof.holds, proof.pairs[0].figures.proven
    (True, 0)
    """
    if same_people and inside:
        raise ConfigurationError(
            "same_people, inside: found both; the people of two releases are the same, or those "
            "of one are among those of the other: leave one of the two out"
        )
    said: Statement | None = "same people" if same_people else "inside" if inside else None
    paths = [one.path if isinstance(one, Release) else one for one in releases]
    read = (*paths, *([original] if original else []))
    choice = choose_engine("auto", Work(read), None)
    functions: Any = importlib.import_module(f"anonspark.api.{choice.name}")
    found: JointVerification = functions.verify_together(paths, Attack(said, joint_k, original))
    return found


def _functions_for(table: object) -> Any:
    """Return the module whose functions take a table: Spark is imported by who uses it."""
    of_spark = type(table).__module__.startswith("pyspark.sql.")
    return importlib.import_module(f"anonspark.api.{'spark' if of_spark else 'local'}")
