"""The public functions, which take tables in memory or paths, and return results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, Literal

import pyarrow as pa

from anonspark.api.adapters import (
    PROPOSED,
    adapter_for_table,
    as_text,
    opened,
    remove_files,
    staged,
    with_diversity,
)
from anonspark.api.arguments import (
    as_integer,
    as_path,
    configuration_for_table,
    configuration_of_keywords,
    named_as_arguments,
    names_of,
    reading_table,
    real_number,
    require_alone,
    require_configuration,
    require_mapping,
    roles_of,
    text_of,
    whole_number,
    with_arguments,
)
from anonspark.api.display import Page
from anonspark.api.distribution import COALITIONS, Distribution, plan_for_table
from anonspark.api.progress import progress_for
from anonspark.api.release import Release, claim_of, directory_of, report_page
from anonspark.api.results import (
    Comparison,
    Conversion,
    JointVerification,
    Profile,
    Selection,
    Union,
    Utility,
    Verification,
    as_result,
)
from anonspark.api.tables import GIVEN, Frame, no_table, with_texts
from anonspark.comparison.grid import BESIDE, load_comparison
from anonspark.comparison.runner import compare as run_cells
from anonspark.config import Configuration
from anonspark.config.variables import configuration_yaml
from anonspark.conversion.convert import convert as convert_files
from anonspark.conversion.reading import Options
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError
from anonspark.pipeline.run import run
from anonspark.profiling.profile import SAMPLE_ROWS, profile_table
from anonspark.profiling.source import Source, find_source
from anonspark.reading.published import PublishedRelease, open_published
from anonspark.sharing.holders.union import unite
from anonspark.sharing.pairs.relation import statement_of
from anonspark.sharing.pairs.releases import Attack, audit_releases
from anonspark.sharing.recipients.distribute import distribute as carry_out
from anonspark.sharing.recipients.plan import parse_plan
from anonspark.sharing.selection.selecting import select as choose_attributes
from anonspark.sharing.selection.settings import parse_selection
from anonspark.utility.evaluation import evaluate as measure_utility
from anonspark.verification.audit import audit_release, audit_table
from anonspark.verification.claims.roles import Roles, leave_out_suppressed, required_roles

_GRID = "the given settings"

# Arguments that are not called like the options of the command line.
_NAMES = {
    "--quasi-identifier": "quasi_identifiers",
    "--with": "releases",
    "--same-people": "same_people=True",
    "--inside": "inside=True",
}


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
    t: float | None = None,
    suppression_limit: float | None = None,
    hierarchies: Mapping[str, str | PathLike[str] | Mapping[str, Any]] | None = None,
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
        keywords for columns, k, l, t, suppression_limit, hierarchies, model and seed.
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
    t : float or None
        Largest distance, from 0 to 1, between the values of every sensitive column in a class and
        those of the whole table (t-closeness, with equal distances). None requires nothing.
    suppression_limit : float or None
        Largest share of the records that the model may leave out. None takes the model's default.
    hierarchies : mapping or None
        Groups by which quasi-identifiers are generalized: by column the path of a CSV file, or a
        rule such as ``{"intervals": [5, 10]}``, ``{"prefix": [1, 2]}``, ``{"keep": [3, 1]}`` or
        ``{"calendar": ["month", "year"]}``. The models full-domain and rho-gain need them.
    model : str, mapping or None
        Name of a model, or the section ``model``. None takes the default model.
    seed : int or None
        Secret key of everything that is drawn, 64 bits, signed. The same seed gives the same
        release of the same table. None draws one at random.
    staging : str, path or None
        Private directory that all executors reach. It holds raw values until this function
        returns, and the release afterwards. None takes a temporary directory of this machine,
        unless Spark runs on a cluster or is reached through Spark Connect.
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
        If the DataFrame is one of a session that was stopped, or memory runs out.
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
    bound = None if l == PROPOSED else l
    options = {"t": t, "suppression_limit": suppression_limit, "hierarchies": hierarchies}
    document = configuration_of_keywords(config, roles, k, model, seed, l=bound, **options)
    staging, shown = as_path("staging", staging), progress_for(progress)
    with adapter_for_table(table) as adapter:
        if config is None and not isinstance(document, Configuration):
            document = with_diversity(document, roles, l, table, adapter)
        with staged(adapter, staging, "release") as (path, remove):
            read = adapter.engine.files.read_document
            configuration = configuration_for_table(document, path, read)
            with adapter.input(table, configuration, f"{path}-given") as source:
                result = run(adapter.engine, configuration, progress=shown, table=source)
                return Release(result, adapter, remove)


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
        If memory runs out.
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
    >>> with anonspark.distribute(people, plan) as releases:
    ...     sorted(releases.releases), min(releases.coalitions["smallest"]) >= 5
    (['office', 'press'], True)
    """
    opening = adapter_for_table(table)
    require_mapping("plan", plan)
    staging, shown = as_path("staging", staging), progress_for(progress)
    with opening as adapter, staged(adapter, staging, "releases") as (path, remove):
        parsed = parse_plan(plan_for_table(plan, path), adapter.engine.files.read_document)
        conditions = [
            condition.column
            for recipient in parsed.recipients
            for condition in recipient.conditions
        ]
        names = {*parsed.source.attributes, *parsed.file.subject, *conditions}
        with adapter.source(with_texts(table), parsed.base, names) as source:
            result = carry_out(adapter.engine, parsed, run_id=run_id, table=source, progress=shown)
            releases: dict[str, Release[Frame]] = {
                name: Release(release, adapter, partial(remove_files, adapter, release.path))
                for name, release in result.releases.items()
            }
        rows = pa.Table.from_pylist(result.coalitions, schema=COALITIONS)
        return Distribution(releases, adapter.convert(rows), result.other_strategy, rows, remove)


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
        ``attributes`` in the order of choice. The content of ``selection.json`` is ``content``.

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
    opening = adapter_for_table(table)
    require_mapping("config", config)
    with opening as adapter:
        settings = parse_selection(reading_table(config), read=adapter.engine.files.read_document)
        names = {*settings.candidates, settings.selection.target, settings.selection.person}
        with adapter.source(with_texts(table), None, names) as source:
            result = choose_attributes(adapter.engine, settings, run_id=run_id, table=source)
    return as_result(Selection, result)


def union(
    releases: Sequence[str | Release[Any]],
    out: str,
    *,
    holder_column: str | None = None,
    seed: int | None = None,
) -> Union:
    """Publish releases of several holders with one coding as one verified release.

    The work is that of ``anonspark union``.

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
    """
    paths = list(map(directory_of, releases))
    with opened(*paths, written=(out,)) as (engine, _):
        return as_result(Union, unite(engine, paths, out, holder_column=holder_column, seed=seed))


def evaluate(
    release: Release[Any] | str,
    original: Frame | str,
    *,
    target: str | None = None,
    holdout: Frame | str | None = None,
    progress: bool = True,
) -> Utility:
    """Measure how useful a release is: counts and trained models.

    The work is that of ``anonspark evaluate``.

    Parameters
    ----------
    release : Release or str
        The release that :func:`anonspark.anonymize` returned, or its directory.
    original : DataFrame or str
        The table that the release was made of, or its path.
    target : str or None
        An unchanged category that models learn to predict.
    holdout : DataFrame, str or None
        Records like those of the original that were not anonymized. Models are tested on them.
        Without it, they are tested on about 30% of the original, which the release has seen.
    progress : bool
        Whether to show the current step. See :func:`anonspark.anonymize`.

    Returns
    -------
    Utility
        ``workload``, ``association`` and ``learning``.

    Raises
    ------
    ConfigurationError
        If the target is not an unchanged category, or the release was closed.
    DataError
        If there is no complete release, or a table lacks columns.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": [20 + n % 8 for n in range(400)]})
    >>> with anonspark.anonymize(people, k=5, quasi_identifiers=["age"]) as release:
    ...     anonspark.evaluate(release, people).workload.median
    0.0
    """
    path = directory_of(release)
    if original is None:
        raise ConfigurationError(
            "original: found NoneType. Expected the table that the release was made of, or its path"
        )
    shown = progress_for(progress)
    with (
        named_as_arguments(),
        opened(path, original, holdout) as (engine, (_, source, tested)),
        shown.stage("evaluate"),
    ):
        return as_result(Utility, measure_utility(engine, path, source, target, tested))


def compare(  # noqa: PLR0913 - keywords instead of a file
    table: Frame,
    config: Mapping[str, Any] | None = None,
    *,
    k: Sequence[int] | int | None = None,
    model: Sequence[str] | str | None = None,
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    identifiers: Sequence[str] = (),
    insensitive: Sequence[str] = (),
    l: int | Literal["proposed"] | None = PROPOSED,  # noqa: E741 - its name in the literature
    rank_by: str = "loss",
    staging: str | PathLike[str] | None = None,
    progress: bool = True,
) -> Comparison:
    """Anonymize a table with many settings, measure each release, and rank the settings.

    The work is that of ``anonspark compare``.

    Parameters
    ----------
    table : DataFrame
        A table of a kind that :func:`anonspark.anonymize` takes.
    config : mapping or None
        The mapping of the YAML file of a grid, without ``base.input.path`` and ``output``. Or a
        configuration, as in :func:`anonspark.anonymize`: all models are then tried at its k, at
        twice and at five times that.
    k : sequence of int, or int
        The values of k to try, without a configuration.
    model : sequence of str, str or None
        The models to try. None takes the default model.
    quasi_identifiers, sensitive, identifiers, insensitive : sequence of str
        Columns of each role, as in :func:`anonspark.anonymize`.
    l : int or None
        Different sensitive values of every class, as in :func:`anonspark.anonymize`.
    rank_by : str
        The figure to rank settings by.
    staging : str, path or None
        Private directory that all executors reach, as in :func:`anonspark.anonymize`.
    progress : bool
        Whether to show the current step. See :func:`anonspark.anonymize`.

    Returns
    -------
    Comparison
        ``rows`` has the figures of each cell, the best first. ``best``, ``plot()`` and
        ``report()`` show them. No release remains.

    Raises
    ------
    ConfigurationError
        If keywords, grid or configuration are wrong, or you pass several of them.
    DataError
        If the table does not fit.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": range(40), "size": [7 * n % 40 for n in range(40)]})
    >>> comparison = anonspark.compare(people, k=[2, 5], quasi_identifiers=["age", "size"])
    >>> [(row["k"], row["published_min_class_size"] >= row["k"]) for row in comparison.rows]
    [(2, True), (5, True)]
    """
    roles = roles_of(
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        identifiers=identifiers,
        insensitive=insensitive,
    )
    staging, shown = as_path("staging", staging), progress_for(progress)
    bound = None if l == PROPOSED else l
    document = _document(config, roles, k, model, rank_by, l=bound)
    with adapter_for_table(table) as adapter:
        if config is None:
            base = with_diversity(document["base"], roles, l, table, adapter)
            document = {**document, "base": base}
        files = adapter.engine.files
        with adapter.tables(table) as (data,), staged(adapter, staging, "cells") as (path, remove):
            is_grid = "base" in document
            output = path if is_grid else {**document.get("output", {}), "path": path}
            text = configuration_yaml({**document, "output": output})

            def read(name: str) -> str:
                return text if name == _GRID else str(files.read_document(name))

            try:
                grid = load_comparison(_GRID, (), read)
                result = run_cells(adapter.engine, grid, shown, table=data)
            finally:
                # Figures of a configuration go beside its output.
                files.delete(f"{path}{BESIDE}")
                remove()
    return as_result(Comparison, result, grid=grid)


def _document(
    config: Mapping[str, Any] | None,
    roles: Mapping[str, str],
    k: Sequence[int] | int | None,
    model: Sequence[str] | str | None,
    rank_by: str,
    **others: object,
) -> dict[str, Any]:
    """Make the grid of keywords, or return the grid or configuration that is given instead of them.

    Raises ConfigurationError if both are given, or neither.
    """
    if config is not None:
        require_mapping("config", config)
        require_alone(roles, "a grid or a configuration", k=k, model=model, **others)
        if not {"base", "axes"} & set(config):
            return reading_table(config)
        base = config.get("base", {})
        return {**config, "base": reading_table(base) if isinstance(base, Mapping) else base}
    listed: Any = () if k is None else k
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        listed = [listed]
    values = list(map(as_integer, listed))
    base = configuration_of_keywords(None, roles, values[0] if values else None, None)
    axes: dict[str, list[Any]] = {"privacy.k": values}
    if model is not None:
        axes["model.name"] = [model] if isinstance(model, str) else list(model)
    return {"base": reading_table(dict(base)), "axes": [axes], "rank_by": rank_by}


def report(
    release: Release[Any] | str,
    path: str | None = None,
    *,
    original: Frame | str | None = None,
    target: str | None = None,
    holdout: Frame | str | None = None,
    progress: bool = True,
) -> Page:
    """Write the report of a release: one HTML page with charts.

    The work is that of ``anonspark report``.

    Parameters
    ----------
    release : Release or str
        The release that :func:`anonspark.anonymize` returned, or its directory.
    path : str or None
        File to write. None writes nothing.
    original : DataFrame, str or None
        The table that the release was made of, or its path. Also shows before and after.
    target : str or None
        An unchanged category. Also shows what models lose that learn to predict it, as
        :func:`anonspark.evaluate` measures it. Needs the original.
    holdout : DataFrame, str or None
        Records like those of the original that were not anonymized. Models are tested on them.
        Without it, they are tested on about 30% of the original, which flatters the release.
    progress : bool
        Whether to show the current step. See :func:`anonspark.anonymize`.

    Returns
    -------
    Page
        ``html``, and ``path`` if it was written. A notebook shows it.

    Raises
    ------
    ConfigurationError
        If something other than a report is at the path, the release was closed, or models cannot
        be compared for the target.
    DataError
        If there is no complete release, the original lacks columns, or scores of models would
        count fewer than k records.
    PublishingError
        If it cannot be written.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": [20 + n % 8 for n in range(40)]})
    >>> with anonspark.anonymize(people, k=5, quasi_identifiers=["age"]) as release:
    ...     "Class sizes" in anonspark.report(release, original=people).html
    True
    """
    directory = directory_of(release)
    shown = progress_for(progress)
    with (
        opened(directory, original, holdout) as (engine, (_, source, tested)),
        shown.stage("report"),
    ):
        return report_page(engine, directory, source, path, target=target, holdout=tested)


@dataclass(frozen=True)
class _TableInMemory(Source):
    """A table that needs no file."""

    table: Table | None = None

    def open(self, engine: Engine) -> Table:
        return super().open(engine) if self.table is None else self.table


def profile(
    table: Frame | str,
    *,
    k: int = 5,
    sample: int = SAMPLE_ROWS,
    seed: int = 0,
    show_values: bool = False,
    progress: bool = True,
) -> Profile:
    """Show which columns and values of a table identify people.

    The work is that of ``anonspark profile``.

    Parameters
    ----------
    table : DataFrame or str
        A table of a kind that :func:`anonspark.anonymize` takes, or its path.
    k : int
        Values of fewer records than this count as rare. At least 2.
    sample : int
        Largest number of records to compare columns by.
    seed : int
        Key that draws these records.
    show_values : bool
        Whether the profile holds examples of values, for its page.
    progress : bool
        Whether to show the current step. See :func:`anonspark.anonymize`.

    Returns
    -------
    Profile
        ``columns`` with a proposed role each, ``uniqueness`` and ``dependencies``. ``report()``
        writes a page.

    Raises
    ------
    DataError
        If there is no table, it cannot be read, or it is empty.
    ConfigurationError
        If k is below 2, the sample is empty, or one of them or the seed is not a whole number.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"email": [f"p{n}@example.org" for n in range(40)]})
    >>> [(column.name, column.role) for column in anonspark.profile(people).columns]
    [('email', 'identifier')]
    """
    k, sample = whole_number("k", k, 2), whole_number("sample", sample, 1)
    seed = whole_number("seed", seed, -(2**63), 2**63 - 1)
    if table is None:
        raise no_table(table)
    with named_as_arguments({"DATA": "table"}), opened(table) as (engine, (data,)):
        source = (
            find_source(data)
            if isinstance(data, str)
            else _TableInMemory(GIVEN, "DataFrame", table=data)
        )
        shown = progress_for(progress)
        result = profile_table(
            engine, source, shown, k=k, sample=sample, seed=seed, show_values=show_values
        )
    return as_result(Profile, result)


def convert(  # noqa: PLR0913 - each keyword says something else
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    out: str | PathLike[str],
    *,
    overwrite: bool = False,
    sheet: str | None = None,
    header_row: int | None = None,
    hidden: Literal["keep", "drop"] | None = None,
    encoding: str | None = None,
    catalog: str | PathLike[str] | None = None,
    types: Mapping[str, str] | None = None,
) -> Conversion:
    """Convert files of Stata, SPSS, SAS or Excel to one Parquet file.

    Parameters
    ----------
    files : str, path or sequence of (str or path)
        Files of one table, which have the same columns. Directories and patterns name several.
    out : str or path
        The Parquet file to write.
    overwrite : bool
        Whether a file at ``out`` is replaced.
    sheet : str or None
        Sheet of a workbook. None takes the only visible one with values.
    header_row : int or None
        Row of the sheet that names the columns, 0 if none does. None finds it.
    hidden : str or None
        Whether hidden rows are kept or dropped. None refuses a table that has some.
    encoding : str or None
        Encoding of texts in files of a statistics package that do not name it.
    catalog : str, path or None
        File of SAS with the value labels.
    types : mapping of str to str or None
        ``number`` or ``text`` for columns that are read without labels and display format.

    Returns
    -------
    Conversion
        ``rows``, ``columns`` (name, format in the file, type in Parquet, note) and ``notes``.

    Raises
    ------
    ConfigurationError
        If arguments are wrong, or a workbook has several sheets, hidden rows or no clear header.
    DataError
        If a file is damaged or takes too much, or a column has no certain type.
    PublishingError
        If ``out`` cannot be written.

    Notes
    -----
    The work is that of ``anonspark convert``. A process of its own reads the files.

    Examples
    --------
    >>> import anonspark, pandas, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     people = pandas.DataFrame({"age": [20, 30]})
    ...     people.to_stata(f"{folder}/p.dta", write_index=False)
    ...     anonspark.convert(f"{folder}/p.dta", f"{folder}/p.parquet").columns
    [['age', '%12.0g', 'int64', '']]
    """
    named = [files] if isinstance(files, str | PathLike) else files
    labels = None if catalog is None else str(catalog)
    options = Options(sheet, header_row, hidden, encoding, labels, types or {})
    with named_as_arguments({"--type": "types"}):
        result = convert_files(list(map(str, named)), str(out), options, overwrite=overwrite)
    return as_result(Conversion, result)


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
    stated = Roles(
        names_of("quasi_identifiers", quasi_identifiers),
        names_of("sensitive", sensitive),
        None if k is None else whole_number("k", k, 2),
        None if l is None else whole_number("l", l, 2),
        None if t is None else real_number("t", t),
        names_of("unit", unit),
        None if suppressed is None else text_of("suppressed", suppressed),
    )
    with named_as_arguments(_NAMES):
        roles = required_roles(stated, None if config is None else "a configuration")
    if config is not None:
        require_configuration(config)
    original, population = as_text(original), as_text(population)
    beside_files = isinstance(original, str) or isinstance(population, str)
    if isinstance(table, Release) and config is None and roles is None and not beside_files:
        return table.verify(original=original, population=population)
    if isinstance(table, Release | str | os.PathLike):
        return _verify_files(directory_of(table), config, roles, original, population)
    if beside_files:
        raise ConfigurationError(
            "original, population: found a path together with a table in memory. Expected tables "
            "of the same kind. Read the file first, or give the directory of the release"
        )
    if table is None:
        raise no_table(table)
    opening = opened(table, original, population)
    with opening as (engine, (data, source, attackers)):
        matched = original is not None or population is not None
        claim = claim_of(engine, config, roles, data.schema, matched=matched)
        records, claim = leave_out_suppressed(data, claim, roles)
        result = audit_table(records, claim, original=source, population=attackers)
    return as_result(Verification, result)


def _verify_files(
    path: str,
    config: Mapping[str, Any] | Configuration | None,
    roles: Roles | None,
    original: Any,
    population: Any,
) -> Verification:
    """Verify the directory of a release, or a table of another tool.

    Raises ConfigurationError for an original or population in memory.
    """
    tables = [table for table in (original, population) if table is not None]
    if not all(isinstance(table, str) for table in tables):
        raise ConfigurationError(
            "original, population: found a table together with the directory of a release. "
            "Expected paths. For a table in memory give what anonymize returned, and nothing else"
        )
    with named_as_arguments(_NAMES), opened(path, *tables) as (engine, _):
        configuration = None
        if config is not None:
            configuration = configuration_for_table(
                config, GIVEN, engine.files.read_document, needs_seed=False
            )
        result = audit_release(
            engine, path, configuration, roles=roles, original=original, population=population
        )
    return as_result(Verification, result)


def verify_together(
    releases: Sequence[str | Release[Any]],
    *,
    same_people: bool = False,
    inside: bool = False,
    joint_k: int | None = None,
    original: Any = None,
) -> JointVerification:
    """Verify releases, and attack every two of them together, only from their files.

    The work is that of ``anonspark verify --with``.

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

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": range(40), "size": [7 * n % 40 for n in range(40)]})
    >>> def release_of(name):
    ...     return anonspark.anonymize(people, k=5, quasi_identifiers=[name])
    >>> with release_of("age") as first, release_of("size") as second:
    ...     proof = anonspark.verify_together([first, second], same_people=True)
    ...     proof.holds, proof.pairs[0].figures.proven
    (True, 0)
    """
    with named_as_arguments():
        statement = statement_of(same_people=same_people, inside=inside)
    if joint_k is not None:
        joint_k = whole_number("joint_k", joint_k, 2)
    paths = list(map(directory_of, releases))
    # An original in memory decides the engine, and so comes first.
    with (
        named_as_arguments(_NAMES),
        opened(original, *paths) as (engine, (source, *_)),
    ):
        result = audit_releases(engine, paths, attack=Attack(statement, joint_k, source))
    pairs = [
        replace(pair, warnings=[with_arguments(text, _NAMES) for text in pair.warnings])
        for pair in result.pairs
    ]
    return JointVerification(result.releases, pairs)


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
    >>> with anonspark.anonymize(people, config) as published:
    ...     release = anonspark.read(published.path)
    ...     print(release.count("age between 20 and 22 and visits = 1"))
    ...     list(release.to_pandas().columns)
    7.5 (certain: 5 to 10)
    ['age', 'age_min', 'age_max', 'age_mid', 'visits']
    """
    directory = directory_of(path)

    @contextmanager
    def open_engine() -> Iterator[Engine]:
        with opened(directory) as (engine, _):
            yield engine

    return open_published(directory, hierarchies, open_engine)
