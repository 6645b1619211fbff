"""The result of a selection: files that appear together, and the guarantee in one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pyarrow as pa
import yaml

from anonspark._version import __version__
from anonspark.config.budget import in_decimals
from anonspark.core.arrays import Integers
from anonspark.engine.files import Files, require_ours
from anonspark.engine.protocol import Engine
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.layers.publish.paths import require_apart, require_apart_from_input
from anonspark.release.noisy_tables import OF_VALUES, SELECTION, TABLE_SCHEMA, TABLES
from anonspark.sharing.ledger.budget import Entry
from anonspark.sharing.selection.mechanisms import Ranked
from anonspark.sharing.selection.request import Wanted
from anonspark.sharing.selection.settings import SelectionSettings

_SCORES = pa.schema([("attribute", pa.string()), ("rank", pa.int64()), ("score", pa.float64())])


@dataclass(frozen=True)
class Drawn:
    """The drawn noise and choice: all of it may be published.

    Parameters
    ----------
    chosen : list of int
        Places of the chosen candidates, in the order of choice.
    noisy : mapping of int to int64 ndarray
        Noisy tables, by the place of their candidate.
    ranked : list of Ranked
        By the scores of noisy tables.
    """

    chosen: list[int]
    noisy: Mapping[int, Integers]
    ranked: Sequence[Ranked]


@dataclass(frozen=True)
class Selection:
    """The choice, and its cost.

    Parameters
    ----------
    attributes : list of str
        In the order of choice.
    content : mapping
        The content of ``selection.json``.
    output : str
    """

    attributes: list[str]
    content: Mapping[str, Any]
    output: str

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {**self.content, "output": self.output}


def require_places(files: Files, settings: SelectionSettings, *, of_files: bool) -> None:
    """Check, before anything is charged, that output, ledger and input lie apart.

    Parameters
    ----------
    files : Files
    settings : SelectionSettings
    of_files : bool
        Whether the records are in files, else the input's path is none.

    Raises
    ------
    ConfigurationError
    """
    places = {"selection.output": settings.selection.output, "ledger.path": settings.ledger.path}
    require_apart(files, places)
    for key, path in places.items() if of_files else ():
        require_apart_from_input(files, settings.configuration, key, path)


def aside_of(output: str, run_id: str) -> str:
    """Return the directory beside an output where a run writes."""
    return f"{output}.writing-{run_id}"


@contextmanager
def set_aside(files: Files, output: str, run_id: str) -> Iterator[str]:
    """Make a directory beside the output inside of a ``with`` block, before anything is charged.

    Each attempt writes into one of its own in there, so that two at once do not mix their files.

    Parameters
    ----------
    files : Files
    output : str
        Where nothing is.
    run_id : str

    Yields
    ------
    str
        The directory. It is deleted at the end, once nothing is in it.

    Raises
    ------
    ConfigurationError
        If nothing can be written there.
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
    engine: Engine, wanted: Wanted, places: tuple[str, str], entry: Entry, drawn: Drawn
) -> Selection:
    """Write everything aside, and give it its place by one rename.

    Parameters
    ----------
    engine : Engine
    wanted : Wanted
    places : tuple of str
        The directory of :func:`set_aside`, and the output.
    entry : Entry
        Of the ledger.
    drawn : Drawn

    Raises
    ------
    PublishingError
    """
    above, output = places
    aside = f"{above}/{entry.number}"
    files, selection = engine.files, wanted.settings.selection
    names = [wanted.candidates[place].name for place in drawn.chosen]
    document = {
        "run_id": entry.content["run_id"],
        "attributes": names,
        "selection": asked_for(wanted.settings),
        "domains": wanted.domains,
        "asked": fingerprint_of_asked(wanted.settings),
        "settings": wanted.fingerprint(),
        "epsilon": str(wanted.charged),
        "epsilon_of_a_record": str(wanted.of_a_record),
        "scale": None if wanted.scale is None else str(wanted.scale),
        "width": wanted.width,
        "neighbors": selection.neighbors,
        "unit": selection.unit,
        "guarantee": guarantee(wanted, entry),
        "ledger": {"dataset": wanted.settings.ledger.dataset, **entry.content},
        "version": __version__,
        OF_VALUES: [
            one.name for one in map(wanted.candidates.__getitem__, drawn.noisy) if one.has_values
        ],
    }
    try:
        files.make_private_directory(aside)
        if drawn.noisy:
            _write(engine, aside, TABLES, _rows_of(wanted, drawn.noisy))
        if drawn.ranked:
            scores = [
                {"attribute": wanted.candidates[one.place].name, "rank": place, "score": one.score}
                for place, one in enumerate(drawn.ranked, start=1)
            ]
            _write(engine, aside, "scores", pa.Table.from_pylist(scores, schema=_SCORES))
        configured = wanted.settings.configuration.attributes
        roles = {name: configured[name].role for name in names}
        files.write_text(
            f"{aside}/attributes.yaml",
            yaml.safe_dump({"attributes": roles}, sort_keys=False, allow_unicode=True),
        )
        text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
        files.write_text(f"{aside}/{SELECTION}", text)
        files.sync_tree(aside)
        written = set(files.files_below(aside))
        files.rename(aside, output)
        files.sync_names(output)
        if not written <= set(files.files_below(output)):
            # Another process took them for what a killed one had left, where a rename copies.
            place = f"{output}/{SELECTION}"
            if files.exists(place) and files.read_text(place) == text:
                files.delete(output)
            raise OSError("another process writes there")
        # With what attempts left that were killed.
        files.delete(above)
    except OSError as error:
        raise PublishingError(
            f"selection.output: the result could not be written to {output}. Entry {entry.number} "
            "of the ledger stays charged. Check permissions and free space"
        ) from error
    finally:
        files.delete(aside)
    return Selection(names, document, output)


def asked_for(settings: SelectionSettings) -> dict[str, object]:
    """Return the settings as the result has them. Of domains there are fingerprints."""
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


def guarantee(wanted: Wanted, entry: Entry) -> str:
    """Return what holds of a selection, in one sentence."""
    selection = wanted.settings.selection
    who = "one record"
    if selection.person is not None:
        most = selection.rows_per_person
        who = f"one person of at most {most} record{'s' if most > 1 else ''}"
    what = "added or removed" if selection.neighbors == "add_remove" else "replaced by another"
    spent = in_decimals(entry.spent_after)
    return (
        f"{in_decimals(wanted.charged)}-differentially private for {who} {what}. Entry "
        f"{entry.number} of ledger {wanted.settings.ledger.dataset}, {spent} of "
        f"{in_decimals(entry.limit)} spent"
    )


def _rows_of(wanted: Wanted, noisy: Mapping[int, Integers]) -> pa.Table:
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
