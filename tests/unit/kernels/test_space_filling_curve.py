"""The Hilbert curve: every cell once, and each step to a neighbour."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from anonspark.kernels.order_cutting import hilbert_keys


@pytest.mark.parametrize(
    ("d", "bits"), [(1, 1), (1, 10), (2, 1), (2, 6), (3, 4), (4, 3), (5, 2), (7, 1), (12, 1)]
)
def test_the_curve_visits_every_cell_once_and_steps_to_a_neighbor(d: int, bits: int) -> None:
    cells = np.array(list(itertools.product(range(2**bits), repeat=d)), np.int64)

    keys = hilbert_keys(np.ascontiguousarray(cells.T), bits)

    assert sorted(keys.tolist()) == list(range(2 ** (d * bits)))
    curve = cells[np.argsort(keys)]
    assert not curve[0].any()
    assert (np.abs(np.diff(curve, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("d", [2, 3, 5])
def test_a_coarser_grid_gives_the_leading_digits(d: int) -> None:
    """What makes the curve local: it fills a coarse cell before it goes to the next one."""
    fine = np.random.default_rng(1).integers(0, 2**9, (d, 500))

    # The curve through the coarse grid is the same but for the names of the axes, so that equal
    # coarse cells, not equal keys, are compared.
    leading = hilbert_keys(fine, 9) >> (3 * d)
    coarse = [tuple(cell) for cell in (fine >> 3).T.tolist()]

    assert len(set(zip(leading.tolist(), coarse, strict=True))) == len(set(coarse))
    assert len(set(leading.tolist())) == len(set(coarse))


@pytest.mark.parametrize(("d", "bits"), [(62, 1), (31, 2), (20, 3), (6, 10)])
def test_keys_of_many_axes_fit_62_bits(d: int, bits: int) -> None:
    cells = np.random.default_rng(2).integers(0, 2**bits, (d, 1000))
    cells[:, 0] = 0
    cells[:, 1] = 2**bits - 1

    keys = hilbert_keys(cells, bits)

    assert keys.min() >= 0
    assert keys.max() < 2 ** (d * bits)
    assert len(set(keys.tolist())) == len({tuple(cell) for cell in cells.T.tolist()})


def test_no_cells() -> None:
    assert len(hilbert_keys(np.empty((3, 0), np.int64), 4)) == 0
