"""The public function that opens a release from its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from os import PathLike
from typing import Any

from anonspark.api.choosing import place_of
from anonspark.api.release import Release
from anonspark.engine.choice import Work, choose_engine
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.reading.published import PublishedRelease, open_published


def read(
    path: str | PathLike[str] | Release[Any], *, hierarchies: Mapping[str, str] | None = None
) -> PublishedRelease:
    """Open a release from its own files, as its recipient has them.

    Parameters
    ----------
    path : str, path or Release
        Its directory, or what :func:`anonspark.anonymize` returned.
    hierarchies : mapping of str to str or None
        Files of hierarchies by attribute, where whoever published the release gave them along:
        a release holds the labels of such a hierarchy, and not what they stand for.

    Returns
    -------
    PublishedRelease
        ``count`` answers questions with certain bounds; ``to_pandas``, ``to_polars`` and
        ``to_arrow`` give typed columns beside the labels.

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
    Nothing but the manifest is read until something is asked for; a hierarchy that is not the one
    of the labels is refused then. Spark is needed for what this process cannot read: files at other
    addresses than this machine's, and formats but Parquet and ORC. The files are not verified: see
    ``anonspark verify``.

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
