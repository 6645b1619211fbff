"""The records of a release of a plan, staged."""

from __future__ import annotations

from dataclasses import replace

from anonspark.config import Configuration
from anonspark.engine.protocol import Engine
from anonspark.errors import DataError
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.pipeline.preparing import prepare
from anonspark.sharing.recipients.strategy import ReleaseSource


def too_few_left(withheld: int, requested: int, k: int, where: str = "") -> DataError:
    """Return the error of a request of which too little is left."""
    return DataError(
        f"{where}{withheld:,} of {requested:,} records are withheld so that the release does not "
        f"show who came or left. Expected at least privacy.k = {k} that are left. Ask for more "
        "records, or withdraw releases that no recipient has any more"
    )


def prepare_source(
    engine: Engine, configuration: Configuration, directory: str, source: ReleaseSource
) -> Snapshot:
    """Stage the records of a release, with the ranges that it is made with.

    Parameters
    ----------
    engine : Engine
    configuration : Configuration
        Of the release.
    directory : str
        Private. For raw values.
    source : ReleaseSource

    Raises
    ------
    DataError
        If so many records are withheld that fewer than k are left.

    Notes
    -----
    As :func:`anonspark.pipeline.preparing.prepare`, over the private copy of the source.
    """
    granted, k = source.rows_requested - source.rows_withheld, configuration.privacy.k
    if source.rows_withheld and granted < k:
        raise too_few_left(source.rows_withheld, source.rows_requested, k)
    snapshot = prepare(engine, configuration, directory, source.open_input)
    if source.described is None:
        return snapshot
    of_source = {identifier.name: identifier for identifier in source.described}
    described = tuple(
        # Where records without a value are left out, there is none of them.
        replace(of_source[identifier.name], has_missing=identifier.has_missing)
        for identifier in snapshot.quasi_identifiers
    )
    return replace(snapshot, quasi_identifiers=described)
