"""The public functions for tables in this process's memory: pandas', polars' and Arrow's."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from anonspark.api.distribution import COALITIONS, Distribution, given_plan, new_directory
from anonspark.api.release import DATA, GIVEN, Frame, Release, given_configuration, given_input
from anonspark.config import Configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Table
from anonspark.errors import ConfigurationError, exit_code_of
from anonspark.holders.union import Union, unite
from anonspark.layers.publish.prometheus import write_textfile
from anonspark.pipeline.run import run
from anonspark.progress import Progress
from anonspark.recipients.distribute import distribute as carry_out
from anonspark.recipients.plan import parse_plan
from anonspark.release.manifest import read_manifest
from anonspark.selection.selecting import select as choose_attributes
from anonspark.selection.settings import parse_selection
from anonspark.selection.writing import Selection
from anonspark.verification.audit import audit_table
from anonspark.verification.claims import (
    Roles,
    claim_of_configuration,
    claim_of_manifest,
    claim_of_roles,
)
from anonspark.verification.release_pairs import Attack, JointVerification, audit_releases
from anonspark.verification.result import Verification


def anonymize(
    table: Frame, config: Mapping[str, Any] | Configuration, staging: str | None
) -> Release[Frame]:
    """Anonymize a table; see :func:`anonspark.api.anonymize`."""
    engine = LocalEngine()
    given = _table(engine, table)
    staging, temporary = _staging(staging)
    path = f"{staging.rstrip('/')}/release-{uuid.uuid4().hex[:12]}"
    try:
        configuration = given_configuration(config, path, engine.files.read_document)
        _require_engine(configuration)
        _run(engine, configuration, given)
        return _open(engine, path, temporary, table)
    except BaseException:
        engine.files.delete(path)
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise


def _staging(staging: str | None) -> tuple[str, str | None]:
    """Return where to work, and the temporary directory that this is, or None."""
    if staging is not None:
        return staging, None
    temporary = tempfile.mkdtemp(prefix="anonspark-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary, temporary


def _run(engine: LocalEngine, configuration: Configuration, table: Table) -> None:
    """Anonymize a table, and tell Prometheus how it went where that is asked for."""
    progress = Progress()
    started = datetime.now(UTC)
    summary = None
    code = 0
    try:
        summary = run(engine, configuration, progress=progress, table=table).summary
    except BaseException as error:
        code = exit_code_of(error)
        raise
    finally:
        write_textfile(
            configuration,
            progress,
            started=started,
            exit_code=code,
            summary=summary,
            files=engine.files,
        )


def _open(engine: LocalEngine, path: str, temporary: str | None, like: Frame) -> Release[Frame]:
    manifest = read_manifest(engine.files, path)

    def read(name: str) -> Frame:
        place = f"{path}/{DATA}" if name == DATA else f"{path}/metrics/{name}"
        data_format = manifest.data_format if name == DATA else "parquet"
        found: Frame = _as_given(engine.published(place, data_format).gather(), like)
        return found

    def prove(original: Frame | None, population: Frame | None) -> Verification:
        matched = original is not None or population is not None
        claim = claim_of_manifest(engine, path, manifest, matched=matched)
        return audit_table(
            engine.published(f"{path}/{DATA}", manifest.data_format),
            claim,
            original=_optional(engine, original),
            population=_optional(engine, population),
            name=path,
        )

    def close() -> None:
        engine.files.delete(path)
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)

    return Release.of(path, manifest.document, read, prove, close)


def distribute(
    table: Frame, plan: Mapping[str, Any], staging: str | None, run_id: str | None
) -> Distribution[Frame]:
    """Carry a plan out; see :func:`anonspark.api.distribute`."""
    engine = LocalEngine()
    given = _table(engine, table)
    staging, temporary = _staging(staging)
    directory = new_directory(staging)

    def close() -> None:
        engine.files.delete(directory)
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)

    try:
        parsed = parse_plan(given_plan(plan, directory), engine.files.read_document)
        _require_engine(parsed.base)
        made = carry_out(engine, parsed, run_id=run_id, table=given)
        releases = {
            name: _open(engine, one.path, None, table) for name, one in made.releases.items()
        }
        coalitions: Frame = _as_given(
            pa.Table.from_pylist(made.coalitions, schema=COALITIONS), table
        )
        return Distribution(releases, coalitions, made.other_strategy, close)
    except BaseException:
        close()
        raise


def _require_engine(configuration: Configuration) -> None:
    if configuration.execution.engine == "spark":
        raise ConfigurationError(
            "execution.engine: found spark, but the given table is none of Spark's; give "
            "spark.createDataFrame(table), or leave the key out"
        )


def select(table: Frame, config: Mapping[str, Any], run_id: str | None) -> Selection:
    """Choose attributes in private; see :func:`anonspark.api.select`."""
    engine = LocalEngine()
    settings = parse_selection(given_input(config), read=engine.files.read_document)
    return choose_attributes(engine, settings, run_id=run_id, table=_table(engine, table))


def verify(
    table: Frame,
    config: Mapping[str, Any] | Configuration | None,
    roles: Roles | None,
    *,
    original: Frame | None,
    population: Frame | None,
) -> Verification:
    """Measure what a table keeps of a promise; see :func:`anonspark.api.verify`."""
    engine = LocalEngine()
    given = _table(engine, table)
    names = given.schema.names
    if roles is not None or config is None:
        claim = claim_of_roles(roles or Roles((), (), 2), names)
    else:
        read = engine.files.read_document
        configuration = given_configuration(config, GIVEN, read, needs_seed=False)
        matched = original is not None or population is not None
        claim = claim_of_configuration(engine, configuration, names, None, matched=matched)
    return audit_table(
        given,
        claim,
        original=_optional(engine, original),
        population=_optional(engine, population),
    )


def verify_together(paths: Sequence[str], attack: Attack) -> JointVerification:
    """Attack releases together; see :func:`anonspark.api.verify_together`."""
    return audit_releases(LocalEngine(), paths, attack=attack)


def union(paths: Sequence[str], out: str, holder_column: str | None, seed: int | None) -> Union:
    """Publish releases as one; see :func:`anonspark.api.union`."""
    return unite(LocalEngine(), paths, out, holder_column=holder_column, seed=seed)


def _optional(engine: LocalEngine, table: Frame | None) -> Table | None:
    return None if table is None else _table(engine, table)


def _table(engine: LocalEngine, table: Any) -> Table:
    return engine.wrap(_as_arrow(table))


def _as_arrow(table: Any) -> pa.Table:
    """Return a table as Arrow's.

    Raises
    ------
    ConfigurationError
        If it is no table that Arrow knows.
    """
    if isinstance(table, pa.Table):
        return table
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    raise ConfigurationError(
        f"table: found {type(table).__name__}; expected a DataFrame of Spark, pandas or polars, or "
        "a table of Arrow"
    )


def _as_given(found: pa.Table, like: Any) -> Any:
    """Return a table of Arrow as one of the kind that was given."""
    for module, kind in _KINDS.items():
        own = sys.modules.get(module)
        if own is not None and isinstance(like, own.DataFrame):
            return kind(own, found)
    return found


_KINDS: Mapping[str, Callable[[Any, pa.Table], Any]] = {
    "pandas": lambda _, found: found.to_pandas(),
    "polars": lambda polars, found: polars.from_arrow(found),
}
