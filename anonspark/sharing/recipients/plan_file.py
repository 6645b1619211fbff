"""The plan file: what it may say, before it is known whether it fits the base."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from anonspark.config.problems import Finding, impossible, in_words
from anonspark.config.section import NonEmptyText, Section, name_or_names, one_or_more
from anonspark.release.conditions import ConditionFile

MOST_RECIPIENTS = 60
"""Recipients of a plan at most: each has a bit of a pattern of 64."""

_NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"

RecipientName = Annotated[str, Field(pattern=_NAME)]


def _as_condition(value: object) -> object:
    """Write a value, or a list of them, as a condition.

    >>> _as_condition("f"), _as_condition({"min": 18})
    ({'in': ['f']}, {'min': 18})
    """
    if isinstance(value, list):
        return {"in": value}
    if isinstance(value, str | int | float | bool):
        return {"in": [value]}
    return value


class CollusionDiversity(Section):
    """How many values of a sensitive attribute there are in every joint class."""

    attribute: NonEmptyText
    """Name of an attribute with the role sensitive."""

    kind: Literal["distinct"] = "distinct"
    """Different values."""

    l: int = Field(ge=1)  # noqa: E741
    """Different values at least."""


class CollusionFile(Section):
    """What recipients who put together what they have must not be able to do."""

    k: int | None = Field(default=None, ge=1)
    """Persons of every joint class. The smallest k of the recipients by default."""

    l_diversity: Annotated[list[CollusionDiversity], BeforeValidator(one_or_more)] = Field(
        default=[]
    )
    """Different values of sensitive attributes in every joint class. One or a list."""

    recipients: Literal["all"] | Annotated[int, Field(ge=1)] = "all"
    """How many recipients may put together what they have."""

    together: list[Annotated[list[RecipientName], Field(min_length=2)]] = Field(default=[])
    """Recipients that are always one."""


class LedgerFile(Section):
    """The ledger that records which recipient was given which release."""

    path: NonEmptyText
    """Directory of the ledger. Any Hadoop URI."""

    key_file: NonEmptyText
    """File of the key, of 32 bytes at least, on the local disk of the driver."""


class BasePartitionFile(Section):
    """What becomes of the groups that no release divides."""

    reuse: bool = True
    """Whether the groups of the ledger's earlier plans hold on."""


class PresenceFile(Section):
    """Limit how sure a recipient may be that a person is in a release."""

    max: float = Field(ge=0.0, le=1.0)
    """Largest probability of presence, the source as population."""


class RequestFile(Section):
    """What a recipient asked for."""

    approved: NonEmptyText
    """Who approved what."""

    until: NonEmptyText | None = None
    """Day until which the recipient may keep it, as 2027-12-31."""

    purpose: str | None = None
    """What it is for."""

    public: bool = False
    """Whether it is open data, which all have."""

    columns: Annotated[list[NonEmptyText], Field(min_length=1)]
    """Columns of the base that are given."""

    where: dict[str, Annotated[ConditionFile, BeforeValidator(_as_condition)]] = Field(default={})
    """Column and what it has: a value, a list of values, or a mapping of in, not_in, min, max and
    missing. All have to hold."""

    privacy: dict[str, Any] = Field(default={})
    """As in a configuration. The base's is the least."""

    presence: PresenceFile | None = None
    """Bound on the probability of presence."""

    model: dict[str, Any] | None = None
    """As in a configuration. With the strategy independent only."""

    output: dict[str, Any] | None = None
    """As in a configuration."""

    gates: dict[str, Any] | None = None
    """As in a configuration."""

    evaluate: dict[str, Any] | None = None
    """As in a configuration."""

    metrics: dict[str, Any] | None = None
    """As in a configuration."""

    def _problems(self) -> Iterator[Finding]:
        if self.until is None:
            return
        try:
            until = date.fromisoformat(self.until)
        except ValueError:
            text = f"found {in_words(self.until)}. Expected a day such as 2027-12-31. Correct it"
            yield Finding(("until",), text)
            return
        if until < date.today():
            text = f"found the day {until}, which is past. Expected one to come. Ask for a new one"
            yield Finding(("until",), text)


class PlanEvaluate(Section):
    """What is measured beyond the usual."""

    compare_strategies: bool = False
    """Whether each release is made the other way, too, and measured."""


class PlanFile(Section):
    """What a plan file may say."""

    title: str | None = None
    """What is given, for people."""

    base: str | dict[str, Any]
    """The configuration whose attributes may be given at all: a path, relative to the plan, or the
    configuration itself. It needs no output."""

    settings: dict[str, Any] = Field(default={}, alias="set")
    """Key paths and values that replace those of the base."""

    subject: Annotated[list[NonEmptyText], BeforeValidator(name_or_names)] = Field(default=[])
    """The identifier, or identifiers, of people."""

    record: Annotated[list[NonEmptyText], BeforeValidator(name_or_names)] = Field(default=[])
    """The identifier, or identifiers, of records, if a person has several. People are counted then,
    not records."""

    strategy: Literal["nested", "independent"] = "nested"
    """nested: releases are made of groups that none divides, so that all coalitions are held off.
    Independent: each is made by itself, and all are refused if one fails."""

    collusion: CollusionFile = CollusionFile()
    """Limits on what recipients learn together."""

    ledger: LedgerFile | None = None
    """The ledger that records which recipient was given which release."""

    base_partition: BasePartitionFile = BasePartitionFile()
    """The groups that no release divides."""

    evaluate: PlanEvaluate = PlanEvaluate()
    """Figures of the releases together beyond the usual."""

    output: NonEmptyText
    """Directory of the releases, each in one of its recipient's name."""

    recipients: Annotated[
        dict[RecipientName, RequestFile], Field(min_length=1, max_length=MOST_RECIPIENTS)
    ]
    """Who gets what."""

    @field_validator("recipients", mode="before")
    @classmethod
    def _check_names(cls, value: object) -> object:
        """Say what names are allowed, which a pattern does not say in words."""
        findings = [
            Finding(
                (name,),
                "is no name of a recipient. Expected 1 to 64 lower-case letters (a to z), digits, "
                "'.', '_' or '-', the first a letter or a digit. Rename it",
            )
            for name in (value if isinstance(value, dict) else ())
            if isinstance(name, str) and not re.fullmatch(_NAME, name)
        ]
        if findings:
            raise impossible(findings)
        return value
