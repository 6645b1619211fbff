"""The staged snapshot: the input read once, so that every later pass sees the same records."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from anonspark.arrow import arrow_type
from anonspark.columns import (
    HASH_KEY,
    OCCURRENCE,
    RECORD_HASH,
    STAGED,
    payload_column,
    quasi_identifier_column,
)
from anonspark.configuration import Configuration
from anonspark.errors import ConfigurationError, DataError
from anonspark.fingerprints import content_hash, table_fingerprint
from anonspark.hidden import with_hidden_number
from anonspark.hierarchies.hierarchy import Hierarchy
from anonspark.prepare.encoding import QuasiIdentifier
from anonspark.prepare.hierarchies import read_hierarchies
from anonspark.prepare.inspection import (
    KEPT,
    describe_quasi_identifier,
    inspection_columns,
    judge_rows,
    require_enough_rows,
    require_sound_values,
)
from anonspark.prepare.reading import (
    ColumnPlan,
    open_input,
    plan_columns,
    select_attributes,
)
from anonspark.prepare.sensitive import describe_criteria, require_satisfiable
from anonspark.privacy.criteria import Criteria

__all__ = ["Snapshot", "inspect_input", "number_duplicates", "require_criteria", "take_snapshot"]


@dataclass(frozen=True)
class Snapshot:
    """The prepared table.

    Parameters
    ----------
    records : DataFrame
        Staged records, read from the staging directory.
    rows_read : int
        Rows of the input.
    rows : int
        Rows staged: those read, less those dropped for missing values.
    missing : tuple of int
        Missing values of each quasi-identifier in the input.
    quasi_identifiers : tuple of QuasiIdentifier
        In configuration order, with their global ranges.
    criteria : Criteria
        What every class has to satisfy.
    hierarchies : dict
        Attribute name to hierarchy, of those that come from files.
    origin : str
        ``Configuration.input_fingerprint`` of the configuration that it was prepared for.
    fingerprint : str
        Tells whether two inputs hold the same records; depends on the seed, not on their order.
    """

    records: DataFrame
    rows_read: int
    rows: int
    missing: tuple[int, ...]
    quasi_identifiers: tuple[QuasiIdentifier, ...]
    criteria: Criteria
    hierarchies: dict[str, Hierarchy]
    origin: str
    fingerprint: str

    def content_fingerprint(self) -> str:
        """Tell one prepared input from another: its records, and the hierarchies over them."""
        hierarchies = sorted(
            (name, one.leaves, one.levels) for name, one in self.hierarchies.items()
        )
        content = json.dumps([self.fingerprint, hierarchies])
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def _open_and_plan(
    spark: SparkSession, configuration: Configuration, table: DataFrame | None = None
) -> tuple[DataFrame, list[ColumnPlan], dict[str, Hierarchy]]:
    """Return the listed columns, how the quasi-identifiers are read, and all hierarchies."""
    # First of all: a bad file fails before the input is opened, which may read it to infer types.
    hierarchies = read_hierarchies(spark, configuration)
    if table is None:
        table = open_input(spark, configuration.input)
    selected = select_attributes(table, configuration)
    plans = plan_columns(selected, configuration, hierarchies)
    return selected, plans, hierarchies


def _criteria(
    records: DataFrame, configuration: Configuration, hierarchies: dict[str, Hierarchy]
) -> Criteria:
    """Return what every class has to satisfy, after a look whether the whole table does."""
    payload = configuration.published_as_is
    columns = {name: payload_column(index) for index, name in enumerate(payload)}
    criteria = describe_criteria(
        records, configuration.privacy, columns, configuration.sensitive_orders, hierarchies
    )
    require_satisfiable(criteria)
    return criteria


def inspect_input(
    spark: SparkSession, configuration: Configuration
) -> tuple[dict[str, Any], tuple[QuasiIdentifier, ...]]:
    """Check the input without staging anything.

    Returns
    -------
    found : dict
        Results of the inspection: rows, missing values and so on.
    quasi_identifiers : tuple of QuasiIdentifier

    Raises
    ------
    DataError
        With everything that is wrong.

    Notes
    -----
    One pass over the input, two where a text quasi-identifier needs its categories.
    """
    selected, plans, hierarchies = _open_and_plan(spark, configuration)
    judged, plans = judge_rows(selected, plans, configuration)
    row = judged.agg(*inspection_columns(plans)).first()
    found = row.asDict() if row is not None else {}
    require_sound_values(found, plans, configuration)
    kept = judged.filter(KEPT)
    _criteria(kept, configuration, hierarchies)
    return found, _describe(kept, plans, found, configuration)


def take_snapshot(
    spark: SparkSession, configuration: Configuration, path: str, table: DataFrame | None = None
) -> Snapshot:
    """Read the input once, check it and stage what later layers need.

    Parameters
    ----------
    spark : SparkSession
    configuration : Configuration
    path : str
        Where to stage; holds raw values.
    table : DataFrame or None
        The input; None opens what the configuration names.

    Returns
    -------
    Snapshot
        For :func:`require_criteria`, which counts the sensitive values.

    Raises
    ------
    DataError
        With everything that is wrong with the values.

    Notes
    -----
    One pass over the input that writes Parquet; counts, ranges and fingerprint come along with it.
    Text quasi-identifiers cost a second, narrow pass over the staged records to collect their
    categories.
    """
    selected, plans, hierarchies = _open_and_plan(spark, configuration, table)
    judged, plans = judge_rows(selected, plans, configuration)
    d = len(plans)
    kept = sf.col(KEPT)
    content = [sf.col(name) for name in selected.columns]
    observation = Observation("prepare")
    keyed = with_hidden_number(judged, HASH_KEY, configuration.execution.seed)
    hashed = keyed.withColumn(RECORD_HASH, content_hash(content, sf.col(HASH_KEY)))
    written = (
        hashed.observe(
            observation,
            *inspection_columns(plans),
            sf.sum(sf.when(kept, sf.col(RECORD_HASH).cast("decimal(38,0)")))
            .cast("string")
            .alias("hash_sum"),
            sf.bit_xor(sf.when(kept, sf.col(RECORD_HASH))).alias("hash_xor"),
        )
        .filter(kept)
        .select(*selected.columns, RECORD_HASH)
    )
    written.write.options(**STAGED).parquet(path)
    found = observation.get
    require_sound_values(found, plans, configuration)
    records = spark.read.schema(_plain_schema(written.schema)).parquet(path)
    return Snapshot(
        records=records,
        rows_read=found["rows"],
        rows=found["kept"],
        missing=tuple(found[f"missing_{index}"] for index in range(d)),
        quasi_identifiers=_describe(records, plans, found, configuration),
        criteria=Criteria(configuration.privacy.k),
        hierarchies=hierarchies,
        origin=configuration.input_fingerprint(),
        fingerprint=table_fingerprint(found["kept"], found["hash_sum"], found["hash_xor"]),
    )


def require_criteria(snapshot: Snapshot, configuration: Configuration) -> Snapshot:
    """Return a snapshot with what every class has to satisfy.

    Raises
    ------
    ConfigurationError
        If the snapshot was prepared for another input, attributes, missing values or seed.
    DataError
        If the table has fewer than k records, or a sensitive attribute cannot be used.
    GuaranteeError
        If the table as a whole violates a criterion.

    Notes
    -----
    One job and one shuffle of counts for each sensitive attribute of a criterion.
    """
    if snapshot.origin != configuration.input_fingerprint():
        raise ConfigurationError(
            "input, attributes, missing, execution.seed: found others than those that the records "
            "were prepared for; prepare the input anew"
        )
    require_enough_rows(snapshot.rows_read, snapshot.rows, configuration.privacy.k)
    criteria = _criteria(snapshot.records, configuration, snapshot.hierarchies)
    return replace(snapshot, criteria=criteria)


def _plain_schema(schema: StructType) -> StructType:
    """Return a schema without the metadata of its fields, which the release's files would hold.

    They may list values, as those that Spark ML gives its columns do.
    """
    return StructType.fromJson(_without_metadata(schema.jsonValue()))


def _without_metadata(described: Any) -> Any:
    if isinstance(described, list):
        return [_without_metadata(each) for each in described]
    if not isinstance(described, dict):
        return described
    inner = {key: _without_metadata(value) for key, value in described.items()}
    return inner | ({"metadata": {}, "nullable": True} if "name" in described else {})


def _describe(
    typed: DataFrame,
    plans: list[ColumnPlan],
    found: dict[str, Any],
    configuration: Configuration,
) -> tuple[QuasiIdentifier, ...]:
    names = {
        index: quasi_identifier_column(index)
        for index, plan in enumerate(plans)
        if plan.kind == "category"
    }
    categories: dict[int, list[str]] = {}
    if names:
        row = typed.agg(*(sf.collect_set(name).alias(name) for name in names.values())).first()
        if row is not None:
            categories = {index: row[name] for index, name in names.items()}
    described: list[QuasiIdentifier] = []
    problems: list[str] = []
    for index, plan in enumerate(plans):
        data_type = typed.schema[quasi_identifier_column(index)].dataType
        try:
            described.append(
                describe_quasi_identifier(
                    index, plan, arrow_type(data_type), found, configuration, categories.get(index)
                )
            )
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(*problems)
    return tuple(described)


def number_duplicates(snapshot: Snapshot, path: str) -> Snapshot:
    """Give records that are equal in every column a number, for cuts that run between them.

    Any numbering gives the same release, for the records are interchangeable; so a task that is
    run again may number them otherwise.

    Parameters
    ----------
    snapshot : Snapshot
    path : str
        Where to stage; holds raw values.

    Notes
    -----
    One shuffle of the staged records, which are written anew.
    """
    window = Window.partitionBy(RECORD_HASH).orderBy(RECORD_HASH)
    numbered = snapshot.records.withColumn(OCCURRENCE, sf.row_number().over(window).cast("long"))
    numbered.write.options(**STAGED).parquet(path)
    reader = snapshot.records.sparkSession.read.schema(numbered.schema)
    return replace(snapshot, records=reader.parquet(path))
