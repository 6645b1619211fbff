"""Define the basis of a run's figures: everything that may be published, and nothing else.

Nothing may be published about a record that a release leaves out, unless it is one of many. So if
the records left out could not be a class themselves, figures are those of the same release made of
the published records alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa

from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.layers.evaluate.metrics import RoundResult, sum_up, weight_of
from anonspark.layers.evaluate.small_counts import is_few
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.generalize.published import count_published, recode_classes
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.pipeline.rounds import Residual, StagedRounds
from anonspark.release.derived_figures import Totals
from anonspark.staged.records import Records
from anonspark.verification.proof.measures import Uncertainty


@dataclass(frozen=True)
class Withheld:
    """Records left out, as staged, on whose values nothing published may depend.

    ``uncertainty`` says, for the sensitive attributes of distances, what they may change in the
    whole input.
    """

    records: Records
    uncertainty: Mapping[str, Uncertainty]


@dataclass(frozen=True)
class Basis:
    """The basis of figures.

    Parameters
    ----------
    quasi_identifiers : tuple of QuasiIdentifier
        The quasi-identifiers with their publishable values.
    rows : int
        Records that figures are about, published or not.
    missing : tuple of int
        Missing values of each quasi-identifier: those that the snapshot counts or, if values are
        withheld, those of the published records.
    rounds : StagedRounds
    totals : list of Totals
        Sums over the classes of each round.
    criteria : Criteria
        The criteria with the sensitive values that may be published.
    left_out : int
        Records without a class that are not published, whether counted or not.
    withheld : Withheld or None
        None if figures may depend on the values of the records left out.
    """

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    rows: int
    missing: tuple[int, ...]
    rounds: StagedRounds
    totals: list[Totals]
    criteria: Criteria
    left_out: int = 0
    withheld: Withheld | None = None

    @property
    def shows_left_out(self) -> bool:
        """Return whether figures may depend on the values of the records left out."""
        return self.withheld is None

    @property
    def without_class(self) -> int:
        """Number of records without a class, whether published, counted, or neither."""
        residual = self.rounds.residual
        return residual.rows if residual is not None and residual.published else self.left_out

    @property
    def sensitive_values(self) -> dict[str, int]:
        """Number of values of each sensitive attribute of a distance, which verification needs."""
        named = {
            criterion.attribute for criterion in self.criteria.criteria if criterion.is_distance
        }
        counts = {
            item.name: len(item.values) for item in self.criteria.sensitive if item.name in named
        }
        if self.withheld is None:
            return counts
        return counts | {name: item.values for name, item in self.withheld.uncertainty.items()}


def basis_of_figures(snapshot: Snapshot, rounds: StagedRounds, generalizer: Generalizer) -> Basis:
    """Return the data from which the figures of a run may be computed.

    One job that sums classes (:func:`anonspark.layers.evaluate.metrics.sum_up`). If values of
    left-out records are withheld, and hierarchies come from rules or values are missing, it first
    runs the two jobs of :func:`anonspark.layers.generalize.published.count_published`.
    """
    residual = rounds.residual
    left_out = 0 if residual is None or residual.published else residual.rows
    if residual is None or not left_out or residual.may_show_values(snapshot.criteria):
        return Basis(
            snapshot.quasi_identifiers,
            snapshot.rows,
            snapshot.missing,
            rounds,
            sum_up(rounds.classes, snapshot.quasi_identifiers),
            snapshot.criteria,
            left_out,
        )
    quasi_identifiers, missing, rounds = _without_values(snapshot, rounds, residual, generalizer)
    totals = sum_up(rounds.classes, quasi_identifiers)
    # Their number may be published if they are many.
    k = snapshot.criteria.k
    hidden = left_out if is_few(left_out, k) else 0
    criteria = _without_sensitive_values(snapshot.criteria, residual)
    results = _without_records(rounds.results, totals, hidden, quasi_identifiers)
    rounds = replace(rounds, results=results, residual=None if hidden else residual)
    return Basis(
        quasi_identifiers,
        snapshot.rows - hidden,
        missing,
        rounds,
        totals,
        criteria,
        left_out,
        Withheld(
            residual.records,
            _uncertainty(criteria, snapshot.rows - left_out, k - 1 if hidden else left_out),
        ),
    )


def _without_values(
    snapshot: Snapshot, rounds: StagedRounds, residual: Residual, generalizer: Generalizer
) -> tuple[tuple[QuasiIdentifier, ...], tuple[int, ...], StagedRounds]:
    """Derive domains, missing values and rounds from the published records alone."""
    before = snapshot.quasi_identifiers
    if all(item.name in snapshot.hierarchies and not item.has_missing for item in before):
        return before, snapshot.missing, rounds
    values = count_published(
        snapshot.records, residual.records, before, tuple(snapshot.hierarchies)
    )
    missing = tuple(
        published if item.has_missing else number
        for item, published, number in zip(before, values.missing, snapshot.missing, strict=True)
    )
    rounds = replace(
        rounds,
        classes=recode_classes(rounds.classes, generalizer.columns(), values),
    )
    return values.after, missing, rounds


def _without_records(
    results: Sequence[RoundResult],
    totals: Sequence[Totals],
    hidden: int,
    quasi_identifiers: Sequence[QuasiIdentifier],
) -> list[RoundResult]:
    """Subtract hidden records, which every round left over, from the results of rounds."""
    weights = sum(map(weight_of, quasi_identifiers))
    reduced = []
    penalty = Decimal(0)
    for result, total in zip(results, totals, strict=True):
        penalty += total.penalty
        left_over = result.left_over - hidden
        reduced.append(
            replace(
                result,
                rows=result.rows - hidden,
                left_over=left_over,
                penalty=total.penalty,
                penalty_if_last=penalty + left_over * weights,
            )
        )
    return reduced


def _without_sensitive_values(criteria: Criteria, residual: Residual) -> Criteria:
    """Restrict criteria to the sensitive values of the published records."""
    sensitive = []
    for attribute, count in zip(criteria.sensitive, residual.counts, strict=True):
        counts = attribute.counts - count
        # Values that a declared order or a hierarchy lists are known without the data.
        is_counted = (counts > 0) | (attribute.as_text & np.asarray(attribute.values.is_valid()))
        if len(attribute.parents):
            is_counted[:] = True
        values = attribute.values.filter(pa.array(is_counted))
        sensitive.append(replace(attribute, values=values, counts=counts[is_counted]))
    return replace(criteria, sensitive=tuple(sensitive))


def _uncertainty(criteria: Criteria, published: int, most: int) -> dict[str, Uncertainty]:
    """Return the largest effect of up to ``most`` unpublished records on distances."""
    share = most / max(published + most, 1)
    named = {criterion.attribute for criterion in criteria.criteria if criterion.is_distance}
    return {
        item.name: Uncertainty(share, len(item.values) + (1 if item.as_text else most))
        for item in criteria.sensitive
        if item.name in named
    }
