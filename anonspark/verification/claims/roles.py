"""Define roles for a table of another tool, which has no manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

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
    """The roles of a table without a manifest, and what is required of it.

    ``k`` is 2 if it is None, ``l`` the number of different values that every class has of each
    sensitive attribute, ``t`` the largest distance of a class from all records: ordered if the type
    has an order (numbers, dates, timestamps), equal for texts. ``unit`` identifies people, of whom
    a class must have k. ``suppressed`` is what stands in place of suppressed values. Records that
    have it in all quasi-identifiers are no class: they are left out and counted, and their
    sensitive values count for ``t`` alone.
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
        """The options of the command line that are set.

        >>> Roles(("age",), k=3).options
        ['--quasi-identifier', '--k']
        """
        names = {"quasi_identifiers": "quasi-identifier"}
        set_names = [name for name, value in vars(self).items() if value not in ((), None)]
        return [f"--{names.get(name, name)}" for name in set_names]

    def among(self, columns: Sequence[str]) -> Roles:
        """Return the roles of a table that has some columns, from those of several tables.

        >>> Roles(("age", "zip"), ("pay",), l=2).among(["age_min", "age_max"]) == Roles(("age",))
        True
        """
        names = (
            name
            for name in self.quasi_identifiers
            if name in columns or {f"{name}_min", f"{name}_max"} <= set(columns)
        )
        sensitive = tuple(name for name in self.sensitive if name in columns)
        roles = self if sensitive else replace(self, l=None, t=None)
        unit = self.unit if set(self.unit) <= set(columns) else ()
        return replace(roles, quasi_identifiers=tuple(names), sensitive=sensitive, unit=unit)


def required_roles(roles: Roles, document: str | None) -> Roles | None:
    """Return roles, or None if they are empty.

    ``document`` is what messages call the configuration, or None if there is none. Raises
    ConfigurationError if both are given.
    """
    if not roles.options:
        return None
    if document is not None:
        raise ConfigurationError(
            f"{', '.join(roles.options)}: found together with {document}, which sets them. "
            "Leave one of the two out"
        )
    return roles


def claim_of_roles(roles: Roles, schema: pa.Schema) -> Claim:
    """Return what the roles of its columns require of a table of another tool.

    Raises ConfigurationError if no quasi-identifier is named, or a value cannot be required, and
    DataError if the table lacks columns.

    >>> schema = pa.schema([("age", pa.int64()), ("pay", pa.int64())])
    >>> claim_of_roles(Roles(("age",)), schema).as_they_came
    ('pay',)
    """
    problems = list(_problems(roles))
    if problems:
        raise ConfigurationError(*problems)
    columns = schema.names
    others = {*roles.sensitive, *roles.unit}
    lacking = [name for name in (*roles.sensitive, *roles.unit) if name not in columns]
    if lacking:
        raise DataError(
            f"release: lacks the columns {', '.join(map(repr, lacking))}. Check their spelling"
        )
    class_columns = published_columns(
        roles.quasi_identifiers, [name for name in columns if name not in others]
    )
    privacy: dict[str, object] = {"k": roles.k or 2, "unit": list(roles.unit)}
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
        class_columns,
        roles.quasi_identifiers,
        sensitive=roles.sensitive,
        as_they_came=tuple(name for name in columns if name not in class_columns),
    )


def _problems(roles: Roles) -> Sequence[str]:
    """List what cannot be required, one sentence each.

    >>> _problems(Roles(("age",), k=1))[0][:10]
    'k: found 1'
    """
    problems = []
    if not roles.quasi_identifiers:
        problems.append(
            "quasi-identifiers: none is named. Name the columns that people could be recognized by"
        )
    if roles.k is not None and roles.k < 2:
        problems.append(
            f"k: found {roles.k}, which every table keeps. Expected a number of records, at least 2"
        )
    if roles.l is not None and roles.l < 2:
        problems.append(
            f"l: found {roles.l}, which every table keeps. Expected a number of values, at least 2"
        )
    if roles.t is not None and not 0 <= roles.t <= 1:
        problems.append(f"t: found {roles.t}. Expected a distance, from 0 to 1")
    if (roles.l is not None or roles.t is not None) and not roles.sensitive:
        problems.append("l, t: found without a sensitive attribute. Name what they are about, too")
    named = [*roles.quasi_identifiers, *roles.sensitive, *roles.unit]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        names = ", ".join(map(repr, twice))
        problems.append(f"columns: found {names} twice. A column has one role: name it once")
    return problems


@dataclass(frozen=True)
class _Suppressed:
    """Yields the records whose quasi-identifiers are all suppressed, or the others."""

    columns: tuple[str, ...]
    text: str
    suppressed: bool

    def __call__(self, batches: Batches) -> Batches:
        """Filter each batch."""
        for batch in batches:
            flags = reduce(pc.and_, (self._flags(batch.column(name)) for name in self.columns))
            yield batch.filter(flags if self.suppressed else pc.invert(flags))

    def _flags(self, column: pa.Array) -> pa.Array:
        """Return which values of a column are suppressed."""
        if not is_text(column.type):
            return pc.and_(pc.is_null(column), self.text == "")
        return pc.equal(pc.utf8_trim_whitespace(column.fill_null("")), self.text)


def leave_out_suppressed(data: Table, claim: Claim, roles: Roles | None) -> tuple[Table, Claim]:
    """Take the suppressed records out of another tool's table, and note them in its claim.

    Returns the other records and the new claim, both unchanged if no text stands for suppressed
    values. One job, and one for each sensitive attribute, whose suppressed values are collected.
    """
    if roles is None or roles.suppressed is None:
        return data, claim
    text = roles.suppressed.strip()
    suppressed, others = (
        data.map_batches(_Suppressed(tuple(claim.columns), text, is_suppressed), data.schema)
        for is_suppressed in (True, False)
    )
    rows = suppressed.count()
    names = [name for name in claim.sensitive if rows and is_plain(data.schema.field(name).type)]
    tables = [_values(suppressed, name, text) for name in names]
    left_out = LeftOut(rows, pa.concat_tables(tables) if tables else None, suppressed=rows)
    return others, replace(claim, left_out=left_out)


def _values(suppressed: Table, name: str, text: str) -> pa.Table:
    """Return the values of a sensitive attribute, as ``left_out`` of a release has them."""
    counted = suppressed.select({"value": name}).aggregate(["value"], count="records")
    values = counted.collect(MOST_VALUES + 1)
    if is_text(values["value"].type):
        # A suppressed sensitive value is no value.
        is_other = pc.not_equal(pc.utf8_trim_whitespace(values["value"]), text)
        values = values.filter(pc.fill_null(is_other, True))
    return left_out_texts(name, values)
