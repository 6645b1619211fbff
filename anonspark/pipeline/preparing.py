"""The first step: read the input once, stage it, and warn of what no release can mend."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from anonspark.config import Configuration
from anonspark.engine.protocol import Engine, OpenInput, Table
from anonspark.errors import ConfigurationError, DataError
from anonspark.layers.prepare.snapshot import Snapshot, require_criteria, take_snapshot
from anonspark.layers.publish.staging import Staging
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.repeats import repeat_warnings, repeats_of_others
from anonspark.pipeline.warnings.dependencies import (
    SAMPLE_ROWS,
    RecordSample,
    dependency_warnings,
    sample_of,
)
from anonspark.pipeline.warnings.published_values import (
    count_identifiers,
    exact_end_warnings,
    identifier_warnings,
    text_value_warnings,
)
from anonspark.pipeline.warnings.release_warning import ReleaseWarning, log_warnings
from anonspark.pipeline.warnings.value_sizes import ValueSizes

_LOGGER = logging.getLogger("anonspark")


@dataclass(frozen=True)
class Prepared:
    """The input as a run begins with it.

    ``snapshot`` knows what every class must satisfy. ``identifiers`` says how many records share
    each identifier. ``warnings`` of the input are in the log already. ``version`` holds the options
    that the input was read with in addition to those of the configuration, so that another attempt
    reads the same version of it.
    """

    snapshot: Snapshot
    identifiers: Mapping[str, ValueSizes]
    warnings: list[ReleaseWarning]
    version: Mapping[str, str]


def prepare(
    engine: Engine,
    configuration: Configuration,
    directory: str,
    open_input: OpenInput | None = None,
) -> Snapshot:
    """Read the input once and stage it, for one run or several.

    Of the configuration only the input, attributes, policy for missing values and seed are used.
    ``directory`` will hold raw values, so it must be private and removed afterwards. ``open_input``
    is None to open the configuration's input. Raises ConfigurationError, DataError or
    PublishingError. One pass over the input that writes Parquet, and a narrow one over what was
    written if text quasi-identifiers need their categories.
    """
    paths = configuration.input.paths if open_input is None else ("the given DataFrame",)
    with engine.reading(paths):
        return take_snapshot(engine, configuration, f"{directory}/snapshot", open_input)


def prepare_run(
    context: RunContext, staging: Staging, *, table: Table | None, snapshot: Snapshot | None
) -> Prepared:
    """Stage the input of a run, unless ``snapshot`` is given, and check the criteria.

    ``table`` is the input, or None to open the configuration's.
    """
    configuration = context.configuration
    with context.progress.stage("prepare"):
        version: dict[str, str] = {}
        if snapshot is None:
            if table is None:
                text = json.dumps(dict(context.engine.input_version(configuration)))
                version = json.loads(staging.state.first_input_version(text))
            versioned = configuration.with_input(version)
            open_table = None if table is None else partial(context.engine.open_input, source=table)
            snapshot = prepare(context.engine, versioned, staging.records, open_table)
            # The input is the one that the configuration names, in any version.
            snapshot = replace(snapshot, origin=configuration.input_fingerprint())
        # Compared before anything in which another input would fail.
        staging.state.require_identity({"input": snapshot.content_fingerprint()})
        with context.engine.reading(configuration.input.paths):
            snapshot = require_criteria(snapshot, configuration)
            identifiers = (
                count_identifiers(snapshot.open_records, configuration, snapshot.rows)
                if context.warns
                else {}
            )
            warnings = list(identifier_warnings(identifiers, configuration.privacy.k))
            if context.warns:
                versioned = configuration.with_input(version)
                staged = snapshot.rows_read > SAMPLE_ROWS or context.request is not None
                sample = None
                if configuration.published_as_is or (staged and not configuration.privacy.unit):
                    rows = snapshot.records.rows()
                    sample = sample_of(rows, configuration, snapshot.rows, most=SAMPLE_ROWS)
                repeats = _repeats(
                    context, versioned, table, snapshot, identifiers, sample, staged=staged
                )
                if staged or not snapshot.rows_dropped:
                    warnings += repeats
                else:
                    # They depend on records that are left out, so no release may show them.
                    log_warnings(repeats)
                warnings += text_value_warnings(snapshot.quasi_identifiers, configuration)
                warnings += exact_end_warnings(
                    snapshot.quasi_identifiers, configuration, snapshot.rows
                )
                if sample is not None:
                    warnings += dependency_warnings(sample, configuration)
        log_warnings(warnings)
    return Prepared(snapshot, identifiers, warnings, version)


def _repeats(
    context: RunContext,
    configuration: Configuration,
    table: Table | None,
    snapshot: Snapshot,
    identifiers: Mapping[str, ValueSizes],
    sample: RecordSample | None,
    *,
    staged: bool,
) -> list[ReleaseWarning]:
    """Warn of columns that number people or households.

    A small input is read once more, with all its columns. For a large one only staged columns are
    searched, because reading it again would cost more than the warning is worth. The same holds for
    a plan, whose releases must not depend on records that are not in them.
    """
    try:
        with context.engine.reading(configuration.input.paths):
            if staged:
                table = snapshot.records.rows()
            elif table is None:
                table = context.engine.open_source(configuration)
            rows = snapshot.rows if staged else snapshot.rows_read
            sample = sample if staged else None
            keys, copies = repeats_of_others(
                configuration, table, rows, identifiers, sample, staged=staged
            )
    except (ConfigurationError, DataError):
        # A run needs only the columns that are listed, and those were read.
        _LOGGER.warning(
            "whether a column numbers people who have several records is not known, because a "
            "column that is not listed cannot be read: k counts records"
        )
        return []
    return repeat_warnings(keys, copies, configuration)
