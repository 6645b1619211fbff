"""Places for the metrics of all runs that must be refused before any work."""

from __future__ import annotations

from anonspark.config import Configuration
from anonspark.engine.files import Files
from anonspark.errors import ConfigurationError
from anonspark.layers.publish.paths import (
    require_apart_from_table,
    require_reachable,
    require_target,
)
from anonspark.layers.publish.prometheus import local_path

_TEXTFILE_BEGINS = b"# HELP anonspark_"


def require_usable_metrics(files: Files, configuration: Configuration) -> None:
    """Check that the metrics of all runs endanger neither input nor output.

    Parameters
    ----------
    files : Files
    configuration : Configuration

    Raises
    ------
    ConfigurationError
        If a place lies inside input or output, or one of them inside it, or cannot be named, or
        the text file would replace something that no run wrote.
    """
    table, textfile = configuration.metrics.append_to, configuration.metrics.prometheus_textfile
    if table is not None:
        if set(table) & set("*?[]{}"):
            raise ConfigurationError(
                f"metrics.append_to: {table} holds one of the characters * ? [ ] {{ }}, which "
                "Spark would take for a pattern. Choose another path"
            )
        # Directories are made below it: it may be a link itself, but not to nothing.
        require_reachable(files, "metrics.append_to", f"{table.rstrip('/')}/summary")
        require_apart_from_table(files, configuration, "metrics.append_to", table)
    if textfile is not None:
        local = local_path(textfile)
        address = textfile if local is None else f"file:{local}"
        require_target(files, "metrics.prometheus_textfile", address)
        require_apart_from_table(files, configuration, "metrics.prometheus_textfile", address)
        _require_own_textfile(files, address, textfile)


def _require_own_textfile(files: Files, address: str, textfile: str) -> None:
    """Check that a file that each run replaces is one that a run wrote, or empty."""
    if not files.exists(address):
        return
    try:
        head = files.read_part(address, 0, min(files.size(address), len(_TEXTFILE_BEGINS)))
    except OSError:  # a directory, for instance
        head = b"?"
    if head and head != _TEXTFILE_BEGINS:
        raise ConfigurationError(
            f"metrics.prometheus_textfile: what is at {textfile} was not written by a run, which "
            "would replace it. Choose another file, or remove it yourself"
        )
