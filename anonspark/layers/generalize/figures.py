"""The figures of classes as tasks stage them, and sums of them that are the same on any cluster."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.arrays import Figures
from anonspark.core.columns import (
    CLASS_ID,
    ROUND,
    SIZE,
    published_column,
    quasi_identifier_column,
)
from anonspark.layers.generalize.classes import ClassFigures, PublishedColumn

Places = npt.NDArray[np.int64]

_PLACES = 15

# A number of 15 decimal places as two parts whose sums do not overflow.
_LOW_BITS = 25


def class_schema(records: pa.Schema, d: int, columns: Sequence[PublishedColumn]) -> pa.Schema:
    """Return the schema of staged classes.

    Parameters
    ----------
    records : pyarrow.Schema
        Schema of the staged records.
    d : int
        Quasi-identifiers.
    columns : sequence of PublishedColumn
        Of the release, those that describe quasi-identifiers.

    Returns
    -------
    pyarrow.Schema
        The round, the class's name and size, for each quasi-identifier its bounds, its published
        level and its loss (see :class:`anonspark.layers.generalize.classes.ClassFigures`), and the
        columns of the release, which all records of a class have in common.
    """
    fields = [
        pa.field(ROUND, pa.int32()),
        pa.field(CLASS_ID, pa.int64()),
        pa.field(SIZE, pa.int64()),
    ]
    for index in range(d):
        field = records.field(quasi_identifier_column(index)).with_nullable(True)
        fields += [
            field.with_name(f"lowest_{index}"),
            field.with_name(f"highest_{index}"),
            pa.field(f"level_{index}", pa.int64()),
            pa.field(f"penalty_{index}", pa.float64()),
            pa.field(f"loss_{index}", pa.float64()),
        ]
    return pa.schema([*fields, *published_fields(columns)])


def published_fields(columns: Sequence[PublishedColumn]) -> list[pa.Field]:
    """Return the staged columns of what a class is published as."""
    return [
        pa.field(published_column(index), column.arrow_type) for index, column in enumerate(columns)
    ]


def class_rows(
    number: int, identifiers: pa.Array, figures: ClassFigures, published: Sequence[pa.Array]
) -> pa.Table:
    """Return classes as they are staged, of :func:`class_schema`.

    Parameters
    ----------
    number : int
        The round.
    identifiers : pyarrow.Int64Array of shape (classes,)
        Names of the classes.
    figures : ClassFigures
    published : sequence of pyarrow.Array of shape (classes,)
        The columns of the release.
    """
    columns: dict[str, object] = {
        ROUND: pa.repeat(pa.scalar(number, pa.int32()), len(identifiers)),
        CLASS_ID: identifiers,
        SIZE: pa.array(figures.sizes),
    }
    for index in range(figures.penalties.shape[1]):
        columns |= {
            f"lowest_{index}": figures.lowest[index],
            f"highest_{index}": figures.highest[index],
            f"level_{index}": pa.array(figures.levels[:, index]),
            f"penalty_{index}": pa.array(figures.penalties[:, index]),
            f"loss_{index}": pa.array(figures.losses[:, index]),
        }
    columns |= {published_column(position): column for position, column in enumerate(published)}
    return pa.table(columns)


def losses_of_records(penalties: Sequence[Figures], weights: Sequence[float]) -> Figures:
    """Return the weighted sum of the certainty penalties of each class, which a record loses.

    Parameters
    ----------
    penalties : sequence of float64 ndarray of shape (classes,)
        Of each quasi-identifier.
    weights : sequence of float
    """
    total = np.zeros(len(penalties[0]))
    for penalty, weight in zip(penalties, weights, strict=True):
        total += penalty * weight
    return total


def penalties_of_classes(figures: ClassFigures, weights: Sequence[float]) -> Figures:
    """Return the records of each class times the weighted sum of its certainty penalties."""
    return losses_of_records(list(figures.penalties.T), weights) * figures.sizes


def exact_sums(values: Figures, starts: Places | Sequence[int] = (0,)) -> list[Decimal]:
    """Return sums of numbers that are rounded to 15 decimal places first.

    They do not depend on the order of the numbers, nor on how these are shared out among tasks.
    Sums of floating-point numbers would.

    Parameters
    ----------
    values : float64 ndarray of shape (n,)
        Less than 2^62 together. n < 2^37.
    starts : int64 ndarray of shape (groups,)
        Where each group of numbers begins. None is empty.

    Returns
    -------
    list of Decimal
        Of each group. With 15 places.
    """
    if not len(values):
        return [Decimal(0) for _ in starts]
    whole = np.floor(values)
    units = np.rint((values - whole) * 10.0**_PLACES).astype(np.int64)
    parts = (whole.astype(np.int64), units >> _LOW_BITS, units & (2**_LOW_BITS - 1))
    sums = (np.add.reduceat(part, np.asarray(starts, np.int64)).tolist() for part in parts)
    with localcontext(prec=60):
        return [
            Decimal(integer * 10**_PLACES + (high << _LOW_BITS) + low).scaleb(-_PLACES)
            for integer, high, low in zip(*sums, strict=True)
        ]
