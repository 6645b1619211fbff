"""``anonspark select``: attributes chosen under differential privacy, and what that cost."""

from __future__ import annotations

import json
import logging
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from anonspark.core.arrays import Integers
from anonspark.core.exact_noise import Below
from anonspark.core.run_ids import require_run_id
from anonspark.engine.files import holds_copies, require_ours
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError
from anonspark.progress import tell
from anonspark.release.noisy_tables import SELECTION
from anonspark.sharing.ledger.budget import (
    RELEASE,
    Budget,
    charge,
    read_budget,
    require_affordable,
    require_limit,
)
from anonspark.sharing.selection.counting import count_tables
from anonspark.sharing.selection.mechanisms import choose, rank, with_noise
from anonspark.sharing.selection.request import Wanted, open_wanted
from anonspark.sharing.selection.settings import SelectionSettings
from anonspark.sharing.selection.writing import (
    Drawn,
    Selection,
    aside_of,
    fingerprint_of_asked,
    publish_selection,
    require_places,
    set_aside,
)

_LOGGER = logging.getLogger("anonspark")

_CONFUSED = 2.302585092994046  # ln 10: of 20 picks one confuses two attributes so near


@dataclass(frozen=True)
class Prospect:
    """The cost of a selection, known before the data are read.

    Parameters
    ----------
    candidates : list of str
    cells : int
        Of all tables.
    epsilon : Fraction
        That would be charged.
    epsilon_of_a_record : Fraction
    scale : Fraction or None
        Of the noise of a cell. None where no tables are published.
    width : int or None
        Of the interval in which a record changes all scores. None where tables are ranked.
    resolution : float
        ``top``: attributes whose gini scores differ by fewer records are confused in one of 20
        picks or more. ``tables``: standard deviation of a cell.
    left : Fraction or None
        Of the budget, before. None where there is none yet.
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
        """Return it as JSON has it."""
        return {
            name: str(own) if isinstance(own, Fraction) else own for name, own in vars(self).items()
        }


def look_ahead(engine: Engine, settings: SelectionSettings) -> Prospect:
    """Return the cost of a selection. Of the data the schema alone is read.

    Raises
    ------
    ConfigurationError, DataError, GuaranteeError
    """
    require_places(engine.files, settings, of_files=True)
    _, wanted = open_wanted(engine, settings)
    selection, loss = settings.selection, wanted.of_a_record
    if selection.mechanism == "tables":
        resolution = 2**0.5 * float(wanted.scale or 0)
    else:
        resolution = 2 * _CONFUSED * selection.count / float(loss)
    place = engine.files.qualified(settings.ledger.place)
    budget = read_budget(engine.files, place)
    if budget is None:
        require_limit(place, wanted.limit)
    else:
        # Says if another limit or unit is asked for; what is too much is told of, not refused.
        budget.loss(wanted.limit, wanted.charged)
    return Prospect(
        [one.name for one in wanted.candidates],
        wanted.cells,
        wanted.charged,
        loss,
        wanted.scale,
        wanted.width,
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
        Name of the run. None makes a random one.
    below : callable
        Source of chance. For real data none but that of the operating system.
    table : Table or None
        The records. None opens what the configuration names.

    Returns
    -------
    Selection

    Raises
    ------
    ConfigurationError
        If something is at the output, a domain is not declared, or the budget is another.
    DataError
        If a column is missing, or files cannot be read.
    GuaranteeError
        If the limit would be exceeded: nothing was drawn.

    Notes
    -----
    One pass over the records, with a shuffle of the cells that tasks count. Counts and scores leave
    the process in no form but with noise.
    """
    run_id = require_run_id(run_id or uuid.uuid4().hex[:12])
    files, selection = engine.files, settings.selection
    output = files.qualified(selection.output).rstrip("/")
    before = _before(engine, settings, output, run_id)
    if before is not None:
        return before
    require_places(files, settings, of_files=table is None)
    tell("opening the table")
    opened, wanted = open_wanted(engine, settings, table)
    place = files.qualified(settings.ledger.place)
    budget = require_affordable(files, place, wanted.limit, wanted.charged)
    with set_aside(files, output, run_id) as aside:
        content = {
            "run_id": run_id,
            "command": "select",
            "kind": "select",
            "mechanism": selection.mechanism,
            "settings": wanted.fingerprint(),
        }
        _warn_of_charges(budget, run_id)
        # Before a record is read, so that nothing that becomes of the records is free, and the
        # entry's time is none of theirs.
        entry = charge(files, place, wanted.limit, wanted.charged, content)
        try:
            tell(f"counting {wanted.cells:,} cells")
            drawn = _draw(wanted, _count(engine, wanted, opened), below)
            return publish_selection(engine, wanted, (aside, output), entry, drawn)
        except BaseException:
            _LOGGER.warning(
                "run %s was charged (entry %s of the ledger) and left no result. The charge stays, "
                "for what was drawn may have been seen",
                run_id,
                entry.number,
            )
            raise


def _count(engine: Engine, wanted: Wanted, table: Table) -> list[Integers]:
    """Count the records of every cell, exactly."""
    configuration = wanted.settings.configuration
    with engine.reading(configuration.input.paths):
        return count_tables(
            table,
            wanted.candidates,
            wanted.target,
            configuration.input.missing_markers,
            drop_missing=configuration.missing == "drop",
            person=wanted.person,
        )


def _warn_of_charges(budget: Budget | None, run_id: str) -> None:
    """Return the error that a run was charged before and left nothing."""
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
    """Return what a run of the same name and settings has written."""
    files, aside = engine.files, aside_of(output, run_id)
    if not files.exists(output):
        return None
    require_ours(files, "selection.output", output)
    for attempt in files.children(aside) if files.rename_copies(output) else ():
        # The rename was stopped, which copies before it deletes.
        if holds_copies(files, output, attempt):
            files.delete(aside)
        elif holds_copies(files, attempt, output):
            files.delete(output)
            return None
    place = f"{output}/{SELECTION}"
    if files.exists(place):
        done = _told_there(engine, place)
        if done.get("run_id") == run_id and done.get("asked") == fingerprint_of_asked(settings):
            return Selection(list(done["attributes"]), done, output)
    raise ConfigurationError(
        f"selection.output: found something at {output}. Expected nothing there. Choose another "
        "directory, or remove it. Nothing was charged"
    )


def _told_there(engine: Engine, place: str) -> dict[str, Any]:
    """Return what a selection says of itself. Nothing, where none has written it."""
    try:
        document = json.loads(engine.files.read_text(place))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _draw(wanted: Wanted, counts: Sequence[Integers], below: Below) -> Drawn:
    """Draw what is chosen, and the noisy tables that are published, with their ranks."""
    selection = wanted.settings.selection
    scale = wanted.scale
    if selection.mechanism == "tables":
        if scale is None:
            raise ValueError("tables without a scale")
        noisy = with_noise(counts, scale, below)
        ranked = rank(noisy, scale, selection.score)
        chosen = [one.place for one in ranked[: selection.count]]
        return Drawn(chosen, dict(enumerate(noisy)), ranked)
    chosen = choose(
        counts,
        selection.count,
        wanted.of_a_record,
        selection.score,
        below,
        wanted.records_at_most,
    )
    if scale is None:
        return Drawn(chosen, {}, [])
    noisy = with_noise([counts[place] for place in chosen], scale, below)
    return Drawn(chosen, dict(zip(chosen, noisy, strict=True)), [])
