"""Every criterion beyond k, once: what it bounds, in which direction, and what it is called.

The configuration, the models, the terminal, the report, the manifest and the verification read
these rows. A new criterion is a row here, a branch of the kernel that judges groups
(:func:`anonspark.kernels.criteria.judge`), and a measure of published classes
(:data:`anonspark.verification.proof.measures.MEASURES`), which does not call the kernel. That of
another package is a row with a function for each of these (docs/extending.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from anonspark.core import extensions
from anonspark.errors import ConfigurationError

K_UNITS = "k units"
"""Name of k in the table of criteria where it counts people."""


@dataclass(frozen=True)
class Option:
    """A section of the configuration that asks for a criterion with one bound.

    Parameters
    ----------
    section : str
        Name of the section's class, which the JSON schema shows.
    about : str
        What the section is, as its docstring.
    key : str
        Key of the bound.
    limits : mapping of str to float
        Limits of the bound, as pydantic names them: ``gt``, ``ge``, ``lt``, ``le``.
    description : str
        Description of the bound.
    list_description : str
        Description of the list of such sections.
    """

    section: str
    about: str
    key: str
    limits: Mapping[str, float]
    description: str
    list_description: str


@dataclass(frozen=True)
class CriterionType:
    """The common properties of all criteria of a kind.

    Parameters
    ----------
    key : str
        Key in the section ``privacy`` that asks for it.
    kernel : str or callable
        Name of its constant in :mod:`anonspark.kernels.criteria`: no kernel is loaded to read a
        configuration. A criterion of another package passes the function that judges groups, see
        :mod:`anonspark.core.criteria`.
    words : str
        The criterion, for messages. Braces name its bound, c and kind.
    measured : str
        What is measured in the worst class, for the report. Braces name the bound.
    bound : str
        How the figure of every class is bounded: ``at least``, ``below`` or ``at most``.
    column : str
        Name of the figure in the JSON of ``verify``.
    title : str
        Title of the figure on the terminal.
    short : str
        The figure in a sentence.
    loosest : tuple of float
        Bound and c with which the figure is measured if nothing is required.
    is_distance : bool
        Whether it compares a class with the distribution of a whole table.
    needs : str or None
        What its attribute must have, or None if it needs nothing.
    counts_values : bool
        Whether its bound is a number of different values.
    option : Option or None
        Its section of the configuration, or None if :mod:`anonspark.config.privacy` writes the
        section out because it has more than one bound.
    measure : callable or None
        The :data:`anonspark.verification.proof.measures.Measure` of a criterion of another package.
    """

    key: str
    kernel: str | Callable[..., int]
    words: str
    measured: str
    bound: Literal["at least", "below", "at most"]
    column: str
    title: str
    short: str
    loosest: tuple[float, float] = (1.0, 0.0)
    is_distance: bool = False
    needs: Literal["order", "hierarchy"] | None = None
    counts_values: bool = False
    option: Option | None = None
    measure: Callable[..., Any] | None = None

    @property
    def worst_is_smallest(self) -> bool:
        """Return whether the class with the smallest figure is the worst one."""
        return self.bound == "at least"


def _distance(
    name: str,
    measured: str,
    needs: Literal["order", "hierarchy"] | None = None,
) -> CriterionType:
    """Return the row of t-closeness with a distance, ``name``."""
    return CriterionType(
        "t_closeness",
        f"{name.upper()}_DISTANCE",
        "t-closeness with t = {bound:g} ({kind})",
        f"t-closeness: {measured}",
        "at most",
        column=f"{name}_distance",
        title=f"t, {name}",
        short=f"t ({name} distance)",
        is_distance=True,
        needs=needs,
    )


CRITERIA: Mapping[str, CriterionType] = {
    "distinct": CriterionType(
        "l_diversity",
        "DISTINCT",
        "distinct l-diversity with l = {bound:g}",
        "l-diversity: different values in the worst class",
        "at least",
        column="distinct",
        title="distinct l",
        short="distinct l",
        # Two different values at least: what violates it is homogeneous.
        loosest=(2.0, 0.0),
        counts_values=True,
    ),
    "entropy": CriterionType(
        "l_diversity",
        "ENTROPY",
        "entropy l-diversity with l = {bound:g}",
        "entropy l-diversity: exponential of the smallest entropy",
        "at least",
        column="entropy",
        title="entropy l",
        short="entropy l",
        counts_values=True,
    ),
    "recursive": CriterionType(
        "l_diversity",
        "RECURSIVE",
        "recursive (c, l)-diversity with c = {c:g} and l = {bound:g}",
        "recursive (c, {bound})-diversity: c of the worst class",
        "below",
        column="recursive",
        title="recursive c, l = 2",
        short="c of recursive (c, l)-diversity",
        loosest=(2.0, math.inf),
        counts_values=True,
    ),
    "alpha": CriterionType(
        "alpha_k_anonymity",
        "LARGEST_SHARE",
        "(alpha, k)-anonymity with alpha = {bound:g}",
        "(alpha, k)-anonymity: largest share of one value in a class",
        "at most",
        column="largest_share",
        title="largest share",
        short="alpha",
        option=Option(
            "AlphaAnonymity",
            "The largest share of one sensitive value in a class: (alpha, k)-anonymity.",
            "alpha",
            {"gt": 0.0, "le": 1.0},
            "Largest share of any one value in a class, up to 1.",
            "Largest share of one sensitive value in every class. One or a list.",
        ),
    ),
    "equal distance": _distance("equal", "largest distance of a class, equal distances"),
    "ordered distance": _distance(
        "ordered", "largest distance of a class, ordered values", "order"
    ),
    "hierarchical distance": _distance(
        "hierarchical", "largest distance of a class, hierarchy", "hierarchy"
    ),
    # Bounds each value by itself, so many may shift a little: no t-closeness of Li et al.
    "maximum distance": replace(
        _distance("maximum", ""),
        words="shares within {bound:g} of the whole table's",
        measured="difference of shares: largest difference of a value's share in a class",
        title="difference of shares",
        short="difference of shares",
    ),
    "beta": CriterionType(
        "beta_likeness",
        "RELATIVE_GAIN",
        "beta-likeness with beta = {bound:g}",
        "beta-likeness: largest relative gain of a value's share in a class",
        "at most",
        column="relative_gain",
        title="beta",
        short="beta",
        loosest=(math.inf, 0.0),
        is_distance=True,
        option=Option(
            "BetaLikeness",
            "How much more frequent a sensitive value may be in a class than in the whole input: "
            "basic beta-likeness.",
            "beta",
            {"gt": 0.0, "le": 1e9},
            "Largest relative gain: no share in a class is above (1 + beta) times that in the "
            "whole input.",
            "Relative gain of the shares of sensitive values in every class compared with those in "
            "the whole input. One or a list.",
        ),
    ),
}
"""By kind, in the order in which figures are shown. Without those of other packages."""


def criterion_type(kind: str) -> CriterionType:
    """Return the row of a kind of criterion. In another package the kind is the key.

    Raises ConfigurationError if no installed package has the kind, or its package is unusable.

    >>> criterion_type("recursive").words.format(bound=3, c=2)
    'recursive (c, l)-diversity with c = 2 and l = 3'
    """
    criterion = CRITERIA.get(kind) or foreign_criterion(kind)
    if criterion is None:
        raise ConfigurationError(
            f"privacy.{kind}: no criterion of anonspark, nor of an installed package. Install the "
            "package that has it, also where the tasks run"
        )
    return criterion


def foreign_criterion(key: str) -> CriterionType | None:
    """Return the criterion of another package by its key, or None if no package has it.

    Raises ConfigurationError if the package cannot be used.
    """
    plugin = extensions.extension(extensions.CRITERIA, key)
    if plugin is None:
        return None
    row, problem = plugin.value, None
    if not isinstance(row, CriterionType):
        problem = f"expected a CriterionType, found {type(row).__name__}"
    elif row.key != key:
        problem = f"its key is {row.key!r}. Expected the name of its entry point"
    elif isinstance(row.kernel, str) or row.measure is None or row.option is None:
        problem = "it lacks a function that judges groups, its measure, or its option"
    elif row.bound == "below" or row.needs is not None:
        problem = "only built-in criteria are bounded below, or need an order"
    if problem is not None:
        raise plugin.refused(extensions.CRITERIA, key, problem)
    return row  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Criterion:
    """One criterion beyond k, about one sensitive attribute.

    All criteria are closed under union if records are counted: two classes that satisfy one satisfy
    it together, so a table that violates it as a whole cannot be cut into classes that satisfy it.
    If people are counted, this holds for distinct l-diversity.

    Parameters
    ----------
    attribute : str
        Name of the sensitive attribute.
    kind : str
        A key of :data:`CRITERIA`, or the key of a criterion of another package.
    bound : float
        l, or the bound of the figure.
    c : float
        The factor c of recursive (c, l)-diversity.

    Examples
    --------
    >>> Criterion("disease", "distinct", 3).describe()
    'distinct l-diversity with l = 3'
    """

    attribute: str
    kind: str
    bound: float
    c: float = 0.0

    @property
    def type(self) -> CriterionType:
        """Return the common properties of all criteria of its kind."""
        return criterion_type(self.kind)

    @property
    def is_distance(self) -> bool:
        """Return whether it compares a class with the distribution of a whole table."""
        return self.type.is_distance

    @property
    def recursive_c(self) -> float | None:
        """The c of recursive (c, l)-diversity, or None if it is another criterion."""
        return self.c if self.type.bound == "below" else None

    @property
    def limit(self) -> float:
        """Return what the figure of a class is compared with."""
        return self.bound if self.recursive_c is None else self.recursive_c

    @property
    def is_foreign(self) -> bool:
        """Return whether it is of another package, whose functions define it."""
        return self.kind not in CRITERIA

    @property
    def demands_nothing(self) -> bool:
        """Return whether every class satisfies it, whichever values the class holds."""
        if self.is_foreign:
            return False
        match self.type.bound:
            case "at least":
                return self.bound <= 1
            case "below":
                return self.bound <= 1 < self.c
            case "at most":
                return self.bound >= 1 and self.kind != "beta"

    @property
    def forbids_one_value(self) -> bool:
        """Return whether no class with one value only satisfies it, whatever the data are."""
        return not (self.is_distance or self.is_foreign or self.demands_nothing)

    def asks_for_distinct(self, attribute: str) -> bool:
        """Return whether it asks for different values of an attribute."""
        return self.kind == "distinct" and self.attribute == attribute

    def is_as_strict_as(self, other: Criterion) -> bool:
        """Return whether it implies another one of its kind and attribute.

        >>> three, two = (Criterion("disease", "distinct", l) for l in (3, 2))
        >>> three.is_as_strict_as(two), two.is_as_strict_as(three)
        (True, False)
        """
        if (self.attribute, self.kind) != (other.attribute, other.kind):
            return False
        if self.type.bound == "at most":
            return self.bound <= other.bound
        # More values and a smaller factor make recursive diversity stricter.
        return self.bound >= other.bound and self.c <= other.c

    def describe(self) -> str:
        """Return the criterion in words, for messages."""
        return self.type.words.format(bound=self.bound, c=self.c, kind=self.kind)


MOST_VALUES = 50_000
"""More different values are no sensitive attribute that classes can be judged by."""

# A class may be required to have more than two of at least so many values.
_MANY_VALUES = 10


def proposed_l(values: int, largest: float) -> int | None:
    """Propose the l of distinct l-diversity, or return None for one value or too many values.

    ``values`` counts the different values that are present, and ``largest`` is the share of the
    records with the most frequent value, or without a value.

    >>> [proposed_l(values, 0.4) for values in (1, 5, 20)]
    [None, 2, 3]
    """
    if not 2 <= values <= MOST_VALUES:
        return None
    return 3 if values >= _MANY_VALUES and largest <= 1 / 2 else 2
