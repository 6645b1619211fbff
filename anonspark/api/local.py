"""The public functions for tables in this process's memory: pandas', polars' and Arrow's."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic

import pyarrow as pa

from anonspark.api.distribution import COALITIONS, Distribution, given_plan, new_directory
from anonspark.api.given import given_configuration, given_input
from anonspark.api.release import DATA, Release
from anonspark.api.reports import anonymized, claim_of, figures_of, made_report
from anonspark.api.results import Selection, Union, Verification, own
from anonspark.api.shown import Page
from anonspark.api.tables import Frame, as_arrow, as_given, with_texts
from anonspark.config import Configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.identifiers import with_texts_of_identifiers
from anonspark.engine.protocol import Table
from anonspark.errors import ConfigurationError
from anonspark.pipeline.released import Release as Released
from anonspark.progress import Progress
from anonspark.release.manifest import Manifest, read_manifest
from anonspark.sharing.holders.union import unite
from anonspark.sharing.recipients.distribute import distribute as carry_out
from anonspark.sharing.recipients.plan import parse_plan
from anonspark.sharing.selection.selecting import select as choose_attributes
from anonspark.sharing.selection.settings import parse_selection
from anonspark.verification.audit import audit_table
from anonspark.verification.claims import claim_of_manifest
from anonspark.verification.roles import Roles, leave_out_suppressed


def anonymize(
    table: Frame,
    config: Mapping[str, Any] | Configuration,
    staging: str | None,
    progress: Progress,
) -> Release[Frame]:
    """Anonymize a table, see :func:`anonspark.api.anonymize`."""
    engine = LocalEngine()
    given = _table(engine, table)
    staging, temporary = _staging(staging)
    path = f"{staging.rstrip('/')}/release-{uuid.uuid4().hex[:12]}"
    try:
        configuration = given_configuration(config, path, engine.files.read_document)
        _require_engine(configuration)
        made = anonymized(engine, configuration, given, progress)
        return _open(engine, path, temporary, table, made)
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


@dataclass(frozen=True)
class _Source(Generic[Frame]):
    """The files of a release, which this process reads."""

    engine: LocalEngine
    path: str
    manifest: Manifest
    temporary: str | None
    like: Frame
    stays: bool = True

    def require_usable(self) -> None:
        """Do nothing: this process is there."""

    def read(self, name: str) -> Frame:
        found: Frame = as_given(self.arrow(name), self.like)
        return found

    def arrow(self, name: str) -> pa.Table:
        place = f"{self.path}/{DATA}" if name == DATA else f"{self.path}/metrics/{name}"
        data_format = self.manifest.data_format if name == DATA else "parquet"
        return self.engine.published(place, data_format).collect()

    def as_arrow(self, table: Frame) -> pa.Table:
        return as_arrow(table)

    def prove(self, original: Frame | None, population: Frame | None) -> Verification:
        matched = original is not None or population is not None
        claim = claim_of_manifest(self.engine, self.path, self.manifest, matched=matched)
        found = audit_table(
            self.engine.published(f"{self.path}/{DATA}", self.manifest.data_format),
            claim,
            original=_optional(self.engine, original),
            population=_optional(self.engine, population),
            name=self.path,
        )
        return own(Verification, found)

    def report(self, original: Frame | None, path: str | None) -> Page:
        return made_report(self.engine, self.path, _optional(self.engine, original), path)

    def class_sizes(self) -> Mapping[int, int]:
        counted = self.arrow("classes").group_by("size").aggregate([([], "count_all")])
        sizes = counted.column("size").to_pylist()
        return dict(zip(sizes, counted.column("count_all").to_pylist(), strict=True))

    def close(self) -> None:
        self.engine.files.delete(self.path)
        if self.temporary is not None:
            shutil.rmtree(self.temporary, ignore_errors=True)


def _open(
    engine: LocalEngine, path: str, temporary: str | None, like: Frame, made: Released
) -> Release[Frame]:
    manifest = read_manifest(engine.files, path)
    source = _Source(engine, path, manifest, temporary, like)
    return Release(path, manifest.document, figures_of(made), source)


def distribute(
    table: Frame,
    plan: Mapping[str, Any],
    staging: str | None,
    run_id: str | None,
    progress: Progress,
) -> Distribution[Frame]:
    """Carry a plan out. See :func:`anonspark.api.distribute`."""
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
        given = with_texts_of_identifiers(given, parsed.base.identifiers)
        made = carry_out(engine, parsed, run_id=run_id, table=given, progress=progress)
        releases = {
            name: _open(engine, one.path, None, table, one) for name, one in made.releases.items()
        }
        told = pa.Table.from_pylist(made.coalitions, schema=COALITIONS)
        coalitions: Frame = as_given(told, table)
        return Distribution(releases, coalitions, made.other_strategy, told, close)
    except BaseException:
        close()
        raise


def _require_engine(configuration: Configuration) -> None:
    if configuration.execution.engine == "spark":
        raise ConfigurationError(
            "execution.engine: found spark, but the given table is none of Spark's. Give "
            "spark.createDataFrame(table), or leave the key out"
        )


def select(table: Frame, config: Mapping[str, Any], run_id: str | None) -> Selection:
    """Choose attributes in private. See :func:`anonspark.api.select`."""
    engine = LocalEngine()
    settings = parse_selection(given_input(config), read=engine.files.read_document)
    found = choose_attributes(
        engine, settings, run_id=run_id, table=_table(engine, with_texts(table))
    )
    return own(Selection, found)


def verify(
    table: Frame,
    config: Mapping[str, Any] | Configuration | None,
    roles: Roles | None,
    *,
    original: Frame | None,
    population: Frame | None,
) -> Verification:
    """Measure what a table keeps of a promise. See :func:`anonspark.api.verify`."""
    engine = LocalEngine()
    given = _table(engine, table)
    matched = original is not None or population is not None
    claim = claim_of(engine, config, roles, given.schema, matched=matched)
    found = audit_table(
        *leave_out_suppressed(given, claim, roles),
        original=_optional(engine, original),
        population=_optional(engine, population),
    )
    return own(Verification, found)


def union(paths: Sequence[str], out: str, holder_column: str | None, seed: int | None) -> Union:
    """Publish releases as one. See :func:`anonspark.api.union`."""
    made = unite(LocalEngine(), paths, out, holder_column=holder_column, seed=seed)
    return own(Union, made)


@contextmanager
def working(*tables: Any) -> Iterator[tuple[LocalEngine, list[Table | None]]]:
    """Work with tables, None among them.

    Yields
    ------
    engine : Engine
    tables : list of (Table or None)
        As the engine has them.
    """
    engine = LocalEngine()
    yield engine, [_optional(engine, one) for one in tables]


def working_place(_: LocalEngine, staging: str | None) -> tuple[str, str | None]:
    """Return where to work, and the temporary directory that this is, or None."""
    return _staging(staging)


def _optional(engine: LocalEngine, table: Frame | None) -> Table | None:
    return None if table is None else _table(engine, table)


def _table(engine: LocalEngine, table: Any) -> Table:
    return engine.wrap(as_arrow(table))
