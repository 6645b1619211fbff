"""How long a run will take and how much it will publish: as an earlier one did, or as docs say."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from anonspark.config import Configuration
from anonspark.engine.files import Files
from anonspark.errors import DataError, GuaranteeError
from anonspark.redaction import Redacted
from anonspark.release.manifest import MANIFEST, Manifest, read_manifest

_SETTINGS = ("attributes", "missing", "privacy", "model")

_SECONDS_TO_BEGIN = 2.0

# docs/performance.md: ten million people, five numbers, two cores. Variants take as long.
_ROWS_A_SECOND = MappingProxyType(
    {
        "smondrian": 195_860,
        "mondrian": 195_860,
        "su-mondrian": 145_029,
        "u-mondrian": 145_029,
        "canon": 166_467,
        "u-canon": 113_714,
        "microaggregation": 34_590,
    }
)
_MEASURED_WITH = 5

# Columns of Parquet, compressed, of classes that lie side by side: somewhat less as a rule.
_BYTES_A_VALUE = 1.0


@dataclass(frozen=True, repr=False)
class Estimate(Redacted):
    """What a run will take.

    Parameters
    ----------
    seconds : float or None
        None for a model of which no rate is known.
    bytes : int
        Of the published records.
    basis : str
        What it is reckoned from, in words.
    run_id : str or None
        Of the earlier run; None where there is none.
    """

    seconds: float | None
    bytes: int
    basis: str
    run_id: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def estimate_run(files: Files, configuration: Configuration, rows: int, columns: int) -> Estimate:
    """Estimate what a run will take.

    Parameters
    ----------
    files : Files
    configuration : Configuration
    rows : int
        Records that will be anonymized.
    columns : int
        Columns of the release.

    Returns
    -------
    Estimate
        In proportion to the release at the output path, if that has the same attributes, criteria
        and model; else by constants.

    Notes
    -----
    No job; one small file is read.
    """
    earlier = _earlier_release(files, configuration)
    if earlier is not None:
        found = _as_before(earlier, rows)
        if found is not None:
            return found
    size = int(rows * columns * _BYTES_A_VALUE)
    rate = _ROWS_A_SECOND.get(configuration.model.name)
    if rate is None:
        return Estimate(
            None,
            size,
            f"no rate is known of {configuration.model.name}; after a first run to "
            "output.path there is one",
        )
    width = len(configuration.quasi_identifiers) / _MEASURED_WITH
    return Estimate(
        _SECONDS_TO_BEGIN + rows * width / rate,
        size,
        "no earlier run at output.path; constants of docs/performance.md, for numbers and two "
        "cores: yours may differ by a factor of three",
    )


def _earlier_release(files: Files, configuration: Configuration) -> Manifest | None:
    """Return the manifest at the output path, if a run with the same settings wrote it."""
    path = configuration.output.path.rstrip("/")
    if not files.exists(f"{path}/{MANIFEST}"):
        return None
    try:
        manifest = read_manifest(files, path)
    except (DataError, GuaranteeError):
        return None
    wanted = configuration.public_dict()
    same = all(manifest.configuration.get(name) == wanted[name] for name in _SETTINGS)
    return manifest if same and manifest.style == configuration.output.style else None


def _as_before(manifest: Manifest, rows: int) -> Estimate | None:
    """Scale what an earlier run took; None where it does not say."""
    seconds = manifest.document.get("seconds")
    before = (manifest.document.get("published") or {}).get("rows")
    if not seconds or not before or manifest.files is None:
        return None
    size = sum(int(one["bytes"]) for one in manifest.files if one["path"].startswith("data/"))
    return Estimate(
        sum(seconds.values()) * rows / before,
        int(size * rows / before),
        f"as run {manifest.run_id}, which published {before:,} records",
        manifest.run_id,
    )
