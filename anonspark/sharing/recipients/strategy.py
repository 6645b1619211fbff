"""Anonymize the releases of a plan: each separately, or by groups that none divides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from anonspark.config import Configuration
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.protocol import Engine, OpenInput, Table
from anonspark.errors import DataError
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.pipeline.preparing import prepare
from anonspark.pipeline.tasks import ModelMaker
from anonspark.sharing.recipients.source import FrozenSource, OpenFrozen, rows_of


@dataclass(frozen=True)
class ReleaseSource:
    """The input of a release of a plan.

    ``open_input`` opens the recipient's records, ``rows_withheld`` of ``rows_requested`` are kept
    out. ``make_model`` makes the model, or is None for that of the configuration. ``described`` are
    the quasi-identifiers, in any order, with the ranges of all records that are given, or None for
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
        """The members of atoms for the ledger, or None if there are none."""
        ...


@dataclass(frozen=True)
class Independent:
    """Each release by itself, as a run of its own would make it. ``strata`` counts each pattern."""

    frozen: FrozenSource
    strata: Mapping[int, int]

    def source(self, index: int) -> ReleaseSource:
        """Return the recipient's records as the source of a release."""
        return ReleaseSource(OpenFrozen(self.frozen, index), rows_of(self.strata, index))

    @property
    def atoms(self) -> Table | None:
        """None: there is no base partition."""
        return None


def too_few_left(withheld: int, requested: int, k: int, where: str = "") -> DataError:
    """Say that too little of a request is left."""
    return DataError(
        f"{where}{withheld:,} of {requested:,} records are withheld so that the release does not "
        f"show who came or left. Expected at least privacy.k = {k} that are left. Ask for more "
        "records, or withdraw releases that no recipient has any more"
    )


def prepare_source(
    engine: Engine, configuration: Configuration, directory: str, source: ReleaseSource
) -> Snapshot:
    """Stage the records of a release in a private directory, with the ranges of the strategy.

    Works as :func:`anonspark.pipeline.preparing.prepare`, over the private copy of the source.
    Raises DataError if fewer than k records are left because others are withheld.
    """
    granted, k = source.rows_requested - source.rows_withheld, configuration.privacy.k
    if source.rows_withheld and granted < k:
        raise too_few_left(source.rows_withheld, source.rows_requested, k)
    snapshot = prepare(engine, configuration, directory, source.open_input)
    if source.described is None:
        return snapshot
    of_source = {identifier.name: identifier for identifier in source.described}
    described = tuple(
        # A recipient may leave out records without a value.
        replace(of_source[identifier.name], has_missing=identifier.has_missing)
        for identifier in snapshot.quasi_identifiers
    )
    return replace(snapshot, quasi_identifiers=described)
