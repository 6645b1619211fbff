"""The sections ``gates``, ``metrics`` and ``evaluate``: bounds on figures, and what is measured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from anonspark.config.problems import Finding, did_you_mean, in_words
from anonspark.config.section import NonEmptyText, Section, reversed_bounds
from anonspark.core.figures import ATTRIBUTES, ENDS, RISK, SUMMARY, Need, results

_PATTERN = r"[0-9]{1,15} ?/ ?[1-9][0-9]{0,14}"


def _divided(value: object) -> object:
    """Return a fraction as the nearest float, as figures are divided, and other values unchanged.

    >>> _divided("1/11") == 1 / 11, _divided(0.2)
    (True, 0.2)
    """
    if not isinstance(value, str) or not re.fullmatch(_PATTERN, value):
        return value
    numerator, denominator = map(int, value.split("/"))
    return numerator / denominator


def _schema(**bounds: float) -> WithJsonSchema:
    fraction = {"type": "string", "pattern": f"^{_PATTERN}$", "examples": ["1/11"]}
    return WithJsonSchema({"anyOf": [{"type": "number", **bounds}, fraction]})


_DIVIDED = BeforeValidator(_divided)

Share = Annotated[float, _DIVIDED, Field(ge=0.0, le=1.0), _schema(minimum=0.0, maximum=1.0)]
"""A number from 0 to 1, or a fraction as 1/11."""

# Nothing is below or above what is not a number.
Bound = Annotated[float, _DIVIDED, Field(allow_inf_nan=False), _schema()]
"""A finite number, or a fraction as 1/11."""


_OF_RECORDS: frozenset[Need | None] = frozenset({None, "one record"})

# Each attacker, and the figures it has by what they need. The marketer aims at all records.
_ATTACKERS: Mapping[str, frozenset[Need | None]] = {
    "prosecutor": _OF_RECORDS,
    "journalist": _OF_RECORDS,
    "marketer": frozenset({None}),
    "outsider": _OF_RECORDS | {"weights"},
}

_FIGURES = {figure.name: figure for figure in (*RISK, *ATTRIBUTES, *SUMMARY)}

# The setting with which a figure is measured. Needs that are not listed have no key.
_REMEDIES: Mapping[Need, str] = {
    "information": "Set evaluate.information to true",
    "association": "Name a target: evaluate.association.target",
    "weights": "Name a column of sampling weights: evaluate.risk.weights",
    "people": "Set privacy.unit, and output.pseudonyms for it",
    "ends": f"Bound it by a gate: gates.{ENDS}",
    "baseline": "Set evaluate.compare_baseline to true, without model.suppression_limit",
}


class Gate(Section):
    """Bounds on a figure."""

    min: Bound | None = None
    """Smallest allowed value."""

    max: Bound | None = None
    """Largest allowed value."""

    def _problems(self) -> Iterator[Finding]:
        if self.min is None and self.max is None:
            yield Finding((), "found neither min nor max. Expected at least one of them. Add it")
        yield from reversed_bounds(self.min, self.max)


def unusable_gates(
    gates: Mapping[str, Gate],
    quasi_identifiers: Sequence[str],
    measured: AbstractSet[Need],
) -> Iterator[Finding]:
    """Find gates on what is no figure, or is not measured.

    >>> [problem] = unusable_gates({"gpc": Gate(max=0.2)}, ["age"], frozenset())
    >>> problem.text[-19:]
    "Did you mean 'gcp'?"
    """
    figures = tuple(_metrics(quasi_identifiers))
    for name in gates:
        missing = unmeasured(name, measured)
        if name not in figures:
            hint = did_you_mean(name, figures, "See docs/output.md")
            text = (
                f"found {in_words(name)}, which is no figure of a release. Expected a number of "
                "the table summary, attributes.<quasi-identifier>.<figure> or "
                f"risk.<attacker>.<figure>. {hint}"
            )
        elif missing is not None:
            text = missing
        else:
            continue
        yield Finding(("gates", name), text)


def unmeasured(name: str, measured: AbstractSet[Need]) -> str | None:
    """Explain which setting a figure needs, or return None if the figure is measured.

    ``measured`` are the requested needs of figures. ``name`` is written as a gate names it.

    >>> unmeasured("entropy", {"bounds"})
    "found the text 'entropy', which is not measured. Set evaluate.information to true"
    """
    figure = _FIGURES.get(name.rpartition(".")[2])
    if figure is not None and figure.is_loss and "bounds" not in measured:
        return (
            f"found {in_words(name)}, which is not published with output.style 'mean', because "
            "figures of loss give back the bounds that means hide. Choose 'interval' or 'bounds'"
        )
    need = None if figure is None else figure.needs
    if name.startswith("risk.outsider."):
        need = "weights"
    if need is None or need in measured:
        return None
    remedy = _REMEDIES.get(need)
    return None if remedy is None else f"found {in_words(name)}, which is not measured. {remedy}"


def summary_figures() -> list[str]:
    """Return the columns of the table ``summary`` that are figures of a release.

    >>> "gcp" in summary_figures(), "run_id" in summary_figures()
    (True, False)
    """
    return [figure.name for figure in results(SUMMARY)]


def _metrics(quasi_identifiers: Sequence[str]) -> Iterator[str]:
    """Yield the name of every figure that a gate may bound."""
    yield from summary_figures()
    for name in quasi_identifiers:
        for figure in results(ATTRIBUTES):
            yield f"attributes.{name}.{figure.name}"
    for attacker, needs in _ATTACKERS.items():
        for figure in results(RISK):
            if figure.needs in needs:
                yield f"risk.{attacker}.{figure.name}"


# The upper end keeps out what would be no bound at all.
_Bound = Annotated[float, Field(ge=0.0, le=100_000.0)]


class MetricsOptions(Section):
    """Options to follow runs over time."""

    job: str = Field(default="anonspark", min_length=1)
    """Name of the job in the tables of all runs. Only runs of the same job are compared."""

    append_to: NonEmptyText | None = None
    """Directory for the tables of all runs, any Hadoop URI. Every release appends rows to its
    tables summary and rounds. null: none."""

    drift: dict[str, _Bound] = Field(default={})
    """Largest relative change of figures in the table summary since the last run of the same job,
    such as {rows_in: 0.2}. If a change is larger, nothing is published."""


def unusable_drift(metrics: MetricsOptions, measured: AbstractSet[Need]) -> Iterator[Finding]:
    """Find bounds on the drift of figures that do not exist, are not measured, or have no past.

    >>> drift = MetricsOptions(drift={"rows_in": 0.2})
    >>> [problem.text[:14] for problem in unusable_drift(drift, frozenset())]
    ['found bounds, ']
    """
    if metrics.drift and metrics.append_to is None:
        yield Finding(
            ("metrics", "drift"),
            "found bounds, but no earlier runs to compare with. Expected metrics.append_to "
            "as well. Add it, or remove the bounds",
        )
    figures = summary_figures()
    for name in metrics.drift:
        text = unmeasured(name, measured)
        if name not in figures:
            text = (
                f"found {in_words(name)}, which is no figure of a release. Expected a number of "
                f"the table summary. {did_you_mean(name, figures, 'See docs/output.md#summary')}"
            )
        if text is not None:
            yield Finding(("metrics", "drift", name), text)


class RiskOptions(Section):
    """When the risk of re-identification counts as high, and how it is measured."""

    threshold: Share = 0.2
    """Largest acceptable probability of re-identifying a record."""

    at_risk: Share = 0.0
    """Largest acceptable share of records above the threshold."""

    average: Share = 0.1
    """Largest acceptable share of re-identified records."""

    unique: Share = 0.0
    """Largest acceptable share of unique records."""

    weights: str | None = Field(default=None, min_length=1)
    """An attribute with sampling weights, not a quasi-identifier: how many people each record
    represents. Adds the individual risk, an estimate for an outsider, who does not know who was
    sampled. It changes no class. null: not measured."""


class AssociationOptions(Section):
    """The column with which association is measured."""

    target: str = Field(min_length=1)
    """A sensitive or insensitive attribute with 2 to 100 different values."""


class EvaluateOptions(Section):
    """Additional measures."""

    compare_baseline: bool = False
    """Report the decision rules and the loss without outlier handling, also for models without
    rounds. Models with rounds always report them."""

    information: bool = False
    """Also measure entropy and Kullback-Leibler divergence of the release. This takes some passes
    over the input for every quasi-identifier. Not with output.style: mean."""

    association: AssociationOptions | None = None
    """Also measure how well quasi-identifiers predict a target, before and after. This takes some
    passes over the input and one over the release. null: not measured."""

    risk: RiskOptions = RiskOptions()
    """When the risk of re-identification counts as high."""
