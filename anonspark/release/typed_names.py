"""Names of the typed columns that stand beside the labels of a release where it is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from anonspark.release.regions import PublishedAttribute

Typed = Literal["min", "max", "max_included", "mid", "missing", "set"]


def typed_names(
    attribute: PublishedAttribute, taken: Collection[str], *, is_opaque: bool, may_miss: bool
) -> dict[Typed, str]:
    """Return the typed columns of a quasi-identifier that are not published already.

    Parameters
    ----------
    attribute : PublishedAttribute
    taken : collection of str
        Names of the published columns.
    is_opaque : bool
        Whether its labels are those of a hierarchy of a file: what they stand for is not told.
    may_miss : bool
        Whether its values may be missing.

    Returns
    -------
    dict of str to str
        What is in the column, and its name: ``<name>_<what>``, with underscores behind it where a
        published column has that name.
    """

    def named(what: Typed) -> str:
        name = f"{attribute.name}_{what}"
        while name in taken:
            name += "_"
        return name

    return {
        what: named(what) for what in _wanted(attribute, is_opaque=is_opaque, may_miss=may_miss)
    }


def _wanted(attribute: PublishedAttribute, *, is_opaque: bool, may_miss: bool) -> Sequence[Typed]:
    if attribute.style == "bounds" and attribute.rule is not None:
        # The set of its values is published.
        return ()
    if attribute.is_category:
        return () if is_opaque or attribute.style == "bounds" else ("set",)
    if attribute.rule == "prefix":
        return ()
    if attribute.rule is not None:
        half_open: tuple[Typed, ...] = ("max_included",) if attribute.rule == "intervals" else ()
        missing: tuple[Typed, ...] = ("missing",) if may_miss else ()
        return ("min", "max", *half_open, "mid", *missing)
    if attribute.style in ("bounds", "mean"):
        return ("mid",)
    return ("min", "max", "mid", *(("missing",) if may_miss else ()))
