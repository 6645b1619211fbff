"""Define roles for a table of another tool, which has no manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config.privacy import PrivacyOptions
from anonspark.core.criterion import MOST_VALUES
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_plain, is_text
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError, DataError
from anonspark.verification.claims.claim import Claim, published_columns
from anonspark.verification.claims.left_out import LeftOut, left_out_texts


@dataclass(frozen=True)
class Roles:
    """The roles of a table without a manifest.

    Parameters
    ----------
    quasi_identifiers : tuple of str
        Attributes that people could be recognized by, as the table or the original names them.
    sensitive : tuple of str
        Attributes that must stay private.
    k : int or None
        Smallest class size required. None for 2.
    l : int or None
        Different values that every class has of each sensitive attribute, at least.
    t : float or None
        Largest distance of any class from all records, in each sensitive attribute: ordered where
        its type has an order (numbers, dates, timestamps), equal for texts.
    unit : tuple of str
        Columns that identify people, of whom a class must have k.
    suppressed : str or None
        What stands in place of suppressed values. Records that have it in all quasi-identifiers are
        no class: they are left out and counted, and their sensitive values count for ``t`` alone.
    """

    quasi_identifiers: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    k: int | None = None
    l: int | None = None  # noqa: E741
    t: float | None = None
    unit: tuple[str, ...] = ()
    suppressed: str | None = None

    @property
    def options(self) -> list[str]:
        """The options of the command line that say something."""
        names = {"quasi_identifiers": "quasi-identifier"}
        said = ((name, value) for name, value in vars(self).items() if value not in ((), None))
        return [f"--{names.get(name, name)}" for name, _ in said]

    def among(self, columns: Sequence[str]) -> Roles:
        """Return what is said of a table that has these columns, of several tables' roles."""
        named = (
            name
            for name in self.quasi_identifiers
            if name in columns or {f"{name}_min", f"{name}_max"} <= set(columns)
        )
        sensitive = tuple(name for name in self.sensitive if name in columns)
        own = self if sensitive else replace(self, l=None, t=None)
        unit = self.unit if set(self.unit) <= set(columns) else ()
        return replace(own, quasi_identifiers=tuple(named), sensitive=sensitive, unit=unit)


def required_roles(roles: Roles, document: str | None) -> Roles | None:
    """Return roles, None where they say nothing.

    Parameters
    ----------
    roles : Roles
    document : str or None
        What messages call the configuration that is given. None where none is.

    Raises
    ------
    ConfigurationError
        If both say something.
    """
    if not roles.options:
        return None
    if document is not None:
        raise ConfigurationError(
            f"{', '.join(roles.options)}: found together with {document}, which says the same. "
            "Leave one of the two out"
        )
    return roles


def claim_of_roles(roles: Roles, schema: pa.Schema) -> Claim:
    """Return what is required of a table of another tool.

    Parameters
    ----------
    roles : Roles
    schema : pyarrow.Schema
        Of the table.

    Raises
    ------
    ConfigurationError
        If no quasi-identifier is named, or something that is no requirement.
    DataError
        If the table lacks columns.
    """
    problems = list(_problems(roles))
    if problems:
        raise ConfigurationError(*problems)
    found = schema.names
    others = {*roles.sensitive, *roles.unit}
    lacking = [name for name in (*roles.sensitive, *roles.unit) if name not in found]
    if lacking:
        raise DataError(
            f"release: lacks the columns {', '.join(map(repr, lacking))}. Check their spelling"
        )
    columns = published_columns(
        roles.quasi_identifiers, [name for name in found if name not in others]
    )
    privacy: dict[str, Any] = {"k": roles.k or 2, "unit": list(roles.unit)}
    if roles.l is not None:
        privacy["l_diversity"] = [{"attribute": name, "l": roles.l} for name in roles.sensitive]
    if roles.t is not None:
        privacy["t_closeness"] = [
            {
                "attribute": name,
                "t": roles.t,
                "distance": "equal" if is_text(schema.field(name).type) else "ordered",
            }
            for name in roles.sensitive
        ]
    return Claim(
        PrivacyOptions.model_validate(privacy),
        columns,
        roles.quasi_identifiers,
        sensitive=roles.sensitive,
        as_they_came=tuple(name for name in found if name not in columns),
    )


def _problems(roles: Roles) -> Sequence[str]:
    """Return what is no requirement, one sentence each."""
    found = []
    if not roles.quasi_identifiers:
        found.append(
            "quasi-identifiers: none is named. Name the columns that people could be recognized by"
        )
    if roles.k is not None and roles.k < 2:
        found.append(
            f"k: found {roles.k}, which every table keeps. Expected a number of records, at least 2"
        )
    if roles.l is not None and roles.l < 2:
        found.append(
            f"l: found {roles.l}, which every table keeps. Expected a number of values, at least 2"
        )
    if roles.t is not None and not 0 <= roles.t <= 1:
        found.append(f"t: found {roles.t}. Expected a distance, from 0 to 1")
    if (roles.l is not None or roles.t is not None) and not roles.sensitive:
        found.append("l, t: found without a sensitive attribute. Name what they are about, too")
    named = [*roles.quasi_identifiers, *roles.sensitive, *roles.unit]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        names = ", ".join(map(repr, twice))
        found.append(f"columns: found {names} twice. A column has one role: name it once")
    return found


@dataclass(frozen=True)
class _Suppressed:
    """Yields the records whose quasi-identifiers are all suppressed, or the others."""

    columns: tuple[str, ...]
    text: str
    wanted: bool

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            flags = reduce(pc.and_, (self._flags(batch.column(one)) for one in self.columns))
            yield batch.filter(flags if self.wanted else pc.invert(flags))

    def _flags(self, column: pa.Array) -> pa.Array:
        if not is_text(column.type):
            return pc.and_(pc.is_null(column), self.text == "")
        return pc.equal(pc.utf8_trim_whitespace(column.fill_null("")), self.text)


def leave_out_suppressed(data: Table, claim: Claim, roles: Roles | None) -> tuple[Table, Claim]:
    """Return the records that are not suppressed, and what is required of them.

    Parameters
    ----------
    data : Table
        Of another tool.
    claim : Claim
    roles : Roles or None
        What it was made of.

    Returns
    -------
    data : Table
        The same where nothing is said of suppressed values.
    claim : Claim
        With the number of records left out and their sensitive values.

    Notes
    -----
    One job, and one for each sensitive attribute. Of suppressed records the different values of
    these are collected.
    """
    if roles is None or roles.suppressed is None:
        return data, claim
    text = roles.suppressed.strip()
    suppressed, others = (
        data.map_batches(_Suppressed(tuple(claim.columns), text, wanted), data.schema)
        for wanted in (True, False)
    )
    rows = suppressed.count()
    known = [one for one in claim.sensitive if is_plain(data.schema.field(one).type)]
    return others, replace(
        claim,
        left_out=LeftOut(
            rows,
            pa.concat_tables(_values(suppressed, one, text) for one in known)
            if rows and known
            else None,
            suppressed=rows,
        ),
    )


def _values(suppressed: Table, name: str, text: str) -> pa.Table:
    """Return the values of a sensitive attribute, as ``left_out`` of a release has them."""
    counted = suppressed.select({"value": name}).aggregate(["value"], count="records")
    found = counted.collect(MOST_VALUES + 1)
    if is_text(found["value"].type):
        # What is suppressed as well is no value.
        others = pc.not_equal(pc.utf8_trim_whitespace(found["value"]), text)
        found = found.filter(pc.fill_null(others, True))
    return left_out_texts(name, found)
