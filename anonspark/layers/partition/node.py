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

    ``path`` is its 64-bit name, see :mod:`anonspark.kernels.paths`. ``lowest`` and ``highest``
    enclose the codes of its records, not necessarily tightly. ``cell_low`` and ``cell_high`` are
    the bounds of the cell, None for the extreme of the node's records.
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
    """The cut of a node: the boundary, and the children.

    Growing the tree fills in their ``number`` and ``path``.
    """

    boundary: Boundary
    left: Node
    right: Node


Leaf = Node

Questions = Asking[Cut | None]
"""The questions that decide the cut of one node."""
