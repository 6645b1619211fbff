"""Releases for several recipients, of several holders, and what to publish at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from anonspark.api.choosing import functions_for, functions_for_table, place_of
from anonspark.api.distribution import Distribution
from anonspark.api.given import as_place, require_mapping
from anonspark.api.release import Release
from anonspark.api.results import Selection, Union
from anonspark.api.tables import Frame
from anonspark.api.telling import progress_for


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
    The work of ``anonspark distribute``: see :func:`anonspark.recipients.distribute.distribute`.
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
    The work of ``anonspark select``: one pass, see :func:`anonspark.selection.selecting.select`.
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
    The work of ``anonspark union``: see :func:`anonspark.holders.union.unite`.
    """
    paths = list(map(place_of, releases))
    functions = functions_for(*paths, written=(out,))
    made: Union = functions.union(paths, out, holder_column, seed)
    return made
