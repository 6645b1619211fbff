"""Define the ``model`` section: the options of every model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from anonspark.config.attributes import Attribute
from anonspark.config.problems import Finding, did_you_mean, impossible, in_words, one_of
from anonspark.config.section import Section
from anonspark.core import extensions

DEFAULT_MODEL = "su-mondrian"

_WORDS: Mapping[str, str] = {
    "smondrian": "cuts at medians",
    "su-mondrian": "cuts at medians, outliers in further rounds",
    "canon": "cuts by the distance to a point",
    "u-canon": "cuts by the distance to a point, outliers in further rounds",
    "microaggregation": "groups of k to 2k - 1 records",
    "full-domain": "one level of each hierarchy",
    "rho-gain": "one level of each hierarchy a round",
    "mapping": "regions of an earlier release",
    "auto": "the best of three on a sample",
}

EXHAUSTIVE_NODES = 20_000
"""Lattices up to here are searched exhaustively unless the configuration says otherwise."""

ObjectiveName = Literal[
    "average_class_size",
    "discernibility",
    "monotonic_discernibility",
    "precision",
    "loss",
    "entropy",
]
"""The objective of a search of the lattice."""
_SUPPRESSION_LIMIT = {"full-domain": 0.05, "rho-gain": 1.0}
_Level = Annotated[int, Field(ge=0)]


def model_in_words(name: str) -> str:
    """Return the name of a model with words beside it. Other packages' models have none.

    >>> model_in_words("full-domain"), model_in_words("theirs")
    ('full-domain (one level of each hierarchy)', 'theirs')
    """
    return f"{name} ({_WORDS[name]})" if name in _WORDS else name


class ModelOptions(Section):
    """Base of the options of all models.

    A model declares its own options in a subclass, narrows ``name`` to the names that it answers
    to, and gives every field a ``description``: the messages of the configuration and the JSON
    Schema for editors are made from them.
    """

    name: str
    """Which model makes the classes."""

    @property
    def most_rounds(self) -> int:
        """Rounds at most."""
        return 1

    def findings(self, attributes: Mapping[str, Attribute], style: str) -> Iterable[Finding]:  # noqa: ARG002
        """Find what the model cannot work with, located from the top of the configuration.

        ``attributes`` are those of the configuration, ``style`` is its ``output.style``.
        """
        return ()


class CuttingOptions(ModelOptions):
    """Options of the models that form classes, of which the worst can be left out."""

    suppression_limit: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Largest share of the records that may be suppressed: after the last round whole classes are
    left out, first those whose records lose most. 0 leaves none out."""


PUBLISHED = "canbay-2019"


def _current_word(separation: object) -> object:
    """Return today's word for an earlier one."""
    return "adaptive" if separation == "paying" else separation


_BY_CANBAY: Mapping[str, object] = {"minimum_gain": 0.0, "separation": "always", "reference": "lof"}


def _schema_of_published(settings: Mapping[str, object]) -> ConfigDict:
    """Return the schema of values that go with ``published``, for editors."""
    rule: Any = {
        "if": {"required": ["published"], "properties": {"published": {"const": PUBLISHED}}},
        "then": {"properties": {key: {"const": value} for key, value in settings.items()}},
    }
    return ConfigDict(json_schema_extra={"allOf": [rule]})


class RoundOptions(CuttingOptions):
    """Options of the models whose outliers go through further rounds."""

    published_settings: ClassVar[Mapping[str, object]] = _BY_CANBAY

    published: Literal["canbay-2019"] | None = None
    """Computes the algorithm as the thesis published it: sets cut, span (Mondrian), vantage
    (Canon), separation, reference and minimum_gain, which may then say nothing else. split, rho and
    lof_neighbors stay as they are set. null sets nothing."""

    rho: int = Field(default=5, ge=1, le=1000)
    """Number of rounds at most. The last one keeps its groups whole. Only for models with outlier
    handling."""

    minimum_gain: float = Field(default=0.0, ge=0.0, le=1.0)
    """Stop with the round that lowers the certainty penalty by less than this share of what it
    would be without the round. 0 never stops early. Only for models with outlier handling."""

    separation: Annotated[Literal["always", "adaptive"], BeforeValidator(_current_word)] = (
        "adaptive"
    )
    """Which records a group gives up to the next round: adaptive those without which the release
    loses less, if there are any, and a round that does not lower the loss is undone. Always all but
    the k nearest to its reference, in all rounds, as published. Only for models with outlier
    handling. Paying, the earlier word for adaptive, is read as well."""

    lof_neighbors: int | None = Field(default=None, ge=1, le=1_000_000)
    """Neighbours that a record is judged by. Null means k - 1. Only for models with outlier
    handling."""

    reference: Literal["lof", "density"] = "lof"
    """Which record of a group the normal ones are nearest to: lof takes the one with the smallest
    local outlier factor, as published. Density the one with the smallest sum of distances to its
    neighbours. Only for models with outlier handling."""

    @model_validator(mode="before")
    @classmethod
    def _set_as_published(cls, section: Any) -> Any:
        """Set the values of a publication, unless another key contradicts them."""
        if not isinstance(section, Mapping) or section.get("published") != PUBLISHED:
            return section
        findings = [
            Finding(
                (key,),
                f"found {in_words(section[key])}. Expected {value!r}, which model.published: "
                f"{PUBLISHED} sets. Remove model.{key} or model.published",
            )
            for key, value in cls.published_settings.items()
            if section.get(key, value) != value
        ]
        if findings:
            raise impossible(findings)
        return {**cls.published_settings, **section}

    @property
    def handles_outliers(self) -> bool:
        """Return whether outliers go through further rounds."""
        return self.name in ("su-mondrian", "u-mondrian", "u-canon")

    @property
    def most_rounds(self) -> int:
        """Rounds at most."""
        return self.rho if self.handles_outliers else 1


class MondrianOptions(RoundOptions):
    """Options of Mondrian, without rounds (``smondrian``) and with them (``su-mondrian``)."""

    published_settings: ClassVar[Mapping[str, object]] = {
        **_BY_CANBAY,
        "cut": "published",
        "span": "cell",
        "refine": 0,
    }
    model_config = _schema_of_published(published_settings)

    name: Literal["smondrian", "su-mondrian", "mondrian", "u-mondrian"] = "su-mondrian"
    """Which model makes the classes: smondrian (also: mondrian) cuts once and keeps whole groups.
    Su-mondrian (also: u-mondrian) sends the outliers of every group through further rounds."""

    split: Literal["strict", "relaxed"] = "strict"
    """Records equal to the median: strict keeps them on one side of the cut. Relaxed shares them
    out so that both halves have equal size."""

    cut: Literal["balanced", "published"] = "balanced"
    """Where an attribute is cut: balanced takes the better of the boundaries below and above the
    median, and with criteria beyond k looks further out before it leaves a group whole. Published
    takes the one above the median, as the published algorithm does. It matters to the strict split
    only."""

    span: Literal["data", "cell"] = "data"
    """Which width chooses the attribute to cut: data takes the width of the group's own records.
    Cell takes the width of its cell of the tree, as the published algorithm does."""

    refine: int | None = Field(default=None, ge=0, le=1_000)
    """How often groups that stay whole are refined: neighbours exchange records, and are cut anew
    where that loses less. Su-mondrian publishes these or the groups of its rounds, whichever lose
    less. 0 keeps groups as they were cut, as published. Null means 1 for su-mondrian with
    separation: adaptive, and 0 otherwise. It changes the release."""

    @property
    def passes(self) -> int:
        """Return how often groups are refined.

        >>> MondrianOptions().passes, MondrianOptions(published="canbay-2019").passes
        (1, 0)
        """
        if self.refine is None:
            return int(self.handles_outliers and self.separation == "adaptive")
        return self.refine


class CanonOptions(RoundOptions):
    """Options of Canon, without rounds (``canon``) and with them (``u-canon``)."""

    published_settings: ClassVar[Mapping[str, object]] = {**_BY_CANBAY, "vantage": "random"}
    model_config = _schema_of_published(published_settings)

    name: Literal["canon", "u-canon"]
    """Which model makes the classes: canon cuts into halves by the distance to a vantage point, and
    keeps whole groups. U-canon sends the outliers of every group through further rounds."""

    vantage: Literal["spread", "random"] = "spread"
    """How a vantage point is chosen: spread takes, of thirty records drawn by content, the one
    whose distances vary most. Random takes the first one drawn, as published."""


class MicroaggregationOptions(CuttingOptions):
    """Options of microaggregation."""

    name: Literal["microaggregation"]
    """Which model makes the classes: microaggregation grows and improves groups of k to 2k - 1
    records one by one, for the least loss."""

    objective: Literal["gcp", "queries"] = "gcp"
    """What groups are formed for: gcp for the smallest certainty penalty. Queries for counts that
    are estimated well, too, for a penalty that is a little larger."""

    passes: int = Field(default=20, ge=1, le=1_000)
    """How often all groups are improved. More passes take longer, in proportion, and lose less. It
    changes the release."""

    block_rows: int = Field(default=250_000, ge=1_000, le=10_000_000)
    """Largest number of records among which groups are formed. Larger tables are cut at medians
    first. It changes the release."""


class FullDomainOptions(ModelOptions):
    """Options of full-domain recoding, once (``full-domain``) or in rounds (``rho-gain``)."""

    name: Literal["full-domain", "rho-gain"]
    """Which model makes the classes: full-domain recodes every quasi-identifier to one level of its
    hierarchy and suppresses the records whose class violates a criterion. Rho-gain recodes the
    suppressed records again on their own, round after round."""

    rho: int = Field(default=2, ge=0, le=1000)
    """Rounds after the first one at most. Only for rho-gain."""

    objective: ObjectiveName = "average_class_size"
    """What the chosen levels are best in: average_class_size (most classes), discernibility,
    monotonic_discernibility (suppressed classes count as they are), precision, loss, or entropy."""

    suppression_limit: float | None = Field(default=None, ge=0.0, le=1.0)
    """Largest share of a round's records that may be suppressed. Null means 0.05 for full-domain
    and 1 for rho-gain, whose next round takes them back."""

    minimum_levels: dict[str, _Level] = Field(default={})
    """Lowest level allowed of some quasi-identifiers. 0 for the others."""

    maximum_levels: dict[str, _Level] = Field(default={})
    """Highest level allowed of some quasi-identifiers. That of the hierarchy for the others."""

    levels: list[dict[str, _Level]] = Field(default=[])
    """Levels that are given instead of searched for: one mapping of all quasi-identifiers a round,
    from the first one. For releases that have to be alike, or to repeat others'."""

    search: Literal["exhaustive", "pruned"] | None = Field(
        default=None,
        description=(
            "exhaustive scores every node of the lattice. Pruned spares those that monotonicity "
            "and bounds rule out, which may miss the best node where a criterion is not monotone. "
            f"Null: exhaustive up to {EXHAUSTIVE_NODES:,} nodes."
        ),
    )
    t_reference: Literal["original", "round"] = "original"
    """What t-closeness is measured against: the distribution of the whole input (original) or of
    the records of each round (round, as published. The release then may violate t-closeness against
    the whole input)."""

    residual: Literal["drop", "suppress"] = "drop"
    """Records that no round finds a class for: drop leaves them out, suppress publishes them as one
    class whose quasi-identifiers show nothing, if it satisfies the criteria."""

    driver_tuples: int = Field(default=5_000_000, ge=1)
    """Distinct tuples of quasi-identifiers (with their sensitive values, where criteria need them)
    that the search keeps on the driver. More are kept on the cluster."""

    @property
    def largest_share(self) -> float:
        """Share of a round's records that may be suppressed."""
        if self.suppression_limit is not None:
            return self.suppression_limit
        return _SUPPRESSION_LIMIT[self.name]

    @property
    def most_rounds(self) -> int:
        """Rounds at most: the first one, and ρ more for rho-gain."""
        return 1 + (self.rho if self.name == "rho-gain" else 0)

    def findings(self, attributes: Mapping[str, Attribute], style: str) -> Iterator[Finding]:
        """Find quasi-identifiers without a hierarchy, levels of other columns, and unfit styles."""
        quasi_identifiers = [
            name for name, attribute in attributes.items() if attribute.role == "quasi_identifier"
        ]
        yield from (
            Finding(
                ("attributes", name),
                f"found no hierarchy. Expected one, because the model '{self.name}' recodes every "
                "quasi-identifier to a level of its hierarchy. Give a file or a rule. For texts, "
                "{keep: []} has only * above the values",
            )
            for name in quasi_identifiers
            if attributes[name].hierarchy is None
        )
        if style != "interval":
            yield Finding(
                ("output", "style"),
                f"found {in_words(style)} with the model '{self.name}', which publishes labels of "
                "hierarchies. Expected 'interval'. Remove it",
            )
        for key in ("minimum_levels", "maximum_levels"):
            for name in getattr(self, key):
                if name not in quasi_identifiers:
                    hint = did_you_mean(name, quasi_identifiers, "Remove it")
                    yield Finding(
                        ("model", key),
                        f"found {in_words(name)}, which is no quasi-identifier. Expected names "
                        f"of quasi-identifiers. {hint}",
                    )
        for index, levels in enumerate(self.levels):
            if set(levels) != set(quasi_identifiers):
                yield Finding(
                    ("model", "levels", index),
                    f"found levels of {len(levels)} attributes. Expected one level for each of "
                    f"the {len(quasi_identifiers)} quasi-identifiers, and no others. Complete "
                    "or correct it",
                )
        for name in sorted(set(self.minimum_levels) & set(self.maximum_levels)):
            if self.minimum_levels[name] > self.maximum_levels[name]:
                yield Finding(
                    ("model", "minimum_levels", name),
                    f"found {self.minimum_levels[name]}, more than in maximum_levels. Expected "
                    "at most that. Correct one",
                )


class AutoOptions(ModelOptions):
    """Options of ``auto``, which tries models on a sample and takes the best one."""

    name: Literal["auto"]
    """Which model makes the classes: auto tries smondrian, su-mondrian and microaggregation
    on a sample. It takes the fastest one whose loss is at most 1% above the smallest. The manifest
    says which and why."""

    objective: Literal["loss", "queries"] = "loss"
    """What is to be small: loss is the share of its column that a value spans. Queries the median
    error of counting queries."""


class MappingOptions(ModelOptions):
    """Options of the mapping of an earlier release, applied to new records."""

    name: Literal["mapping"]
    """Which model makes the classes: mapping puts each record into the region of an earlier release
    that holds it, and publishes it with that label."""

    release: str = Field(min_length=1)
    """Directory of the earlier release. Any Hadoop URI."""

    unfit: Literal["merge", "suppress", "refuse"] | None = None
    """What becomes of regions whose new records are fewer than k or violate a criterion: merge
    joins them with their nearest ones, suppress leaves their records out, refuse publishes
    nothing. Null: merge, and suppress for a release by full-domain recoding."""

    def findings(self, attributes: Mapping[str, Attribute], style: str) -> Iterator[Finding]:  # noqa: ARG002
        """Find a style that hides regions."""
        if style == "mean":
            yield Finding(
                ("output", "style"),
                "found 'mean' with the model 'mapping', whose classes are those of regions. "
                "Expected 'interval' or 'bounds'. Choose one",
            )


_OPTIONS: tuple[type[ModelOptions], ...] = (
    MondrianOptions,
    CanonOptions,
    MicroaggregationOptions,
    FullDomainOptions,
    MappingOptions,
    AutoOptions,
)


def options_classes() -> dict[str, type[ModelOptions]]:
    """Return the options class of every accepted name, in the order in which messages list them.

    Those of other packages, as far as they are loaded, come last.

    >>> options_classes()["canon"].__name__
    'CanonOptions'
    """
    loaded = extensions.loaded(extensions.MODELS).values()
    foreign = (extension.value.options_class for extension in loaded)
    return {
        name: options
        for options in dict.fromkeys((*_OPTIONS, *foreign))
        for name in get_args(options.model_fields["name"].annotation)
    }


def foreign_model(name: str) -> Any:
    """Return the class of another package's model, or None if no package has the name.

    Raises ConfigurationError if the package cannot be used.
    """
    extension = extensions.extension(extensions.MODELS, name)
    if extension is None:
        return None
    options = getattr(extension.value, "options_class", None)
    if not (
        isinstance(options, type)
        and issubclass(options, ModelOptions)
        and name in get_args(options.model_fields["name"].annotation)
    ):
        problem = f"its options_class is no ModelOptions whose name may be {name!r}"
        raise extension.refused(extensions.MODELS, name, problem)
    return extension.value


def default_model() -> ModelOptions:
    """Return the options of a configuration that names no model."""
    return options_classes()[DEFAULT_MODEL](name=DEFAULT_MODEL)


def model_options(value: object) -> object:
    """Validate a ``model`` section with the options class of the model that it names."""
    if not isinstance(value, Mapping):
        return value
    name = value.get("name", DEFAULT_MODEL)
    if isinstance(name, str) and name not in options_classes():
        foreign_model(name)
    classes = options_classes()
    if not isinstance(name, str) or name not in classes:
        names = list(dict.fromkeys([*classes, *extensions.names(extensions.MODELS)]))
        hint = did_you_mean(name, names) if isinstance(name, str) else ""
        text = f"found {in_words(name)}. Expected {one_of(names)}. {hint}"
        raise impossible([Finding(("name",), text.removesuffix(". "))])
    return classes[name].model_validate({**value, "name": name})
