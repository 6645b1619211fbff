"""The first step: the input is read once and staged, and looked at for what no release can mend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from anonspark.config import Configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.errors import reading_input
from anonspark.engine.spark.table import frame_of
from anonspark.engine.spark.value_sizes import ValueSizes
from anonspark.layers.prepare.snapshot import Snapshot, require_criteria, take_snapshot
from anonspark.layers.publish.staging import Staging
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.warnings.identifiers import count_identifiers, identifier_warnings
from anonspark.pipeline.warnings.release_warning import ReleaseWarning, tell_warnings


@dataclass(frozen=True)
class Prepared:
    """The input as a run begins with it.

    Parameters
    ----------
    snapshot : Snapshot
        With what every class has to satisfy.
    identifiers : mapping of str to ValueSizes
        How many records share each identifier.
    warnings : list of ReleaseWarning
        Of identifiers that several records share, in the log already.
    """

    snapshot: Snapshot
    identifiers: Mapping[str, ValueSizes]
    warnings: list[ReleaseWarning]


def prepare(
    spark: SparkSession,
    configuration: Configuration,
    directory: str,
    *,
    table: DataFrame | None = None,
) -> Snapshot:
    """Read the input once and stage it, for one run or several.

    Parameters
    ----------
    spark : SparkSession
    configuration : Configuration
        Of it count input, attributes, policy for missing values and seed.
    directory : str
        Where to stage; holds raw values, so it has to be private and removed afterwards.
    table : DataFrame or None
        The input; None opens what the configuration names.

    Returns
    -------
    Snapshot

    Raises
    ------
    ConfigurationError, DataError, PublishingError

    Notes
    -----
    One pass over the input that writes Parquet, and a narrow one over what was written where text
    quasi-identifiers need their categories.
    """
    paths = configuration.input.paths if table is None else ("the given DataFrame",)
    engine = SparkEngine(spark)
    given = None if table is None else engine.wrap(table)
    with reading_input(paths):
        return take_snapshot(engine, configuration, f"{directory}/snapshot", given)


def prepare_run(
    context: RunContext, staging: Staging, *, table: DataFrame | None, snapshot: Snapshot | None
) -> Prepared:
    """Stage the input of a run, unless it is, and check what every class has to satisfy.

    Parameters
    ----------
    context : RunContext
    staging : Staging
    table : DataFrame or None
        The input; None opens what the configuration names.
    snapshot : Snapshot or None
        Of :func:`prepare`; None stages the input.

    Raises
    ------
    ConfigurationError, DataError, GuaranteeError, PublishingError
    """
    configuration = context.configuration
    with context.progress.stage("prepare"):
        if snapshot is None:
            snapshot = prepare(context.spark, configuration, staging.records, table=table)
        # Before anything that another input would fail in.
        staging.state.require_identity({"input": snapshot.content_fingerprint()})
        with reading_input(configuration.input.paths):
            snapshot = require_criteria(snapshot, configuration)
            identified = snapshot.identified if context.warns else None
            identifiers = count_identifiers(
                None if identified is None else frame_of(identified), configuration, snapshot.rows
            )
        warnings = identifier_warnings(identifiers, configuration.privacy.k)
        tell_warnings(warnings)
    return Prepared(snapshot, identifiers, warnings)
