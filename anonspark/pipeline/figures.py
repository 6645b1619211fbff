"""The figures of a run: the rows of the tables of metrics, made of what may be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import Any

from anonspark._version import __version__
from anonspark.config import Configuration
from anonspark.config.evaluate import RiskOptions
from anonspark.core.criterion import K_UNITS
from anonspark.core.decision_rules import Baseline, decide, decide_gain
from anonspark.core.figures import ATTRIBUTES, ROUNDS, SUMMARY, without_losses
from anonspark.layers.evaluate.metrics import Totals, round_rows
from anonspark.layers.evaluate.nodes import node_rows
from anonspark.layers.evaluate.withholding import told_counts, told_missing
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.models.model import Model
from anonspark.pipeline.basis import Basis
from anonspark.pipeline.context import Request
from anonspark.redaction import Redacted
from anonspark.utility.association import Association
from anonspark.verification.classes import PublishedClasses
from anonspark.verification.criteria import MeasuredCriterion
from anonspark.verification.information import Information
from anonspark.verification.presence import Presence
from anonspark.verification.risk import attacks, attacks_with_population, risk_row

Row = dict[str, Any]
"""A row of a table of metrics: column to figure, text or moment."""


@dataclass(frozen=True)
class Measured:
    """What was measured in the files of the staged release.

    Parameters
    ----------
    published : PublishedClasses
    criteria : sequence of MeasuredCriterion
        As they may be told.
    presence : Presence or None
        None without delta-presence.
    information : Information or None
        None where the configuration does not ask for it.
    association : Association or None
        None where the configuration names no target.
    units : mapping of int to int or None
        Classes of each number of people whom their records are about; None where records count.
    of_people : bool
        Whether the criteria beyond k count people.
    """

    published: PublishedClasses
    criteria: Sequence[MeasuredCriterion]
    presence: Presence | None = None
    information: Information | None = None
    association: Association | None = None
    units: Mapping[int, int] | None = None
    of_people: bool = False


@dataclass(frozen=True, repr=False)
class Figures(Redacted):
    """The rows of the tables of metrics.

    Parameters
    ----------
    summary : dict
        The one row of its table; ``seconds`` is added when it is written.
    rounds, attributes, privacy, risk, nodes : list of dict
    counted : dict
        Counts that the tables may withhold as they are, by the name that gates have for them:
        for the gates alone, never written.
    units : mapping of int to int or None
        Classes of each number of people; None where records count.
    of_people : list of float or None
        Figures of the criteria that count people, in the order of the configuration; None where
        they count records.
    """

    summary: Row
    rounds: list[Row]
    attributes: list[Row]
    privacy: list[Row]
    risk: list[Row]
    nodes: list[Row]
    counted: dict[str, int]
    units: Mapping[int, int] | None = None
    of_people: list[float] | None = None

    def without_losses(self) -> Figures:
        """Return the figures of a release of means, whose bounds its losses would give back."""
        return replace(
            self,
            summary=without_losses(SUMMARY, self.summary),
            rounds=[without_losses(ROUNDS, row) for row in self.rounds],
            attributes=[without_losses(ATTRIBUTES, row) for row in self.attributes],
        )


def make_figures(
    configuration: Configuration,
    model: Model,
    snapshot: Snapshot,
    basis: Basis,
    measured: Measured,
    *,
    run_id: str,
    started: datetime,
    request: Request | None = None,
) -> Figures:
    """Return the figures of a run.

    Parameters
    ----------
    configuration : Configuration
    model : Model
    snapshot : Snapshot
    basis : Basis
        What figures are made of.
    measured : Measured
    run_id : str
    started : datetime
        With a time zone.
    request : Request or None
        Of the recipient, where the release is one of a plan.

    Notes
    -----
    Of a release with one recoding a round, the job of
    :func:`anonspark.layers.evaluate.nodes.node_rows`; of others none.
    """
    dropped = snapshot.rows_dropped
    counts = {
        "rows_in": snapshot.rows_read,
        "rows_dropped_missing": dropped,
        "rows_suppressed": basis.without_class,
        "rows_left_out": basis.left_out,
    }
    summary = _summary(configuration, model, snapshot, basis, measured.published) | {
        **told_counts(counts, configuration.privacy.k),
        "run_id": run_id,
        "started": started,
    }
    published = len(configuration.quasi_identifiers) + len(configuration.published_as_is)
    unpublished = snapshot.unpublished
    summary["columns_in"] = None if unpublished is None else published + len(unpublished)
    summary["columns_published"] = published
    if request is not None:
        summary |= request.figures(configuration.privacy.k)
    if snapshot.units is not None and measured.units is not None:
        summary["smallest_units"] = min(measured.units)
        # Of records left out nothing may be told, nor whether somebody has no others.
        summary["units"] = snapshot.units.number if basis.values_told else None
    if measured.information is not None:
        summary["entropy"] = sum(measured.information.entropy)
        summary["kl_divergence"] = measured.information.divergence
    if measured.association is not None:
        summary["association_loss"] = measured.association.loss
    own = {"run_id": run_id}
    attributes = _attribute_rows(configuration, basis, dropped, measured)
    if request is not None and request.has_ledger and configuration.missing == "drop":
        # The next release may drop other records of the same people, however many those are.
        summary |= {"rows_in": None, "rows_dropped_missing": None}
        attributes = [row | {"missing_rows": None} for row in attributes]
    risk = _risk_rows(configuration.evaluate.risk, basis.totals, measured)
    nodes = node_rows(
        basis.rounds.classes,
        basis.rounds.results,
        basis.quasi_identifiers,
        summary["classes"],
        counts_told=summary["rows_left_out"] is not None,
    )
    return Figures(
        summary,
        rounds=[row | own for row in round_rows(basis.rounds.results, basis.totals)],
        attributes=[row | own for row in attributes],
        privacy=[row | own for row in _privacy_rows(configuration, measured)],
        risk=[row | own for row in risk],
        nodes=[row | own for row in nodes],
        counted=counts | _missing_by_gate(basis),
        units=measured.units,
        of_people=[one.measured for one in measured.criteria] if measured.of_people else None,
    )


def _total(basis: Basis) -> Totals:
    """Return the figures of all rounds and of the records that found no class."""
    residual = basis.rounds.residual
    suppressed = residual.rows if residual else 0
    return replace(reduce(Totals.__add__, basis.totals), suppressed=suppressed)


def _summary(
    configuration: Configuration,
    model: Model,
    snapshot: Snapshot,
    basis: Basis,
    published: PublishedClasses,
) -> Row:
    total = _total(basis)
    k = configuration.privacy.k
    summary: Row = {
        "model": configuration.model.name,
        "k": k,
        "rho": model.rounds,
        "rounds": len(basis.rounds.results),
        "rows_published": published.rows,
        "published_classes": published.classes,
        "published_min_class_size": published.smallest,
        **total.figures(k),
        "configuration_fingerprint": configuration.fingerprint(),
        "input_fingerprint": snapshot.fingerprint,
        "output_fingerprint": published.fingerprint,
        "version": __version__,
    }
    if model.rounds > 1:
        first = basis.totals[0]
        gain = decide_gain(
            (first.classes, basis.rounds.results[0].left_over, first.smallest),
            (total.classes, total.suppressed, total.smallest),
        )
        summary |= {
            "rule_gain_utility": gain.utility,
            "rule_gain_risk": gain.risk,
            "rule_gain": gain.gain,
        }
    if model.rounds > 1 or configuration.evaluate.compare_baseline:
        summary |= _beside_baseline(total, _without_outlier_handling(model, basis))
    return summary


def _without_outlier_handling(model: Model, basis: Basis) -> Baseline:
    """Return the figures of the same model without outlier handling: one round, all kept."""
    result, own = basis.rounds.results[0], basis.totals[0]
    if model.leaves_residual:
        # Its records left over are suppressed.
        own = replace(own, suppressed=result.left_over)
    elif len(basis.totals) > 1:
        penalty = float(result.penalty_if_last)
        return Baseline(own.classes, result.squares_if_whole, penalty, result.rows / own.classes)
    return Baseline(own.classes, own.discernibility, own.certainty_penalty, own.mean_class_size)


def _beside_baseline(total: Totals, baseline: Baseline) -> Row:
    """Return the figures without outlier handling, and whether it paid."""
    rules = decide(
        (total.discernibility, baseline.discernibility),
        (total.mean_class_size, baseline.mean_class_size),
        (total.certainty_penalty, baseline.certainty_penalty),
    )
    return {
        "baseline_classes": baseline.classes,
        "baseline_dm": baseline.discernibility,
        "baseline_gcp_total": baseline.certainty_penalty,
        "baseline_mean_class_size": baseline.mean_class_size,
        "rule_a": rules.a,
        "rule_b": rules.b,
        "rule_c": rules.c,
    }


def _privacy_rows(configuration: Configuration, measured: Measured) -> list[Row]:
    size = {
        "criterion": "k",
        "required": float(configuration.privacy.k),
        "measured": float(measured.published.smallest),
    }
    rows: list[Row] = [size]
    if measured.units is not None:
        rows.append({**size, "criterion": K_UNITS, "measured": float(min(measured.units))})
    rows += [one.row() for one in measured.criteria]
    wanted, presence = configuration.privacy.delta_presence, measured.presence
    if presence is not None and wanted is not None:
        rows += [
            {
                "criterion": "smallest presence",
                "required": wanted.min,
                "measured": presence.smallest,
            },
            {"criterion": "largest presence", "required": wanted.max, "measured": presence.largest},
        ]
    return rows


def _attribute_rows(
    configuration: Configuration, basis: Basis, dropped: int, measured: Measured
) -> list[Row]:
    total = _total(basis)
    information = measured.information
    association = {} if measured.association is None else measured.association.by_name
    counted = dropped if configuration.missing == "drop" else None
    missing = told_missing(basis.missing, counted, configuration.privacy.k)
    rows: list[Row] = []
    for index, quasi_identifier in enumerate(basis.quasi_identifiers):
        own = total.of_attribute(index)
        rows.append(
            {
                "position": index + 1,
                "attribute": quasi_identifier.name,
                "kind": quasi_identifier.kind,
                "weight": quasi_identifier.weight,
                "missing_rows": missing[index],
                "generalized_rows": own.generalized,
                "generalized_share": own.generalized / basis.rows,
                "ncp_total": float(own.penalty),
                "ncp": float(own.penalty) / basis.rows,
                "iloss": float(own.iloss) / basis.rows,
                "loss": float(own.loss) / basis.rows,
                "height": quasi_identifier.height,
                "precision": 1.0 - float(own.lifted) / basis.rows,
                "entropy": None if information is None else information.entropy[index],
            }
        )
        if quasi_identifier.name in association:
            told = association[quasi_identifier.name]
            rows[-1] |= {"association_before": told.before, "association_after": told.after}
    return rows


def _missing_by_gate(basis: Basis) -> dict[str, int]:
    """Return the missing values of quasi-identifiers under the names that gates have for them."""
    pairs = zip(basis.quasi_identifiers, basis.missing, strict=True)
    return {f"attributes.{one.name}.missing_rows": missing for one, missing in pairs}


def _risk_rows(options: RiskOptions, totals: Sequence[Totals], measured: Measured) -> list[Row]:
    """Return the risk of each round's classes, and of the release by published tuple.

    Where people are counted, that of the classes of the release alone.
    """
    rows: list[Row] = []
    if measured.units is not None:
        # Whoever looks for a person finds none of the people of a class among the others.
        found = attacks(measured.units, options.threshold)
        return [{"population": False, **risk_row(attack, options)} for attack in found]
    for number, own in enumerate(totals, start=1):
        found = attacks(own.sizes, options.threshold)
        rows += [{"round": number, **risk_row(attack, options)} for attack in found]
    found = attacks(measured.published.sizes, options.threshold)
    presence = measured.presence
    if presence is not None:
        counts = presence.counts
        found = attacks_with_population(counts.released, counts.population, options.threshold)
    return rows + [
        {"population": presence is not None, **risk_row(attack, options)} for attack in found
    ]
