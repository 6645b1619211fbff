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
    """Largest share of the records that may be suppressed. After the last round, the classes whose
    records lose most are left out first. 0 leaves none out."""


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
    """Runs the algorithm as published in the thesis. It sets cut, span, refine (Mondrian), vantage
    (Canon), separation, reference and minimum_gain. Other values of these are errors. split, rho
    and lof_neighbors keep their values. null sets nothing."""

    rho: int = Field(default=5, ge=1, le=1000)
    """Maximum number of rounds. The last one keeps its groups whole. Only for models with outlier
    handling."""

    minimum_gain: float = Field(default=0.0, ge=0.0, le=1.0)
    """Smallest share of the certainty penalty that a round must remove. A round that removes less
    is the last one. 0 never stops early. Only for models with outlier handling."""

    separation: Annotated[Literal["always", "adaptive"], BeforeValidator(_current_word)] = (
        "adaptive"
    )
    """Which records a group passes to the next round. adaptive: only if this reduces the expected
    loss, and a round that does not reduce the loss is undone. always: all but the k records nearest
    to its reference, as published. Only for models with outlier handling. paying, the former name
    of adaptive, also works."""

    lof_neighbors: int | None = Field(default=None, ge=1, le=1_000_000)
    """Number of neighbours for the local outlier factor. null means k - 1. Only for models with
    outlier handling."""

    reference: Literal["lof", "density"] = "lof"
    """The centre of a group, which keeps the records nearest to it. lof: the record with the
    smallest local outlier factor, as published. density: the record with the smallest sum of
    distances to its neighbours. Only for models with outlier handling."""

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
    """Which model makes the classes. smondrian (also: mondrian) cuts once and keeps whole groups.
    su-mondrian (also: u-mondrian) groups the outliers again in further rounds."""

    split: Literal["strict", "relaxed"] = "strict"
    """Records equal to the median. strict: they stay on one side of the cut. relaxed: they are
    divided so that both halves have equal size."""

    cut: Literal["balanced", "published"] = "balanced"
    """Where an attribute is cut. balanced: below or above the median, whichever gives more equal
    halves. With criteria beyond k, it also tries other values before it leaves a group whole.
    published: only above the median, as in the published algorithm. No effect with split:
    relaxed."""

    span: Literal["data", "cell"] = "data"
    """The width by which the next attribute to cut is chosen. data: the range of the group's
    values. cell: the distance between the earlier cuts, as in the published algorithm."""

    refine: int | None = Field(default=None, ge=0, le=1_000)
    """How often groups are refined after the cuts: neighbours exchange records, and are cut again
    if that loses less. su-mondrian publishes these groups or those of its rounds, whichever lose
    less. 0 keeps the groups as cut, as published. null means 1 for su-mondrian with separation:
    adaptive, otherwise 0. It changes the release."""

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
    """Which model makes the classes. canon cuts into halves by the distance to a vantage point, and
    keeps whole groups. u-canon groups the outliers again in further rounds."""

    vantage: Literal["spread", "random"] = "spread"
    """How a vantage point is chosen. spread: of thirty records drawn by content, the one whose
    distances vary most. random: the first record drawn, as published."""


class MicroaggregationOptions(CuttingOptions):
    """Options of microaggregation."""

    name: Literal["microaggregation"]
    """Which model makes the classes. microaggregation builds and improves groups of k to 2k - 1
    similar records, for the smallest loss."""

    objective: Literal["gcp", "queries"] = "gcp"
    """What the groups optimize. gcp: the smallest certainty penalty. queries: also better counts,
    for a slightly larger penalty."""

    passes: int = Field(default=20, ge=1, le=1_000)
    """How often all groups are improved. More passes lose less, and take proportionally longer. It
    changes the release."""

    block_rows: int = Field(default=250_000, ge=1_000, le=10_000_000)
    """Largest number of records in a block. Larger tables are first cut into blocks at medians. It
    changes the release."""


class FullDomainOptions(ModelOptions):
    """Options of full-domain recoding, once (``full-domain``) or in rounds (``rho-gain``)."""

    name: Literal["full-domain", "rho-gain"]
    """Which model makes the classes. full-domain recodes every quasi-identifier to one level of its
    hierarchy and suppresses records whose class violates a criterion. rho-gain recodes the
    suppressed records again, round after round."""

    rho: int = Field(default=2, ge=0, le=1000)
    """Maximum number of rounds after the first one. Only for rho-gain."""

    objective: ObjectiveName = "average_class_size"
    """What the chosen levels optimize: average_class_size (most classes), discernibility,
    monotonic_discernibility (suppression itself costs nothing), precision, loss or entropy."""

    suppression_limit: float | None = Field(default=None, ge=0.0, le=1.0)
    """Largest share of a round's records that may be suppressed. null means 0.05 for full-domain
    and 1 for rho-gain, whose next round recodes them."""

    minimum_levels: dict[str, _Level] = Field(default={})
    """Lowest allowed levels of some quasi-identifiers. 0 for the others."""

    maximum_levels: dict[str, _Level] = Field(default={})
    """Highest allowed levels of some quasi-identifiers. The top of the hierarchy for the others."""

    levels: list[dict[str, _Level]] = Field(default=[])
    """Fixed levels instead of a search: one mapping of all quasi-identifiers for each round. Use it
    to make several releases alike, or to repeat one."""

    search: Literal["exhaustive", "pruned"] | None = Field(
        default=None,
        description=(
            "exhaustive scores every node of the lattice. pruned skips nodes that monotonicity and "
            "bounds rule out, and can miss the best node if a criterion is not monotone. "
            f"null means exhaustive for up to {EXHAUSTIVE_NODES:,} nodes."
        ),
    )
    t_reference: Literal["original", "round"] = "original"
    """What t-closeness compares a class with. original: the whole input. round: the records of its
    round, as published. The release may then violate t-closeness to the whole input."""

    residual: Literal["drop", "suppress"] = "drop"
    """Records without a class after the last round. drop leaves them out. suppress publishes them
    with * in every quasi-identifier, if they satisfy the criteria together."""

    driver_tuples: int = Field(default=5_000_000, ge=1)
    """How many distinct tuples of quasi-identifiers (with sensitive values, if criteria need them)
    the driver holds for the search. If there are more, they stay on the cluster."""

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
    """Which model makes the classes. auto tries smondrian, su-mondrian and microaggregation on a
    sample. It uses the fastest one whose loss is at most 1% above the smallest. The manifest has
    the choice and the losses."""

    objective: Literal["loss", "queries"] = "loss"
    """What should be small. loss: the share of its column that a value spans. queries: the median
    error of counting queries."""


class MappingOptions(ModelOptions):
    """Options of the mapping of an earlier release, applied to new records."""

    name: Literal["mapping"]
    """Which model makes the classes. mapping puts each record into the region of an earlier release
    that contains it, and publishes it with that label."""

    release: str = Field(min_length=1)
    """Directory of the earlier release. Any Hadoop URI."""

    unfit: Literal["merge", "suppress", "refuse"] | None = None
    """What to do with regions whose new records are fewer than k or violate a criterion. merge
    joins them with the nearest ones, suppress leaves their records out, refuse publishes nothing.
    null means suppress after full-domain, otherwise merge."""

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
