"""What a table has that tells people apart, before anything is configured."""

from __future__ import annotations

from dataclasses import dataclass

from anonspark.api.choosing import as_text, functions_for
from anonspark.api.given import named_as_arguments, whole_number
from anonspark.api.results import Profile, own
from anonspark.api.tables import GIVEN, Frame, no_table
from anonspark.api.telling import progress_for
from anonspark.engine.protocol import Engine, Table
from anonspark.profiling.profile import SAMPLE_ROWS, profile_table
from anonspark.profiling.source import Source, find_source


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
    """Tell what a table has that tells people apart, before anything is configured.

    Parameters
    ----------
    table : DataFrame or str
        Of the kinds that :func:`anonspark.anonymize` takes, or the path of a table.
    k : int
        What few records are fewer than; at least 2.
    sample : int
        Records at most by which sets of columns are measured; all, if there are no more.
    seed : int
        Key by which they are drawn.
    show_values : bool
        Whether the profile holds examples of values, for its page.
    progress : bool
        Whether to tell what is going on; see :func:`anonspark.anonymize`.

    Returns
    -------
    Profile
        ``columns`` with a proposed role each, ``uniqueness``, ``dependencies``; ``report()``.

    Raises
    ------
    DataError
        If there is no table, it cannot be read, or it is empty.
    ConfigurationError
        If k is below 2, the sample empty, or one of them or the seed is no whole number.

    Notes
    -----
    The work of ``anonspark profile``: see :func:`anonspark.profiling.profile.profile_table`.

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
