"""The section ``selection`` of a configuration, which ``anonspark select`` reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
)

from anonspark.config import Configuration, parse_configuration
from anonspark.config.budget import BudgetOptions, Number, as_fraction
from anonspark.config.loading import SELECTION, assign, parse_overrides, read_configuration
from anonspark.config.problems import Finding, in_words, validated
from anonspark.config.reading import TextReader, read_local_text
from anonspark.config.section import NonEmptyText, Section
from anonspark.config.yaml_reading import Places
from anonspark.errors import ConfigurationError, SparkNeededError
from anonspark.sharing.ledger.budget import RECORD, Unit
from anonspark.sharing.selection.domains import MOST_ROWS

_MOST_EPSILON = 100
_DECIMALS = 6
_NOWHERE = "nowhere"


class EvenBins(Section):
    """Edges at even distances."""

    start: float = Field(alias="from")
    """First edge."""

    to: float
    """Last edge, if the width leads there."""

    width: float = Field(gt=0)
    """Distance of the edges."""

    def _problems(self) -> Iterator[Finding]:
        numbers = (self.start, self.to, self.width)
        if not all(map(math.isfinite, numbers)) or self.to < self.start:
            text = "found an end below the start, or what is not finite. Correct it"
            yield Finding((), text)
        elif (self.to - self.start) / self.width > MOST_ROWS:
            text = f"found more than {MOST_ROWS:,} bins. Expected fewer. Give a larger width"
            yield Finding(("width",), text)

    def edges(self) -> list[float]:
        """Return the edges.

        >>> EvenBins.model_validate({"from": 0, "to": 10, "width": 5}).edges()
        [0.0, 5.0, 10.0]
        """
        number = math.floor((self.to - self.start) / self.width + 1e-9)
        return [self.start + step * self.width for step in range(number + 1)]


class QuantileBins(EvenBins):
    """Edges at private quantiles, drawn from edges at even distances."""

    quantiles: int = Field(ge=2)
    """How many bins, of about equally many records each."""

    epsilon: Number
    """Privacy loss of the edges."""

    def _problems(self) -> Iterator[Finding]:
        problems = [*super()._problems(), *_epsilon_problems("epsilon", self.epsilon)]
        if not problems and self.quantiles > len(self.edges()) + 1:
            text = f"found {self.quantiles}, but there are {len(self.edges())} edges. Lower it"
            problems.append(Finding(("quantiles",), text))
        yield from problems


Edges = Annotated[list[float], Field(min_length=1)]
_EDGES: TypeAdapter[Any] = TypeAdapter(Edges, config=ConfigDict(strict=True))


def _edges_or_even(value: object) -> object:
    # Chosen by hand: pydantic would report each mistake once for every member of a union.
    if value is None or isinstance(value, EvenBins):
        return value
    if isinstance(value, Mapping):
        drawn = {"quantiles", "epsilon"} & value.keys()
        return (QuantileBins if drawn else EvenBins).model_validate(value)
    return _EDGES.validate_python(value)


def _epsilon_problems(name: str, text: str, *, may_be_zero: bool = False) -> Iterator[Finding]:
    """Find what is no privacy loss.

    >>> list(_epsilon_problems("epsilon", "0.5"))
    []
    """
    number = as_fraction(text)
    if number is None or number > _MOST_EPSILON or number < 0 or not (number or may_be_zero):
        yield Finding(
            (name,),
            f"found {in_words(text)}. Expected a decimal number "
            f"{'from' if may_be_zero else 'above'} 0 up to {_MOST_EPSILON} with at most "
            f"{_DECIMALS} decimals. Correct it",
        )


class DomainOptions(Section):
    """The rows of an attribute's table."""

    values: list[str] | None = None
    """All values that have a row."""

    bins: Annotated[Edges | QuantileBins | EvenBins | None, BeforeValidator(_edges_or_even)] = None
    """Edges of bins, or from, to and width. With quantiles and epsilon some of these are drawn."""

    hierarchy: NonEmptyText | None = None
    """A hierarchy file."""

    level: int | None = Field(default=None, ge=1)
    """Its level, whose groups are rows."""

    def _problems(self) -> Iterator[Finding]:
        keys = [key for key in ("values", "bins", "hierarchy") if getattr(self, key) is not None]
        if len(keys) != 1:
            text = f"found {' and '.join(keys) or 'none of values, bins and hierarchy'}"
            yield Finding((), f"{text}. Expected one of these. Correct it")
        if self.level is not None and self.hierarchy is None:
            yield Finding(("level",), "found without hierarchy. Remove it")
        values = None if self.values is None else [value.strip(" ") for value in self.values]
        if values is not None and (not values or not all(values) or len(set(values)) < len(values)):
            text = "found no value, an empty one, or one twice. Expected different ones. Correct it"
            yield Finding(("values",), text)
        edges = self.bins.edges() if isinstance(self.bins, EvenBins) else self.bins or []
        ascending = all(low < high for low, high in pairwise(edges))
        if not ascending or not all(map(math.isfinite, edges)):
            text = "found edges that are not ascending, or not finite. Correct them"
            yield Finding(("bins",), text)


class SelectionOptions(Section):
    """The attributes that are chosen, the method and its price."""

    target: NonEmptyText
    """The attribute that the chosen ones are to predict."""

    candidates: list[NonEmptyText] | None = None
    """Attributes to choose from. All but identifiers and the target."""

    count: int = Field(ge=1)
    """How many are chosen."""

    mechanism: Literal["top", "tables"] = "top"
    """top chooses without tables. Tables publishes noisy ones and ranks by them."""

    score: Literal["gini", "information_gain", "chi_square"] = "gini"
    """What makes an attribute good."""

    epsilon: Number
    """Privacy loss. At most 100, 6 decimals."""

    tables_epsilon: Number = "0"
    """With top: loss for noisy tables of the chosen ones. 0 for none."""

    neighbors: Literal["add_remove", "replace"] = "add_remove"
    """Whether tables differ by a record, or in one."""

    person: NonEmptyText | None = None
    """Column that identifies the person of a record, if a person may have several."""

    rows_per_person: int = Field(default=1, ge=1)
    """Records of a person that count at most. With person."""

    records_at_most: int | None = Field(default=None, ge=1, le=2**33)
    """Public bound on the records that count in full. For information_gain."""

    domains: dict[str, DomainOptions] = Field(default={})
    """Of attributes whose values are declared nowhere else."""

    output: NonEmptyText
    """Directory of the result."""

    def _problems(self) -> Iterator[Finding]:
        """Find options that contradict each other, as those of another mechanism."""
        yield from _epsilon_problems("epsilon", self.epsilon)
        yield from _epsilon_problems("tables_epsilon", self.tables_epsilon, may_be_zero=True)
        if self.mechanism == "tables" and as_fraction(self.tables_epsilon):
            text = "found together with mechanism: tables, whose tables epsilon pays for. Remove it"
            yield Finding(("tables_epsilon",), text)
        bounded = self.score == "information_gain" and self.mechanism == "top"
        if bounded and self.records_at_most is None:
            text = "missing. Information_gain needs a public bound on the records. Or use gini"
            yield Finding(("records_at_most",), text)
        if self.person is None and self.rows_per_person > 1:
            text = "found without person. Name the column that identifies people, or remove it"
            yield Finding(("rows_per_person",), text)
        if self.target in self.drawn_bins:
            text = "found quantiles for the target, whose classes cannot be drawn. Give edges"
            yield Finding(("domains", self.target, "bins"), text)
        if self.person is not None and self.person == self.target:
            text = "found the target. Expected the column that identifies people. Correct it"
            yield Finding(("person",), text)

    @property
    def drawn_bins(self) -> dict[str, QuantileBins]:
        """The bins whose edges are drawn, by attribute."""
        bins_by_name = {name: options.bins for name, options in self.domains.items()}
        return {name: bins for name, bins in bins_by_name.items() if isinstance(bins, QuantileBins)}

    @property
    def unit(self) -> Unit:
        """The records whose presence is protected."""
        if self.person is None:
            return RECORD
        return {"person": self.person, "rows": self.rows_per_person}


class _File(Section):
    selection: SelectionOptions


@dataclass(frozen=True)
class SelectionSettings:
    """The request, with the ledger of its configuration, whose output and privacy are stand-ins."""

    configuration: Configuration
    selection: SelectionOptions
    ledger: BudgetOptions
    candidates: tuple[str, ...]

    @property
    def places(self) -> Places:
        """The positions of the keys in their file."""
        return self.configuration.places


def load_selection(
    path: str | Path, overrides: Sequence[str] = (), read: TextReader = read_local_text
) -> SelectionSettings:
    """Read what ``anonspark select`` needs of a configuration file.

    ``overrides`` are those of ``--set``. Raises ConfigurationError with all problems.
    """
    expected = "a mapping with 'input', 'attributes', 'selection' and 'ledger'"
    document, problems = read_configuration(path, expected, read)
    overridden = [override.keys for override in parse_overrides(overrides, [])]
    with document.locating_problems(overridden):
        settings = parse_selection(document, overrides, read, problems)
    configuration = settings.configuration.with_places(document.places(overridden))
    return replace(settings, configuration=configuration)


def parse_selection(
    mapping: Mapping[str, Any],
    overrides: Sequence[str] = (),
    read: TextReader = read_local_text,
    problems: Sequence[str] = (),
) -> SelectionSettings:
    """Check a selection and its configuration, and report all problems of both at once.

    See :func:`load_selection`.
    """
    listed = list(problems)
    document = dict(mapping)
    for assignment in parse_overrides(overrides, listed):
        assign(document, assignment, listed)
    sections = {name: document.pop(name) for name in (SELECTION,) if name in document}
    if document.get("coding") is None:
        document.setdefault("privacy", {"k": 2})
    output = document.get("output")
    document["output"] = {"path": _NOWHERE, **(output if isinstance(output, dict) else {})}
    file = validated(_File, sections, listed)
    configuration = None
    try:
        # The seed is the key of the hashes by which records of a person are picked, and no more.
        needs_seed = file is not None and file.selection.person is not None
        configuration = parse_configuration(document, (), read, needs_seed=needs_seed)
    except SparkNeededError:
        raise
    except ConfigurationError as error:
        listed += error.problems
    ledger = None if configuration is None else configuration.ledger
    if configuration is not None and ledger is None:
        listed.append(
            "ledger: missing. Expected path, dataset and limit of the ledger that losses are "
            "charged to. Add the section"
        )
    if file is None or configuration is None or ledger is None or listed:
        raise ConfigurationError(*listed)
    candidates = _candidates(configuration, file.selection)
    return SelectionSettings(configuration, file.selection, ledger, candidates)


def _candidates(configuration: Configuration, selection: SelectionOptions) -> tuple[str, ...]:
    """Return the attributes to choose from, or raise ConfigurationError if some are unsuitable."""
    attributes, target = configuration.attributes, selection.target
    problems = []
    if target in configuration.identifiers:
        problems.append(f"selection.target: {target!r} is an identifier. Expected another column")
    names = selection.candidates
    if names is None:
        left_out = {target, selection.person, *configuration.identifiers}
        names = [name for name in attributes if name not in left_out]
    else:
        unknown = [name for name in names if name not in attributes]
        if unknown:
            problems.append(
                f"selection.candidates: {', '.join(map(repr, unknown))} are no attributes. "
                f"Expected some of {', '.join(map(repr, attributes))}. Correct them"
            )
        if target in names:
            problems.append("selection.candidates: found the target among them. Remove it")
        if selection.person in names:
            problems.append("selection.candidates: found the person among them. Remove it")
        if len(set(names)) < len(names):
            problems.append("selection.candidates: found a name twice. Remove one")
    if not names:
        problems.append(
            "selection.candidates: found none. Expected attributes other than the target. List some"
        )
    elif selection.count > len(names):
        problems.append(
            f"selection.count: found {selection.count}, but there are {len(names)} candidates. "
            "Lower it"
        )
    if problems:
        raise ConfigurationError(*problems)
    return tuple(names)
