"""Anonymize the releases of a plan: each separately, or by groups that none divides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.protocol import OpenInput, Table
from anonspark.pipeline.choosing import ModelMaker
from anonspark.sharing.recipients.frozen_source import FrozenSource, OpenFrozen, rows_of


@dataclass(frozen=True)
class ReleaseSource:
    """The input of a release of a plan.

    Parameters
    ----------
    open_input : callable
        Opens the recipient's records.
    rows_requested, rows_withheld : int
        Records that the recipient may have, and those of them that are kept out.
    make_model : callable or None
        Makes the model. None takes the one of the configuration.
    described : sequence of QuasiIdentifier or None
        Quasi-identifiers with the ranges of all records that are given, in any order. None takes
        those of the recipient's records.
    """

    open_input: OpenInput
    rows_requested: int
    rows_withheld: int = 0
    make_model: ModelMaker | None = None
    described: Sequence[QuasiIdentifier] | None = None


class Strategy(Protocol):
    """A strategy for the releases of a plan."""

    def source(self, index: int) -> ReleaseSource:
        """Return the source of the release of a recipient, by its index in the plan."""
        ...

    @property
    def atoms(self) -> Table | None:
        """Return the members of atoms for the ledger, or None if there are none."""
        ...


@dataclass(frozen=True)
class Independent:
    """Each release by itself, as a run of its own would make it.

    Parameters
    ----------
    frozen : FrozenSource
    strata : mapping of int to int
        Records of each pattern.
    """

    frozen: FrozenSource
    strata: Mapping[int, int]

    def source(self, index: int) -> ReleaseSource:
        """Return the recipient's records as the source of a release."""
        return ReleaseSource(OpenFrozen(self.frozen, index), rows_of(self.strata, index))

    @property
    def atoms(self) -> Table | None:
        """Return None: there is no base partition."""
        return None
