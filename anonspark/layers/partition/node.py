"""Nodes of the tree that is being cut, and the questions that decide their cuts."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from anonspark.layers.partition.counting import Answer, Question
from anonspark.layers.partition.cut_tree import Boundary

_T = TypeVar("_T")

Asking = Generator[list[Question], list[Answer], _T]
"""A computation that yields questions, is resumed with their answers, and returns something."""


@dataclass(frozen=True)
class Node:
    """A node of the tree while it is being cut.

    Parameters
    ----------
    number : int
        Its number in the tree.
    path : int
        Its 64-bit name, see :mod:`anonspark.kernels.paths`.
    rows : int
        Its records.
    lowest, highest : tuple of int
        Codes that enclose the records, for each quasi-identifier, not necessarily tight.
    cell_low, cell_high : tuple of (int or None)
        Bounds of the cell. None stands for the extreme of the node's own records.
    """

    number: int
    path: int
    rows: int
    lowest: tuple[int, ...]
    highest: tuple[int, ...]
    cell_low: tuple[int | None, ...]
    cell_high: tuple[int | None, ...]


@dataclass(frozen=True)
class Cut:
    """The cut of a node.

    Parameters
    ----------
    boundary : Boundary
        Which records go left.
    left, right : Node
        The children. Growing the tree fills in their ``number`` and ``path``.
    """

    boundary: Boundary
    left: Node
    right: Node


Leaf = Node

Questions = Asking[Cut | None]
"""The questions that decide the cut of one node."""
