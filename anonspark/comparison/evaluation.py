"""What cells are worth to who works with their releases: the section ``evaluation`` of a grid."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from typing import Any, Self

from pydantic import Field, model_validator

from anonspark.config import Configuration
from anonspark.config.input import SourceOptions, take_format_of_names
from anonspark.config.section import NonEmptyText, Section
from anonspark.core.figures import Figure, Need
from anonspark.core.fingerprints import table_fingerprint
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.recognition import settled
from anonspark.engine.values.batches import records_of
from anonspark.errors import ConfigurationError, DataError
from anonspark.release.originals import open_named
from anonspark.utility.evaluation import ReleaseEvaluator

QUERY_FIGURES = (
    Figure("median_query_error", "double", "median relative error of counts", better="smaller"),
    Figure("mean_query_error", "double", "mean relative error of counts", better="smaller"),
)
"""Figures of a cell whose release answered queries."""

MODEL_LOSS = Figure("model_loss", "double", "loss of the best model", better="smaller")

FIGURES = (
    *QUERY_FIGURES,
    MODEL_LOSS,
    Figure("model_loss_error", "double", "standard error of model_loss"),
    Figure("accuracy_majority", "double", "accuracy of the most frequent class alone"),
)
"""Figures of a cell whose release was evaluated. Those of each learner follow them."""

EVALUATED: frozenset[Need] = frozenset({"association"})
"""What an evaluation measures of that which figures of the summary need."""

_SCORES = ("accuracy", "precision", "recall", "f1", "f1_macro", "roc_auc")

# Where what `evaluate` calls so is named in a grid.
_KEYS = {
    "--original": "input.path",
    "--holdout": "evaluation.holdout.path",
    "--target": "evaluation.target",
}

_HASH = "record_hash"


class Holdout(Section):
    """Records like those of the input that are not anonymized."""

    path: NonEmptyText
    """Where held-out records lie. Any Hadoop URI."""

    format: NonEmptyText = "parquet"
    """Name of the data source. Default: derived from the path."""

    options: SourceOptions = Field(default={})
    """Options of the data source."""

    @model_validator(mode="after")
    def _take_format_of_name(self) -> Self:
        take_format_of_names(self, [self.path])
        return self


class EvaluationOptions(Section):
    """What is measured of the release of every cell."""

    target: NonEmptyText
    """A category that is published as it is."""

    holdout: Holdout
    """Records that models are tested on."""

    queries: bool = True
    """Whether counts are compared, too."""


def evaluation_problems(
    options: EvaluationOptions | None, rank_by: str, configurations: Sequence[Configuration]
) -> list[str]:
    """Explain why the cells, or the figure that ranks them, do not allow an evaluation."""
    names = [figure.name for figure in FIGURES]
    if options is None:
        if rank_by in names:
            return [
                f"rank_by: {rank_by} is measured where the grid has the section 'evaluation'. Add "
                "it, or rank by another figure"
            ]
        return []
    problems = []
    if not options.queries and rank_by in [figure.name for figure in QUERY_FIGURES]:
        problems.append(
            f"rank_by: {rank_by} is measured where evaluation.queries is true. Set it to true, or "
            "rank by another figure"
        )
    for configuration in configurations[:1]:
        attribute = configuration.attributes.get(options.target)
        as_is = ", ".join(map(repr, configuration.published_as_is)) or "the base has none"
        if options.target not in configuration.published_as_is:
            role = "no attribute" if attribute is None else f"a {attribute.role}"
            problems.append(
                f"evaluation.target: {options.target!r} is {role} of the base, so it is not "
                f"published as it is. Expected a sensitive or insensitive attribute: {as_is}"
            )
        association = configuration.evaluate.association
        if association is not None and association.target != options.target:
            problems.append(
                f"evaluation.target: found {options.target!r}, but evaluate.association.target of "
                f"the base is {association.target!r}, and there is one association_loss. Expected "
                "the same. Correct one, or remove evaluate.association"
            )
    return problems


class CellEvaluation:
    """Evaluates the releases of a comparison, with the configuration of any cell."""

    def __init__(
        self, engine: Engine, options: EvaluationOptions, configuration: Configuration
    ) -> None:
        """Open the held-out records, with the attributes and markers of the configuration.

        Raises DataError or ConfigurationError if they cannot be opened: before any cell runs.
        """
        self._engine = engine
        self._options = options
        self._configuration = settled(engine.files, configuration)
        self._input = self._configuration.input
        self._markers = tuple(configuration.input.missing_markers)
        attributes = configuration.attributes.items()
        # Identifiers are not published, and held-out records need have none.
        self._columns = [name for name, attribute in attributes if attribute.role != "identifier"]
        self._wanted = WantedColumns(
            dict.fromkeys(self._columns, True),
            configuration.input.missing_columns,
            markers=self._markers,
        )
        self._holdout = self._open_holdout()

    def fingerprint(self, of_input: str) -> str:
        """Identify an evaluation by its prepared input, held-out records and options.

        One pass over the held-out records. Raises DataError if columns are missing or unreadable.
        """
        absent = [name for name in self._columns if name not in self._holdout.schema.names]
        if absent:
            raise DataError(
                *(
                    f"evaluation.holdout.path: lacks the column {name!r}, which is an attribute of "
                    f"the base. Found {', '.join(map(repr, self._holdout.schema.names))}"
                    for name in absent
                )
            )
        with self._reading():
            hashed = self._holdout.select(self._columns).with_hashes({_HASH: self._columns})
            (totals,) = hashed.aggregate([], count="rows", hashes=_HASH).collect().to_pylist() or [
                {}
            ]
        of_holdout = table_fingerprint(
            totals.get("rows") or 0,
            int(totals.get(f"{_HASH}_sum") or 0),
            totals.get(f"{_HASH}_xor") or 0,
        )
        content = json.dumps([of_input, of_holdout, self._options.target, self._options.queries])
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    def open(self) -> ReleaseEvaluator:
        """Open the input beside its releases. The caller closes it."""
        with self._reading(), _named_as_in_a_grid():
            original = self._engine.open_source(self._configuration)
            original = records_of(original, self._configuration.columns_of_records, self._markers)
            return ReleaseEvaluator(
                self._engine, original, self._holdout, self._options.target, self._markers
            )

    def measure(self, evaluator: ReleaseEvaluator, release: str) -> dict[str, Any]:
        """Measure a release, as ``anonspark evaluate --json`` prints it.

        The keys are ``workload`` (None without queries), ``association`` and ``learning``.
        """
        with self._reading(release), _named_as_in_a_grid():
            return asdict(evaluator.measure(release, queries=self._options.queries))

    def _open_holdout(self) -> Table:
        holdout = self._options.holdout
        options = holdout.options
        if "format" not in holdout.model_fields_set and holdout.format == self._input.format:
            # Records like the input's are in files like its own.
            options = self._input.options | options
        return open_named(
            self._engine,
            holdout.path,
            holdout.format,
            options,
            key="evaluation.holdout.path",
            section="evaluation.holdout",
            columns=self._wanted,
        )

    def _reading(self, *releases: str) -> AbstractContextManager[None]:
        paths = (*self._input.paths, self._options.holdout.path, *releases)
        return self._engine.reading(paths, key="")


@contextmanager
def _named_as_in_a_grid() -> Iterator[None]:
    """Let errors name the keys of a grid, not the options of ``evaluate``."""
    try:
        yield
    except (ConfigurationError, DataError) as error:
        parts = [problem.partition(":") for problem in error.problems]
        problems = [f"{_KEYS.get(head, head)}{colon}{text}" for head, colon, text in parts]
        raise type(error)(*problems) from error


def evaluation_row(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that an evaluation adds to a cell's row, none without a release."""
    if not measured:
        return {}
    workload, learning = measured["workload"] or {}, measured["learning"]
    loss = learning["loss"] or {}
    row = {
        "median_query_error": workload.get("median"),
        "mean_query_error": workload.get("mean"),
        "association_loss": measured["association"]["loss"],
        "model_loss": loss.get("loss"),
        "model_loss_error": loss.get("standard_error"),
        "accuracy_majority": learning["majority"],
    }
    for score in learning["scores"]:
        if score["trained_on"] == "release":
            learner = score["learner"].replace(" ", "_").replace("-", "_")
            row |= {f"{name}_{learner}": score[name] for name in _SCORES}
    return row


def evaluation_columns(rows: Sequence[Mapping[str, Any]], others: Sequence[Figure]) -> list[Figure]:
    """Return the columns of rows that evaluations added to others."""
    figures = {figure.name: figure for figure in FIGURES}
    names = dict.fromkeys(name for row in rows for name in row)
    added = [name for name in names if name not in {figure.name for figure in others}]
    return [figures.get(name) or Figure(name, "double") for name in added]


def evaluation_notes(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """List what readers of evaluations have to know, each once."""
    learned = [result["learning"] for result in results if result]
    notes = []
    left_out = max((entry["test_left_out"] for entry in learned), default=0)
    if left_out:
        notes.append(
            f"{left_out:,} held-out records are of a class that the input has not. They were left "
            "out"
        )
    reasons = {entry["without_area"] for entry in learned if entry["loss"] is None} - {None}
    notes += [f"model_loss is not measured: {reason}" for reason in sorted(reasons)]
    return notes
