"""``anonspark select``: attributes chosen under differential privacy, and what that cost."""

from __future__ import annotations

import json
import logging
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import yaml

from anonspark._version import __version__
from anonspark.core.exact_noise import Below
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.hierarchies import read_hierarchy_files
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import is_plain, type_name
from anonspark.errors import ConfigurationError, DataError
from anonspark.ledger.budget import Entry, Limit, charge, read_budget
from anonspark.release.noisy_tables import OF_VALUES, SELECTION, TABLE_SCHEMA, TABLES
from anonspark.selection.counting import MOST_CELLS, count_tables
from anonspark.selection.domains import MOST_ROWS, Domain
from anonspark.selection.mechanisms import (
    Ranked,
    choose,
    loss_of_a_record,
    rank,
    scale_of,
    width_of,
    with_noise,
)
from anonspark.selection.settings import (
    DomainOptions,
    EvenBins,
    SelectionSettings,
    as_fraction,
)

Integers = npt.NDArray[np.int64]

_LOGGER = logging.getLogger("anonspark")

UNIT = "record"
"""Whose presence is protected."""

_TWO = 2
_CONFUSED = 2.302585092994046  # ln 10: of 20 picks one confuses two attributes so near
_SCORES = pa.schema([("attribute", pa.string()), ("rank", pa.int64()), ("score", pa.float64())])


@dataclass(frozen=True)
class Prospect:
    """What a selection would cost, known before the data are read.

    Parameters
    ----------
    candidates : list of str
    cells : int
        Of all tables.
    epsilon : Fraction
        That would be charged.
    epsilon_of_a_record : Fraction
    scale : Fraction or None
        Of the noise of a cell; None where no tables are published.
    resolution : float
        ``top``: attributes whose gini scores differ by fewer records are confused in one of 20
        picks or more. ``tables``: standard deviation of a cell.
    left : Fraction or None
        Of the budget, before; None where there is none yet.
    """

    candidates: list[str]
    cells: int
    epsilon: Fraction
    epsilon_of_a_record: Fraction
    scale: Fraction | None
    resolution: float
    left: Fraction | None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "candidates": self.candidates,
            "cells": self.cells,
            "epsilon": str(self.epsilon),
            "epsilon_of_a_record": str(self.epsilon_of_a_record),
            "scale": None if self.scale is None else str(self.scale),
            "resolution": self.resolution,
            "left": None if self.left is None else str(self.left),
        }


@dataclass(frozen=True)
class Selection:
    """What was chosen, and what it cost.

    Parameters
    ----------
    attributes : list of str
        In the order of choice.
    told : mapping
        The content of ``selection.json``.
    output : str
    """

    attributes: list[str]
    told: Mapping[str, Any]
    output: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**self.told, "output": self.output}


@dataclass(frozen=True)
class _Wanted:
    """What is asked for, in the terms of the mechanisms."""

    settings: SelectionSettings
    candidates: list[Domain]
    target: Domain
    epsilon: Fraction
    of_tables: Fraction

    @property
    def charged(self) -> Fraction:
        return self.epsilon + self.of_tables

    @property
    def of_a_record(self) -> Fraction:
        return loss_of_a_record(self.epsilon, self.settings.selection.neighbors)

    @property
    def scale(self) -> Fraction | None:
        """Scale of the noise of published tables."""
        selection = self.settings.selection
        if selection.mechanism == "tables":
            return scale_of(len(self.candidates), self.of_a_record)
        if self.of_tables:
            loss = loss_of_a_record(self.of_tables, selection.neighbors)
            return scale_of(selection.count, loss)
        return None

    @property
    def limit(self) -> Limit:
        ledger = self.settings.ledger
        limit = as_fraction(ledger.limit) or Fraction(0)
        return Limit(limit, self.settings.selection.neighbors, UNIT)

    @property
    def budget(self) -> str:
        ledger = self.settings.ledger
        return f"{ledger.path.rstrip('/')}/{ledger.dataset}"

    @property
    def cells(self) -> int:
        return sum(one.rows for one in self.candidates) * len(self.target.labels)


def look_ahead(engine: Engine, settings: SelectionSettings) -> Prospect:
    """Tell what a selection would cost; of the data the schema alone is read.

    Raises
    ------
    ConfigurationError, DataError, GuaranteeError
    """
    wanted = _wanted(engine, settings, _opened(engine, settings).schema)
    selection, loss = settings.selection, wanted.of_a_record
    if selection.mechanism == "tables":
        resolution = 2**0.5 * float(wanted.scale or 0)
    else:
        resolution = 2 * _CONFUSED * selection.count / float(loss)
    budget = read_budget(engine.files, engine.files.qualified(wanted.budget))
    return Prospect(
        [one.name for one in wanted.candidates],
        wanted.cells,
        wanted.charged,
        loss,
        wanted.scale,
        resolution,
        None if budget is None else budget.left,
    )


def select(
    engine: Engine,
    settings: SelectionSettings,
    *,
    run_id: str | None = None,
    below: Below = secrets.randbelow,
    table: Table | None = None,
) -> Selection:
    """Choose attributes under differential privacy, and write down what it cost.

    Parameters
    ----------
    engine : Engine
    settings : SelectionSettings
    run_id : str or None
        Name of the run; None makes a random one.
    below : callable
        Source of chance; for real data none but that of the operating system.
    table : Table or None
        The records; None opens what the configuration names.

    Returns
    -------
    Selection

    Raises
    ------
    ConfigurationError
        If something is at the output, a domain is not declared, or the budget is another.
    DataError
        If a column is missing, or there are more records than is said.
    GuaranteeError
        If the limit would be exceeded: nothing was drawn.

    Notes
    -----
    One pass over the records, with a shuffle of the cells that tasks count. Counts and scores leave
    the process in no form but with noise.
    """
    run_id = run_id or uuid.uuid4().hex[:12]
    files, selection = engine.files, settings.selection
    output = files.qualified(selection.output).rstrip("/")
    before = _before(engine, output, run_id)
    if before is not None:
        return before
    configuration = settings.configuration
    opened = _opened(engine, settings) if table is None else table
    wanted = _wanted(engine, settings, opened.schema)
    with engine.reading(configuration.input.paths):
        counts = count_tables(
            opened,
            wanted.candidates,
            wanted.target,
            configuration.input.missing_markers,
            drop_missing=configuration.missing == "drop",
        )
    bound = selection.records_at_most
    if bound is not None and any(int(one.sum()) > bound for one in counts):
        raise DataError(
            f"selection.records_at_most: there are more than {bound:,} records; expected a bound "
            "that holds; raise it to a public one"
        )
    told = {
        "run_id": run_id,
        "command": "select",
        "kind": "select",
        "mechanism": selection.mechanism,
        "settings": _fingerprint(settings),
    }
    _warn_of_charges(engine, wanted, run_id)
    entry = charge(files, files.qualified(wanted.budget), wanted.limit, wanted.charged, told)
    # From here on what was drawn may have been seen.
    chosen, noisy, ranked = _draw(wanted, counts, below)
    return _publish(engine, wanted, run_id, output, entry, chosen, noisy, ranked)


def _warn_of_charges(engine: Engine, wanted: _Wanted, run_id: str) -> None:
    """Say that a run was charged before, which left nothing."""
    budget = read_budget(engine.files, engine.files.qualified(wanted.budget))
    numbers = [
        str(entry.number)
        for entry in (() if budget is None else budget.entries)
        if entry.told.get("run_id") == run_id
    ]
    if numbers:
        _LOGGER.warning(
            "run %s was charged before (entry %s of the ledger) and left no result; what was drawn "
            "then may have been seen, so it is charged again",
            run_id,
            ", ".join(numbers),
        )


def _before(engine: Engine, output: str, run_id: str) -> Selection | None:
    """Return what a run of the same name has written."""
    if not engine.files.exists(output):
        return None
    place = f"{output}/{SELECTION}"
    if engine.files.exists(place):
        told = json.loads(engine.files.read_text(place))
        if told.get("run_id") == run_id:
            return Selection(list(told["attributes"]), told, output)
    raise ConfigurationError(
        f"selection.output: found something at {output}; expected nothing there; choose another "
        "directory, or remove it; nothing was charged"
    )


def _opened(engine: Engine, settings: SelectionSettings) -> Table:
    with engine.reading(settings.configuration.input.paths):
        return engine.open_source(settings.configuration)


def _wanted(engine: Engine, settings: SelectionSettings, schema: pa.Schema) -> _Wanted:
    """Return what is asked for, with the domains, given the schema of the table."""
    configuration, selection = settings.configuration, settings.selection
    names = [*settings.candidates, selection.target]
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise DataError(
            f"selection: the input has no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, schema.names))}; correct the names"
        )
    odd = [name for name in names if not is_plain(schema.field(name).type)]
    if odd:
        raise DataError(
            *(
                f"selection: column {name!r} has type {type_name(schema.field(name).type)}; "
                "expected numbers, days, times, booleans or texts; leave it out of the candidates"
                for name in odd
            )
        )
    paths = {
        name: own.hierarchy
        for name, own in selection.domains.items()
        if own.hierarchy is not None and name in names
    }
    for name in names:
        attribute = configuration.attributes.get(name)
        own = None if attribute is None else attribute.hierarchy
        if isinstance(own, str) and name not in selection.domains:
            paths[name] = own
    hierarchies = read_hierarchy_files(engine.files, paths)
    domains, problems = {}, []
    for name in names:
        domain = _domain(settings, name, schema.field(name).type, hierarchies.get(name))
        if domain is None:
            problems.append(
                f"selection.domains.{name}: missing; the values of {name!r} are declared nowhere, "
                "and must not be looked up in the data; give values, bins or a hierarchy"
            )
        else:
            domains[name] = domain
    if problems:
        raise ConfigurationError(*problems)
    wanted = _Wanted(
        settings,
        [domains[name] for name in settings.candidates],
        domains[selection.target],
        as_fraction(selection.epsilon) or Fraction(0),
        as_fraction(selection.tables_epsilon) or Fraction(0),
    )
    _require_sizes(wanted)
    return wanted


def _require_sizes(wanted: _Wanted) -> None:
    selection, classes = wanted.settings.selection, len(wanted.target.labels)
    problems = []
    if classes < _TWO:
        problems.append(
            f"selection.target: found {classes} declared class; expected two at least; declare more"
        )
    if selection.score == "chi_square" and selection.mechanism == "top" and classes > _TWO:
        problems.append(
            f"selection.score: chi_square under top is for two classes, found {classes}; choose "
            "gini, or mechanism: tables"
        )
    large = [one.name for one in wanted.candidates if one.rows > MOST_ROWS]
    if large:
        problems.append(
            f"selection.domains: {', '.join(large)} have more than {MOST_ROWS:,} values; expected "
            "fewer; give coarser domains"
        )
    if wanted.cells > MOST_CELLS:
        problems.append(
            f"selection: found {wanted.cells:,} cells; expected at most {MOST_CELLS:,}; give "
            "coarser domains, or fewer candidates"
        )
    if problems:
        raise ConfigurationError(*problems)


def _domain(
    settings: SelectionSettings, name: str, found: pa.DataType, hierarchy: Hierarchy | None
) -> Domain | None:
    """Return the rows of an attribute's table, None where they are declared nowhere."""
    options = settings.selection.domains.get(name)
    if options is not None and options.values is not None:
        return Domain.of_values(name, options.values)
    if options is not None and options.bins is not None:
        edges = options.bins.edges() if isinstance(options.bins, EvenBins) else options.bins
        return Domain.of_edges(name, edges)
    attribute = settings.configuration.attributes.get(name)
    if options is None and attribute is not None and attribute.order is not None:
        return Domain.of_values(name, attribute.order)
    if options is None and pa.types.is_boolean(found):
        return Domain.of_values(name, ["false", "true"])
    if hierarchy is None:
        return None
    return _of_hierarchy(name, hierarchy, options)


def _of_hierarchy(name: str, hierarchy: Hierarchy, options: DomainOptions | None) -> Domain:
    level = None if options is None else options.level
    if level is None:
        return Domain.of_values(name, hierarchy.leaves)
    if level > len(hierarchy.levels):
        raise ConfigurationError(
            f"selection.domains.{name}.level: found {level}; the hierarchy has "
            f"{len(hierarchy.levels)} above its values; lower it"
        )
    own = hierarchy.levels[level - 1]
    starts = [*own.starts, len(hierarchy.leaves)]
    groups = {
        hierarchy.leaves[place]: label
        for label, start, stop in zip(own.labels, starts[:-1], starts[1:], strict=True)
        for place in range(start, stop)
    }
    return Domain.of_groups(name, groups)


def _draw(
    wanted: _Wanted, counts: Sequence[Integers], below: Below
) -> tuple[list[int], dict[int, Integers], list[Ranked]]:
    """Return what is chosen, the noisy tables that are published, and their ranks."""
    selection = wanted.settings.selection
    scale = wanted.scale
    if selection.mechanism == "tables":
        if scale is None:
            raise ValueError("tables without a scale")
        noisy = with_noise(counts, scale, below)
        ranked = rank(noisy, scale, selection.score)
        chosen = [one.place for one in ranked[: selection.count]]
        return chosen, dict(enumerate(noisy)), ranked
    chosen = choose(
        counts,
        selection.count,
        wanted.of_a_record,
        selection.score,
        below,
        selection.records_at_most,
    )
    if scale is None:
        return chosen, {}, []
    noisy = with_noise([counts[place] for place in chosen], scale, below)
    return chosen, dict(zip(chosen, noisy, strict=True)), []


def _publish(
    engine: Engine,
    wanted: _Wanted,
    run_id: str,
    output: str,
    entry: Entry,
    chosen: Sequence[int],
    noisy: Mapping[int, Integers],
    ranked: Sequence[Ranked],
) -> Selection:
    """Write everything aside, and give it its place by one rename."""
    files, selection = engine.files, wanted.settings.selection
    names = [wanted.candidates[place].name for place in chosen]
    width = None
    if selection.mechanism == "top":
        width = width_of(selection.score, selection.records_at_most)
    told = {
        "run_id": run_id,
        "attributes": names,
        "selection": selection.model_dump(mode="json", by_alias=True, exclude={"domains"}),
        "settings": _fingerprint(wanted.settings),
        "epsilon": str(wanted.charged),
        "epsilon_of_a_record": str(wanted.of_a_record),
        "scale": None if wanted.scale is None else str(wanted.scale),
        "width": width,
        "neighbors": selection.neighbors,
        "unit": UNIT,
        "guarantee": _guarantee(wanted, entry),
        "ledger": {"dataset": wanted.settings.ledger.dataset, **entry.told},
        "version": __version__,
        OF_VALUES: [
            one.name for one in map(wanted.candidates.__getitem__, noisy) if one.has_values
        ],
    }
    aside = f"{output}.writing-{run_id}"
    files.delete(aside)
    files.make_private_directory(aside)
    try:
        if noisy:
            _write(engine, aside, TABLES, _rows_of(wanted, noisy))
        if ranked:
            scores = [
                {"attribute": wanted.candidates[one.place].name, "rank": place, "score": one.score}
                for place, one in enumerate(ranked, start=1)
            ]
            _write(engine, aside, "scores", pa.Table.from_pylist(scores, schema=_SCORES))
        configured = wanted.settings.configuration.attributes
        roles = {name: configured[name].role for name in names}
        files.write_text(
            f"{aside}/attributes.yaml",
            yaml.safe_dump({"attributes": roles}, sort_keys=False, allow_unicode=True),
        )
        files.write_text(
            f"{aside}/{SELECTION}", json.dumps(told, ensure_ascii=False, indent=1) + "\n"
        )
        files.rename(aside, output)
    except BaseException:
        files.delete(aside)
        raise
    return Selection(names, told, output)


def _guarantee(wanted: _Wanted, entry: Entry) -> str:
    what = (
        "added or removed"
        if wanted.settings.selection.neighbors == "add_remove"
        else "replaced by another"
    )
    limit, dataset = wanted.settings.ledger.limit, wanted.settings.ledger.dataset
    return (
        f"{wanted.charged}-differentially private for one record {what}; entry {entry.number} of "
        f"ledger {dataset}, {entry.told['spent_after']} of {limit} spent"
    )


def _rows_of(wanted: _Wanted, noisy: Mapping[int, Integers]) -> pa.Table:
    rows = [
        {
            "attribute": wanted.candidates[place].name,
            "position": row,
            "value": label,
            "class": name,
            "records": int(table[row, t]),
        }
        for place, table in noisy.items()
        for row, label in enumerate((*wanted.candidates[place].labels, "other", "missing"))
        for t, name in enumerate(wanted.target.labels)
    ]
    return pa.Table.from_pylist(rows, schema=TABLE_SCHEMA)


def _write(engine: Engine, directory: str, name: str, rows: pa.Table) -> None:
    aside = f"{directory}/.writing"
    engine.table(rows).publish("parquet", directory, name, aside)
    engine.files.delete(aside)


def _fingerprint(settings: SelectionSettings) -> str:
    """Return what tells whether two selections ask for the same."""
    from hashlib import sha256

    told = settings.selection.model_dump(mode="json", by_alias=True)
    del told["output"]
    told["candidates"] = list(settings.candidates)
    return sha256(json.dumps(told, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
