"""Profile tables, measure and compare releases, and write reports."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from anonspark.api.choosing import (
    PROPOSED,
    as_text,
    functions_for,
    functions_for_table,
    place_of,
    with_diversity,
)
from anonspark.api.given import (
    as_integer,
    as_place,
    given_input,
    named_as_arguments,
    require_alone,
    require_mapping,
    roles_of,
    wanted_configuration,
    whole_number,
)
from anonspark.api.release import Release
from anonspark.api.reports import made_report
from anonspark.api.results import Comparison, Profile, Utility, own
from anonspark.api.shown import Page
from anonspark.api.tables import GIVEN, Frame, no_table
from anonspark.api.telling import progress_for
from anonspark.comparison.runner import compare as run_cells
from anonspark.comparison.trial import BESIDE, load_comparison
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError
from anonspark.profiling.profile import SAMPLE_ROWS, profile_table
from anonspark.profiling.source import Source, find_source
from anonspark.utility.evaluation import evaluate as measure_utility

_GRID = "the given settings"


def evaluate(
    release: Release[Any] | str,
    original: Frame | str,
    *,
    target: str | None = None,
    holdout: Frame | str | None = None,
    progress: bool = True,
) -> Utility:
    """Measure how useful a release is: counts and trained models.

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
        Without it, they are tested on about 30 % of the original, which the release has seen.
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

    Notes
    -----
    The work is that of ``anonspark evaluate``.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": [20 + n % 8 for n in range(400)]})
    >>> with anonspark.anonymize(people, k=5, quasi_identifiers=["age"]) as release:
    ...     anonspark.evaluate(release, people).workload.median
    0.0
    """
    path = place_of(release)
    if original is None:
        raise ConfigurationError(
            "original: found NoneType. Expected the table that the release was made of, or its path"
        )
    told = progress_for(progress)
    with (
        named_as_arguments(),
        _beside(path, original, holdout) as (engine, (beside, tested)),
        told.stage("evaluate"),
    ):
        found = measure_utility(engine, path, beside, target, tested)
    return own(Utility, found)


@contextmanager
def _beside(
    release: str, *given: Frame | str | os.PathLike[str] | None
) -> Iterator[tuple[Engine, list[Any]]]:
    """Open an engine for a release and what is given beside it: tables, and paths as they are."""
    texts = [as_text(one) for one in given]
    tables = [None if isinstance(one, str) else one for one in texts]
    with functions_for(release, *texts).working(*tables) as (engine, opened):
        yield (
            engine,
            [one if table is None else table for one, table in zip(texts, opened, strict=True)],
        )


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
    rank_by: str = "gcp",
    staging: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Comparison:
    """Anonymize a table with many settings, measure each release, and rank the settings.

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

    Notes
    -----
    The work is that of ``anonspark compare``.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": range(40), "size": [7 * n % 40 for n in range(40)]})
    >>> found = anonspark.compare(people, k=[2, 5], quasi_identifiers=["age", "size"])
    >>> [(row["k"], row["published_min_class_size"] >= row["k"]) for row in found.rows]
    [(2, True), (5, True)]
    """
    roles = roles_of(
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        identifiers=identifiers,
        insensitive=insensitive,
    )
    place_given = as_place("staging", staging)
    asked = None if l == PROPOSED else l
    document = _document(config, roles, k, model, rank_by, l=asked)
    told = progress_for(progress)
    functions = functions_for_table(table)
    if config is None:
        base = with_diversity(document["base"], l, table, functions)
        document = {**document, "base": base}
    with functions.working(table) as (engine, (given,)):
        place, temporary = functions.working_place(engine, place_given)
        output = f"{place.rstrip('/')}/{uuid.uuid4().hex[:12]}"
        asked = "base" in document
        placed = output if asked else {**document.get("output", {}), "path": output}
        text = yaml.safe_dump({**document, "output": placed}, sort_keys=False)

        def read(path: str) -> str:
            return text if path == _GRID else str(engine.files.read_document(path))

        try:
            wanted = load_comparison(_GRID, (), read)
            found = run_cells(engine, wanted, told, table=given)
        finally:
            # Figures of a configuration go beside its output.
            for one in (output, f"{output}{BESIDE}"):
                engine.files.delete(one)
            if temporary is not None:
                shutil.rmtree(temporary, ignore_errors=True)
    return own(Comparison, found, grid=wanted)


def _document(
    config: Mapping[str, Any] | None,
    roles: Mapping[str, str],
    k: Sequence[int] | int | None,
    model: Sequence[str] | str | None,
    rank_by: str,
    **others: object,
) -> dict[str, Any]:
    """Return the grid that keywords ask for, or what is given instead of them.

    Raises
    ------
    ConfigurationError
        If both are given, or neither.
    """
    if config is not None:
        require_mapping("config", config)
        require_alone(roles, "a grid or a configuration", k=k, model=model, **others)
        if not {"base", "axes"} & set(config):
            return given_input(config)
        base = config.get("base", {})
        return {**config, "base": given_input(base) if isinstance(base, Mapping) else base}
    given: Any = () if k is None else k
    if isinstance(given, str) or not isinstance(given, Iterable):
        given = [given]
    values = list(map(as_integer, given))
    base = wanted_configuration(None, roles, values[0] if values else None, None)
    axes: dict[str, list[Any]] = {"privacy.k": values}
    if model is not None:
        axes["model.name"] = [model] if isinstance(model, str) else list(model)
    return {"base": given_input(dict(base)), "axes": [axes], "rank_by": rank_by}


def report(
    release: Release[Any] | str,
    path: str | None = None,
    *,
    original: Frame | str | None = None,
    target: str | None = None,
    holdout: Frame | str | None = None,
    inside: bool = False,
    progress: bool = True,
) -> Page:
    """Write the report of a release: one HTML page with charts.

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
        Without it, they are tested on about 30 % of the original, which flatters the release.
    inside : bool
        Whether to name the worst classes. Do not publish such a page.
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

    Notes
    -----
    The work is that of ``anonspark report``.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": [20 + n % 8 for n in range(40)]})
    >>> with anonspark.anonymize(people, k=5, quasi_identifiers=["age"]) as release:
    ...     "Class sizes" in anonspark.report(release, original=people).html
    True
    """
    place = place_of(release)
    told = progress_for(progress)
    with (
        _beside(place, original, holdout) as (engine, (beside, tested)),
        told.stage("report"),
    ):
        return made_report(
            engine, place, beside, path, target=target, holdout=tested, inside=inside
        )


@dataclass(frozen=True)
class _Given(Source):
    """A table that is there already."""

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

    Notes
    -----
    The work is that of ``anonspark profile``.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"email": [f"p{n}@example.org" for n in range(40)]})
    >>> [(one.name, one.role) for one in anonspark.profile(people).columns]
    [('email', 'identifier')]
    """
    k, sample = whole_number("k", k, 2), whole_number("sample", sample, 1)
    seed = whole_number("seed", seed, -(2**63), 2**63 - 1)
    if table is None:
        raise no_table(table)
    told = progress_for(progress)
    given = as_text(table)
    is_path = isinstance(given, str)
    with (
        named_as_arguments({"DATA": "table"}),
        functions_for(given).working(None if is_path else given) as (engine, (opened,)),
    ):
        source = find_source(given) if is_path else _Given(GIVEN, "DataFrame", table=opened)
        found = profile_table(
            engine, source, told, k=k, sample=sample, seed=seed, show_values=show_values
        )
    return own(Profile, found)
