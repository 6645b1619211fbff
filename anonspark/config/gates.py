"""The section ``gates``: bounds on figures, outside of which nothing is published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from anonspark.config.fractions import Bound
from anonspark.config.problems import Finding, did_you_mean, found
from anonspark.config.section import Section, reversed_bounds
from anonspark.core.figures import ATTRIBUTES, ENDS, RISK, SUMMARY, Need, results

_OF_RECORDS: frozenset[Need | None] = frozenset({None, "one record"})

# Each attacker, and the figures it has by what they need. The marketer aims at all records.
_ATTACKERS: Mapping[str, frozenset[Need | None]] = {
    "prosecutor": _OF_RECORDS,
    "journalist": _OF_RECORDS,
    "marketer": frozenset({None}),
    "outsider": _OF_RECORDS | {"weights"},
}

_FIGURES = {figure.name: figure for figure in (*RISK, *ATTRIBUTES, *SUMMARY)}

# What to do for a figure to be measured; what is not here is not asked for by a key.
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
    """Smallest figure that is published."""

    max: Bound | None = None
    """Largest figure that is published."""

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

    Parameters
    ----------
    gates : mapping of str to Gate
    quasi_identifiers : sequence of str
    measured : set of str
        As of :func:`unmeasured`.
    """
    figures = tuple(_metrics(quasi_identifiers))
    for name in gates:
        missing = unmeasured(name, measured)
        if name not in figures:
            hint = did_you_mean(name, figures, "See docs/output.md")
            text = (
                f"found {found(name)}, which is no figure of a release. Expected a number of the "
                "table summary, attributes.<quasi-identifier>.<figure> or "
                f"risk.<attacker>.<figure>. {hint}"
            )
        elif missing is not None:
            text = missing
        else:
            continue
        yield Finding(("gates", name), text)


def unmeasured(name: str, measured: AbstractSet[Need]) -> str | None:
    """Return the setting with which a figure is measured, or None if it is measured.

    Parameters
    ----------
    name : str
        As a gate names it.
    measured : set of str
        What is asked for of that which figures need.
    """
    figure = _FIGURES.get(name.rpartition(".")[2])
    if figure is not None and figure.is_loss and "bounds" not in measured:
        return (
            f"found {found(name)}, which is not published with output.style 'mean', because "
            "figures of loss give back the bounds that means hide. Choose 'interval' or 'bounds'"
        )
    need = None if figure is None else figure.needs
    if name.startswith("risk.outsider."):
        need = "weights"
    if need is None or need in measured:
        return None
    remedy = _REMEDIES.get(need)
    return None if remedy is None else f"found {found(name)}, which is not measured. {remedy}"


def summary_figures() -> list[str]:
    """Return the columns of the table ``summary`` that are figures of a release."""
    return [figure.name for figure in results(SUMMARY)]


def _metrics(quasi_identifiers: Sequence[str]) -> Iterator[str]:
    """Return everything that a gate may be about."""
    yield from summary_figures()
    for name in quasi_identifiers:
        for figure in results(ATTRIBUTES):
            yield f"attributes.{name}.{figure.name}"
    for attacker, needs in _ATTACKERS.items():
        for figure in results(RISK):
            if figure.needs in needs:
                yield f"risk.{attacker}.{figure.name}"
