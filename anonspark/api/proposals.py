"""Propose the l of sensitive columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from anonspark.api.adapters import Adapter
from anonspark.api.arguments import sensitive_of, whole_number
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_plain
from anonspark.verification.proof.homogeneity import homogeneity_of
from anonspark.verification.proof.sensitive import describe_values

PROPOSED: Final = "proposed"
"""Stands for the l that ``anonspark init`` would propose."""


def with_diversity(
    document: Mapping[str, Any],
    roles: Mapping[str, str],
    l: int | str | None,  # noqa: E741 - its name in the literature
    table: Any,
    adapter: Adapter,
) -> dict[str, object]:
    """Return what keywords ask for, with l-diversity of the sensitive attributes.

    Parameters
    ----------
    document : mapping
        Of :func:`anonspark.api.arguments.wanted_configuration`, made of keywords.
    roles : mapping of str to str
        Of :func:`anonspark.api.arguments.roles_of`.
    l : int, str or None
        For every sensitive attribute. None asks for none.
    table : DataFrame
        Whose values are counted where l is to be proposed.
    adapter : Adapter
        Takes the table.

    Raises
    ------
    ConfigurationError
        If it is no number of values, or nothing is sensitive.

    Notes
    -----
    Where l is proposed, one job for each sensitive column.
    """
    if l is None or (l == PROPOSED and "sensitive" not in roles.values()):
        return dict(document)
    names = sensitive_of(roles, "l")
    if l == PROPOSED:
        with adapter.tables(table) as (data,):
            bounds = _proposed(data, names)
    else:
        bounds = dict.fromkeys(names, whole_number("l", l, 2))
    criteria = [{"attribute": name, "l": bound} for name, bound in bounds.items()]
    return {**document, "privacy": {**document["privacy"], "l_diversity": criteria}}


def _proposed(table: Table, names: list[str]) -> dict[str, int]:
    """Return the l that is proposed for each column, without those that none can be asked of."""
    schema = table.schema
    # What cannot be anonymized is refused where all other mistakes are.
    sound = [
        name
        for name in names
        if schema.names.count(name) == 1 and is_plain(schema.field(name).type)
    ]
    l_of = {
        name: homogeneity_of(describe_values(table, name), 0, None).proposed_l for name in sound
    }
    return {name: bound for name, bound in l_of.items() if bound is not None}
