"""The last run for Prometheus: a text file for the node exporter's textfile collector."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anonspark._version import __version__
from anonspark.config import Configuration
from anonspark.core.figures import SUMMARY
from anonspark.engine.files import Files
from anonspark.errors import ConfigurationError
from anonspark.ownership import write_aside
from anonspark.progress import Progress
from anonspark.redaction import redact

_LOGGER = logging.getLogger("anonspark")

_Samples = Iterable[tuple[Mapping[str, str], float]]


def exposition(
    configuration: Configuration,
    run_id: str,
    *,
    started: datetime,
    ended: datetime,
    exit_code: int,
    seconds: Mapping[str, float],
    summary: Mapping[str, Any] | None,
) -> str:
    """Describe a run in Prometheus' text format, version 0.0.4.

    Parameters
    ----------
    configuration : Configuration
    run_id : str
    started, ended : datetime
        With a time zone.
    exit_code : int
        0 where all went well.
    seconds : mapping of str to float
        Of each stage.
    summary : mapping or None
        The row of the table. None where nothing was published.
    """
    job = {"job_name": configuration.metrics.job}
    about = {
        "run_id": run_id,
        "model": configuration.model.name,
        "k": str(configuration.privacy.k),
        "version": __version__,
    }
    families: list[tuple[str, str, _Samples]] = [
        ("run_info", "The last run. Always 1.", [(about, 1)]),
        ("run_success", "Whether the last run ended with exit code 0.", [({}, exit_code == 0)]),
        ("run_exit_code", "Exit code of the last run.", [({}, exit_code)]),
        ("run_start_timestamp_seconds", "Start of the last run.", [({}, started.timestamp())]),
        ("run_end_timestamp_seconds", "End of the last run.", [({}, ended.timestamp())]),
        (
            "run_stage_seconds",
            "Duration of each stage of the last run.",
            [({"stage": stage}, duration) for stage, duration in seconds.items()],
        ),
    ]
    for figure in SUMMARY:
        value = None if summary is None or not figure.help else summary.get(figure.name)
        if value is not None:
            families.append((f"release_{figure.name}", figure.help, [({}, float(value))]))
    lines = []
    for name, text, samples in families:
        lines.append(f"# HELP anonspark_{name} {text}")
        lines.append(f"# TYPE anonspark_{name} gauge")
        lines += [
            f"anonspark_{name}{{{_labels({**job, **labels})}}} {_number(value)}"
            for labels, value in samples
        ]
    return redact("\n".join(lines) + "\n")


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    value = float(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def local_path(path: str) -> Path | None:
    """Return where a path is on the driver's local disk, None for other file systems.

    Parameters
    ----------
    path : str
        Without a scheme it is local, whatever the cluster's default file system is: the node
        exporter reads local files.
    """
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    return None if "://" in path else Path(path).absolute()


def write_textfile(
    configuration: Configuration,
    progress: Progress,
    *,
    started: datetime,
    exit_code: int,
    summary: Mapping[str, Any] | None,
    files: Files | None,
) -> None:
    """Write what the configuration asks for. A file that cannot be written is a warning.

    Parameters
    ----------
    configuration : Configuration
    progress : Progress
        Of the run: its name and the seconds of its stages.
    started : datetime
    exit_code : int
    summary : mapping or None
        The row of the table. None where nothing was published.
    files : Files or None
        None where Spark did not start: only a local file can be written then.
    """
    path = configuration.metrics.prometheus_textfile
    if path is None:
        return
    text = exposition(
        configuration,
        progress.run_id or "",
        started=started,
        ended=datetime.now(UTC),
        exit_code=exit_code,
        seconds=progress.seconds,
        summary=summary,
    )
    local = local_path(path)
    # The collector takes every file whose name ends with .prom, hidden or not.
    name = f".{path.rstrip('/').rpartition('/')[2]}.writing"
    try:
        if local is not None:
            local.parent.mkdir(parents=True, exist_ok=True)
            aside = local.with_name(name)
            write_aside(aside, text.encode())
            # The collector is another user, and holds nothing secret from it; the umask may be 077.
            aside.chmod(0o644)
            aside.replace(local)
        elif files is not None:
            files.replace(path, text.encode(), name)
        else:
            raise OSError("Spark did not start")
    except (OSError, ConfigurationError):
        _LOGGER.warning(
            "metrics.prometheus_textfile: %s could not be written. Check the path and its "
            "permissions",
            path,
        )
