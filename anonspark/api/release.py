"""The release of a table in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol

import pyarrow as pa

from anonspark.api.pictures import loss_chart, risk_chart, sizes_chart
from anonspark.api.results import Verification
from anonspark.api.shown import Closing, Page, Picture, Shown
from anonspark.api.tables import Frame, as_polars
from anonspark.errors import ConfigurationError
from anonspark.presentation.card import Card
from anonspark.presentation.release import release_card
from anonspark.reading.frames import as_pandas

DATA = "data"

METRICS = ("classes", "rounds", "summary", "attributes", "privacy", "risk")
"""Tables of a release beside its records."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Figures:
    """Figures that a run wrote about a release: rows of its tables of metrics."""

    summary: Row
    attributes: Sequence[Row]
    privacy: Sequence[Row]
    risk: Sequence[Row]
    unpublished: Sequence[str] = ()


class Source(Protocol[Frame]):
    """Where a release is, and how its tables become those of a program."""

    @property
    def stays(self) -> bool:
        """Whether tables that were read are of use when the files are gone."""

    def require_usable(self) -> None:
        """Raise where what reads the files has ended."""

    def read(self, name: str) -> Frame:
        """Return a table, of the kind that was given."""

    def arrow(self, name: str) -> pa.Table:
        """Return a table of Arrow."""

    def as_arrow(self, table: Frame) -> pa.Table:
        """Return a table that was read as one of Arrow."""

    def prove(self, original: Frame | None, population: Frame | None) -> Verification:
        """Verify the files."""

    def report(self, original: Frame | None, path: str | None) -> Page:
        """Make the report."""

    def class_sizes(self) -> Mapping[int, int]:
        """Count the classes of each size."""

    def close(self) -> None:
        """Remove the files."""


class Release(Shown, Closing, Generic[Frame]):
    """An anonymized table with its metrics, over private files.

    Its tables are of the kind that you passed: lazy DataFrames of Spark, or tables of pandas,
    polars or Arrow, which are read from the files once. It is a context manager. Its end, or
    :meth:`close`, removes the files. The end of Python removes those in a temporary directory of
    this machine. Save what you need before.

    Parameters
    ----------
    path : str
        Directory of the files, in the layout of every release.
    manifest : dict
        The content of ``manifest.json``.
    figures : Figures
        The rows of the metrics tables.
    source : Source
        The files of the release.

    Attributes
    ----------
    path : str
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
    >>> release.to_arrow().num_rows
    40
    >>> release.plot_loss()
    Loss of each attribute
    attribute  part of the range left open
    age                                0 %
    >>> release.close()
    """

    def __init__(
        self, path: str, manifest: Mapping[str, Any], figures: Figures, source: Source[Frame]
    ) -> None:
        self.path = path
        self.manifest = manifest
        self.figures = figures
        self.unpublished = tuple(figures.unpublished)
        self._source = source
        self._closed = False
        self._sizes: Mapping[int, int] | None = None
        # Of a kind that is read at once, tables outlive the files; with Spark each costs a job.
        at_once = (DATA, *METRICS) if source.stays else ()
        self._tables = {name: source.read(name) for name in at_once}

    def _table(self, name: str) -> Frame:
        if not self._source.stays:
            self.require_open()
        if name not in self._tables:
            self._tables[name] = self._source.read(name)
        return self._tables[name]

    def require_open(self) -> None:
        """Raise an error if the files are gone, or the session that reads them has ended.

        Raises
        ------
        ConfigurationError
            If it was closed.
        EnvironmentProblem
            If the session of Spark was stopped.
        """
        if self._closed:
            raise ConfigurationError(
                "release: it was closed, which removed its files. Ask before .close() or inside of "
                "the 'with' block, and keep what you need later, as with .to_pandas()"
            )
        self._source.require_usable()

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

    def to_arrow(self) -> pa.Table:
        """Return the published records as a table of Arrow, in the memory of this process."""
        if self._closed and self._source.stays:
            return self._source.as_arrow(self._tables[DATA])
        self.require_open()
        return self._source.arrow(DATA)

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
        return self._source.prove(original, population)

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
        return self._source.report(original, path)

    def plot_loss(self) -> Picture | None:
        """Draw the loss of each quasi-identifier. None without such figures."""
        chart = loss_chart(self.figures.attributes)
        return None if chart is None else Picture(chart)

    def plot_sizes(self) -> Picture | None:
        """Draw how large the classes are. Costs one job on Spark."""
        chart = sizes_chart(self._class_sizes(), self._k)
        return None if chart is None else Picture(chart)

    def plot_risk(self) -> Picture | None:
        """Draw the risk of re-identification. None without such figures."""
        chart = risk_chart(self._final_risk())
        return None if chart is None else Picture(chart)

    @property
    def _k(self) -> int:
        return int(self.figures.summary["k"])

    def _final_risk(self) -> list[Row]:
        return [row for row in self.figures.risk if row.get("round") is None]

    def _class_sizes(self) -> Mapping[int, int]:
        if self._sizes is None:
            self.require_open()
            self._sizes = self._source.class_sizes()
        return self._sizes

    def _card(self) -> Card:
        model = self.figures.summary.get("model")
        if "chosen_model" in self.manifest:
            model = f"{model} ({self.manifest['chosen_model']['model']['name']})"
        more, notes = [("model", str(model))], notes_of(self.manifest)
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
        self._source.close()


def notes_of(manifest: Mapping[str, Any]) -> list[str]:
    """Return what a release should not be used without knowing."""
    return [
        f"{one['attribute']}: {one['text']}" if one.get("attribute") else str(one["text"])
        for one in manifest.get("warnings", [])
    ]
