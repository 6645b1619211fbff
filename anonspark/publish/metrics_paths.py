"""Places for the metrics of all runs that must be refused before any work."""

from __future__ import annotations

import re

from anonspark.configuration import Configuration
from anonspark.errors import ConfigurationError
from anonspark.filesystem import FileSystem
from anonspark.publish.prometheus import local_path

__all__ = ["require_usable_metrics"]


def require_usable_metrics(files: FileSystem, configuration: Configuration) -> None:
    """Check that the metrics of all runs endanger neither input nor output.

    Parameters
    ----------
    files : FileSystem
    configuration : Configuration

    Raises
    ------
    ConfigurationError
        If a place lies inside input or output, or one of them inside it, or cannot be named.
    """
    table, textfile = configuration.metrics.append_to, configuration.metrics.prometheus_textfile
    if table is not None:
        if set(table) & set("*?[]{}"):
            raise ConfigurationError(
                f"metrics.append_to: {table} holds one of the characters * ? [ ] {{ }}, which "
                "Spark would take for a pattern; choose another path"
            )
        _require_apart(files, configuration, "metrics.append_to", table)
    if textfile is not None:
        local = local_path(textfile)
        address = textfile if local is None else f"file:{local}"
        _require_apart(files, configuration, "metrics.prometheus_textfile", address)


def _require_apart(files: FileSystem, configuration: Configuration, key: str, path: str) -> None:
    target = files.resolved(path).rstrip("/")
    places = [("input.path", one) for one in configuration.input.paths]
    for other_key, other in [*places, ("output.path", configuration.output.path)]:
        # A pattern is as good as the directory above it.
        fixed = re.split(r"[*?\[{]", other)[0]
        if fixed != other:
            fixed = fixed.rpartition("/")[0]
        place = files.resolved(fixed or ".").rstrip("/")
        if f"{target}/".startswith(f"{place}/") or place.startswith(f"{target}/"):
            raise ConfigurationError(
                f"{key}: {path} and {other_key} {other} lie inside one another; choose a place "
                "apart from both"
            )
