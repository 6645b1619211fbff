"""Make releases: of a table, for several recipients, of several holders."""

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
        A DataFrame of pandas, polars or Spark, a table of Arrow, or another one that narwhals
        knows. It has a column for each attribute that you name. Spark anonymizes Spark's tables,
        this process all others.
    config : mapping, Configuration or None
        The mapping of the YAML file, without ``input.path`` and ``output.path``. It replaces the
        keywords for columns, k, l, model and seed.
    k : int
        Smallest number of records in a class.
    quasi_identifiers : sequence of str
        Columns that others may know about a person. They are generalized.
    sensitive : sequence of str
        Columns that no one should learn about a person. They are published unchanged.
    identifiers : sequence of str
        Columns that name a person. They are counted for warnings, and never published.
    insensitive : sequence of str
        Other columns that are published unchanged. Columns without a role are left out.
    l : int or None
        Smallest number of different values of every sensitive column in a class (l-diversity). By
        default, each column gets the l that ``anonspark init`` proposes: 2, or 3 for a column with
        ten values or more. None requires nothing, and the release then warns about classes with
        one value.
    model : str, mapping or None
        Name of a model, or the section ``model``. None takes the default model.
    seed : int or None
        Secret key of everything that is drawn, 64 bits, signed. The same seed gives the same
        release of the same table. None draws one at random.
    staging : str, path or None
        Private directory that all executors reach. It holds raw values until this function
        returns, and the release afterwards. None takes a temporary directory of this machine,
        unless Spark runs on a cluster.
    progress : bool
        Whether to show the current step in a live line, in a notebook and on a terminal.
        Elsewhere, and with False, the logger ``anonspark`` logs it at the level INFO.

    Returns
    -------
    Release
        The release, whose tables are of the kind that you passed.

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
        If a criterion or gate does not hold. No files remain.
    PublishingError
        If the staging directory cannot be written.

    Notes
    -----
    The work is the same as that of ``anonspark run``. A DataFrame of Spark is computed once. Its
    identifiers and quasi-identifiers are computed once more if it has identifiers, and each
    sensitive column once more whose ``l`` is proposed. It is computed with the settings of its
    session. Everything else is done with those of `anonspark.engine.spark.settings.SQL_SETTINGS`,
    and the session's settings are restored afterwards. If they differ, for example in the time
    zone, the attributes of the table are written to the staging directory and read again from
    there. Calls from several threads take turns.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": [20 + n % 8 for n in range(40)], "visits": [1, 2] * 20})
    >>> with anonspark.anonymize(
    ...     people, k=5, quasi_identifiers=["age"], insensitive=["visits"]
    ... ) as release:
    ...     len(release.data), release.verify(original=people).holds
    (40, True)

    A configuration is the mapping of the YAML file:

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
    """Make a release for each recipient of a plan, or none if they reveal too much together.

    Parameters
    ----------
    table : DataFrame
        A table of a kind that :func:`anonymize` takes.
    plan : mapping
        The mapping of the YAML file of a plan, without ``base.input.path`` and ``output``.
    staging : str, path or None
        Private directory that all executors reach, as in :func:`anonymize`. It holds the releases
        afterwards.
    run_id : str or None
        Name of the run, for the ledger. None makes a random one.
    progress : bool
        Whether to show the current step. See :func:`anonspark.anonymize`.

    Returns
    -------
    Distribution
        The releases by recipient, and the result of the joint check.

    Raises
    ------
    ConfigurationError
        If plan or base are wrong, or the table is of another kind.
    EnvironmentProblem
        If the DataFrame is one of Spark Connect, or memory runs out.
    DataError
        If the table does not fit the plan.
    GuaranteeError
        If a criterion does not hold, for a release or for several together. No files remain.
    PublishingError
        If staging or ledger cannot be written.

    Notes
    -----
    The work is that of ``anonspark distribute``. A DataFrame of Spark is computed once, with only
    the columns that the plan names. If the settings of its session differ from ours, it is cached
    in the memory and on the disks of the executors.

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
        A table of a kind that :func:`anonymize` takes.
    config : mapping
        The mapping of the YAML file with the sections ``selection`` and ``ledger``, without
        ``input.path``.
    run_id : str or None
        Name of the run, for the ledger. None makes a random one.

    Returns
    -------
    Selection
        ``attributes`` in the order of choice. The content of ``selection.json`` is ``told``.

    Raises
    ------
    ConfigurationError
        If the configuration is wrong, or something is at the output.
    DataError
        If columns are missing, or there are more records than the configuration allows.
    GuaranteeError
        If the limit of the budget would be exceeded. Nothing was drawn.
    PublishingError
        If ledger or output cannot be written.

    Notes
    -----
    The work is that of ``anonspark select``, in one pass.
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
    """Publish releases of several holders with one coding as one verified release.

    Parameters
    ----------
    releases : sequence of (str or Release)
        At least two directories, or releases that :func:`anonymize` returned.
    out : str
        Directory of the union, which must not exist.
    holder_column : str or None
        Name of a column with the holder of each record, which is the name of the release's
        directory. Each class then has one holder. None adds no column.
    seed : int or None
        Secret key of the order of the records, 64 bits, signed. None draws one at random.

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
        If a release does not keep its promise, or the union does not keep that of the coding.
    PublishingError
        If the union cannot be written.

    Notes
    -----
    The work is that of ``anonspark union``.
    """
    paths = list(map(place_of, releases))
    functions = functions_for(*paths, written=(out,))
    made: Union = functions.union(paths, out, holder_column, seed)
    return made
