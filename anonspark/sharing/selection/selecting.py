"""``anonspark select``: attributes chosen under differential privacy, and what that cost."""

from __future__ import annotations

import json
import logging
import secrets
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any

import pyarrow as pa

from anonspark._version import __version__
from anonspark.config.budget import in_decimals
from anonspark.config.variables import configuration_yaml
from anonspark.core.arrays import Integers
from anonspark.core.exact_noise import Below
from anonspark.core.run_ids import require_run_id
from anonspark.engine.files import Files, holds_copies, require_ours
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.layers.publish.paths import require_apart, require_apart_from_input
from anonspark.progress import report_step
from anonspark.release.noisy_tables import OF_VALUES, SELECTION, TABLE_SCHEMA, TABLES
from anonspark.sharing.ledger.budget import (
    RELEASE,
    Budget,
    Entry,
    charge,
    read_budget,
    require_affordable,
    require_limit,
)
from anonspark.sharing.selection.counting import count_tables
from anonspark.sharing.selection.domains import Domain
from anonspark.sharing.selection.mechanisms import Ranked, choose, draw_cuts, rank, with_noise
from anonspark.sharing.selection.request import Query, open_query
from anonspark.sharing.selection.settings import SelectionSettings

_SCORES = pa.schema([("attribute", pa.string()), ("rank", pa.int64()), ("score", pa.float64())])


@dataclass(frozen=True)
class Drawn:
    """The drawn noise and choice: all of it may be published.

    ``chosen`` are indices of candidates in the order of choice, ``noisy`` the noisy tables by
    index, ``ranked`` the order of their scores. ``candidates`` have the bins that were drawn.
    """

    chosen: list[int]
    noisy: Mapping[int, Integers]
    ranked: Sequence[Ranked]
    candidates: Sequence[Domain]


@dataclass(frozen=True)
class Selection:
    """The choice in its order, and its cost: ``content`` is that of ``selection.json``."""

    attributes: list[str]
    content: Mapping[str, Any]
    output: str

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return {**self.content, "output": self.output}


def require_places(files: Files, settings: SelectionSettings, *, of_files: bool) -> None:
    """Refuse, before anything is charged, that output, ledger or input lie in one another.

    ``of_files`` says whether the records are in files, else the input has no path.
    """
    paths = {"selection.output": settings.selection.output, "ledger.path": settings.ledger.path}
    require_apart(files, paths)
    for key, path in paths.items() if of_files else ():
        require_apart_from_input(files, settings.configuration, key, path)


def aside_of(output: str, run_id: str) -> str:
    """Return the directory beside an output where a run writes.

    >>> aside_of("/out/chosen", "7f")
    '/out/chosen.writing-7f'
    """
    return f"{output}.writing-{run_id}"


@contextmanager
def set_aside(files: Files, output: str, run_id: str) -> Iterator[str]:
    """Make a directory next to the output for a ``with`` block, before anything is charged.

    Each attempt writes into a subdirectory, so that two at once do not mix their files. The
    directory is deleted at the end if it is empty. Raises ConfigurationError if it is not writable.
    """
    aside = aside_of(output, run_id)
    require_ours(files, "selection.output", aside, "private")
    try:
        files.make_private_directory(aside)
    except OSError as error:
        raise ConfigurationError(
            f"selection.output: nothing can be written next to {output}. Expected a directory that "
            "can be made. Correct it. Nothing was charged"
        ) from error
    try:
        yield aside
    finally:
        files.delete_if_empty(aside)


def publish_selection(
    engine: Engine, query: Query, aside: str, output: str, entry: Entry, drawn: Drawn
) -> Selection:
    """Write the files of a selection that was charged, and publish them by one rename.

    ``aside`` is the directory of :func:`set_aside`: the files are written into a subdirectory of
    it, which the rename makes the output. Raises PublishingError.
    """
    files, attempt = engine.files, f"{aside}/{entry.number}"
    document = _describe(query, entry, drawn)
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    try:
        files.make_private_directory(attempt)
        _write_tables(engine, query, attempt, drawn)
        configured = query.settings.configuration.attributes
        roles = {name: configured[name].role for name in document["attributes"]}
        files.write_text(f"{attempt}/attributes.yaml", configuration_yaml({"attributes": roles}))
        files.write_text(f"{attempt}/{SELECTION}", text)
        files.sync_tree(attempt)
        _rename(files, attempt, output, text)
        # Also removes what killed attempts left.
        files.delete(aside)
    except OSError as error:
        raise PublishingError(
            f"selection.output: the result could not be written to {output}. Entry {entry.number} "
            "of the ledger stays charged. Check permissions and free space"
        ) from error
    finally:
        files.delete(attempt)
    return Selection(document["attributes"], document, output)


def _describe(query: Query, entry: Entry, drawn: Drawn) -> dict[str, Any]:
    """Describe a selection in ``selection.json``: its result, settings, epsilon and guarantee."""
    selection, candidates = query.settings.selection, query.candidates
    bins = {domain.name: list(domain.edges) for domain in drawn.candidates}
    bins = {name: edges for name, edges in bins.items() if name in query.of_bins}
    return {
        "run_id": entry.content["run_id"],
        "attributes": [candidates[index].name for index in drawn.chosen],
        "selection": asked_for(query.settings),
        "domains": query.domains,
        **({"bins": bins} if bins else {}),
        "asked": fingerprint_of_asked(query.settings),
        "settings": query.fingerprint(),
        "epsilon": str(query.charged),
        "epsilon_of_a_record": str(query.of_a_record),
        "scale": None if query.scale is None else str(query.scale),
        "width": query.width,
        "neighbors": selection.neighbors,
        "unit": selection.unit,
        "guarantee": guarantee(query, entry),
        "ledger": {"dataset": query.settings.ledger.dataset, **entry.content},
        "version": __version__,
        OF_VALUES: [candidates[i].name for i in drawn.noisy if candidates[i].has_values],
    }


def _write_tables(engine: Engine, query: Query, directory: str, drawn: Drawn) -> None:
    """Write the noisy tables and the scores, if there are any."""
    if drawn.noisy:
        _write(engine, directory, TABLES, _rows_of(query, drawn))
    if drawn.ranked:
        scores = [
            {"attribute": query.candidates[row.index].name, "rank": index, "score": row.score}
            for index, row in enumerate(drawn.ranked, start=1)
        ]
        _write(engine, directory, "scores", pa.Table.from_pylist(scores, schema=_SCORES))


def _rename(files: Files, aside: str, output: str, text: str) -> None:
    """Give a result its path. Raises OSError if another process took files of it away."""
    written = set(files.files_below(aside))
    files.rename(aside, output)
    files.sync_names(output)
    if not written <= set(files.files_below(output)):
        # It took them for leftovers of a killed process: some stores copy to rename.
        path = f"{output}/{SELECTION}"
        if files.exists(path) and files.read_text(path) == text:
            files.delete(output)
        raise OSError("another process writes there")


def asked_for(settings: SelectionSettings) -> dict[str, object]:
    """Return the settings as the result has them. Domains are there as fingerprints."""
    return settings.selection.model_dump(mode="json", by_alias=True, exclude={"domains"})


def fingerprint_of_asked(settings: SelectionSettings) -> str:
    """Return the SHA-256 of the request, known before data are opened."""
    configuration = settings.configuration
    document = {
        "selection": settings.selection.model_dump(mode="json", by_alias=True),
        "candidates": list(settings.candidates),
        "missing": configuration.missing,
        "markers": list(configuration.input.missing_markers),
        "dataset": settings.ledger.dataset,
    }
    return sha256(json.dumps(document, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def guarantee(query: Query, entry: Entry) -> str:
    """Return what holds of a selection, in one sentence."""
    selection = query.settings.selection
    unit = "one record"
    if selection.person is not None:
        most = selection.rows_per_person
        unit = f"one person of at most {most} record{'s' if most > 1 else ''}"
    change = "added or removed" if selection.neighbors == "add_remove" else "replaced by another"
    spent = in_decimals(entry.spent_after)
    return (
        f"{in_decimals(query.charged)}-differentially private for {unit} {change}. Entry "
        f"{entry.number} of ledger {query.settings.ledger.dataset}, {spent} of "
        f"{in_decimals(entry.limit)} spent"
    )


def _rows_of(query: Query, drawn: Drawn) -> pa.Table:
    """Return the rows of the published noisy tables."""
    rows = [
        {
            "attribute": drawn.candidates[index].name,
            "position": row,
            "value": label,
            "class": name,
            "records": int(table[row, class_number]),
        }
        for index, table in drawn.noisy.items()
        for row, label in enumerate((*drawn.candidates[index].labels, "other", "missing"))
        for class_number, name in enumerate(query.target.labels)
    ]
    return pa.Table.from_pylist(rows, schema=TABLE_SCHEMA)


def _write(engine: Engine, directory: str, name: str, rows: pa.Table) -> None:
    """Write a table of the result."""
    aside = f"{directory}/.writing"
    engine.table(rows).publish("parquet", directory, name, aside)
    engine.files.delete(aside)


_LOGGER = logging.getLogger("anonspark")

_CONFUSED = 2.302585092994046  # ln 10: of 20 picks one confuses two attributes so near


@dataclass(frozen=True)
class Prospect:
    """The cost of a selection, known before the data are read.

    ``cells`` are those of all tables, ``epsilon`` would be charged. ``scale`` is that of the noise
    of a cell, or None if no tables are published, ``width`` that of the interval in which a record
    changes all scores, or None if tables are ranked. ``resolution`` is, for ``top``, the difference
    of gini scores, in records, below which attributes are confused in one of 20 picks or more, and
    for ``tables`` the standard deviation of a cell. ``left`` is what is left of the budget before,
    or None without one.
    """

    candidates: list[str]
    cells: int
    epsilon: Fraction
    epsilon_of_a_record: Fraction
    scale: Fraction | None
    width: int | None
    resolution: float
    left: Fraction | None

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return {
            name: str(raw) if isinstance(raw, Fraction) else raw for name, raw in vars(self).items()
        }


def look_ahead(engine: Engine, settings: SelectionSettings) -> Prospect:
    """Compute what a selection would cost and resolve, from the schema of the table alone."""
    require_places(engine.files, settings, of_files=True)
    _, query = open_query(engine, settings)
    selection, loss = settings.selection, query.of_a_record
    if selection.mechanism == "tables":
        resolution = 2**0.5 * float(query.scale or 0)
    else:
        resolution = 2 * _CONFUSED * selection.count / float(loss)
    path = engine.files.qualified(settings.ledger.directory)
    budget = read_budget(engine.files, path)
    if budget is None:
        require_limit(path, query.limit)
    else:
        # Raises if another limit or unit is asked for. Too large a loss is shown, not refused.
        budget.loss(query.limit, query.charged)
    return Prospect(
        [candidate.name for candidate in query.candidates],
        query.cells,
        query.charged,
        loss,
        query.scale,
        query.width,
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

    A run without an id gets a random one. ``below`` is the source of chance: only that of the
    operating system protects real data. ``table`` are the records, or None for the configuration's
    input. One pass over the records, with a shuffle of the cells that tasks count. Counts and
    scores leave the process only with noise. Raises ConfigurationError if the output exists, a
    domain is not declared, or the budget is another one, DataError if a column is missing or files
    cannot be read, and GuaranteeError if the limit would be exceeded: then nothing was drawn.
    """
    run_id = require_run_id(run_id or uuid.uuid4().hex[:12])
    files, selection = engine.files, settings.selection
    output = files.qualified(selection.output).rstrip("/")
    earlier = _before(engine, settings, output, run_id)
    if earlier is not None:
        return earlier
    require_places(files, settings, of_files=table is None)
    report_step("opening the table")
    opened, query = open_query(engine, settings, table)
    path = files.qualified(settings.ledger.directory)
    budget = require_affordable(files, path, query.limit, query.charged)
    with set_aside(files, output, run_id) as aside:
        content = {
            "run_id": run_id,
            "command": "select",
            "kind": "select",
            "mechanism": selection.mechanism,
            "settings": query.fingerprint(),
        }
        _warn_of_charges(budget, run_id)
        # Charged before a record is read: no failure is free, and the entry's time reveals nothing
        # about the records.
        entry = charge(files, path, query.limit, query.charged, content)
        try:
            report_step(f"counting {query.cells:,} cells")
            drawn = _draw(query, _count(engine, query, opened), below)
            return publish_selection(engine, query, aside, output, entry, drawn)
        except BaseException:
            _LOGGER.warning(
                "run %s was charged (entry %s of the ledger) and left no result. The charge stays, "
                "for what was drawn may have been seen",
                run_id,
                entry.number,
            )
            raise


def _count(engine: Engine, query: Query, table: Table) -> list[Integers]:
    """Count the records of every cell, exactly."""
    configuration = query.settings.configuration
    with engine.reading(configuration.input.paths):
        return count_tables(
            table,
            query.candidates,
            query.target,
            configuration.input.missing_markers,
            drop_missing=configuration.missing == "drop",
            person=query.person,
        )


def _warn_of_charges(budget: Budget | None, run_id: str) -> None:
    """Warn that a run was charged before and left nothing."""
    numbers = [
        str(entry.number)
        for entry in (() if budget is None else budget.entries)
        if entry.content.get("run_id") == run_id and entry.content["kind"] != RELEASE
    ]
    if numbers:
        _LOGGER.warning(
            "run %s was charged before (entry %s of the ledger) and left no result. What was drawn "
            "then may have been seen, so it is charged again",
            run_id,
            ", ".join(numbers),
        )


def _before(
    engine: Engine, settings: SelectionSettings, output: str, run_id: str
) -> Selection | None:
    """Return the selection that an earlier attempt of the same run has published, or None.

    Also removes what an interrupted rename has left. Raises ConfigurationError if something else is
    at the output.
    """
    files, aside = engine.files, aside_of(output, run_id)
    if not files.exists(output):
        return None
    require_ours(files, "selection.output", output)
    for attempt in files.children(aside) if files.rename_copies(output) else ():
        # A rename that copies before it deletes was stopped.
        if holds_copies(files, output, attempt):
            files.delete(aside)
        elif holds_copies(files, attempt, output):
            files.delete(output)
            return None
    path = f"{output}/{SELECTION}"
    if files.exists(path):
        document = _read_selection(engine, path)
        identity = {"run_id": run_id, "asked": fingerprint_of_asked(settings)}
        if identity.items() <= document.items():
            return Selection(list(document["attributes"]), document, output)
    raise ConfigurationError(
        f"selection.output: found something at {output}. Expected nothing there. Choose another "
        "directory, or remove it. Nothing was charged"
    )


def _read_selection(engine: Engine, path: str) -> dict[str, Any]:
    """Read the document of a selection, or nothing if no selection wrote it."""
    try:
        document = json.loads(engine.files.read_text(path))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _draw(query: Query, counts: Sequence[Integers], below: Below) -> Drawn:
    """Draw everything random: bins, the choice, and the published noisy tables with their ranks."""
    selection = query.settings.selection
    scale = query.scale
    candidates, counts = _draw_bins(query, counts, below)
    if selection.mechanism == "tables":
        if scale is None:
            raise ValueError("tables without a scale")
        noisy = with_noise(counts, scale, below)
        ranked = rank(noisy, scale, selection.score)
        chosen = [scored.index for scored in ranked[: selection.count]]
        return Drawn(chosen, dict(enumerate(noisy)), ranked, candidates)
    chosen = choose(
        counts,
        selection.count,
        query.of_a_record,
        selection.score,
        below,
        query.records_at_most,
    )
    if scale is None:
        return Drawn(chosen, {}, [], candidates)
    noisy = with_noise([counts[index] for index in chosen], scale, below)
    return Drawn(chosen, dict(zip(chosen, noisy, strict=True)), [], candidates)


def _draw_bins(
    query: Query, counts: Sequence[Integers], below: Below
) -> tuple[list[Domain], list[Integers]]:
    """Draw the bins at private quantiles, and join the counts of the grid into them."""
    candidates, tables = [], []
    bins_by_name = query.settings.selection.drawn_bins
    for candidate, table in zip(query.candidates, counts, strict=True):
        domain, joined = candidate, table
        if candidate.name in bins_by_name:
            records = table[: candidate.other].sum(axis=1)
            loss = query.loss_of_a_record(query.of_bins[candidate.name])
            cuts = draw_cuts(records, bins_by_name[candidate.name].quantiles, loss, below)
            domain, joined = candidate.merged(cuts, table)
        candidates.append(domain)
        tables.append(joined)
    return candidates, tables
