"""Name tree nodes by the way from the root alone."""

from __future__ import annotations

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import int64, uint64


@kernel(uint64(uint64))
def _mix(state):
    """Scramble 64 bits (the finalizer of SplitMix64, Steele et al. 2014)."""
    state = (state ^ (state >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> uint64(27))) * uint64(0x94D049BB133111EB)
    return state ^ (state >> uint64(31))


@kernel(uint64(uint64, uint64))
def root_path(seed, round_number):
    """Return the 64-bit name of the root of a round's tree.

    Parameters
    ----------
    seed : uint64
        The configured seed.
    round_number : uint64
        1, 2, ...

    Examples
    --------
    >>> int(root_path(7, 1)) == int(root_path(7, 1)), int(root_path(7, 1)) == int(root_path(7, 2))
    (True, False)
    """
    return _mix(_mix(seed + uint64(0x9E3779B97F4A7C15)) + round_number)


@kernel(uint64(uint64, uint64))
def child_path(path, side):
    """Return the 64-bit name of a child from its parent's name and the side (0 left, 1 right).

    The same function names nodes on the driver and in the kernels, so a node has the same name
    wherever the tree was cut, and its name does not reveal its position in the order of the values.

    Examples
    --------
    >>> root = root_path(7, 1)
    >>> len({int(root), int(child_path(root, 0)), int(child_path(root, 1))})
    3
    """
    return _mix(path * uint64(2) + side + uint64(0x9E3779B97F4A7C15))


@kernel(uint64(int64, uint64))
def priority(record_hash, salt):
    """Return a record's position in a draw: its content alone decides, anew for each salt.

    The records with the smallest priorities are the ones drawn. Records of equal content have equal
    priorities, so a draw is one of different contents.

    Parameters
    ----------
    record_hash : int
        Keyed hash of the record's whole content.
    salt : uint64
        Derived from the node's name by :func:`child_path`.
    """
    return _mix(uint64(record_hash) ^ salt)
