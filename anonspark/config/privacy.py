"""The section ``privacy``: what every class of a release satisfies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    create_model,
    model_validator,
)

from anonspark.config.input import NOT_IN_FILES, SourceOptions, take_format_of_names
from anonspark.config.problems import Finding, in_words
from anonspark.config.section import Section, name_or_names, one_or_more, reversed_bounds
from anonspark.core.criterion import CRITERIA, Criterion, Option, foreign_criterion

_KEYS = {criterion.key for criterion in CRITERIA.values()}

_AttributeName = Annotated[
    str, Field(min_length=1, description="Name of an attribute with the role sensitive.")
]


class LDiversity(Section):
    """The diversity of a sensitive attribute's values in every class."""

    attribute: _AttributeName
    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    """distinct: at least l different values. entropy: the entropy of the values is at least log l.
    recursive: the most frequent value is less frequent than c times all values from the l-th on."""

    l: float = Field(ge=1.0, le=1e9, allow_inf_nan=False)  # noqa: E741
    """Required diversity. A whole number for distinct and recursive."""

    c: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    """Factor of recursive diversity. Required for this kind, an error for others."""

    def _problems(self) -> Iterator[Finding]:
        """Find parameters that the kind of diversity lacks or does not take."""
        if self.kind != "entropy" and self.l != int(self.l):
            yield Finding(
                ("l",),
                f"found {in_words(self.l)} with the kind '{self.kind}'. Expected a whole number. "
                "Round it up, or set the kind to 'entropy'",
            )
        if self.kind == "recursive" and self.c is None:
            yield Finding(
                ("c",),
                "found nothing with the kind 'recursive'. Expected a number greater than 0. Add it",
            )
        if self.kind != "recursive" and self.c is not None:
            yield Finding(
                ("c",),
                f"found {in_words(self.c)} with the kind '{self.kind}'. Expected it with the kind "
                "'recursive' only. Remove it",
            )

    def criterion(self) -> Criterion:
        """Return the criterion that models check."""
        return Criterion(self.attribute, self.kind, self.l, self.c or 0.0)


class TCloseness(Section):
    """The distance of every class's distribution from that of the whole input."""

    attribute: _AttributeName
    t: float = Field(ge=0.0, le=1.0)
    """Largest allowed distance, from 0 to 1."""

    distance: Literal["equal", "ordered", "hierarchical", "maximum"] = "equal"
    """Distance between two values in the earth mover's distance. equal: the same for all values.
    ordered: the difference of their positions in the order. hierarchical: the height of their
    lowest common ancestor in the hierarchy. Or maximum: the largest difference in the share of a
    value."""

    def criterion(self) -> Criterion:
        """Return the criterion that models check."""
        return Criterion(self.attribute, f"{self.distance} distance", self.t)


class DeltaPresence(Section):
    """Bounds on the probability that a person of a population is in the release."""

    population: str = Field(min_length=1)
    """Path of the population table, which has all quasi-identifiers as columns."""

    format: str = Field(default="parquet", min_length=1)
    """Spark data source of the population table. If you omit it, the name of the table decides."""

    options: SourceOptions = Field(default={})
    """Options of the data source of the population table."""

    min: float = Field(default=0.0, ge=0.0, le=1.0)
    """Smallest allowed probability of presence."""

    max: float = Field(ge=0.0, le=1.0)
    """Largest allowed probability of presence."""

    @model_validator(mode="after")
    def _take_format_of_name(self) -> Self:
        take_format_of_names(self, [self.population])
        return self

    def _problems(self) -> Iterator[Finding]:
        if self.format.lower() in NOT_IN_FILES:
            yield Finding(
                ("format",),
                f"found {in_words(self.format)}. Expected the format of files, because a table of "
                "a database or catalog may be another one at each look. Export it first",
            )
        yield from reversed_bounds(self.min, self.max)


class _WithSeveralBounds(Section):
    """Criteria whose sections have more than one key beside the attribute."""

    k: int = Field(ge=1)
    """Smallest allowed class size."""

    l_diversity: Annotated[list[LDiversity], BeforeValidator(one_or_more)] = Field(default=[])
    """Diversity of sensitive attributes in every class. One or a list."""

    t_closeness: Annotated[list[TCloseness], BeforeValidator(one_or_more)] = Field(default=[])
    """Distance of the sensitive values of every class from those of the whole input. One or a
    list."""


class _OneBound(Section):
    """The base of sections of criteria with one bound."""

    criterion_kind: ClassVar[str]
    bound_key: ClassVar[str]
    attribute: _AttributeName

    def criterion(self) -> Criterion:
        """Return the criterion that models check."""
        return Criterion(self.attribute, self.criterion_kind, getattr(self, self.bound_key))


def _field_of(kind: str, option: Option) -> tuple[Any, Any]:
    """Return type and description of the key that lists sections with one bound."""
    limits: dict[str, Any] = dict(option.limits)
    fields: dict[str, Any] = {
        option.key: (float, Field(description=option.description, **limits)),
    }
    section = create_model(
        option.section, __base__=_OneBound, __doc__=option.about, __module__=__name__, **fields
    )
    section.criterion_kind, section.bound_key = kind, option.key
    if kind in CRITERIA:
        # Where unpickling a configuration looks for it.
        globals()[option.section] = section
    listed = Annotated[list[section], BeforeValidator(one_or_more)]  # type: ignore[valid-type]
    return listed, Field(default=[], description=option.list_description)


if TYPE_CHECKING:
    _WithOneBound = _WithSeveralBounds
else:
    _WithOneBound = create_model(
        "_WithOneBound",
        __base__=_WithSeveralBounds,
        **{
            criterion.key: _field_of(kind, criterion.option)
            for kind, criterion in CRITERIA.items()
            if criterion.option
        },
    )


class PrivacyOptions(_WithOneBound):
    """The guarantees of the release.

    The fields of criteria with one bound are made of :data:`anonspark.core.criterion.CRITERIA`.
    """

    unit: Annotated[list[str], BeforeValidator(name_or_names)] = Field(default=[])
    """Attributes that identify a person, such as a patient number. k then counts people, who may
    have several records. Without it, every record counts as a person."""

    delta_presence: DeltaPresence | None = None
    """Bounds on the probability that a person of a population is in the release. It is only checked
    before publishing."""

    allow_k_1: bool = False
    """Allows k = 1, which protects no one. Use it only for comparisons."""

    allow_alone: bool = False
    """Publishes output.pseudonyms even if some people agree with no one else in the classes of all
    their records."""

    foreign_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys of criteria of other packages: a configuration that has some is of a class of its own,
    see :func:`privacy_class`."""

    @model_validator(mode="wrap")
    @classmethod
    def _with_other_packages(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Any:
        if cls is PrivacyOptions and isinstance(value, Mapping):
            unknown = {key for key in value if isinstance(key, str)} - cls.model_fields.keys()
            keys = frozenset(key for key in unknown if foreign_criterion(key) is not None)
            if keys:
                return privacy_class(keys).model_validate(value)
        return validate(value)

    def __reduce__(self) -> Any:
        if self.foreign_keys:
            return PrivacyOptions.model_validate, (self.model_dump(),)
        return super().__reduce__()

    def _problems(self) -> Iterator[Finding]:
        if self.k == 1 and not self.allow_k_1:
            text = (
                "found 1, which protects no one because every record may be a class alone. "
                "Expected at least 2. Raise it, or set privacy.allow_k_1 to true if you only "
                "compare"
            )
            yield Finding(("k",), text)
        for key, index, section in self._sections() if self.unit else ():
            if section.criterion().kind != "distinct":
                yield Finding(
                    (key, index),
                    "found together with privacy.unit. Expected k and distinct l-diversity only, "
                    "because other criteria count records and would promise more than they keep. "
                    "Remove it, or bring the input to one record a person and remove privacy.unit",
                )

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """Criteria beyond k that every class satisfies, each once."""
        return tuple(dict.fromkeys(section.criterion() for _, _, section in self._sections()))

    def sections(self) -> list[tuple[str, Any]]:
        """Return the sections of criteria, each with its key."""
        return [(key, section) for key, _, section in self._sections()]

    def locations(self) -> list[tuple[tuple[str | int, ...], str]]:
        """Return where a sensitive attribute is named, and its name."""
        return [
            ((key, index, "attribute"), section.attribute)
            for key, index, section in self._sections()
        ]

    def _sections(self) -> Iterator[tuple[str, int, Any]]:
        """Return the sections of criteria with their places, in the order of the configuration."""
        for key in type(self).model_fields:
            if key in _KEYS or key in self.foreign_keys:
                for index, section in enumerate(getattr(self, key)):
                    yield key, index, section


@cache
def privacy_class(keys: frozenset[str]) -> type[PrivacyOptions]:
    """Extend the class of the section ``privacy`` by criteria of other packages."""
    fields: dict[str, Any] = {}
    for key in sorted(keys):
        criterion = foreign_criterion(key)
        if criterion is None or criterion.option is None:
            raise ValueError("a criterion without a package")
        fields[key] = _field_of(key, criterion.option)
    extended = create_model(
        "ExtendedPrivacyOptions",
        __base__=PrivacyOptions,
        __doc__=PrivacyOptions.__doc__,
        __module__=__name__,
        **fields,
    )
    extended.foreign_keys = keys
    return extended
