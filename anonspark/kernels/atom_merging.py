"""Merge atoms, groups that no release divides, into classes of one release."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.criteria import REQUIREMENTS, group_satisfies
from anonspark.kernels.separation import without_noise
from anonspark.kernels.signatures import boolean, float64, int64

# Clusters that are looked at together.
_MOST_TOGETHER = 4096


@kernel(
    boolean(
        REQUIREMENTS,
        int64[:, ::1],
        int64[::1],
        int64[::1],
        int64[::1],
        int64,
        int64,
        int64[::1],
        int64[::1],
        int64[::1],
    )
)
def _cluster_satisfies(
    requirements, values, order, starts, following, first, size, scratch, counts, present
):
    """Return whether a cluster, a chain of atoms that begins with ``first``, satisfies all."""
    if size < requirements.k:
        return False
    if requirements.kinds.shape[0] == 0:
        return True
    filled = 0
    atom = first
    while atom >= 0:
        for i in range(starts[atom], starts[atom + 1]):
            scratch[filled] = order[i]
            filled += 1
        atom = following[atom]
    return group_satisfies(requirements, values, scratch, 0, filled, counts, present)


@kernel(float64(float64[:, ::1], float64[:, ::1], float64[::1], int64))
def _edges(low, high, units, chosen):
    """Return the sum of the edges of a cluster's box."""
    total = 0.0
    for j in range(units.shape[0]):
        total += (high[chosen, j] - low[chosen, j]) / units[j]
    return total


@kernel(float64(float64[:, ::1], float64[:, ::1], float64[::1], int64, int64))
def _edges_together(low, high, units, first, other):
    """Sum the edges of the smallest box that holds two clusters, ``low`` and ``high`` (c, d)."""
    total = 0.0
    for j in range(units.shape[0]):
        top = max(high[first, j], high[other, j])
        total += (top - min(low[first, j], low[other, j])) / units[j]
    return total


@kernel(
    int64[::1](
        float64[:, ::1],
        float64[:, ::1],
        float64[::1],
        int64[::1],
        int64[::1],
        int64[:, ::1],
        REQUIREMENTS,
    )
)
def merge_atoms(low, high, units, order, starts, values, requirements):
    """Merge atoms until every cluster satisfies the requirements.

    Parameters
    ----------
    low, high : float64 ndarray of shape (a, d)
        Boxes of the atoms, in their order: by low, high, records, name.
    units : float64 ndarray of shape (d,)
        Difference of positions that counts as 1.
    order : int64 ndarray of shape (n,)
        Records, atom by atom. All together they satisfy the requirements.
    starts : int64 ndarray of shape (a + 1,)
        Where each atom begins in ``order``.
    values : int64 ndarray of shape (more, s)
        Of all records, see :class:`anonspark.kernels.criteria.Requirements`.
    requirements : Requirements

    Returns
    -------
    int64 ndarray of shape (a,)
        The cluster of each atom: the smallest of the indices of its atoms.

    Notes
    -----
    First, neighbours with equal boxes are added up until they satisfy the requirements. Then, as
    long as a cluster does not, the one with the fewest records joins the one with which records
    times edges grow least. Growths that are equal in their first 33 bits are ties, of which the one
    with the fewest records wins, then the smallest index. O(a^2 d) for each 4,096 clusters.
    """
    atoms = starts.shape[0] - 1
    low = low.copy()
    high = high.copy()
    size = np.diff(starts)
    following = np.full(atoms, -1, np.int64)
    last = np.arange(atoms)
    owner = np.arange(atoms)
    alive = np.ones(atoms, np.bool_)
    satisfied = np.zeros(atoms, np.bool_)
    scratch = np.empty(order.shape[0], np.int64)
    counts = np.zeros(requirements.shares.shape[0], np.int64)
    present = np.empty(requirements.shares.shape[0], np.int64)
    for a in range(atoms):
        satisfied[a] = _cluster_satisfies(
            requirements, values, order, starts, following, a, size[a], scratch, counts, present
        )

    # Neighbours with equal boxes.
    finished = -1
    open_one = -1
    for a in range(atoms):
        same = a > 0
        if same:
            for j in range(units.shape[0]):
                if low[a, j] != low[a - 1, j] or high[a, j] != high[a - 1, j]:
                    same = False
                    break
        if not same:
            finished = -1
            open_one = -1
        if open_one < 0:
            open_one = a
        else:
            following[last[open_one]] = a
            last[open_one] = last[a]
            size[open_one] += size[a]
            alive[a] = False
            satisfied[open_one] = _cluster_satisfies(
                requirements,
                values,
                order,
                starts,
                following,
                open_one,
                size[open_one],
                scratch,
                counts,
                present,
            )
        ends = a + 1 == atoms
        if not ends:
            for j in range(units.shape[0]):
                if low[a, j] != low[a + 1, j] or high[a, j] != high[a + 1, j]:
                    ends = True
                    break
        if satisfied[open_one]:
            finished = open_one
            open_one = -1
        elif ends and finished >= 0:
            following[last[finished]] = open_one
            last[finished] = last[open_one]
            size[finished] += size[open_one]
            alive[open_one] = False
            satisfied[finished] = _cluster_satisfies(
                requirements,
                values,
                order,
                starts,
                following,
                finished,
                size[finished],
                scratch,
                counts,
                present,
            )
            open_one = -1

    clusters = np.flatnonzero(alive)
    window = np.empty(clusters.shape[0] + 1, np.int64)
    begin = 0
    carried = -1
    total = clusters.shape[0]
    while begin < total:
        m = 0
        if carried >= 0:
            window[m] = carried
            m += 1
        stop = min(begin + _MOST_TOGETHER, total)
        for i in range(begin, stop):
            window[m] = clusters[i]
            m += 1
        begin = stop
        carried = -1
        while True:
            u = -1
            for i in range(m):
                first = window[i]
                if not satisfied[first] and (u < 0 or size[first] < size[window[u]]):
                    u = i
            if u < 0:
                break
            if m == 1:
                carried = window[0]
                if begin == total:
                    # The same once more, among all that are finished.
                    m = 0
                    for i in range(total):
                        if alive[clusters[i]]:
                            window[m] = clusters[i]
                            m += 1
                    if m > 1:
                        carried = -1
                        continue
                break
            index = window[u]
            alone = size[index] * _edges(low, high, units, index)
            best = -1
            least = np.inf
            for i in range(m):
                if i == u:
                    continue
                other = window[i]
                growth = without_noise(
                    (size[index] + size[other]) * _edges_together(low, high, units, index, other)
                    - alone
                    - size[other] * _edges(low, high, units, other)
                )
                if growth < least or (
                    growth == least and best >= 0 and size[other] < size[window[best]]
                ):
                    least = growth
                    best = i
            other = window[best]
            into, gone = min(index, other), max(index, other)
            following[last[into]] = gone
            last[into] = last[gone]
            size[into] += size[gone]
            alive[gone] = False
            for j in range(units.shape[0]):
                low[into, j] = min(low[into, j], low[gone, j])
                high[into, j] = max(high[into, j], high[gone, j])
            satisfied[into] = _cluster_satisfies(
                requirements,
                values,
                order,
                starts,
                following,
                into,
                size[into],
                scratch,
                counts,
                present,
            )
            # Windows stay in the order of the indices.
            removed = u if index == gone else best
            for i in range(removed, m - 1):
                window[i] = window[i + 1]
            m -= 1
    for i in range(total):
        if alive[clusters[i]]:
            atom = clusters[i]
            while atom >= 0:
                owner[atom] = clusters[i]
                atom = following[atom]
    return owner


@kernel(
    int64[::1](
        float64[:, ::1],
        float64[:, ::1],
        float64[::1],
        int64[::1],
        int64[::1],
        int64[::1],
        int64[:, ::1],
        REQUIREMENTS,
    )
)
def merge_atoms_of_leaves(low, high, units, order, starts, leaves, values, requirements):
    """Merge the atoms of each leaf of a tree. See :func:`merge_atoms`.

    ``leaves`` (int64, shape (leaves + 1,)) is where the atoms of each leaf begin.
    """
    owner = np.empty(starts.shape[0] - 1, np.int64)
    for leaf in range(leaves.shape[0] - 1):
        first, end = leaves[leaf], leaves[leaf + 1]
        merged = merge_atoms(
            low[first:end],
            high[first:end],
            units,
            order[starts[first] : starts[end]],
            starts[first : end + 1] - starts[first],
            values,
            requirements,
        )
        for atom in range(end - first):
            owner[first + atom] = first + merged[atom]
    return owner
