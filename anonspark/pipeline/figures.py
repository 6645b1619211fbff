"""The figures of a run: the rows of the tables of metrics, from what may be published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from anonspark._version import __version__
from anonspark.config import Configuration
from anonspark.core.figures import ATTRIBUTES, ENDS, ROUNDS, SUMMARY, without_losses
from anonspark.core.labels import levels_text
from anonspark.layers.evaluate.metrics import weight_of
from anonspark.layers.evaluate.small_counts import published_counts, published_missing
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.models.model import Model
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.publishable_data import Basis
from anonspark.redaction import Redacted
from anonspark.release.derived_figures import Row, Totals, privacy_rows, risk_rows
from anonspark.release.risk import Floats, Sizes
from anonspark.verification.attacks.presence import Presence
from anonspark.verification.proof.classes import PublishedClasses
from anonspark.verification.proof.criteria import MeasuredCriterion
from anonspark.verification.proof.unit_criteria import MeasuredUnits

if TYPE_CHECKING:
    from anonspark.utility.association import Association
    from anonspark.verification.attacks.ends import Ends
    from anonspark.verification.proof.information import Information


def decide_gain(before: tuple[int, int, int], after: tuple[int, int, int]) -> Row:
    """Decide whether rounds after the first one paid (Vural 2017, 3-1 to 3-3), 1 if a rule holds.

    Each argument holds the classes, the records without a class, and the records of the smallest
    class. Utility: there are not fewer classes and not more records without one. Risk: the highest
    risk did not rise; the thesis prints that rule the other way round. The gain is both.

    >>> decide_gain((40, 12, 5), (55, 3, 5))
    {'rule_gain_utility': 1, 'rule_gain_risk': 1, 'rule_gain': 1}
    """
    (classes, outliers, smallest), (classes_after, outliers_after, smallest_after) = before, after
    utility = int(classes <= classes_after and outliers >= outliers_after)
    risk = int(smallest_after >= smallest)
    return {"rule_gain_utility": utility, "rule_gain_risk": risk, "rule_gain": utility * risk}


@dataclass(frozen=True)
class Measured:
    """The measures of the files of the staged release.

    Parameters
    ----------
    published : PublishedClasses
    criteria : sequence of MeasuredCriterion
        Measures that may be published.
    presence : Presence or None
        None without delta-presence.
    information : Information or None
        None if the configuration does not ask for it.
    association : Association or None
        None if the configuration names no target.
    ends : Ends or None
        None without a gate on them.
    units : MeasuredUnits or None
        The people whom the records of classes are about, or None if records are counted.
    of_people : bool
        Whether the criteria beyond k count people.
    weights : tuple of int64 and float64 ndarray, or None
        Records and sampling weights of each class, or None if the configuration names no weights.
    """

    published: PublishedClasses
    criteria: Sequence[MeasuredCriterion]
    presence: Presence | None = None
    information: Information | None = None
    association: Association | None = None
    ends: Ends | None = None
    units: MeasuredUnits | None = None
    of_people: bool = False
    weights: tuple[Sizes, Floats] | None = None


@dataclass(frozen=True, repr=False)
class Figures(Redacted):
    """The rows of the tables of metrics.

    Parameters
    ----------
    summary : dict
        The only row of its table. ``seconds`` is added when it is written.
    rounds, attributes, privacy, risk, nodes : list of dict
    counted : dict
        Exact counts that the tables may withhold, by the names that gates have for them: for the
        gates alone, never written.
    units : mapping of int to int or None
        Classes of each number of people, or None if records are counted.
    of_people : list of float or None
        Figures of the criteria that count people, in the order of the configuration, or None if
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
        """Drop the losses of a release of means: its hidden bounds would follow from them."""
        return replace(
            self,
            summary=without_losses(SUMMARY, self.summary),
            rounds=[without_losses(ROUNDS, row) for row in self.rounds],
            attributes=[without_losses(ATTRIBUTES, row) for row in self.attributes],
        )


def _measured_figures(
    configuration: Configuration, snapshot: Snapshot, basis: Basis, measured: Measured
) -> Row:
    """Return those figures of the summary that do not come from the rounds, if measured."""
    published = len(configuration.quasi_identifiers) + len(configuration.published_as_is)
    unpublished = snapshot.unpublished
    figures: Row = {
        "columns_in": None if unpublished is None else published + len(unpublished),
        "columns_published": published,
    }
    if snapshot.units is not None and measured.units is not None:
        figures |= {"smallest_units": measured.units.fewest, "alone": measured.units.alone}
        # Nothing may be published of records left out, nor whether a person has no others.
        figures["units"] = None if basis.left_out else snapshot.units.number
    if measured.information is not None:
        figures["entropy"] = sum(measured.information.entropy)
        figures["kl_divergence"] = measured.information.divergence
    if measured.ends is not None and measured.ends.ends:
        figures[ENDS] = measured.ends.by_strip / measured.ends.ends
    if measured.association is not None:
        figures["association_loss"] = measured.association.loss
    return figures


def _node_rows(basis: Basis, summary: Row) -> list[Row]:
    """Return the rows of the nodes of a lattice, none without one."""
    if all(result.levels is None for result in basis.rounds.results):
        return []
    # Late: it imports the lattice, which few models search.
    from anonspark.layers.evaluate.metrics import node_rows

    return node_rows(
        basis.rounds.classes,
        basis.rounds.results,
        basis.quasi_identifiers,
        summary["classes"],
        shows_counts=summary["rows_left_out"] is not None,
    )


def make_figures(
    context: RunContext, model: Model, snapshot: Snapshot, basis: Basis, measured: Measured
) -> Figures:
    """Compute the figures of a run from what may be published.

    For a release with one recoding a round it takes the job of `node_rows`, otherwise none.
    """
    configuration, request = context.configuration, context.request
    counts = {
        "rows_in": snapshot.rows_read,
        "rows_dropped_missing": snapshot.rows_dropped,
        "rows_suppressed": basis.without_class,
        "rows_left_out": basis.left_out,
    }
    summary = _summary(configuration, model, snapshot, basis, measured.published) | {
        **published_counts(counts, configuration.privacy.k),
        "run_id": context.run_id,
        "started": context.started,
        **_measured_figures(configuration, snapshot, basis, measured),
    }
    if request is not None:
        summary |= request.figures(configuration.privacy.k)
    run = {"run_id": context.run_id}
    attributes = _attribute_rows(configuration, basis, snapshot.rows_dropped, measured)
    if request is not None and request.has_ledger and configuration.missing == "drop":
        # The next release may drop other records of the same people, however many those are.
        summary |= {"rows_in": None, "rows_dropped_missing": None}
        attributes = [row | {"missing_rows": None} for row in attributes]
    presence = measured.presence
    units = None if measured.units is None else measured.units.classes
    risk = risk_rows(
        configuration.evaluate.risk,
        _rounds(basis),
        measured.published.sizes,
        units,
        None if presence is None else (presence.counts.released, presence.counts.population),
        measured.weights,
    )
    privacy = privacy_rows(
        configuration.privacy,
        measured.published.smallest,
        units,
        {case.criterion: case.measured for case in measured.criteria},
        None if presence is None else (presence.smallest, presence.largest),
    )
    return Figures(
        summary,
        rounds=[row | run for row in _round_rows(basis)],
        attributes=[row | run for row in attributes],
        privacy=[row | run for row in privacy],
        risk=[row | run for row in risk],
        nodes=[row | run for row in _node_rows(basis, summary)],
        counted=counts | _missing_by_gate(basis),
        units=units,
        of_people=[case.measured for case in measured.criteria] if measured.of_people else None,
    )


def _summary(
    configuration: Configuration,
    model: Model,
    snapshot: Snapshot,
    basis: Basis,
    published: PublishedClasses,
) -> Row:
    """Return the figures of the summary that follow from the classes of all rounds."""
    k, weights, suppressed = configuration.privacy.k, _weights(basis), _suppressed(basis)
    total = reduce(add, basis.totals)
    return {
        "model": configuration.model.name,
        "k": k,
        "rho": model.rounds,
        "rows_published": published.rows,
        "published_classes": published.classes,
        "published_min_class_size": published.smallest,
        "rounds": len(basis.totals),
        **(figures := total.figures(suppressed, weights, k)),
        **(_gains(basis, total, suppressed) if model.rounds > 1 else {}),
        **_rules(configuration, model, basis, figures),
        "configuration_fingerprint": configuration.fingerprint(),
        "input_fingerprint": snapshot.fingerprint,
        "output_fingerprint": published.fingerprint,
        "version": __version__,
    }


def _gains(basis: Basis, total: Totals, suppressed: int) -> Row:
    """Compare the first round with all of them."""
    first, rows = basis.totals[0], total.rows + suppressed
    return decide_gain(
        (first.classes, rows - first.rows, min(first.sizes)),
        (total.classes, suppressed, min(total.sizes)),
    )


def _rules(configuration: Configuration, model: Model, basis: Basis, figures: Row) -> Row:
    """Compare the release with the one that would result without outlier handling.

    A rule is 1 if its figure is smaller with outlier handling. See docs/algorithms.md, Decision
    rules.
    """
    # A first round without some of its classes is no baseline.
    compared = model.rounds > 1 or configuration.evaluate.compare_baseline
    if model.suppression_limit or not compared:
        return {}
    baseline = _without_outlier_handling(model, basis)
    rules = {"rule_a": "dm", "rule_b": "mean_class_size", "rule_c": "gcp_total"}
    return {
        **{f"baseline_{name}": value for name, value in baseline.items()},
        **{rule: int(figures[name] < baseline[name]) for rule, name in rules.items()},
    }


def _suppressed(basis: Basis) -> int:
    """Count the records without a class that figures are about."""
    return basis.rounds.residual.rows if basis.rounds.residual else 0


def _weights(basis: Basis) -> list[Decimal]:
    return list(map(weight_of, basis.quasi_identifiers))


def _without_outlier_handling(model: Model, basis: Basis) -> Row:
    """Return the figures of the same model without outlier handling: one round, all kept."""
    result, first = basis.rounds.results[0], basis.totals[0]
    if not model.leaves_residual and len(basis.totals) > 1:
        return {
            "classes": first.classes,
            "dm": result.squares_if_whole,
            "gcp_total": float(result.penalty_if_last),
            "mean_class_size": result.rows / first.classes,
        }
    # Records left over are suppressed, if there are any.
    figures = first.figures(result.left_over, _weights(basis), basis.criteria.k)
    return {name: figures[name] for name in ("classes", "dm", "gcp_total", "mean_class_size")}


def _rounds(basis: Basis) -> dict[int, Totals]:
    """Return the sums of each round, by its number."""
    pairs = zip(basis.rounds.results, basis.totals, strict=True)
    return {round_.number: total for round_, total in pairs}


def _round_rows(basis: Basis) -> Iterator[Row]:
    """Yield the rows of the table ``rounds``. See docs/output.md."""
    rows, sums = basis.rounds.results[0].rows, basis.totals[0]
    for index, (result, total) in enumerate(zip(basis.rounds.results, basis.totals, strict=True)):
        sums = sums + total if index else total
        left_over, levels = rows - total.rows, result.levels
        means = total.means(0, _weights(basis))
        yield {
            "round": result.number,
            "rows": rows,
            "normal_rows": total.rows,
            "outlier_rows": left_over,
            "classes": total.classes,
            "classes_total": sums.classes,
            "dm": total.squares,
            "dm_total": sums.squares,
            "gcp_total": float(total.penalty),
            "gcp_total_cumulative": float(sums.penalty),
            "gcp_total_if_last": float(result.penalty_if_last),
            "mean_class_size": total.rows / total.classes,
            "mean_class_size_with_outliers": rows / (total.classes + (left_over > 0)),
            "precision": means["precision"],
            "loss": means["loss"],
            "height": None if levels is None else sum(levels.values()),
            "levels": None if levels is None else levels_text(levels),
        }
        rows = left_over


def _attribute_rows(
    configuration: Configuration, basis: Basis, dropped: int, measured: Measured
) -> list[Row]:
    """Describe what each attribute lost, as a row of ``attributes``. See docs/output.md."""
    total, suppressed = reduce(add, basis.totals), _suppressed(basis)
    information = measured.information
    association = {} if measured.association is None else measured.association.by_name
    counted = dropped if configuration.missing == "drop" else None
    missing = published_missing(basis.missing, counted, configuration.privacy.k)
    rows: list[Row] = []
    for index, quasi_identifier in enumerate(basis.quasi_identifiers):
        lost = total.losses[index].with_suppressed(suppressed)
        rows.append(
            {
                "position": index + 1,
                "attribute": quasi_identifier.name,
                "kind": quasi_identifier.kind,
                "weight": quasi_identifier.weight,
                "missing_rows": missing[index],
                "generalized_rows": lost.generalized,
                "generalized_share": lost.generalized / basis.rows,
                "ncp_total": float(lost.penalty),
                "ncp": float(lost.penalty) / basis.rows,
                "iloss": float(lost.iloss) / basis.rows,
                "loss": float(lost.loss) / basis.rows,
                "precision": 1.0 - float(lost.lifted) / basis.rows,
                "height": quasi_identifier.height,
                "entropy": None if information is None else information.entropy[index],
            }
        )
        if quasi_identifier.name in association:
            shares = association[quasi_identifier.name]
            rows[-1] |= {"association_before": shares.before, "association_after": shares.after}
    return rows


def _missing_by_gate(basis: Basis) -> dict[str, int]:
    """Return the missing values of quasi-identifiers by the names that gates have for them."""
    pairs = zip(basis.quasi_identifiers, basis.missing, strict=True)
    return {f"attributes.{item.name}.missing_rows": missing for item, missing in pairs}
