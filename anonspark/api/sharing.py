"""Releases of a table, for several recipients, of several holders, and what to publish at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from anonspark.api.choosing import (
    PROPOSED,
    functions_for,
    functions_for_table,
    place_of,
    with_diversity,
)
from anonspark.api.distribution import Distribution
from anonspark.api.given import as_place, require_mapping, roles_of, wanted_configuration
from anonspark.api.release import Release
from anonspark.api.results import Selection, Union
from anonspark.api.tables import Frame
from anonspark.api.telling import progress_for
from anonspark.config import Configuration


def anonymize(  # noqa: PLR0913 - keywords instead of a file
    table: Frame,
    config: Mapping[str, Any] | Configuration | None = None,
    *,
    k: int | None = None,
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    identifiers: Sequence[str] = (),
    insensitive: Sequence[str] = (),
    l: int | Literal["proposed"] | None = PROPOSED,  # noqa: E741 - its name in the literature
    model: str | Mapping[str, Any] | None = None,
    seed: int | None = None,
    staging: str | PathLike[str] | None = None,
    progress: bool = True,
) -> Release[Frame]:
    """Anonymize a table.

    Parameters
    ----------
    table : DataFrame
        Of Spark, pandas or polars, a table of Arrow, or another that narwhals knows; about people,
        with a column of each attribute that is named. Spark anonymizes its own, this process all
        others.
    config : mapping, Configuration or None
        As in the YAML file, for everything that the keywords do not say; ``input.path`` and
        ``output.path`` are not needed.
    k : int
        Without a configuration: how many records must look alike at least.
    quasi_identifiers : sequence of str
        Columns that others may know of a person; they are generalized.
    sensitive : sequence of str
        Columns with what nobody should learn of a person; published as they are.
    identifiers : sequence of str
        Columns that name a person; they are looked at for warnings, and never published.
    insensitive : sequence of str
        Other columns that are published as they are. Columns without a role are left out.
    l : int or None
        Without a configuration: how many different values of every sensitive column each class has
        at least (l-diversity). If you leave it out, each column gets what ``anonspark init`` would
        propose: 2, or 3 of a column with ten values or more. None asks for none, and the release
        then warns of the classes that show one value for sure.
    model : str, mapping or None
        Name of a model, or the section ``model``; None for that of the configuration's default.
    seed : int or None
        Without a configuration: key of all that is drawn, 64 bits, signed; a secret. The same seed
        gives the same release of the same table. None draws one.
    staging : str, path or None
        Private directory that all executors reach, for what is worked on: it holds raw values
        until this function returns, and the release afterwards. None takes a temporary directory
        of this machine, where nothing runs elsewhere.
    progress : bool
        Whether to tell what is going on: a live line in a notebook and on a terminal. Elsewhere,
        and with False, the logger ``anonspark`` is told, at the level INFO.

    Returns
    -------
    Release
        Whose tables are of the kind that was given.

    Raises
    ------
    ConfigurationError
        If keywords or configuration are wrong, or both are given, the table is of another kind, or
        Spark runs on a cluster and ``staging`` is not given.
    EnvironmentProblem
        If the DataFrame is one of Spark Connect or of a session that was stopped, or memory runs
        out.
    DataError
        If the table does not fit what is named.
    GuaranteeError
        If a criterion or gate does not hold; nothing is left.
    PublishingError
        If the staging directory cannot be written.

    Notes
    -----
    The same work as a run of the command line. A DataFrame of Spark is computed once, once more
    if it has identifiers, of which then only they and the quasi-identifiers are asked for, and once
    more for each sensitive column whose ``l`` is proposed. It is
    computed with the settings that its session has, and everything else is done with those of
    `anonspark.engine.spark.settings.SQL_SETTINGS`, which are put back afterwards: where the
    session's own mean something else, as another time zone does, the table's attributes are
    written to the staging directory once and read again from there. Calls from several threads
    take turns.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": [20 + n % 8 for n in range(40)], "visits": [1, 2] * 20})
    >>> with anonspark.anonymize(
    ...     people, k=5, quasi_identifiers=["age"], insensitive=["visits"]
    ... ) as release:
    ...     len(release.data), release.verify(original=people).holds
    (40, True)

    Everything else is said by a configuration, the mapping of the YAML file:

    >>> config = {
    ...     "attributes": {"age": "quasi_identifier", "visits": "sensitive"},
    ...     "privacy": {"k": 5, "l_diversity": {"attribute": "visits", "l": 2}},
    ... }
    >>> with anonspark.anonymize(people, config) as release:
    ...     release.to_arrow().column_names
    ['age', 'visits']
    """
    roles = roles_of(
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        identifiers=identifiers,
        insensitive=insensitive,
    )
    asked = None if l == PROPOSED else l
    wanted = wanted_configuration(config, roles, k, model, seed, l=asked)
    functions = functions_for_table(table)
    if config is None and not isinstance(wanted, Configuration):
        wanted = with_diversity(wanted, l, table, functions)
    release: Release[Frame] = functions.anonymize(
        table, wanted, as_place("staging", staging), progress_for(progress)
    )
    return release


def distribute(
    table: Frame,
    plan: Mapping[str, Any],
    *,
    staging: str | PathLike[str] | None = None,
    run_id: str | None = None,
    progress: bool = True,
) -> Distribution[Frame]:
    """Make a release for each recipient of a plan, or none if together they tell too much.

    Parameters
    ----------
    table : DataFrame
        Of the kinds that :func:`anonymize` takes.
    plan : mapping
        As in the YAML file of a plan; ``base.input.path`` and ``output`` are not needed.
    staging : str, path or None
        Private directory that all executors reach, as of :func:`anonymize`; the releases are in it
        afterwards.
    run_id : str or None
        Name of the run, which a ledger is told; None makes a random one.
    progress : bool
        Whether to tell what is going on; see :func:`anonspark.anonymize`.

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
    The work of ``anonspark distribute``: see
    :func:`anonspark.sharing.recipients.distribute.distribute`.
    A DataFrame of Spark is computed once, of its columns those alone that the plan names; where
    its session's settings mean something else than ours, it is kept in the memory and on the disks
    of the executors.

    Examples
    --------
    >>> import anonspark, pandas
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
    >>> with anonspark.distribute(people, plan) as given:
    ...     sorted(given.releases), min(given.coalitions["smallest"]) >= 5
    (['office', 'press'], True)
    """
    functions = functions_for_table(table)
    require_mapping("plan", plan)
    place, told = as_place("staging", staging), progress_for(progress)
    given: Distribution[Frame] = functions.distribute(table, plan, place, run_id, told)
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
    The work of ``anonspark select``: one pass, see
    :func:`anonspark.sharing.selection.selecting.select`.
    """
    functions = functions_for_table(table)
    require_mapping("config", config)
    found: Selection = functions.select(table, config, run_id)
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
    The work of ``anonspark union``: see :func:`anonspark.sharing.holders.union.unite`.
    """
    paths = list(map(place_of, releases))
    functions = functions_for(*paths, written=(out,))
    made: Union = functions.union(paths, out, holder_column, seed)
    return made
