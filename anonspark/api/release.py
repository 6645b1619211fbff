"""The release of a table in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Generic

import numpy as np
import pyarrow as pa

from anonspark.api.adapters import Adapter
from anonspark.api.arguments import configuration_for_table, named_as_arguments, suggesting
from anonspark.api.display import (
    Closing,
    Page,
    Picture,
    Shown,
    loss_chart,
    picture,
    risk_chart,
    sizes_chart,
)
from anonspark.api.results import Verification, as_result
from anonspark.api.tables import GIVEN, Frame, as_arrow, as_polars
from anonspark.config import Configuration
from anonspark.config.models import model_in_words
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError
from anonspark.labels.regions import distinct_rows, published_attributes
from anonspark.pipeline.context import Release as Released
from anonspark.presentation.card import Card
from anonspark.presentation.release import release_card
from anonspark.reading.frames import as_pandas
from anonspark.release.manifest import read_manifest
from anonspark.release.originals import open_original
from anonspark.reporting.build_report import make_report, report_path, write_report
from anonspark.verification.audit import audit_table
from anonspark.verification.claims.claim import Claim, claim_of_configuration, claim_of_manifest
from anonspark.verification.claims.roles import Roles, claim_of_roles


def report_page(
    engine: Engine,
    release: str,
    original: Table | str | None,
    path: str | None,
    *,
    target: str | None = None,
    holdout: Table | str | None = None,
) -> Page:
    """Make the report of a release, and write it if there is a path for it.

    Tables and paths as of :func:`anonspark.reporting.build_report.make_report`.
    """
    files = engine.files
    with named_as_arguments({"--out": "path"}):
        page = None if path is None else report_path(files, release, os.fspath(path))
        source = original if isinstance(original, str) else None
        if isinstance(original, str):
            original = open_original(engine, original, read_manifest(files, release))
        html, _ = make_report(engine, release, original, source, target=target, holdout=holdout)
        if page is not None:
            write_report(files, release, page, html)
    return Page(html, page)


def claim_of(
    engine: Engine,
    config: Mapping[str, Any] | Configuration | None,
    roles: Roles | None,
    schema: pa.Schema,
    *,
    matched: bool,
) -> Claim:
    """Return the promise that a table with these columns has to keep."""
    if roles is not None or config is None:
        return claim_of_roles(roles or Roles(), schema)
    read = engine.files.read_document
    configuration = configuration_for_table(config, GIVEN, read, needs_seed=False)
    return claim_of_configuration(engine, configuration, schema.names, None, matched=matched)


DATA = "data"

METRICS = ("classes", "rounds", "summary", "attributes", "privacy", "risk")
"""Tables of a release beside its records."""

Row = Mapping[str, Any]


class Release(Shown, Closing, Generic[Frame]):
    """An anonymized table with its metrics, over private files.

    Its tables are of the kind that you passed: lazy DataFrames of Spark, or tables of pandas,
    polars or Arrow, which are read from the files once. It is a context manager. Its end, or
    :meth:`close`, removes the files. The end of Python removes those in a temporary directory of
    this machine. Save what you need before, as with ``shutil.copytree(release.path, "kept")``.

    Parameters
    ----------
    figures : Release
        What the run reported: the path, and the rows of the metrics tables.
    adapter : Adapter
        Reads the files.
    remove : callable
        Removes them.

    Attributes
    ----------
    path : str
    records : int
        Number of the published records.
    manifest : dict
    data : DataFrame
        The published records.
    classes, rounds, summary, attributes, privacy, risk : DataFrame
        The metrics tables.
    unpublished : tuple of str
        Columns of the table that are not published.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": [20 + n % 8 for n in range(40)], "visits": [1, 2] * 20})
    >>> release = anonspark.anonymize(
    ...     people, k=5, quasi_identifiers=["age"], insensitive=["visits"]
    ... )
    >>> release.records
    40
    >>> release.plot_loss()
    Loss of each attribute
    attribute  part of the range left open
    age                                 0%
    >>> release.close()
    """

    def __init__(self, figures: Released, adapter: Adapter, remove: Callable[[], None]) -> None:
        self.path = figures.path
        self.figures = figures
        self.records = int(figures.summary["rows_published"])
        self.unpublished = tuple(figures.unpublished)
        self._adapter = adapter
        self._remove = remove
        self._manifest = read_manifest(adapter.engine.files, self.path)
        self.manifest = self._manifest.document
        self._closed = False
        self._sizes: Mapping[int, int] | None = None
        # Tables in memory are read now and outlive the files. With Spark each would cost a job.
        at_once = () if adapter.is_lazy else (DATA, *METRICS)
        self._tables = {name: adapter.read(*self._file(name)) for name in at_once}

    def _file(self, name: str) -> tuple[str, str]:
        """Return path and format of a table."""
        if name == DATA:
            return f"{self.path}/{DATA}", self._manifest.data_format
        return f"{self.path}/metrics/{name}", "parquet"

    def _table(self, name: str) -> Frame:
        if self._adapter.is_lazy:
            self.require_open()
        if name not in self._tables:
            self._tables[name] = self._adapter.read(*self._file(name))
        frame: Frame = self._tables[name]
        return frame

    def require_open(self) -> None:
        """Raise an error if the release was closed, or the session of Spark has ended."""
        if self._closed:
            raise ConfigurationError(
                "release: it was closed, which removed its files. Ask before .close() or inside of "
                "the 'with' block, and keep what you need later, as with .to_pandas()"
            )
        self._adapter.require_usable()

    @property
    def data(self) -> Frame:
        """The published records."""
        return self._table(DATA)

    @property
    def classes(self) -> Frame:
        """One row for each class."""
        return self._table("classes")

    @property
    def rounds(self) -> Frame:
        """One row for each round."""
        return self._table("rounds")

    @property
    def summary(self) -> Frame:
        """One row with the figures of the whole release."""
        return self._table("summary")

    @property
    def attributes(self) -> Frame:
        """One row for each quasi-identifier."""
        return self._table("attributes")

    @property
    def privacy(self) -> Frame:
        """One row for each criterion."""
        return self._table("privacy")

    @property
    def risk(self) -> Frame:
        """One row for each attacker, in each round and for the whole release."""
        return self._table("risk")

    @suggesting
    def head(self, n: int = 5) -> Frame:
        """Return a record of each of ``n`` classes, read in the memory of this process.

        The first records of :attr:`data` are of one class, and so look alike.
        """
        records, attributes = self.to_arrow(), published_attributes(self._manifest)
        labels = [records.column(name) for attribute in attributes for name in attribute.columns]
        firsts = np.unique(distinct_rows(labels)[1], return_index=True)[1]
        shown: Frame = self._adapter.convert(records.take(np.sort(firsts)[: max(n, 0)]))
        return shown

    def to_arrow(self) -> pa.Table:
        """Return the published records as a table of Arrow, in the memory of this process."""
        if self._closed and not self._adapter.is_lazy:
            return as_arrow(self._tables[DATA])
        self.require_open()
        return self._adapter.collect(*self._file(DATA))

    def to_pandas(self) -> Any:
        """Return the published records as a DataFrame of pandas, in the memory of this process."""
        return as_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return the published records as a DataFrame of polars, in the memory of this process.

        Raises
        ------
        EnvironmentProblem
            If polars is not installed.
        """
        return as_polars(self.to_arrow())

    @suggesting
    def verify(
        self, *, original: Frame | None = None, population: Frame | None = None
    ) -> Verification:
        """Verify the files of the release, as :func:`anonspark.verify` does.

        Parameters
        ----------
        original : DataFrame or None
            The table that was anonymized, to check truth and to attack by linkage.
        population : DataFrame or None
            A table that an attacker may have, to attack by linkage and for the journalist's risk.
        """
        self.require_open()
        matched = original is not None or population is not None
        engine = self._adapter.engine
        with self._adapter.tables(original, population) as (source, attackers):
            claim = claim_of_manifest(engine, self.path, self._manifest, matched=matched)
            published = engine.published(*self._file(DATA))
            result = audit_table(
                published, claim, original=source, population=attackers, name=self.path
            )
        return as_result(Verification, result)

    @suggesting
    def report(self, path: str | None = None, *, original: Frame | None = None) -> Page:
        """Write the report, one HTML page, as :func:`anonspark.report` does.

        Parameters
        ----------
        path : str or None
            File to write. None writes nothing.
        original : DataFrame or None
            The table that was anonymized. Also shows before and after.
        """
        self.require_open()
        with self._adapter.tables(original) as (source,):
            return report_page(self._adapter.engine, self.path, source, path)

    def plot_loss(self) -> Picture | None:
        """Draw the loss of each quasi-identifier, or return None without such figures."""
        return picture(loss_chart(self.figures.attributes))

    def plot_sizes(self) -> Picture | None:
        """Draw how large the classes are. Costs one job on Spark."""
        return picture(sizes_chart(self._class_sizes(), self._k))

    def plot_risk(self) -> Picture | None:
        """Draw the risk of re-identification, or return None without such figures."""
        return picture(risk_chart(self._final_risk()))

    @property
    def _k(self) -> int:
        return int(self.figures.summary["k"])

    def _final_risk(self) -> list[Row]:
        return [row for row in self.figures.risk if row.get("round") is None]

    def _class_sizes(self) -> Mapping[int, int]:
        if self._sizes is None:
            self.require_open()
            with self._adapter.tables():
                classes = self._adapter.engine.published(*self._file("classes"))
                counted = classes.select(["size"]).aggregate(["size"], count="classes").collect()
            rows = counted.to_pylist()
            self._sizes = {row["size"]: row["classes"] for row in rows}
        return self._sizes

    def _card(self) -> Card:
        model = model_in_words(str(self.figures.summary.get("model")))
        if "chosen_model" in self.manifest:
            model += f": {model_in_words(self.manifest['chosen_model']['model']['name'])}"
        more = [("model", model), ("fingerprint", self._manifest.fingerprint)]
        notes = notes_of(self.manifest)
        return release_card("Release", self.figures, more, notes, self._charts)

    def _charts(self) -> list[Any]:
        usable = not self._closed or self._sizes is not None
        drawn = [
            loss_chart(self.figures.attributes),
            sizes_chart(self._class_sizes(), self._k) if usable else risk_chart(self._final_risk()),
        ]
        return [chart for chart in drawn if chart is not None]

    def close(self) -> None:
        """Remove the files. Lazy DataFrames cannot be read after that."""
        self._closed = True
        self._remove()


def notes_of(manifest: Mapping[str, Any]) -> list[str]:
    """Return the warnings of a manifest, each with its attribute.

    >>> notes_of({"warnings": [{"attribute": "age", "text": "has rare values"}]})
    ['age: has rare values']
    """
    return [
        f"{warning['attribute']}: {warning['text']}"
        if warning.get("attribute")
        else str(warning["text"])
        for warning in manifest.get("warnings", [])
    ]


def directory_of(release: object) -> str:
    """Return the directory of a release, or refuse one that was closed, and other objects."""
    if isinstance(release, Release):
        release.require_open()
        return release.path
    if isinstance(release, (str, os.PathLike)):
        return os.fspath(release)
    raise ConfigurationError(
        f"release: found an object of the type {type(release).__name__}. Expected what "
        "anonspark.anonymize returned, or the directory of a release"
    )
