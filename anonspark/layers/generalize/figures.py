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

    A class has its round, name and size, for each of ``d`` quasi-identifiers its bounds, published
    level and loss (see :class:`anonspark.layers.generalize.classes.ClassFigures`), and the
    ``columns`` of the release that its records have in common. ``records`` is their schema.
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
    """Return classes as rows to stage, see :func:`class_schema`."""
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

    >>> losses_of_records([np.array([0.5, 0.0]), np.array([0.25, 1.0])], [1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    total = np.zeros(len(penalties[0]))
    for penalty, weight in zip(penalties, weights, strict=True):
        total += penalty * weight
    return total


def penalties_of_classes(figures: ClassFigures, weights: Sequence[float]) -> Figures:
    """Return the records of each class times the weighted sum of its certainty penalties."""
    return losses_of_records(list(figures.penalties.T), weights) * figures.sizes


def exact_sums(values: Figures, starts: Places | Sequence[int] = (0,)) -> list[Decimal]:
    """Sum the numbers of each group, after each is rounded to 15 decimal places.

    Unlike sums of floats, these depend neither on the order of the numbers nor on how tasks divide
    them. There are fewer than 2^37 numbers, with a sum below 2^62. ``starts`` is where each group
    begins, and no group is empty.

    >>> [str(total) for total in exact_sums(np.array([0.1, 0.2, 5.0]), [0, 2])]
    ['0.300000000000000', '5.000000000000000']
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
