"""The staged snapshot: the input read once, so that every later pass sees the same records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from anonspark.config import Configuration
from anonspark.core.columns import (
    HASH_KEY,
    PAYLOAD_HASH,
    RECORD_HASH,
    is_payload,
    payload_column,
    quasi_identifier_column,
)
from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.spark.arrow import arrow_schema, arrow_type
from anonspark.engine.spark.fingerprints import (
    content_hash,
    hash_sums,
    sum_of_hashes,
    table_fingerprint,
)
from anonspark.engine.spark.hidden import with_hidden_number
from anonspark.engine.spark.settings import batches_of_rows
from anonspark.engine.spark.table import SparkEngine, SparkTable, frame_of
from anonspark.errors import ConfigurationError, DataError
from anonspark.layers.prepare.hierarchies import read_hierarchies
from anonspark.layers.prepare.inspection import (
    KEPT,
    describe_quasi_identifier,
    inspection_columns,
    judge_rows,
    require_enough_rows,
    require_sound_values,
)
from anonspark.layers.prepare.reading import (
    ColumnPlan,
    open_input,
    plan_columns,
    select_attributes,
)
from anonspark.layers.prepare.sensitive import describe_criteria, require_satisfiable
from anonspark.staged.records import PACKED, PackRecords, Records

__all__ = [
    "Inspection",
    "Snapshot",
    "inspect_input",
    "plain_schema",
    "require_criteria",
    "take_snapshot",
]

# Some columns of a table.
Select = Callable[..., DataFrame]


@dataclass(frozen=True)
class Snapshot:
    """The prepared table.

    Parameters
    ----------
    records : Records
        Read from the staging directory.
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
    identified : DataFrame or None
        The records of the input that are kept, with their identifiers, which are not staged: read
        anew by whoever counts them. None where there are no identifiers.
    """

    records: Records
    rows_read: int
    rows: int
    missing: tuple[int, ...]
    quasi_identifiers: tuple[QuasiIdentifier, ...]
    criteria: Criteria
    hierarchies: dict[str, Hierarchy]
    origin: str
    fingerprint: str
    identified: DataFrame | None = None

    def content_fingerprint(self) -> str:
        """Tell one prepared input from another: its records, and the hierarchies over them."""
        hierarchies = sorted(
            (name, one.leaves, one.levels) for name, one in self.hierarchies.items()
        )
        content = json.dumps([self.fingerprint, hierarchies])
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Inspection:
    """What a look at the input found.

    Parameters
    ----------
    rows_read : int
        Rows of the input.
    rows : int
        Of them, those that are kept.
    missing : tuple of int
        Missing values of each quasi-identifier.
    quasi_identifiers : tuple of QuasiIdentifier
    criteria : Criteria
        What every class has to satisfy, with the values of the sensitive attributes.
    kept : DataFrame
        The records that are kept, as they are staged, and their identifiers; lazy.
    """

    rows_read: int
    rows: int
    missing: tuple[int, ...]
    quasi_identifiers: tuple[QuasiIdentifier, ...]
    criteria: Criteria
    kept: DataFrame


def _open_and_plan(
    spark: SparkSession, configuration: Configuration, table: DataFrame | None = None
) -> tuple[DataFrame, list[ColumnPlan], dict[str, Hierarchy], DataFrame]:
    """Return what may be published, how quasi-identifiers are read, all hierarchies, the input."""
    # First of all: a bad file fails before the input is opened, which may read it to infer types.
    hierarchies = read_hierarchies(spark, configuration)
    if table is None:
        table = open_input(spark, configuration)
    selected = select_attributes(table, configuration)
    plans = plan_columns(selected, configuration, hierarchies)
    return selected, plans, hierarchies, table


def _kept_with_identifiers(
    table: DataFrame, plans: list[ColumnPlan], configuration: Configuration
) -> DataFrame:
    """Return the records that are kept, with their identifiers; lazy."""
    selected = select_attributes(table, configuration, identifiers=True)
    return judge_rows(selected, plans, configuration)[0].filter(KEPT)


def _criteria(
    select: Select, configuration: Configuration, hierarchies: dict[str, Hierarchy]
) -> Criteria:
    """Return what every class has to satisfy, after a look whether the whole table does."""
    payload = configuration.published_as_is
    columns = {name: payload_column(index) for index, name in enumerate(payload)}
    looked_at = {columns[criterion.attribute] for criterion in configuration.privacy.criteria}
    records = select(*sorted(looked_at))
    criteria = describe_criteria(
        records, configuration.privacy, columns, configuration.sensitive_orders, hierarchies
    )
    require_satisfiable(criteria)
    return criteria


def inspect_input(spark: SparkSession, configuration: Configuration) -> Inspection:
    """Check the input without staging anything.

    Raises
    ------
    DataError
        With everything that is wrong.

    Notes
    -----
    One pass over the input, two where a text quasi-identifier needs its categories.
    """
    selected, read, hierarchies, table = _open_and_plan(spark, configuration)
    judged, plans = judge_rows(selected, read, configuration)
    row = judged.agg(*inspection_columns(plans)).first()
    found = row.asDict() if row is not None else {}
    require_sound_values(found, plans, configuration)
    kept = judged.filter(KEPT)
    return Inspection(
        rows_read=found["rows"],
        rows=found["kept"],
        missing=tuple(found[f"missing_{index}"] for index in range(len(plans))),
        criteria=_criteria(kept.select, configuration, hierarchies),
        quasi_identifiers=_describe(kept.schema, kept.select, plans, found, configuration),
        kept=_kept_with_identifiers(table, read, configuration),
    )


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
    selected, read, hierarchies, opened = _open_and_plan(spark, configuration, table)
    judged, plans = judge_rows(selected, read, configuration)
    d = len(plans)
    kept = sf.col(KEPT)
    content = [sf.col(name) for name in selected.columns]
    observation = Observation("prepare")
    keyed = with_hidden_number(judged, HASH_KEY, configuration.execution.seed)
    key = sf.col(HASH_KEY)
    payload = [sf.col(name) for name in selected.columns if is_payload(name)]
    hashed = keyed.withColumn(RECORD_HASH, content_hash(content, key)).withColumn(
        PAYLOAD_HASH, content_hash(payload, key)
    )
    sums = hash_sums(sf.when(kept, sf.col(RECORD_HASH)))
    written = (
        hashed.observe(
            observation,
            *inspection_columns(plans),
            *(column.alias(name) for name, column in sums.items()),
        )
        .filter(kept)
        .select(*selected.columns, RECORD_HASH, PAYLOAD_HASH)
    )
    with batches_of_rows(spark):
        SparkTable(written).map_batches(PackRecords(), PACKED).stage(path)
    found = observation.get
    require_sound_values(found, plans, configuration)
    staged = SparkEngine(spark).staged([path], PACKED)
    records = Records(staged, arrow_schema(plain_schema(written.schema)))
    return Snapshot(
        records=records,
        rows_read=found["rows"],
        rows=found["kept"],
        missing=tuple(found[f"missing_{index}"] for index in range(d)),
        quasi_identifiers=_describe(
            plain_schema(written.schema), _rows_of(records), plans, found, configuration
        ),
        criteria=Criteria(configuration.privacy.k),
        hierarchies=hierarchies,
        origin=configuration.input_fingerprint(),
        fingerprint=table_fingerprint(found["kept"], sum_of_hashes(found), found["hash_xor"]),
        identified=_kept_with_identifiers(opened, read, configuration)
        if configuration.identifiers
        else None,
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
    criteria = _criteria(_rows_of(snapshot.records), configuration, snapshot.hierarchies)
    return replace(snapshot, criteria=criteria)


def _rows_of(records: Records) -> Select:
    def select(*names: str) -> DataFrame:
        return frame_of(records.rows(*names))

    return select


def plain_schema(schema: StructType) -> StructType:
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
    schema: StructType,
    select: Select,
    plans: list[ColumnPlan],
    found: Mapping[str, Any],
    configuration: Configuration,
) -> tuple[QuasiIdentifier, ...]:
    names = {
        index: quasi_identifier_column(index)
        for index, plan in enumerate(plans)
        if plan.kind == "category"
    }
    categories: dict[int, list[str]] = {}
    if names:
        texts = select(*names.values())
        row = texts.agg(*(sf.collect_set(name).alias(name) for name in names.values())).first()
        if row is not None:
            categories = {index: row[name] for index, name in names.items()}
    described: list[QuasiIdentifier] = []
    problems: list[str] = []
    for index, plan in enumerate(plans):
        data_type = schema[quasi_identifier_column(index)].dataType
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
