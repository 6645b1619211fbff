"""What is kept of a cell: its figures, in a small file each, so that a comparison can go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from anonspark._version import __version__
from anonspark.comparison.grid import Cell, public_setting
from anonspark.engine.files import Files
from anonspark.errors import ConfigurationError
from anonspark.redaction import redact_values

Rows = list[dict[str, Any]]

CELL_FILES = (
    r"cells/(?:[0-9a-f]{16}\.json|_[0-9a-f]{16}\.draft|\._?[0-9a-f]{16}\.(?:json|draft)\.crc)"
)
"""What the files of cells are called, with checksums that outlive them, as a regular expression."""


@dataclass(frozen=True)
class CellResult:
    """Figures of one cell. Nothing in it is a record.

    Parameters
    ----------
    cell : str
        Name of the cell.
    settings : dict
        Key path to value of the axes.
    input : str
        Equal for two prepared inputs that are the same and were evaluated with the same data.
    reason : str or None
        Why nothing was published. None where a release was made.
    configuration : dict
        Without its secrets.
    summary, rounds, attributes, privacy, risk
        Rows of the metrics tables of the release. Empty where there was none.
    seconds : dict
        Seconds of each stage.
    version : str
        Of anonspark.
    evaluation : dict
        Of :meth:`anonspark.comparison.evaluation.CellEvaluation.measure`. Empty where nothing was
        published, or no evaluation was asked for.
    """

    cell: str
    settings: dict[str, Any]
    input: str
    reason: str | None
    configuration: dict[str, Any]
    summary: dict[str, Any]
    rounds: Rows
    attributes: Rows
    privacy: Rows
    risk: Rows
    seconds: dict[str, float]
    version: str = __version__
    evaluation: dict[str, Any] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        """Return whether a guarantee could not be met, so that nothing was published."""
        return self.reason is not None


def cells_directory(output: str) -> str:
    """Return where the figures of the cells are."""
    return f"{output.rstrip('/')}/cells"


def write_result(files: Files, output: str, result: CellResult) -> None:
    """Write a cell's figures. The file is there as a whole or not at all."""
    directory = cells_directory(output)
    path, draft = f"{directory}/{result.cell}.json", f"{directory}/_{result.cell}.draft"
    document = redact_values(json.loads(json.dumps(asdict(result), default=_plain)))
    document["settings"] = {
        key: public_setting(key, setting) for key, setting in result.settings.items()
    }
    text = json.dumps(document, indent=1, ensure_ascii=False)
    files.write_text(draft, text + "\n")
    files.delete(path)
    files.rename(draft, path)


def read_result(files: Files, output: str, cell: Cell, fingerprint: str) -> CellResult | None:
    """Read a cell's figures.

    Parameters
    ----------
    files : Files
    output : str
    cell : Cell
    fingerprint : str
        Of the prepared input at hand, and of what it is evaluated with.

    Returns
    -------
    CellResult or None
        None if they are not there, or are those of another version of anonspark.

    Raises
    ------
    ConfigurationError
        If they are damaged, or those of another input.
    """
    path = f"{cells_directory(output)}/{cell.id}.json"
    if not files.exists(path):
        return None
    try:
        document = json.loads(files.read_text(path))
        result = CellResult(**document)
    except (ValueError, TypeError, OSError) as error:
        raise ConfigurationError(
            f"output: {path} is not what a comparison wrote. Remove it, and the cell is run again"
        ) from error
    if result.version != __version__:
        return None
    if result.input != fingerprint:
        raise ConfigurationError(
            f"output: {path} has figures of another input than the one that is at input.path now "
            "(or of other hierarchies, held-out records or another evaluation). Give the "
            "comparison another output, or remove the directory"
        )
    if "started" in result.summary:
        result.summary["started"] = datetime.fromisoformat(result.summary["started"])
    # What a person calls the cell may have changed with the grid file.
    return CellResult(**(vars(result) | {"settings": dict(cell.settings)}))


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no figure")
